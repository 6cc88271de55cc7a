/* Design.
 *
 * 1. need:   walk back from the outputs; nodes are stored in order, so one
 *            pass from the end finds all.
 * 2. world:  large layers or small ones (large.h).
 * 3. fuse:   in a small plan chains become one node (fuse.h), and the needed
 *            nodes are determined again.
 * 4. layout: convolution and pooling work in lanes, in a large plan in blocks
 *            of channels, products row by row, and elementwise operators
 *            follow their input.
 * 5. order:  the needed nodes in graph order, one step each; an input in
 *            another layout, or a view that cannot be read in place, is
 *            converted once, in a step before the first that needs it.
 * 6. uses:   the last step at which each piece of memory is read.
 * 7. place:  step by step, a result reuses an input's memory if the operator
 *            allows it and no later step reads that input; otherwise it gets
 *            the lowest gap that is large enough among the pieces in use. */
#include "base/assert.h"
#include "base/mem.h"
#include "graph/large.h"
#include "tensor/shape.h"

#include <string.h>

#define ALIGN_FLOATS (PL_CACHE_LINE / (int64_t)sizeof(float))

static int64_t rounded(int64_t floats)
{
    return (floats + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
}

int64_t pl_plan_padded(const pl_plan *plan, int64_t rows)
{
    int64_t lanes = plan->kernels->lanes;
    return (rows + lanes - 1) / lanes * lanes;
}

/* Can the node's memory be read directly in this layout?  Blocks must have the
 * same shape. */
static bool lies_in(const pl_plan *plan, const pl_node *node, pl_layout layout)
{
    int id = plan->values[node->id].root;
    const pl_value *root = &plan->values[id];
    if (root->place == PL_PLACE_VIEW || root->layout != layout)
        return false;
    return layout != PL_LAYOUT_BLOCKED ||
           pl_shape_equal(node->shape, plan->nodes[id]->shape);
}

/* Operators without a layout of their own follow their first batched input. */
static pl_layout followed_layout(const pl_plan *plan, const pl_node *node)
{
    for (int j = 0; j < node->input_count; j++)
        if (pl_shape_batched(node->in[j]->shape)) {
            pl_layout layout = plan->values[node->in[j]->id].layout;
            return lies_in(plan, node->in[j], layout) ? layout
                                                      : PL_LAYOUT_PLAIN;
        }
    return PL_LAYOUT_PLAIN;
}

pl_layout pl_plan_layout(const pl_plan *plan, const pl_node *node)
{
    if (node->op->layout == PL_OP_ANY && !pl_shape_batched(node->shape))
        return followed_layout(plan, node);
    return plan->values[node->id].layout;
}

/* The layout in which `node` reads its input j. */
static pl_layout wanted_layout(const pl_plan *plan, const pl_node *node, int j)
{
    if (!pl_shape_batched(node->in[j]->shape))
        return PL_LAYOUT_PLAIN;
    if (node->op->layout == PL_OP_ANY)
        return pl_plan_layout(plan, node);
    if (pl_plan_blocks(plan, node, node->in[j]->shape))
        return PL_LAYOUT_BLOCKED;
    return node->op->layout == PL_OP_LANES && !plan->values[node->id].large
               ? PL_LAYOUT_LANES
               : PL_LAYOUT_PLAIN;
}

pl_form pl_plan_form(const pl_plan *plan, const pl_node *node, int j)
{
    const pl_value *root = &plan->values[plan->values[node->in[j]->id].root];
    pl_layout want = wanted_layout(plan, node, j);
    if (root->place == PL_PLACE_VIEW && want == PL_LAYOUT_PLAIN &&
        (node->op->reads_views & 1u << j) != 0 && !plan->values[node->id].large)
        return PL_FORM_VIEW;
    if (lies_in(plan, node->in[j], want))
        return PL_FORM_RESULT;
    static const pl_form copies[PL_LAYOUTS] = {
        [PL_LAYOUT_PLAIN] = PL_FORM_PLAIN,
        [PL_LAYOUT_LANES] = PL_FORM_LANES,
        [PL_LAYOUT_BLOCKED] = PL_FORM_BLOCKED,
    };
    return copies[want];
}

pl_form pl_plan_source(const pl_plan *plan, int id, pl_layout to)
{
    const pl_value *root = &plan->values[plan->values[id].root];
    bool view = root->place == PL_PLACE_VIEW;
    bool through_plain =
        to == PL_LAYOUT_BLOCKED
            ? view || root->layout != PL_LAYOUT_PLAIN
            : to == PL_LAYOUT_LANES && root->layout == PL_LAYOUT_BLOCKED;
    if (through_plain)
        return PL_FORM_PLAIN;
    return view ? PL_FORM_VIEW : PL_FORM_RESULT;
}

/* Floats of one result in a layout, for the planned batch. */
static int64_t floats_in(const pl_plan *plan, const pl_node *node,
                         pl_layout layout)
{
    if (layout == PL_LAYOUT_BLOCKED)
        return pl_plan_blocked_count(plan->kernels, node->shape, plan->batch);
    return pl_shape_count(node->shape, layout == PL_LAYOUT_LANES
                                           ? pl_plan_padded(plan, plan->batch)
                                           : plan->batch);
}

static void find_needed(pl_plan *plan, const pl_plan_opts *opts, bool *needed)
{
    for (int i = 0; i < opts->output_count; i++)
        needed[opts->outputs[i]->id] = true;
    for (int i = 0; i < opts->diff_count; i++)
        if (opts->diff[i] != NULL)
            needed[opts->diff[i]->id] = true;
    for (int i = plan->value_count - 1; i >= 0; i--) {
        const pl_node *node = plan->nodes[i];
        for (int j = 0; needed[i] && j < node->input_count; j++)
            needed[node->in[j]->id] = true;
    }
}

/* Fuse chains of nodes whose intermediate results are not needed. */
static pl_status fuse(pl_plan *plan, const pl_plan_opts *opts, bool *needed)
{
    if (opts->no_fusing || plan->large || plan->kernels->conv_block == NULL)
        return PL_OK;
    size_t count = (size_t)plan->value_count;
    bool *kept;
    int fused;
    PL_TRY(PL_NEW(plan->fused, count));
    PL_TRY(PL_NEW(kept, count));
    for (int i = 0; i < opts->output_count; i++)
        kept[opts->outputs[i]->id] = true;
    for (int i = 0; i < opts->diff_count; i++)
        if (opts->diff[i] != NULL)
            kept[opts->diff[i]->id] = true;
    pl_status status = pl_fuse(&(pl_fuse_opts) { .graph = plan->graph,
                                                 .needed = needed,
                                                 .kept = kept },
                               plan->nodes, plan->fused, &fused);
    pl_mem_free(kept);
    if (status == PL_OK && fused > 0) {
        memset(needed, 0, count * sizeof *needed);
        find_needed(plan, opts, needed);
    }
    return status;
}

/* Choose the kind of place for each node's result; offsets come later. */
static void choose_places(pl_plan *plan, const pl_params *params,
                          const bool *needed, bool training)
{
    const pl_node *parameter = NULL;
    int param = 0;
    while ((parameter = pl_graph_next_param(plan->graph, parameter)) != NULL)
        plan->values[parameter->id].result.offset =
            pl_params_get(params, param++)->offset;
    for (int i = 0; i < plan->value_count; i++) {
        const pl_node *node = plan->nodes[i];
        pl_value *value = &plan->values[i];
        value->root = i;
        value->workspace = -1;
        if (node->op == &pl_op_input) {
            value->place = needed[i] ? PL_PLACE_VIEW : PL_PLACE_NONE;
            value->input = plan->input_count++;
        } else if (node->op == &pl_op_parameter) {
            value->place = needed[i] ? PL_PLACE_PARAM : PL_PLACE_NONE;
        } else if (needed[i] && (node->op->alias || value->joined ||
                                 (node->op->training && !training))) {
            value->root = plan->values[node->in[0]->id].root;
            value->place = plan->values[value->root].place;
        } else if (needed[i]) {
            value->place = PL_PLACE_ARENA;
        }
    }
}

static pl_layout result_layout(const pl_plan *plan, const pl_node *node)
{
    if (node->op->layout == PL_OP_ANY)
        return followed_layout(plan, node);
    if (pl_plan_blocks(plan, node, node->shape))
        return PL_LAYOUT_BLOCKED;
    return node->op->layout == PL_OP_LANES && !plan->values[node->id].large
               ? PL_LAYOUT_LANES
               : PL_LAYOUT_PLAIN;
}

static void choose_layouts(pl_plan *plan)
{
    for (int i = 0; i < plan->value_count; i++) {
        const pl_node *node = plan->nodes[i];
        pl_value *value = &plan->values[i];
        if (value->root != i)
            value->layout = plan->values[value->root].layout;
        if (value->root != i || value->place != PL_PLACE_ARENA ||
            !pl_shape_batched(node->shape))
            continue;
        value->layout = result_layout(plan, node);
        plan->lanes = plan->lanes || value->layout == PL_LAYOUT_LANES;
    }
}

static void place_gradients(pl_plan *plan, const pl_params *params,
                            const pl_plan_opts *opts)
{
    for (int i = 0; i < opts->diff_count; i++) {
        if (opts->diff[i] == NULL)
            continue;
        pl_value *value = &plan->values[opts->diff[i]->id];
        PL_ASSERT(value->place == PL_PLACE_ARENA);
        value->place = PL_PLACE_DIFF;
        value->result.offset = pl_params_get(params, i)->offset;
    }
}

/* Add a step that converts the node's result, unless there is one.  A blocked
 * copy belongs to the node, whose shape it has, other copies to its root. */
static void convert(pl_plan *plan, int id, pl_layout layout)
{
    static const pl_step_kind kinds[PL_LAYOUTS] = {
        [PL_LAYOUT_PLAIN] = PL_STEP_TO_PLAIN,
        [PL_LAYOUT_LANES] = PL_STEP_TO_LANES,
        [PL_LAYOUT_BLOCKED] = PL_STEP_TO_BLOCKED,
    };
    if (layout != PL_LAYOUT_BLOCKED)
        id = plan->values[id].root;
    pl_piece *copy = &plan->values[id].copy[layout];
    if (copy->count > 0)
        return;
    if (pl_plan_source(plan, id, layout) == PL_FORM_PLAIN)
        convert(plan, id, PL_LAYOUT_PLAIN);
    copy->count = rounded(floats_in(plan, plan->nodes[id], layout));
    plan->steps[plan->step_count++] = (pl_step) { id, kinds[layout] };
}

static void make_steps(pl_plan *plan)
{
    for (int i = 0; i < plan->value_count; i++) {
        const pl_node *node = plan->nodes[i];
        if (plan->values[i].place == PL_PLACE_NONE || node->op->run == NULL ||
            plan->values[i].root != i || plan->values[i].joined)
            continue;
        for (int j = 0; j < node->input_count; j++) {
            pl_form form = pl_plan_form(plan, node, j);
            if (form != PL_FORM_RESULT && form != PL_FORM_VIEW)
                convert(plan, node->in[j]->id, wanted_layout(plan, node, j));
        }
        plan->steps[plan->step_count++] = (pl_step) { i, PL_STEP_RUN };
    }
    for (int i = 0; i < plan->output_count; i++) {
        int root = plan->values[plan->outputs[i]].root;
        if (plan->values[root].place == PL_PLACE_VIEW ||
            plan->values[root].layout != PL_LAYOUT_PLAIN)
            convert(plan, root, PL_LAYOUT_PLAIN);
    }
}

/* The piece that holds a node's result in some form. */
static pl_piece *piece_in(pl_plan *plan, int id, pl_form form)
{
    pl_value *root = &plan->values[plan->values[id].root];
    switch (form) {
    case PL_FORM_PLAIN:
        return &root->copy[PL_LAYOUT_PLAIN];
    case PL_FORM_LANES:
        return &root->copy[PL_LAYOUT_LANES];
    case PL_FORM_BLOCKED:
        return &plan->values[id].copy[PL_LAYOUT_BLOCKED];
    case PL_FORM_RESULT:
    case PL_FORM_VIEW:
        break;
    }
    return &root->result;
}

/* The piece that holds an input in the form the node reads. */
static pl_piece *piece_of(pl_plan *plan, const pl_node *node, int j)
{
    return piece_in(plan, node->in[j]->id, pl_plan_form(plan, node, j));
}

pl_layout pl_plan_target(const pl_step *step)
{
    PL_ASSERT(step->kind != PL_STEP_RUN);
    if (step->kind == PL_STEP_TO_BLOCKED)
        return PL_LAYOUT_BLOCKED;
    return step->kind == PL_STEP_TO_LANES ? PL_LAYOUT_LANES : PL_LAYOUT_PLAIN;
}

static void find_last_uses(pl_plan *plan)
{
    for (int s = 0; s < plan->step_count; s++) {
        const pl_node *node = plan->nodes[plan->steps[s].node];
        plan->values[node->id].result.last = s;
        if (plan->steps[s].kind != PL_STEP_RUN) {
            pl_layout to = pl_plan_target(&plan->steps[s]);
            pl_form from = pl_plan_source(plan, node->id, to);
            piece_in(plan, node->id, from)->last = s;
            continue;
        }
        for (int j = 0; j < node->input_count; j++)
            piece_of(plan, node, j)->last = s;
        /* A gradient may read the workspace of its first input. */
        if (node->input_count > 0)
            plan->values[node->in[0]->id].result.last = s;
    }
    for (int i = 0; i < plan->output_count; i++) {
        pl_value *root = &plan->values[plan->values[plan->outputs[i]].root];
        bool copied =
            root->copy[PL_LAYOUT_PLAIN].count > 0 &&
            (root->place == PL_PLACE_VIEW || root->layout != PL_LAYOUT_PLAIN);
        (copied ? &root->copy[PL_LAYOUT_PLAIN] : &root->result)->last =
            plan->step_count;
    }
}

/* The pieces in use while placing, ordered by offset. */
typedef struct pieces {
    pl_piece **list;
    int count;
} pieces;

static void drop_piece(pieces *used, int index)
{
    used->count--;
    memmove(used->list + index, used->list + index + 1,
            (size_t)(used->count - index) * sizeof(pl_piece *));
}

/* Put the piece into the lowest gap that is large enough. */
static void take_piece(pl_plan *plan, pieces *used, pl_piece *piece)
{
    plan->unshared += piece->count;
    if (piece->count == 0)
        return;
    int64_t offset = 0;
    int at = 0;
    while (at < used->count && used->list[at]->offset - offset < piece->count) {
        offset = used->list[at]->offset + used->list[at]->count;
        at++;
    }
    memmove(used->list + at + 1, used->list + at,
            (size_t)(used->count - at) * sizeof(pl_piece *));
    piece->offset = offset;
    used->list[at] = piece;
    used->count++;
    if (offset + piece->count > plan->arena)
        plan->arena = offset + piece->count;
}

/* The piece of an input that the result of step s may overwrite, or -1. */
static int reusable(pl_plan *plan, const pieces *used, const pl_node *node,
                    int s)
{
    for (int j = 0; j < node->input_count; j++) {
        const pl_piece *piece = piece_of(plan, node, j);
        const pl_value *root =
            &plan->values[plan->values[node->in[j]->id].root];
        if ((node->op->in_place & 1u << j) == 0 || piece->last != s ||
            root->place != PL_PLACE_ARENA || root->workspace >= 0)
            continue;
        for (int p = 0; p < used->count; p++)
            if (used->list[p] == piece &&
                piece->count == plan->values[node->id].result.count)
                return p;
    }
    return -1;
}

static int64_t scratch_of(const pl_plan *plan, const pl_node *node)
{
    const pl_value *value = &plan->values[node->id];
    if (value->op != NULL)
        return pl_dnn_op_scratch(value->op);
    if (value->large)
        return node->op->scratch_large != NULL
                   ? node->op->scratch_large(node, plan->batch)
                   : 0;
    return node->op->scratch != NULL
               ? node->op->scratch(node, plan->kernels->lanes)
               : 0;
}

/* Sizes and places of the results of step s. */
static void place_result(pl_plan *plan, pieces *used, int s)
{
    const pl_node *node = plan->nodes[plan->steps[s].node];
    pl_value *value = &plan->values[node->id];
    int64_t batch = value->layout == PL_LAYOUT_LANES
                        ? pl_plan_padded(plan, plan->batch)
                        : plan->batch;
    bool arena = value->place == PL_PLACE_ARENA;
    int64_t size = arena ? rounded(floats_in(plan, node, value->layout)) : 0;
    int64_t extra = node->op->workspace != NULL
                        ? rounded(node->op->workspace(node, batch))
                        : 0;
    PL_ASSERT(arena || extra == 0);
    value->result.count = size + extra;
    value->scratch.count = rounded(scratch_of(plan, node));
    value->scratch.last = s;
    /* Large operations need more scratch memory than all live results: placed
     * after them it leaves no gaps.  Small ones should reuse memory that is in
     * the cache. */
    if (!plan->large)
        take_piece(plan, used, &value->scratch);
    int again = extra == 0 ? reusable(plan, used, node, s) : -1;
    if (again >= 0) {
        value->result.offset = used->list[again]->offset;
        used->list[again] = &value->result;
        plan->unshared += value->result.count;
    } else {
        take_piece(plan, used, &value->result);
    }
    if (extra > 0)
        value->workspace = value->result.offset + size;
    if (plan->large)
        take_piece(plan, used, &value->scratch);
}

static pl_status place_all(pl_plan *plan)
{
    pieces used = { NULL, 0 };
    PL_TRY(PL_NEW(used.list, 5 * (size_t)plan->value_count + 1));
    for (int s = 0; s < plan->step_count; s++) {
        pl_value *value = &plan->values[plan->steps[s].node];
        if (plan->steps[s].kind == PL_STEP_RUN)
            place_result(plan, &used, s);
        else
            take_piece(plan, &used,
                       &value->copy[pl_plan_target(&plan->steps[s])]);
        for (int p = used.count - 1; p >= 0; p--)
            if (used.list[p]->last <= s)
                drop_piece(&used, p);
    }
    pl_mem_free(used.list);
    return PL_OK;
}

static pl_status make_plan(pl_plan *plan, const pl_plan_opts *opts)
{
    pl_params *params = NULL; /* only for the parameters' offsets */
    bool *needed = NULL;
    pl_status status;
    size_t count = (size_t)plan->value_count;
    PL_TRY_OUT(status, PL_NEW(plan->nodes, count));
    PL_TRY_OUT(status, PL_NEW(plan->values, count));
    PL_TRY_OUT(status, PL_NEW(plan->steps, 4 * count));
    PL_TRY_OUT(status, PL_NEW(plan->outputs, (size_t)opts->output_count));
    PL_TRY_OUT(status, PL_NEW(needed, count));
    PL_TRY_OUT(status, pl_graph_params(plan->graph, &params));

    plan->output_count = opts->output_count;
    for (int i = 0; i < opts->output_count; i++)
        plan->outputs[i] = opts->outputs[i]->id;
    for (int i = 0; i < plan->value_count; i++)
        plan->nodes[i] = pl_graph_get(plan->graph, i);
    find_needed(plan, opts, needed);
    pl_large_choose(plan, opts, needed);
    PL_TRY_OUT(status, fuse(plan, opts, needed));
    choose_places(plan, params, needed, plan->training);
    choose_layouts(plan);
    place_gradients(plan, params, opts);
    pl_large_join_bias(plan);
    make_steps(plan);
    PL_TRY_OUT(status, pl_large_prepare(plan));
    find_last_uses(plan);
    PL_TRY_OUT(status, place_all(plan));
    status = pl_plan_events(plan, opts);
out:
    pl_params_free(params);
    pl_mem_free(needed);
    return status;
}

pl_status pl_plan_new(pl_plan **out, const pl_plan_opts *opts)
{
    PL_ASSERT(opts->batch >= 1);
    PL_TRY(pl_graph_status(opts->graph));
    pl_plan *plan;
    PL_TRY(PL_NEW(plan, 1));
    plan->graph = opts->graph;
    plan->kernels = opts->kernels != NULL ? opts->kernels : pl_kernels_best();
    plan->batch = opts->batch;
    plan->training = opts->diff_count > 0;
    plan->value_count = pl_graph_count(opts->graph);
    pl_status status = make_plan(plan, opts);
    if (status != PL_OK) {
        pl_plan_free(plan);
        return pl_context(status, "plan for batches of %lld",
                          (long long)opts->batch);
    }
    *out = plan;
    return PL_OK;
}

void pl_plan_free(pl_plan *plan)
{
    if (plan == NULL)
        return;
    pl_large_free(plan);
    pl_mem_free(plan->nodes);
    pl_mem_free(plan->fused);
    pl_mem_free(plan->values);
    pl_mem_free(plan->steps);
    pl_mem_free(plan->needs);
    pl_mem_free(plan->readies);
    pl_mem_free(plan->outputs);
    pl_mem_free(plan);
}

pl_plan_memory pl_plan_measure(const pl_plan *plan)
{
    pl_plan_memory memory = {
        .bytes = plan->arena * (int64_t)sizeof(float),
        .unshared_bytes = plan->unshared * (int64_t)sizeof(float),
        .steps = plan->step_count,
        .large = plan->large,
        .row_group = plan->lanes ? plan->kernels->lanes : 1,
    };
    for (int s = 0; s < plan->step_count; s++) {
        const pl_node *node = plan->nodes[plan->steps[s].node];
        if (plan->steps[s].kind == PL_STEP_RUN &&
            node->op->multiply_adds != NULL)
            memory.multiply_adds += node->op->multiply_adds(node);
    }
    return memory;
}

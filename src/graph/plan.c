/* Design.
 *
 * 1. need:   walk back from the outputs; nodes are stored in order, so one
 *            pass from the end finds all.
 * 2. order:  the needed nodes in graph order, each a step; a view that an
 *            operator cannot read in place gets a step that converts it.
 * 3. uses:   the last step at which each memory is read.
 * 4. place:  step by step, a result takes over an input's memory where the
 *            operator allows it and nobody reads that input later; else the
 *            lowest gap that is large enough among the memories in use.
 *
 * Layouts and fusion belong between 2 and 3: they change steps and sizes, not
 * what follows. */
#include "base/assert.h"
#include "base/mem.h"
#include "graph/plan_priv.h"
#include "tensor/shape.h"

#include <string.h>

#define ALIGN_FLOATS (PL_CACHE_LINE / (int64_t)sizeof(float))

static int64_t rounded(int64_t floats)
{
    return (floats + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
}

bool pl_plan_wants_loaded(const pl_plan *plan, const pl_node *node, int j)
{
    const pl_value *value = &plan->values[node->in[j]->id];
    return plan->values[value->root].place == PL_PLACE_VIEW &&
           (node->op->reads_views & 1u << j) == 0;
}

static void find_needed(pl_plan *plan, const pl_plan_opts *opts, bool *needed)
{
    for (int i = 0; i < opts->output_count; i++)
        needed[opts->outputs[i]->id] = true;
    for (int i = 0; i < opts->diff_count; i++)
        if (opts->diff[i] != NULL)
            needed[opts->diff[i]->id] = true;
    for (int i = plan->value_count - 1; i >= 0; i--) {
        const pl_node *node = pl_graph_get(plan->graph, i);
        for (int j = 0; needed[i] && j < node->input_count; j++)
            needed[node->in[j]->id] = true;
    }
}

/* What kind of place each node's result has; offsets come later. */
static void choose_places(pl_plan *plan, const pl_params *params,
                          const bool *needed)
{
    int param = 0;
    for (int i = 0; i < plan->value_count; i++) {
        const pl_node *node = pl_graph_get(plan->graph, i);
        pl_value *value = &plan->values[i];
        *value = (pl_value) { .root = i, .workspace = -1, .loaded = -1 };
        if (node->op == &pl_op_input) {
            value->place = needed[i] ? PL_PLACE_VIEW : PL_PLACE_NONE;
            value->input = plan->input_count++;
        } else if (node->op == &pl_op_parameter) {
            value->place = needed[i] ? PL_PLACE_PARAM : PL_PLACE_NONE;
            value->offset = pl_params_get(params, param++)->offset;
        } else if (needed[i] && node->op->alias) {
            value->root = plan->values[node->in[0]->id].root;
            value->place = plan->values[value->root].place;
        } else if (needed[i]) {
            value->place = PL_PLACE_ARENA;
        }
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
        value->offset = pl_params_get(params, i)->offset;
    }
}

/* A step that converts the view, unless there is one. */
static void load_view(pl_plan *plan, pl_value *view)
{
    if (view->loaded >= 0)
        return;
    view->loaded = 0; /* placed later */
    plan->steps[plan->step_count++] = (pl_step) { view->root, .load = true };
}

static void make_steps(pl_plan *plan)
{
    for (int i = 0; i < plan->value_count; i++) {
        const pl_node *node = pl_graph_get(plan->graph, i);
        if (plan->values[i].place == PL_PLACE_NONE || node->op->run == NULL)
            continue;
        for (int j = 0; j < node->input_count; j++)
            if (pl_plan_wants_loaded(plan, node, j))
                load_view(plan,
                          &plan->values[plan->values[node->in[j]->id].root]);
        plan->steps[plan->step_count++] = (pl_step) { i, .load = false };
    }
    for (int i = 0; i < plan->output_count; i++) {
        pl_value *root = &plan->values[plan->values[plan->outputs[i]].root];
        if (root->place == PL_PLACE_VIEW)
            load_view(plan, root);
    }
}

static void find_last_uses(pl_plan *plan)
{
    for (int s = 0; s < plan->step_count; s++) {
        const pl_node *node = pl_graph_get(plan->graph, plan->steps[s].node);
        plan->values[node->id].last = s;
        for (int j = 0; !plan->steps[s].load && j < node->input_count; j++)
            plan->values[plan->values[node->in[j]->id].root].last = s;
    }
    for (int i = 0; i < plan->output_count; i++)
        plan->values[plan->values[plan->outputs[i]].root].last =
            plan->step_count;
}

/* Memory in use while placing: ordered by offset. */
typedef struct block {
    int64_t offset, count;
    int value; /* whose it is; it ends with the value's last use */
} block;

typedef struct blocks {
    block *list;
    int count;
} blocks;

static void drop_block(blocks *used, int index)
{
    used->count--;
    memmove(used->list + index, used->list + index + 1,
            (size_t)(used->count - index) * sizeof *used->list);
}

/* The lowest gap of `count` floats. */
static int64_t take_block(blocks *used, int64_t count, int value)
{
    int64_t offset = 0;
    int at = 0;
    while (at < used->count && used->list[at].offset - offset < count) {
        offset = used->list[at].offset + used->list[at].count;
        at++;
    }
    memmove(used->list + at + 1, used->list + at,
            (size_t)(used->count - at) * sizeof *used->list);
    used->list[at] = (block) { offset, count, value };
    used->count++;
    return offset;
}

/* The block of an input that the result of step s may overwrite, or -1. */
static int reusable(const pl_plan *plan, const blocks *used,
                    const pl_node *node, int s)
{
    for (int j = 0; j < node->input_count; j++) {
        const pl_value *input = &plan->values[node->in[j]->id];
        const pl_value *root = &plan->values[input->root];
        if ((node->op->in_place & 1u << j) == 0 || root->last != s ||
            root->place != PL_PLACE_ARENA || root->workspace >= 0)
            continue;
        for (int b = 0; b < used->count; b++)
            if (used->list[b].value == input->root &&
                used->list[b].count == plan->values[node->id].count)
                return b;
    }
    return -1;
}

static void place_result(pl_plan *plan, blocks *used, int s)
{
    const pl_node *node = pl_graph_get(plan->graph, plan->steps[s].node);
    pl_value *value = &plan->values[node->id];
    int64_t size = rounded(pl_shape_count(node->shape, plan->batch));
    if (plan->steps[s].load) {
        value->loaded = take_block(used, size, node->id);
        plan->unshared += size;
        return;
    }
    int64_t extra = node->op->workspace != NULL
                        ? rounded(node->op->workspace(node, plan->batch))
                        : 0;
    bool arena = value->place == PL_PLACE_ARENA;
    value->count = (arena ? size : 0) + extra;
    plan->unshared += value->count;
    if (value->count == 0)
        return;
    int again = arena && extra == 0 ? reusable(plan, used, node, s) : -1;
    int64_t offset = again >= 0 ? used->list[again].offset
                                : take_block(used, value->count, node->id);
    if (again >= 0)
        used->list[again].value = node->id;
    if (arena)
        value->offset = offset;
    if (extra > 0)
        value->workspace = offset + (arena ? size : 0);
}

static pl_status place_all(pl_plan *plan)
{
    blocks used = { NULL, 0 };
    PL_TRY(PL_NEW(used.list, 2 * (size_t)plan->value_count + 1));
    for (int s = 0; s < plan->step_count; s++) {
        place_result(plan, &used, s);
        for (int b = used.count - 1; b >= 0; b--) {
            int64_t end = used.list[b].offset + used.list[b].count;
            plan->arena = end > plan->arena ? end : plan->arena;
            if (plan->values[used.list[b].value].last <= s)
                drop_block(&used, b);
        }
    }
    pl_mem_free(used.list);
    return PL_OK;
}

static pl_status make_plan(pl_plan *plan, const pl_plan_opts *opts)
{
    pl_params *params = NULL; /* only for the places of parameters */
    bool *needed = NULL;
    pl_status status;
    size_t count = (size_t)plan->value_count;
    PL_TRY_OUT(status, PL_NEW(plan->values, count));
    PL_TRY_OUT(status, PL_NEW(plan->steps, 2 * count));
    PL_TRY_OUT(status, PL_NEW(plan->outputs, (size_t)opts->output_count));
    PL_TRY_OUT(status, PL_NEW(needed, count));
    PL_TRY_OUT(status, pl_graph_params(plan->graph, &params));

    plan->output_count = opts->output_count;
    for (int i = 0; i < opts->output_count; i++)
        plan->outputs[i] = opts->outputs[i]->id;
    find_needed(plan, opts, needed);
    choose_places(plan, params, needed);
    place_gradients(plan, params, opts);
    make_steps(plan);
    find_last_uses(plan);
    status = place_all(plan);
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
    pl_mem_free(plan->values);
    pl_mem_free(plan->steps);
    pl_mem_free(plan->outputs);
    pl_mem_free(plan);
}

pl_plan_memory pl_plan_measure(const pl_plan *plan)
{
    pl_plan_memory memory = {
        .bytes = plan->arena * (int64_t)sizeof(float),
        .unshared_bytes = plan->unshared * (int64_t)sizeof(float),
        .steps = plan->step_count,
    };
    for (int s = 0; s < plan->step_count; s++) {
        const pl_node *node = pl_graph_get(plan->graph, plan->steps[s].node);
        if (!plan->steps[s].load && node->op->multiply_adds != NULL)
            memory.multiply_adds += node->op->multiply_adds(node);
    }
    return memory;
}

/* Executes a plan. All pointers of all steps are computed when an execution
 * is made or bound; running is then a walk over an array of calls, without
 * allocation, lookup or lock. */
#include "base/assert.h"
#include "base/mem.h"
#include "graph/plan_priv.h"
#include "tensor/shape.h"

#include <string.h>

/* A node's result in each form in which it is read (enum pl_form). */
typedef struct slot {
    pl_view form[PL_FORM_BLOCKED + 1];
} slot;

struct pl_exec {
    const pl_plan *plan;
    pl_exec_state state;
    float *arena;
    float *own;          /* the arena, unless it belongs to a host */
    const float *diff;   /* memory for gradients */
    slot *slots;         /* one per node */
    pl_op_run *runs;     /* one per step, all pointers set */
    pl_dnn_call **calls; /* one per step, NULL: no operation */
};

/* Where the operator of this node writes; NULL for a view. */
static float *result_of(pl_exec *exec, const pl_params *params,
                        const pl_params *grads, int id)
{
    const pl_value *value = &exec->plan->values[exec->plan->values[id].root];
    switch (value->place) {
    case PL_PLACE_PARAM:
        return pl_params_block(params) + value->result.offset;
    case PL_PLACE_DIFF:
        PL_ASSERT(grads != NULL);
        return pl_params_block(grads) + value->result.offset;
    case PL_PLACE_ARENA:
        return exec->arena + value->result.offset;
    case PL_PLACE_VIEW:
    case PL_PLACE_NONE:
        break;
    }
    return NULL;
}

/* Elements between rows. */
static int64_t row_stride(const pl_node *node)
{
    int64_t row = pl_shape_row(node->shape);
    if (node->shape.rank == 0 || pl_shape_batched(node->shape))
        return row;
    return row / node->shape.dim[0];
}

static void set_slots(pl_exec *exec, const pl_params *params,
                      const pl_params *grads)
{
    for (int i = 0; i < exec->plan->value_count; i++) {
        const pl_node *node = exec->plan->nodes[i];
        const pl_value *root = &exec->plan->values[exec->plan->values[i].root];
        pl_view plain = {
            .stride = row_stride(node),
            .dtype = PL_FLOAT32,
            .scale = 1.0f,
        };
        for (int f = 0; f <= PL_FORM_BLOCKED; f++)
            exec->slots[i].form[f] = plain;
        exec->slots[i].form[PL_FORM_RESULT].data =
            result_of(exec, params, grads, i);
        exec->slots[i].form[PL_FORM_PLAIN].data =
            exec->arena + root->copy[PL_LAYOUT_PLAIN].offset;
        exec->slots[i].form[PL_FORM_LANES].data =
            exec->arena + root->copy[PL_LAYOUT_LANES].offset;
        exec->slots[i].form[PL_FORM_BLOCKED].data =
            exec->arena + exec->plan->values[i].copy[PL_LAYOUT_BLOCKED].offset;
    }
}

/* A conversion reads the result, the view or the plain copy, and writes a
 * copy. */
static void set_conversion(pl_exec *exec, pl_op_run *run, pl_layout to)
{
    int id = run->node->id;
    pl_form from = pl_plan_source(exec->plan, id, to);
    /* Views are bound at the root. */
    int holder = from == PL_FORM_VIEW ? exec->plan->values[id].root : id;
    run->in[0] = &exec->slots[holder].form[from];
    run->out = exec->arena + exec->plan->values[id].copy[to].offset;
}

static void set_run(pl_exec *exec, int s, const pl_params *params,
                    const pl_params *grads)
{
    const pl_plan *plan = exec->plan;
    const pl_node *node = plan->nodes[plan->steps[s].node];
    const pl_value *value = &plan->values[node->id];
    pl_op_run *run = &exec->runs[s];
    run->state = &exec->state;
    run->node = node;
    if (plan->steps[s].kind != PL_STEP_RUN) {
        set_conversion(exec, run, pl_plan_target(&plan->steps[s]));
        return;
    }
    run->large = value->large;
    pl_layout layout = pl_plan_layout(plan, node);
    run->blocked = layout == PL_LAYOUT_BLOCKED;
    run->lanes = layout == PL_LAYOUT_LANES ||
                 (node->op->layout == PL_OP_LANES && !run->blocked);
    run->out = result_of(exec, params, grads, node->id);
    run->scratch = exec->arena + value->scratch.offset;
    if (value->workspace >= 0)
        run->workspace = exec->arena + value->workspace;
    for (int j = 0; j < node->input_count; j++) {
        pl_form form = pl_plan_form(plan, node, j);
        int id = node->in[j]->id;
        /* Views are bound at the root. */
        if (form == PL_FORM_VIEW)
            id = plan->values[id].root;
        run->in[j] = &exec->slots[id].form[form];
    }
    if (node->input_count > 0) {
        const pl_value *first = &plan->values[node->in[0]->id];
        if (first->workspace >= 0)
            run->in_workspace = exec->arena + first->workspace;
    }
}

/* Bind the step's operation to the memory that its operator would use. */
static pl_status bind_call(pl_exec *exec, int s, const pl_params *params,
                           const pl_params *grads)
{
    const pl_step *step = &exec->plan->steps[s];
    const pl_value *value = &exec->plan->values[step->node];
    pl_op_run *run = &exec->runs[s];
    const pl_dnn_op *op =
        step->kind == PL_STEP_RUN ? value->op : value->to[pl_plan_target(step)];
    if (op == NULL)
        return PL_OK;
    float *data[PL_DNN_ARGS] = { [PL_DNN_RESULT] = run->out };
    /* Written only when padding a run with fewer rows than planned. */
    for (int j = 0; j < PL_DNN_RESULT && run->in[j] != NULL; j++)
        data[j] = (float *)run->in[j]->data;
    if (value->bias > 0)
        data[PL_DNN_BIAS] = result_of(exec, params, grads, value->bias);
    PL_TRY(pl_dnn_call_new(&exec->calls[s], op, data, run->scratch));
    run->call = exec->calls[s];
    return PL_OK;
}

pl_status pl_exec_new(pl_exec **out, const pl_plan *plan,
                      const pl_params *params, const pl_params *grads)
{
    return pl_exec_new_in(out, plan, params, grads, NULL);
}

pl_status pl_exec_new_in(pl_exec **out, const pl_plan *plan,
                         const pl_params *params, const pl_params *grads,
                         const pl_exec *host)
{
    pl_exec *exec;
    PL_TRY(PL_NEW(exec, 1));
    exec->plan = plan;
    exec->state.kernels = plan->kernels;
    exec->state.threads = plan->threads;
    exec->state.training = plan->training;
    exec->diff = grads != NULL ? pl_params_block(grads) : NULL;
    pl_status status;
    if (host != NULL && host->plan->arena >= plan->arena) {
        exec->arena = host->arena;
    } else {
        PL_TRY_OUT(status, PL_NEW_ALIGNED(exec->own, (size_t)plan->arena));
        exec->arena = exec->own;
    }
    PL_TRY_OUT(status, PL_NEW(exec->slots, (size_t)plan->value_count));
    PL_TRY_OUT(status, PL_NEW(exec->runs, (size_t)plan->step_count));
    PL_TRY_OUT(status, PL_NEW(exec->calls, (size_t)plan->step_count));
    set_slots(exec, params, grads);
    for (int s = 0; s < plan->step_count; s++) {
        set_run(exec, s, params, grads);
        PL_TRY_OUT(status, bind_call(exec, s, params, grads));
    }
    *out = exec;
    return PL_OK;
out:
    pl_exec_free(exec);
    return status;
}

void pl_exec_free(pl_exec *exec)
{
    if (exec == NULL)
        return;
    for (int s = 0; exec->calls != NULL && s < exec->plan->step_count; s++)
        pl_dnn_call_free(exec->calls[s]);
    pl_mem_free(exec->calls);
    pl_mem_free(exec->own);
    pl_mem_free(exec->slots);
    pl_mem_free(exec->runs);
    pl_mem_free(exec);
}

void pl_exec_bind(pl_exec *exec, const pl_params *grads)
{
    const pl_plan *plan = exec->plan;
    float *block = pl_params_block(grads);
    if (block == exec->diff)
        return;
    PL_ASSERT(!plan->large);
    exec->diff = block;
    for (int i = 0; i < plan->value_count; i++) {
        const pl_value *root = &plan->values[plan->values[i].root];
        if (root->place == PL_PLACE_DIFF)
            exec->slots[i].form[PL_FORM_RESULT].data =
                block + root->result.offset;
    }
    for (int s = 0; s < plan->step_count; s++) {
        const pl_value *value = &plan->values[plan->steps[s].node];
        if (plan->steps[s].kind == PL_STEP_RUN && value->place == PL_PLACE_DIFF)
            exec->runs[s].out = block + value->result.offset;
    }
}

static void load_range(const pl_op_run *run, int64_t first, int64_t count)
{
    int64_t row = row_stride(run->node);
    pl_view from = pl_view_from(run->in[0], first);
    run->state->kernels->load(count, row, &from, run->out + first * row);
}

static void run_conversion(const pl_op_run *run, bool to_lanes, bool from_lanes)
{
    const pl_kernels *kernels = run->state->kernels;
    int64_t row = row_stride(run->node);
    int64_t rows = pl_shape_count(run->node->shape, run->state->rows) / row;
    if (to_lanes)
        kernels->to_lanes(rows, row, run->in[0], run->out);
    else if (from_lanes)
        kernels->from_lanes(rows, row, run->in[0]->data, run->out);
    else
        pl_run_cut(run, rows, 1, load_range);
}

static pl_factor_sizes factor_sizes(const pl_node *diff)
{
    return (pl_factor_sizes) { diff->shape.dim[0], diff->shape.dim[1] };
}

bool pl_plan_factors(const pl_node *diff, pl_factor_sizes *out)
{
    if (diff == NULL || diff->op != &pl_op_inner_weights)
        return false;
    *out = factor_sizes(diff);
    return true;
}

/* Copy the factors before a later step reuses the memory of the inputs. */
static void keep_factors(const pl_op_run *run)
{
    pl_factor_sizes sizes = factor_sizes(run->node);
    int64_t rows = run->state->rows;
    pl_view inputs = *run->in[1];
    if (run->factor_scale != NULL)
        *run->factor_scale = inputs.scale;
    inputs.scale = 1;
    memcpy(run->factors, pl_run_in(run, 0),
           (size_t)(rows * sizes.outputs) * sizeof(float));
    run->state->kernels->load(rows, sizes.inputs, &inputs,
                              run->factors + rows * sizes.outputs);
}

/* The step that computes the gradient of dense weights. */
static pl_op_run *run_of(const pl_exec *exec, const pl_node *diff)
{
    const pl_plan *plan = exec->plan;
    int s = 0;
    while (plan->steps[s].node != diff->id ||
           plan->steps[s].kind != PL_STEP_RUN)
        s++;
    PL_ASSERT(s < plan->step_count);
    return &exec->runs[s];
}

void pl_exec_keep_factors(pl_exec *exec, const pl_node *diff, float *to,
                          float *scale)
{
    pl_op_run *run = run_of(exec, diff);
    run->factors = to;
    run->factor_scale = scale;
}

/* The step that computes `diff`, run on other factors. */
typedef struct factor_run {
    pl_exec_state state;
    pl_view views[2];
    pl_op_run run;
} factor_run;

static void factor_run_init(factor_run *f, const pl_exec *exec,
                            const pl_node *diff, int64_t rows,
                            const float *factors, float scale, float *out)
{
    pl_factor_sizes sizes = factor_sizes(diff);
    f->state = exec->state;
    f->state.rows = rows;
    f->views[0] = (pl_view) { .data = factors, .stride = sizes.outputs };
    f->views[1] = (pl_view) { .data = factors + rows * sizes.outputs,
                              .stride = sizes.inputs };
    f->run = *run_of(exec, diff);
    f->run.state = &f->state;
    f->run.out = out;
    for (int i = 0; i < 2; i++) {
        f->views[i].dtype = PL_FLOAT32;
        f->views[i].scale = i == 1 ? scale : 1;
        f->run.in[i] = &f->views[i];
    }
}

void pl_exec_multiply(const pl_exec *exec, const pl_node *diff, int64_t rows,
                      const float *factors, float scale, float *out)
{
    factor_run f;
    factor_run_init(&f, exec, diff, rows, factors, scale, out);
    if (f.run.large)
        f.run.node->op->run_large(&f.run);
    else
        f.run.node->op->run(&f.run);
}

bool pl_exec_multiply_add(const pl_exec *exec, const pl_node *diff,
                          int64_t rows, const float *factors, float scale,
                          float *out)
{
    factor_run f;
    factor_run_init(&f, exec, diff, rows, factors, scale, out);
    return f.run.large && pl_inner_weights_add(&f.run);
}

static void run_step(const pl_exec *exec, int s)
{
    const pl_op_run *run = &exec->runs[s];
    const pl_step *step = &exec->plan->steps[s];
    if (run->factors != NULL)
        keep_factors(run);
    if (run->call != NULL)
        pl_dnn_call_run(run->call, exec->state.rows);
    else if (step->kind != PL_STEP_RUN)
        run_conversion(run, step->kind == PL_STEP_TO_LANES,
                       exec->plan->values[step->node].layout ==
                           PL_LAYOUT_LANES);
    else if (run->large)
        run->node->op->run_large(run);
    else
        run->node->op->run(run);
}

/* Call the hooks for the events of step s; false on failure. */
static bool call_hooks(pl_exec_hooks *hooks,
                       pl_status (*hook)(void *context, int param),
                       const pl_event *list, int count, int s, int *next)
{
    while (*next < count && list[*next].step == s) {
        hooks->status = hook(hooks->context, list[*next].param);
        if (hooks->status != PL_OK)
            return false;
        ++*next;
    }
    return true;
}

static void trace_step(const pl_exec *exec, int s, const pl_exec_args *args,
                       uint64_t begin)
{
    bool runs = exec->plan->steps[s].kind == PL_STEP_RUN;
    pl_trace_span(args->trace, args->lane,
                  runs ? exec->runs[s].node->name : "convert", args->step,
                  begin, pl_ticks_now());
}

static void note_finished(const pl_exec_args *args)
{
    if (args->finished != NULL)
        args->finished(args->finished_context);
}

/* Run with a trace, with hooks, or both. */
static void run_watched(const pl_exec *exec, const pl_exec_args *args)
{
    const pl_plan *plan = exec->plan;
    pl_exec_hooks *hooks = args->hooks;
    bool traced = pl_trace_on(args->trace);
    int need = 0, ready = 0;
    for (int s = 0; s < plan->step_count; s++) {
        if (hooks != NULL && !call_hooks(hooks, hooks->need, plan->needs,
                                         plan->param_count, s, &need))
            return;
        uint64_t begin = traced ? pl_ticks_now() : 0;
        run_step(exec, s);
        note_finished(args);
        if (traced)
            trace_step(exec, s, args, begin);
        if (hooks != NULL && !call_hooks(hooks, hooks->ready, plan->readies,
                                         plan->param_count, s, &ready))
            return;
    }
}

void pl_exec_run(pl_exec *exec, const pl_exec_args *args)
{
    const pl_plan *plan = exec->plan;
    PL_ASSERT(args->rows >= 1 && args->rows <= plan->batch);
    exec->state.rows = args->rows;
    exec->state.seed = args->seed;
    exec->state.key = args->key;
    exec->state.first_row = args->first_row;
    for (int i = 0, left = plan->input_count; left > 0; i++)
        if (plan->nodes[i]->op == &pl_op_input) {
            exec->slots[i].form[PL_FORM_VIEW] =
                args->views[plan->values[i].input];
            left--;
        }
    if (args->hooks != NULL || pl_trace_on(args->trace)) {
        PL_ASSERT(args->hooks == NULL || plan->needs != NULL);
        run_watched(exec, args);
        return;
    }
    for (int s = 0; s < plan->step_count; s++) {
        run_step(exec, s);
        note_finished(args);
    }
}

const float *pl_exec_output(const pl_exec *exec, int index)
{
    PL_ASSERT(index >= 0 && index < exec->plan->output_count);
    int id = exec->plan->outputs[index];
    const pl_value *root = &exec->plan->values[exec->plan->values[id].root];
    bool copied =
        root->place == PL_PLACE_VIEW || root->layout != PL_LAYOUT_PLAIN;
    return exec->slots[id].form[copied ? PL_FORM_PLAIN : PL_FORM_RESULT].data;
}

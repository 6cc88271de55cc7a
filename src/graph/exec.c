#include "base/assert.h"
#include "base/mem.h"
#include "graph/plan_priv.h"
#include "tensor/shape.h"

/* A node's result in two forms: as an operator that reads views sees it, and
 * as plain float32.  They differ for inputs only. */
typedef struct slot {
    pl_view view;
    pl_view plain;
} slot;

struct pl_exec {
    const pl_plan *plan;
    pl_exec_state state;
    float *arena;
    slot *slots;  /* one per node */
    pl_run *runs; /* one per step, all pointers set */
};

/* Where the node's result is written or found; NULL for a view. */
static float *result_of(pl_exec *exec, const pl_params *params,
                        const pl_params *grads, int id)
{
    const pl_value *value = &exec->plan->values[exec->plan->values[id].root];
    switch (value->place) {
    case PL_PLACE_PARAM:
        return pl_params_block(params) + value->offset;
    case PL_PLACE_DIFF:
        PL_ASSERT(grads != NULL);
        return pl_params_block(grads) + value->offset;
    case PL_PLACE_ARENA:
        return exec->arena + value->offset;
    case PL_PLACE_VIEW:
        return value->loaded >= 0 ? exec->arena + value->loaded : NULL;
    case PL_PLACE_NONE:
        break;
    }
    return NULL;
}

static void set_slots(pl_exec *exec, const pl_params *params,
                      const pl_params *grads)
{
    for (int i = 0; i < exec->plan->value_count; i++) {
        const pl_node *node = pl_graph_get(exec->plan->graph, i);
        exec->slots[i].plain = (pl_view) {
            .data = result_of(exec, params, grads, i),
            .stride = node->shape.rank > 0 ? pl_shape_row(node->shape) /
                                                 (pl_shape_batched(node->shape)
                                                      ? 1
                                                      : node->shape.dim[0])
                                           : 1,
            .dtype = PL_FLOAT32,
            .scale = 1.0f,
        };
        exec->slots[i].view = exec->slots[i].plain;
    }
}

static void set_run(pl_exec *exec, int s, const pl_params *params,
                    const pl_params *grads)
{
    const pl_plan *plan = exec->plan;
    const pl_node *node = pl_graph_get(plan->graph, plan->steps[s].node);
    const pl_value *value = &plan->values[node->id];
    pl_run *run = &exec->runs[s];
    run->state = &exec->state;
    run->node = node;
    run->out = result_of(exec, params, grads, node->id);
    if (plan->steps[s].load) {
        run->in[0] = &exec->slots[node->id].view;
        return;
    }
    if (value->workspace >= 0)
        run->workspace = exec->arena + value->workspace;
    for (int j = 0; j < node->input_count; j++) {
        slot *from = &exec->slots[plan->values[node->in[j]->id].root];
        slot *own = &exec->slots[node->in[j]->id];
        bool is_view = plan->values[node->in[j]->id].place == PL_PLACE_VIEW;
        run->in[j] = is_view && !pl_plan_wants_loaded(plan, node, j)
                         ? &from->view
                         : &own->plain;
    }
    if (node->input_count > 0) {
        const pl_value *first = &plan->values[node->in[0]->id];
        if (first->workspace >= 0)
            run->in_workspace = exec->arena + first->workspace;
    }
}

pl_status pl_exec_new(pl_exec **out, const pl_plan *plan,
                      const pl_params *params, const pl_params *grads)
{
    pl_exec *exec;
    PL_TRY(PL_NEW(exec, 1));
    exec->plan = plan;
    exec->state.kernels = plan->kernels;
    pl_status status;
    PL_TRY_OUT(status, PL_NEW_ALIGNED(exec->arena, (size_t)plan->arena));
    PL_TRY_OUT(status, PL_NEW(exec->slots, (size_t)plan->value_count));
    PL_TRY_OUT(status, PL_NEW(exec->runs, (size_t)plan->step_count));
    set_slots(exec, params, grads);
    for (int s = 0; s < plan->step_count; s++)
        set_run(exec, s, params, grads);
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
    pl_mem_free(exec->arena);
    pl_mem_free(exec->slots);
    pl_mem_free(exec->runs);
    pl_mem_free(exec);
}

static void run_step(const pl_exec *exec, int s)
{
    const pl_run *run = &exec->runs[s];
    if (!exec->plan->steps[s].load) {
        run->node->op->run(run);
        return;
    }
    int64_t row = exec->slots[run->node->id].plain.stride;
    exec->state.kernels->load(pl_run_count(run, run->node) / row, row,
                              run->in[0], run->out);
}

static void run_traced(const pl_exec *exec, const pl_exec_args *args)
{
    uint64_t begin = pl_ticks_now();
    for (int s = 0; s < exec->plan->step_count; s++) {
        run_step(exec, s);
        uint64_t end = pl_ticks_now();
        pl_trace_span(args->trace, args->lane, exec->runs[s].node->name,
                      args->step, begin, end);
        begin = end;
    }
}

void pl_exec_run(pl_exec *exec, const pl_exec_args *args)
{
    const pl_plan *plan = exec->plan;
    PL_ASSERT(args->rows >= 1 && args->rows <= plan->batch);
    exec->state.rows = args->rows;
    exec->state.seed = args->seed;
    for (int i = 0, left = plan->input_count; left > 0; i++)
        if (pl_graph_get(plan->graph, i)->op == &pl_op_input) {
            exec->slots[i].view = args->views[plan->values[i].input];
            left--;
        }
    if (pl_trace_on(args->trace)) {
        run_traced(exec, args);
        return;
    }
    for (int s = 0; s < plan->step_count; s++)
        run_step(exec, s);
}

const float *pl_exec_output(const pl_exec *exec, int index)
{
    PL_ASSERT(index >= 0 && index < exec->plan->output_count);
    return exec->slots[exec->plan->outputs[index]].plain.data;
}

/* When a run needs its parameters, and when their gradients are complete. */
#include "base/mem.h"
#include "graph/plan_priv.h"

/* The first step that reads or copies the parameter. */
static int first_read(const pl_plan *plan, int parameter)
{
    for (int s = 0; s < plan->step_count; s++) {
        const pl_node *node = plan->nodes[plan->steps[s].node];
        if (plan->values[node->id].root == parameter)
            return s;
        for (int j = 0; j < node->input_count; j++)
            if (plan->values[node->in[j]->id].root == parameter)
                return s;
    }
    return 0;
}

/* The step that writes the gradient, or whose operator also computes it. */
static int last_write(const pl_plan *plan, const pl_node *diff)
{
    for (int s = 0; diff != NULL && s < plan->step_count; s++) {
        int id = plan->steps[s].node;
        if (plan->steps[s].kind == PL_STEP_RUN &&
            (id == diff->id ||
             (plan->values[id].bias > 0 && plan->values[id].bias == diff->id)))
            return s;
    }
    return plan->step_count - 1;
}

/* Insert an event after those of its step and earlier ones. */
static void add_event(pl_event *events, int count, pl_event event)
{
    int at = count;
    for (; at > 0 && events[at - 1].step > event.step; at--)
        events[at] = events[at - 1];
    events[at] = event;
}

pl_status pl_plan_events(pl_plan *plan, const pl_plan_opts *opts)
{
    if (opts->diff_count == 0)
        return PL_OK;
    size_t count = (size_t)opts->diff_count;
    PL_TRY(PL_NEW(plan->needs, count));
    PL_TRY(PL_NEW(plan->readies, count));
    plan->param_count = opts->diff_count;
    const pl_node *node = NULL;
    for (int param = 0; (node = pl_graph_next_param(plan->graph, node)) != NULL;
         param++)
        add_event(plan->needs, param,
                  (pl_event) { first_read(plan, node->id), param });
    for (int n = 0; n < opts->diff_count; n++) {
        int param = opts->diff_count - 1 - n;
        add_event(plan->readies, n,
                  (pl_event) { last_write(plan, opts->diff[param]), param });
    }
    return PL_OK;
}

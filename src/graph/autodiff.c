/* Reverse-mode differentiation by adding nodes: from the loss backward, each
 * operator adds nodes for the gradients of its inputs; where a value was used
 * twice, the gradients are added.  See Griewank and Walther, Evaluating
 * Derivatives, chapter 3. */
#include "base/assert.h"
#include "base/mem.h"
#include "graph/graph.h"

/* depends[i]: node i depends on a parameter, so its gradient is needed. */
static void find_dependents(const pl_graph *graph, int count, bool *depends)
{
    for (int i = 0; i < count; i++) {
        const pl_node *node = pl_graph_get(graph, i);
        depends[i] = node->op == &pl_op_parameter;
        for (int j = 0; j < node->input_count; j++)
            depends[i] = depends[i] || depends[node->in[j]->id];
    }
}

static pl_node *sum_of(pl_node *a, pl_node *b)
{
    return a == NULL ? b : pl_add(a, b);
}

/* Push the gradient of one node to its inputs. */
static void push_back(pl_node *node, pl_node **diffs, const bool *depends)
{
    if (diffs[node->id] == NULL || node->op->gradient == NULL)
        return;
    pl_node *diff_in[PL_MAX_INPUTS] = { NULL };
    node->op->gradient(node, diffs[node->id], diff_in);
    for (int j = 0; j < node->input_count; j++) {
        int id = node->in[j]->id;
        if (diff_in[j] != NULL && depends[id])
            diffs[id] = sum_of(diffs[id], diff_in[j]);
    }
}

/* Each parameter's gradient is written to its own memory, so it must be the
 * result of an operator that writes, and not that of another parameter. */
static pl_node *own_result(pl_node *diff, pl_node **diff_of, int count)
{
    bool shared = diff->op->alias || diff->op->run == NULL;
    for (int i = 0; i < count; i++)
        shared = shared || diff_of[i] == diff;
    return shared ? pl_scale(diff, 1.0f) : diff;
}

static void collect(pl_graph *graph, pl_node **diffs, pl_node **diff, int room)
{
    int index = 0;
    pl_node *param = NULL;
    while ((param = pl_graph_next_param(graph, param)) != NULL) {
        pl_node *found = diffs[param->id];
        PL_ASSERT(index < room);
        /* A running average unused by the loss approaches itself. */
        if (found == NULL && param->averaged)
            found = param;
        diff[index] = found == NULL ? NULL : own_result(found, diff, index);
        index++;
    }
}

pl_status pl_graph_differentiate(pl_graph *graph, pl_node *loss, pl_node **diff,
                                 int room)
{
    PL_TRY(pl_graph_status(graph));
    if (loss->shape.rank != 0)
        return PL_FAIL(PL_SHAPE,
                       "node %s: a loss must be a scalar; take its mean",
                       loss->name);

    int count = pl_graph_count(graph);
    pl_node **diffs = NULL;
    bool *depends = NULL;
    pl_status status;
    PL_TRY_OUT(status, PL_NEW(diffs, (size_t)count));
    PL_TRY_OUT(status, PL_NEW(depends, (size_t)count));
    find_dependents(graph, count, depends);

    diffs[loss->id] = pl_graph_add(
        graph, &(pl_node_opts) { .op = &pl_op_seed, .shape = PL_SCALAR });
    for (int i = loss->id; i >= 0 && pl_graph_status(graph) == PL_OK; i--)
        if (depends[i])
            push_back(pl_graph_get(graph, i), diffs, depends);
    if (pl_graph_status(graph) == PL_OK)
        collect(graph, diffs, diff, room);
    status = pl_graph_status(graph);
out:
    pl_mem_free(diffs);
    pl_mem_free(depends);
    return status;
}

/* A mean over independent rows, and sums and multiples of such means; rows[i]:
 * node i is computed row by row. */
static bool separable(const pl_node *loss, const bool *rows)
{
    if (loss->op == &pl_op_mean)
        return rows[loss->in[0]->id];
    if (loss->op == &pl_op_scale)
        return separable(loss->in[0], rows);
    if (loss->op == &pl_op_add)
        return separable(loss->in[0], rows) && separable(loss->in[1], rows);
    return false;
}

pl_status pl_graph_separable(const pl_node *loss, bool training, bool *out)
{
    bool *rows;
    PL_TRY(PL_NEW(rows, (size_t)loss->id + 1));
    for (int i = 0; i <= loss->id; i++) {
        const pl_node *node = pl_graph_get(loss->graph, i);
        rows[i] = node->op->rowwise &&
                  !(training && node->op->mixes && !node->frozen);
        for (int j = 0; j < node->input_count; j++)
            rows[i] = rows[i] && rows[node->in[j]->id];
    }
    *out = separable(loss, rows);
    pl_mem_free(rows);
    return PL_OK;
}

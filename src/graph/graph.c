/* Adds nodes and checks them: types, inputs, the operator's shape rule. The
 * first failure is kept in the graph and every later call returns NULL, so a
 * model is built without a check per line and its error reported once. */
#include "graph/graph.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/mem.h"
#include "tensor/shape.h"

struct pl_graph {
    pl_node **nodes;
    int count, room;
    pl_error error; /* the first error */
};

pl_status pl_graph_new(pl_graph **out)
{
    return PL_NEW(*out, 1);
}

void pl_graph_free(pl_graph *graph)
{
    if (graph == NULL)
        return;
    for (int i = 0; i < graph->count; i++) {
        pl_mem_free(graph->nodes[i]->name);
        pl_mem_free(graph->nodes[i]->init);
        pl_mem_free(graph->nodes[i]);
    }
    pl_mem_free(graph->nodes);
    pl_mem_free(graph);
}

pl_status pl_graph_status(const pl_graph *graph)
{
    return pl_error_raise(&graph->error);
}

int pl_graph_count(const pl_graph *graph)
{
    return graph->count;
}

pl_node *pl_graph_get(const pl_graph *graph, int id)
{
    PL_ASSERT(id >= 0 && id < graph->count);
    return graph->nodes[id];
}

static pl_status make_room(pl_graph *graph)
{
    if (graph->count < graph->room)
        return PL_OK;
    int room = graph->room == 0 ? 16 : 2 * graph->room;
    PL_TRY(PL_RESIZE(graph->nodes, (size_t)room));
    graph->room = room;
    return PL_OK;
}

static pl_status name_node(pl_node *node, const char *name)
{
    if (name == NULL)
        return pl_mem_format(&node->name, "%s%d", node->op->name, node->id);
    return pl_mem_copy_text(&node->name, name);
}

/* Labels are integers, everything else is float32. */
static pl_status check_types(const pl_node *node)
{
    for (int i = 0; i < node->input_count && !node->op->alias; i++) {
        const pl_node *input = node->in[i];
        bool integers = (node->op->integers & 1u << i) != 0;
        if (integers == (input->dtype == PL_FLOAT32))
            return PL_FAIL(PL_SHAPE, "node %s: input %s is %s; expected %s",
                           node->name, input->name, pl_dtype_name(input->dtype),
                           integers ? "integers" : "float32");
    }
    return PL_OK;
}

/* Set everything in the new node except its place in the list. */
static pl_status fill_node(pl_node *node, const pl_node_opts *opts)
{
    node->op = opts->op;
    node->dtype = opts->dtype;
    node->shape = opts->shape;
    node->factor = opts->factor;
    node->stride = opts->stride;
    node->pad = opts->pad;
    node->size = opts->size;
    node->classes = opts->classes;
    node->mask = opts->mask;
    node->axis = opts->axis;
    node->averaged = opts->averaged;
    node->frozen = opts->frozen;
    node->input_count = opts->input_count;
    for (int i = 0; i < opts->input_count; i++) {
        PL_ASSERT(opts->in[i]->graph == node->graph);
        node->in[i] = opts->in[i];
    }
    PL_TRY(name_node(node, opts->name));
    PL_TRY(check_types(node));
    if (opts->init != NULL)
        PL_TRY(pl_mem_copy_text(&node->init, opts->init));
    pl_status status = PL_OK;
    if (node->op->shape != NULL)
        status = node->op->shape(node);
    if (status == PL_OK)
        status = pl_shape_check(node->shape);
    if (status != PL_OK)
        return pl_context(status, "node %s", node->name);
    return PL_OK;
}

static pl_status add_node(pl_graph *graph, const pl_node_opts *opts,
                          pl_node **out)
{
    PL_TRY(make_room(graph));
    pl_node *node;
    PL_TRY(PL_NEW(node, 1));
    node->graph = graph;
    node->id = graph->count;
    pl_status status = fill_node(node, opts);
    if (status != PL_OK) {
        pl_mem_free(node->name);
        pl_mem_free(node->init);
        pl_mem_free(node);
        return status;
    }
    graph->nodes[graph->count++] = node;
    *out = node;
    return PL_OK;
}

pl_node *pl_graph_add(pl_graph *graph, const pl_node_opts *opts)
{
    if (graph->error.status != PL_OK)
        return NULL;
    PL_ASSERT(opts->input_count >= opts->op->least_inputs &&
              opts->input_count <= opts->op->most_inputs);
    for (int i = 0; i < opts->input_count; i++)
        PL_ASSERT(opts->in[i] != NULL); /* NULL only after an error */
    pl_node *node = NULL;
    pl_status status = add_node(graph, opts, &node);
    if (status != PL_OK)
        pl_error_save(&graph->error, status);
    return node;
}

pl_node *pl_graph_unary(const pl_op *op, pl_node *src)
{
    if (src == NULL)
        return NULL;
    return pl_graph_add(src->graph, &(pl_node_opts) {
                                        .op = op,
                                        .input_count = 1,
                                        .in = { src },
                                    });
}

pl_node *pl_graph_binary(const pl_op *op, pl_node *a, pl_node *b)
{
    if (a == NULL || b == NULL)
        return NULL;
    return pl_graph_add(a->graph, &(pl_node_opts) {
                                      .op = op,
                                      .input_count = 2,
                                      .in = { a, b },
                                  });
}

pl_node *pl_named(pl_node *node, const char *name)
{
    if (node == NULL)
        return NULL;
    char *copy = NULL;
    pl_status status = pl_mem_copy_text(&copy, name);
    if (status != PL_OK) {
        pl_error_save(&node->graph->error, status);
        return NULL;
    }
    pl_mem_free(node->name);
    node->name = copy;
    return node;
}

pl_shape pl_node_shape(const pl_node *node)
{
    return node != NULL ? node->shape : PL_SCALAR;
}

int64_t pl_node_row(const pl_node *node)
{
    return pl_shape_row(node->shape);
}

pl_status pl_node_same_shape(pl_node *node)
{
    node->shape = node->in[0]->shape;
    return PL_OK;
}

static pl_node *find_param(const pl_graph *graph, int from, bool averaged)
{
    for (int i = from; i < graph->count; i++)
        if (graph->nodes[i]->op == &pl_op_parameter &&
            graph->nodes[i]->averaged == averaged)
            return graph->nodes[i];
    return NULL;
}

pl_node *pl_graph_next_param(const pl_graph *graph, const pl_node *after)
{
    bool averaged = after != NULL && after->averaged;
    pl_node *next =
        find_param(graph, after != NULL ? after->id + 1 : 0, averaged);
    return next != NULL || averaged ? next : find_param(graph, 0, true);
}

pl_status pl_graph_params(const pl_graph *graph, pl_params **out)
{
    pl_params *params = NULL;
    PL_TRY(pl_params_new(&params));
    pl_status status = PL_OK;
    const pl_node *node = NULL;
    while ((node = pl_graph_next_param(graph, node)) != NULL) {
        if (node->averaged)
            PL_TRY_OUT(status,
                       pl_params_add_averaged(params, node->name, node->shape));
        else
            PL_TRY_OUT(status, pl_params_add(params, node->name, node->shape));
    }
    *out = params;
    params = NULL;
out:
    pl_params_free(params);
    return status;
}

pl_status pl_graph_average_rate(const pl_graph *graph, double *rate)
{
    const pl_node *first = NULL;
    *rate = 0;
    for (int i = 0; i < graph->count; i++) {
        const pl_node *node = graph->nodes[i];
        if (node->op != &pl_op_parameter || !node->averaged)
            continue;
        if (first != NULL && node->factor != first->factor)
            return PL_FAIL(PL_SHAPE,
                           "the running averages %s and %s have the rates %g "
                           "and %g; expected one rate in a model",
                           first->name, node->name, (double)first->factor,
                           (double)node->factor);
        first = node;
        *rate = (double)node->factor;
    }
    return PL_OK;
}

/* model_graph.c - the nodes of a model's graph for TensorBoard, each parameter
 * with the server that holds it. */
#include "app/run/model_graph.h"

#include "base/mem.h"
#include "graph/graph.h"
#include "sync/ps/messages/pieces.h"

#include <stdio.h>

#define DEVICE_BYTES 32
#define WORKER       "/job:worker/task:0"

struct pl_model_graph {
    const pl_network *network;
    int count; /* number of shown nodes */
    pl_event_node *nodes;
    /* The strings of the nodes, one per node of the graph. */
    bool *used;
    struct parts {
        const char *inputs[PL_MAX_INPUTS];
        char device[DEVICE_BYTES];
    } * parts;
};

void pl_model_graph_free(pl_model_graph *graph)
{
    if (graph == NULL)
        return;
    pl_mem_free(graph->nodes);
    pl_mem_free(graph->used);
    pl_mem_free(graph->parts);
    pl_mem_free(graph);
}

/* Inputs have smaller numbers: one pass from the last node marks all. */
static void mark_used(pl_model_graph *graph)
{
    const pl_network *network = graph->network;
    if (network->sparse) { /* all of it is parameters */
        for (int i = 0; i < pl_graph_count(network->graph); i++)
            graph->used[i] = true;
        return;
    }
    graph->used[network->loss->id] = true;
    if (network->accuracy != NULL)
        graph->used[network->accuracy->id] = true;
    for (int i = pl_graph_count(network->graph) - 1; i >= 0; i--) {
        const pl_node *node = pl_graph_get(network->graph, i);
        for (int j = 0; graph->used[i] && j < node->input_count; j++)
            graph->used[node->in[j]->id] = true;
    }
}

/* The server with the first element of a parameter. */
static int server_of(const pl_params *params, const char *name,
                     const pl_cluster *cluster)
{
    int index = pl_params_find(params, name);
    int64_t offset = index >= 0 ? pl_params_get(params, index)->offset : 0;
    int server = 0;
    for (int j = 0; j < cluster->ps; j++) {
        int64_t first, count;
        pl_pieces_shard(pl_params_block_count(params), cluster->ps, j, &first,
                        &count);
        if (first <= offset)
            server = j;
    }
    return server;
}

static void describe(pl_model_graph *graph, const pl_node *node,
                     const pl_cluster *cluster)
{
    struct parts *parts = &graph->parts[node->id];
    bool served =
        cluster != NULL && cluster->ps > 0 && node->op == &pl_op_parameter;
    if (served)
        snprintf(parts->device, sizeof parts->device, "/job:ps/task:%d",
                 server_of(graph->network->params, node->name, cluster));
    else
        snprintf(parts->device, sizeof parts->device, "%s", WORKER);
    for (int j = 0; j < node->input_count; j++)
        parts->inputs[j] = node->in[j]->name;
    graph->nodes[graph->count++] = (pl_event_node) {
        .name = node->name,
        .op = node->op->name,
        .device = parts->device,
        .inputs = parts->inputs,
        .input_count = node->input_count,
        .sizes = node->shape.dim,
        .rank = node->shape.rank,
        .integers = node->dtype == PL_INT32,
    };
}

pl_status pl_model_graph_new(pl_model_graph **out, const pl_network *network,
                             const pl_cluster *cluster)
{
    pl_model_graph *graph;
    PL_TRY(PL_NEW(graph, 1));
    graph->network = network;
    size_t count = (size_t)pl_graph_count(network->graph);
    pl_status status;
    PL_TRY_OUT(status, PL_NEW(graph->nodes, count));
    PL_TRY_OUT(status, PL_NEW(graph->used, count));
    PL_TRY_OUT(status, PL_NEW(graph->parts, count));
    mark_used(graph);
    for (size_t i = 0; i < count; i++)
        if (graph->used[i])
            describe(graph, pl_graph_get(network->graph, (int)i), cluster);
    *out = graph;
    return PL_OK;
out:
    pl_model_graph_free(graph);
    return status;
}

const pl_event_node *pl_model_graph_nodes(const pl_model_graph *graph,
                                          int *count)
{
    *count = graph->count;
    return graph->nodes;
}

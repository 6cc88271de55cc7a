/* model_graph.h - the graph of a model as TensorBoard shows it.
 *
 * The nodes that lead to the loss and the accuracy, without gradients; each
 * parameter with the task that keeps it.
 *
 * Threads: one. */
#ifndef PL_APP_RUN_MODEL_GRAPH_H
#define PL_APP_RUN_MODEL_GRAPH_H

#include "job/cluster/cluster.h"
#include "nn/model.h"
#include "proto/event.h"

typedef struct pl_model_graph pl_model_graph;

/* `cluster` NULL: a single process.  The network must outlive the graph. */
pl_status pl_model_graph_new(pl_model_graph **out, const pl_network *network,
                             const pl_cluster *cluster) PL_MUST_CHECK;
void pl_model_graph_free(pl_model_graph *graph); /* NULL is fine */

const pl_event_node *pl_model_graph_nodes(const pl_model_graph *graph,
                                          int *count);

#endif

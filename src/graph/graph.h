/* graph.h - the nodes of a graph, for differentiation and planning.
 *
 * The builder calls are public: paceline/graph.h.  Nodes are kept in the order
 * in which they were added, so a node's inputs always come before it.
 *
 * Threads: built by one thread, then read by any. */
#ifndef PL_GRAPH_GRAPH_H
#define PL_GRAPH_GRAPH_H

#include "graph/op.h"
#include "tensor/params.h"

pl_status pl_graph_new(pl_graph **out) PL_MUST_CHECK;
void pl_graph_free(pl_graph *graph); /* NULL is fine */

int pl_graph_count(const pl_graph *graph);
pl_node *pl_graph_get(const pl_graph *graph, int id);

/* Add a node; returns NULL if an input is NULL or the shape rule fails, and the
 * graph keeps the error.  `name` NULL: the operator's name and a number. */
typedef struct pl_node_opts {
    const pl_op *op;
    const char *name;
    pl_dtype dtype;
    pl_shape shape; /* if the operator has no shape rule, or as a hint to it */
    float factor;
    bool averaged, frozen;
    int64_t stride, pad, size;
    int64_t classes;
    int64_t mask;
    int axis;
    const char *init;
    int input_count;
    pl_node *in[PL_MAX_INPUTS];
} pl_node_opts;
pl_node *pl_graph_add(pl_graph *graph, const pl_node_opts *opts);

/* The same for a plain operator of one or two inputs. */
pl_node *pl_graph_unary(const pl_op *op, pl_node *src);
pl_node *pl_graph_binary(const pl_op *op, pl_node *a, pl_node *b);

/* Broadcast the smaller of two nodes to their common shape; without a common
 * shape both are unchanged. */
void pl_broadcast_pair(pl_node **a, pl_node **b);

/* The parameter after `after`, NULL: the first; returns NULL after the last.
 * Trained parameters come first, in the order they were added, then running
 * averages: the order of the set and of gradients. */
pl_node *pl_graph_next_param(const pl_graph *graph, const pl_node *after);
/* All parameters as a set, not sealed. */
pl_status pl_graph_params(const pl_graph *graph, pl_params **out) PL_MUST_CHECK;

/* Add the nodes that compute the gradient of the scalar `loss` with respect to
 * every parameter; diff[i] is that of parameter i of the set (NULL if the loss
 * does not depend on it), `room` the size of diff. */
pl_status pl_graph_differentiate(pl_graph *graph, pl_node *loss, pl_node **diff,
                                 int room) PL_MUST_CHECK;

/* *out: the loss over a batch is the mean of the losses over its parts,
 * weighted by their sizes, so a batch may be computed in parts; `training`:
 * including gradients. */
pl_status pl_graph_separable(const pl_node *loss, bool training,
                             bool *out) PL_MUST_CHECK;

/* The update rate of running averages: *rate is the one they have in common, 0
 * if there are none.  PL_SHAPE if they differ. */
pl_status pl_graph_average_rate(const pl_graph *graph,
                                double *rate) PL_MUST_CHECK;

#endif

/* graph.h - the nodes of a graph, for those who differentiate and plan it.
 *
 * The builder calls are public: paceline/graph.h.  Nodes are kept in the
 * order they were added, so inputs of a node always come before it.
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

/* Add a node; NULL when an input is NULL or the shape rule fails, and the
 * graph remembers why.  `name` NULL: the operator's name and a number. */
typedef struct pl_node_opts {
    const pl_op *op;
    const char *name;
    pl_dtype dtype;
    pl_shape shape; /* where the operator has no shape rule, or as its hint */
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

/* Repeat the smaller of two nodes to what both have in common; where there is
 * no such shape they stay as they are. */
void pl_broadcast_pair(pl_node **a, pl_node **b);

/* The parameter behind `after`, NULL: the first; NULL where it was the last.
 * Those that are trained come first, in the order they were added, then running
 * averages: the order of the set and of gradients. */
pl_node *pl_graph_next_param(const pl_graph *graph, const pl_node *after);
/* They as a set, not sealed. */
pl_status pl_graph_params(const pl_graph *graph, pl_params **out) PL_MUST_CHECK;

/* Add the nodes that compute the gradient of the scalar `loss` with respect
 * to every parameter; diff[i] is that of the i-th of the set (NULL when the
 * loss does not depend on it), `room` the size of diff. */
pl_status pl_graph_differentiate(pl_graph *graph, pl_node *loss, pl_node **diff,
                                 int room) PL_MUST_CHECK;

/* *out: the loss over a batch is the mean of the losses over its parts,
 * weighted by their sizes, so a batch may be computed in parts; `training`:
 * with gradients. */
pl_status pl_graph_separable(const pl_node *loss, bool training,
                             bool *out) PL_MUST_CHECK;

/* Where the running averages are among the parameters: *rate is what they
 * have in common, 0 where there are none.  PL_SHAPE when they differ. */
pl_status pl_graph_average_rate(const pl_graph *graph,
                                double *rate) PL_MUST_CHECK;

#endif

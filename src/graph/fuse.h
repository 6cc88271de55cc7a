/* fuse.h - chains of operators that a plan runs as one step.
 *
 * A convolution followed by an activation and a pooling need not write results
 * that only the next operator reads.  Such a chain becomes one node, at the
 * place of its last node in the plan; so do the gradients of max pooling and
 * activation.  The graph is not changed.
 *
 * Threads: see plan.h. */
#ifndef PL_GRAPH_FUSE_H
#define PL_GRAPH_FUSE_H

#include "graph/graph.h"

/* A node that replaces several. */
typedef struct pl_fused {
    pl_node node; /* must be first: operators cast from it */
    pl_conv_block block;
    bool indexed; /* the gradient needs to know the largest cells */
} pl_fused;

/* inputs: src, weights, bias or none; has the shape of the chain's end */
extern const pl_op pl_op_conv_block;
/* inputs: the conv_block, its gradient; has the shape of its convolution, or is
 * cropped to the windows */
extern const pl_op pl_op_unpool;

/* The part of the graph that a plan computes. */
typedef struct pl_fuse_opts {
    const pl_graph *graph;
    const bool *needed; /* one per node */
    const bool *kept;   /* one per node: read from outside the graph */
} pl_fuse_opts;

/* Find chains among the needed nodes, replace them in nodes[id], and write the
 * *count replacements to `fused`, which has room for one per node. */
pl_status pl_fuse(const pl_fuse_opts *opts, const pl_node **nodes,
                  pl_fused *fused, int *count) PL_MUST_CHECK;

#endif

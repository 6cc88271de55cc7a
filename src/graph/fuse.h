/* fuse.h - chains of operators that a plan runs as one step.
 *
 * A convolution, the activation behind it and the pooling behind that need not
 * write what only the next of them reads.  Such a chain becomes one node,
 * which stands in the plan where its last one stood; so do the gradients of
 * max pooling and activation.  The graph stays as it is.
 *
 * Threads: as a plan. */
#ifndef PL_GRAPH_FUSE_H
#define PL_GRAPH_FUSE_H

#include "graph/graph.h"

/* A node that stands for several. */
typedef struct pl_fused {
    pl_node node; /* first: operators find the rest behind it */
    pl_conv_block block;
    bool indexed; /* the gradient needs to know the largest cells */
} pl_fused;

/* inputs: src, weights, bias or none; has the shape of the chain's end */
extern const pl_op pl_op_conv_block;
/* inputs: the conv_block, its gradient; has the shape of its convolution, or
 * ends where the windows do */
extern const pl_op pl_op_unpool;

/* What of the graph a plan computes. */
typedef struct pl_fuse_opts {
    const pl_graph *graph;
    const bool *needed; /* one per node */
    const bool *kept;   /* one per node: read from outside of the graph */
} pl_fuse_opts;

/* Find chains among the needed nodes, let nodes[id] stand for them, and write
 * what it points to, *count of them, to `fused`, which has room for as many as
 * there are nodes. */
pl_status pl_fuse(const pl_fuse_opts *opts, const pl_node **nodes,
                  pl_fused *fused, int *count) PL_MUST_CHECK;

#endif

/* large.h - the world of large layers, computed by oneDNN.
 *
 * A plan lives in one of two worlds.  In the small one a batch is split
 * between threads and each computes its part with our kernels; in the large
 * one all threads work on one operator after the other, and oneDNN computes
 * convolutions and large products.  The shapes decide, for the whole plan:
 * how the work is divided between threads cannot change from node to node.
 *
 * Threads: while a plan is made, by that thread. */
#ifndef PL_GRAPH_LARGE_H
#define PL_GRAPH_LARGE_H

#include "graph/plan_priv.h"

/* Decide, and mark the nodes that oneDNN computes and those that are computed
 * along with one; the values are otherwise empty. */
void pl_large_choose(pl_plan *plan, const pl_plan_opts *opts,
                     const bool *needed);

/* Let the gradient of weights write that of the bias, where both go to the
 * block of gradients. */
void pl_large_join_bias(pl_plan *plan);

/* Make the operations of all steps. */
pl_status pl_large_prepare(pl_plan *plan) PL_MUST_CHECK;
void pl_large_free(pl_plan *plan);

#endif

/* large.h - the large world: large layers, computed by oneDNN.
 *
 * A plan belongs to one of two worlds.  In the small world a batch is split
 * between threads and each computes its part with our kernels; in the large
 * world all threads work on one operator at a time, and oneDNN computes
 * convolutions and large products.  The shapes decide, for the whole plan: the
 * distribution of work over threads cannot change from node to node.
 *
 * Threads: only the thread that makes the plan. */
#ifndef PL_GRAPH_LARGE_H
#define PL_GRAPH_LARGE_H

#include "graph/plan_priv.h"

/* Choose the world, and mark the nodes that oneDNN computes and those that are
 * computed along with one; the values are otherwise empty. */
void pl_large_choose(pl_plan *plan, const pl_plan_opts *opts,
                     const bool *needed);

/* Let the gradient of weights also write that of the bias, if both go to the
 * block of gradients. */
void pl_large_join_bias(pl_plan *plan);

/* Prepare the operations of all steps. */
pl_status pl_large_prepare(pl_plan *plan) PL_MUST_CHECK;
void pl_large_free(pl_plan *plan);

#endif

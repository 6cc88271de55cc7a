/* optim.h - an optimizer and its slots for the parameters of a run.
 *
 * The optimizers themselves, their formulas and hyperparameters, are in
 * kernels/optim.  This module has their slots (velocity, moments), sets with
 * the parameters' layout, and updates of any range of the parameter block.
 *
 * Sparse tables are updated at some keys only, by the same kernels on the
 * gathered elements.  Other elements do not change: no decay, no momentum.  L1
 * and L2 apply to sparse tables only.
 *
 * Running averages (pl_optim_average) are not trained: their "gradient" g is
 * the value that they approach, and each update sets a = a + rate (g - a), with
 * any optimizer.  Several gradients are always combined as the mean.
 *
 * Threads: begin in one thread; then update from several, on disjoint
 * ranges. */
#ifndef PL_TRAIN_OPTIM_OPTIM_H
#define PL_TRAIN_OPTIM_OPTIM_H

#include "kernels/backend.h"
#include "state/frozen.h"
#include "state/planes.h"
#include "tensor/params.h"

typedef struct pl_optim pl_optim;

struct pl_optim {
    pl_optim_kind kind;
    const pl_optim_ops *ops;
    const pl_kernels *kernels;
    pl_optim_opts opts;
    pl_update args;
    pl_update table_args; /* for sparse tables */
    pl_params *slots[PL_MAX_SLOTS];
    pl_params *outer; /* of opts.outer; else NULL */
    int64_t averaged; /* offset of running averages; INT64_MAX: none */
    float average_rate;
    /* Notified of updates before they are made, for a checkpoint being written;
     * borrowed.  NULL: none. */
    pl_frozen *frozen;
};

/* In the order of pl_optim_kind; NULL-terminated. */
const pl_optim_ops *const *pl_optim_list(void);

/* Slots for `params`, in their initial state.  PL_USAGE for an unknown name. */
pl_status pl_optim_new(pl_optim **out, const pl_optim_opts *opts,
                       const pl_params *params,
                       const pl_kernels *kernels) PL_MUST_CHECK;
void pl_optim_free(pl_optim *optim); /* NULL is fine */

/* Elements of the block from `first` on are running averages. */
void pl_optim_average(pl_optim *optim, int64_t first, double rate);

/* Of a gradient `sum`, added up from `terms` gradients, over count elements
 * from `first` on: convert running averages to the mean. */
void pl_optim_mean(const pl_optim *optim, int64_t first, int64_t count,
                   int32_t terms, float *sum);

/* Reset the slots to their initial state. */
void pl_optim_reset(pl_optim *optim);

/* What a checkpoint stores: `block` and the slots, which are borrowed. */
pl_planes pl_optim_planes(const pl_optim *optim, float *block);

/* Begin update number `update` (from 1), with its learning rate. */
void pl_optim_begin(pl_optim *optim, int64_t update, double lr);

/* Apply grad[0 .. count-1] to the elements of the block from `first` on. */
void pl_optim_update(const pl_optim *optim, int64_t first, int64_t count,
                     const float *grad, float *block);

/* Apply grad[k] to element first + keys[k] of the block, for all k.  The keys
 * are distinct.  Threads may divide the keys of one table among them. */
void pl_optim_update_keys(const pl_optim *optim, int64_t first, int64_t count,
                          const uint64_t *keys, const float *grad,
                          float *block);

#endif

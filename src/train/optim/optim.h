/* optim.h - an optimizer at work on the parameters of a run.
 *
 * The optimizers themselves, their formulas and hyperparameters, are in
 * kernels/optim.  Here are their slots (velocity, moments), sets of the
 * parameters' layout, and updates of any range of the parameter block.
 *
 * Sparse tables are updated at some keys only, by the same kernels on the
 * gathered elements.  What lies elsewhere does not change: no decay, no
 * momentum.  L1 and L2 are of these tables alone.
 *
 * Running averages (pl_optim_average) are not trained: their gradient is what
 * they are to approach, and each update makes them a = a + rate (g - a), by
 * whatever optimizer.  Of several gradients it is always the mean.
 *
 * Threads: begin in one thread; then update from several, on ranges that do
 * not overlap. */
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
    pl_update table_args; /* the same for sparse tables */
    pl_params *slots[PL_MAX_SLOTS];
    pl_params *outer; /* of opts.outer; else NULL */
    int64_t averaged; /* running averages begin here; INT64_MAX: there are
                         none */
    float average_rate;
    /* Updates are announced here before they are made, for a checkpoint that
     * is written meanwhile; borrowed.  NULL: to none. */
    pl_frozen *frozen;
};

/* By pl_optim_kind; NULL-terminated. */
const pl_optim_ops *const *pl_optim_list(void);

/* Slots for `params`, as they are before the first update.  PL_USAGE for an
 * unknown name. */
pl_status pl_optim_new(pl_optim **out, const pl_optim_opts *opts,
                       const pl_params *params,
                       const pl_kernels *kernels) PL_MUST_CHECK;
void pl_optim_free(pl_optim *optim); /* NULL is fine */

/* From element `first` of the block on there are running averages. */
void pl_optim_average(pl_optim *optim, int64_t first, double rate);

/* The gradient `sum` of count elements from `first` on was added up from
 * `terms` gradients: make it the mean where running averages are. */
void pl_optim_mean(const pl_optim *optim, int64_t first, int64_t count,
                   int32_t terms, float *sum);

/* Slots as they are before the first update. */
void pl_optim_reset(pl_optim *optim);

/* What a checkpoint is made of: `block` and the slots, which are borrowed. */
pl_planes pl_optim_planes(const pl_optim *optim, float *block);

/* Before the update number `update` (from 1), with its learning rate. */
void pl_optim_begin(pl_optim *optim, int64_t update, double lr);

/* Apply grad[0 .. count-1] to the elements from `first` on of the block. */
void pl_optim_update(const pl_optim *optim, int64_t first, int64_t count,
                     const float *grad, float *block);

/* Apply grad[k] to element first + keys[k] of the block, for all k.  The keys
 * are distinct.  Threads may share the keys of one table. */
void pl_optim_update_keys(const pl_optim *optim, int64_t first, int64_t count,
                          const uint64_t *keys, const float *grad,
                          float *block);

#endif

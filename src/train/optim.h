/* optim.h - optimizers: how a gradient changes the parameters.
 *
 * An optimizer is one file in optim/ with one const table.  It works on any
 * range of the parameter block, element by element, so a range may be cut
 * anywhere, by threads or by parameter servers, without changing a bit.  Its
 * slots (velocity, moments) are sets of the parameters' layout.
 *
 * Sparse tables are updated at some keys only, by the same kernels on the
 * gathered elements.  What lies elsewhere does not change: no decay, no
 * momentum.  L1 and L2 are of these tables alone.
 *
 * Threads: begin in one thread; then update from several, on ranges that do
 * not overlap. */
#ifndef PL_TRAIN_OPTIM_H
#define PL_TRAIN_OPTIM_H

#include "kernels/backend.h"
#include "tensor/params.h"

#include <stdbool.h>

#define PL_MAX_SLOTS 2

typedef struct pl_optim_opts {
    const char *name;    /* pl_optim_list(); default sgd */
    double weight_decay; /* default 0 */
    double momentum;     /* momentum; default 0.9 */
    bool nesterov;       /* momentum: look ahead */
    double beta1;        /* adam; default 0.9 */
    double beta2;        /* adam; default 0.999 */
    double rho;          /* rmsprop; default 0.9; below 0 counts as 0 */
    double initial_sum;  /* adagrad; default 0.1; below 0 counts as 0 */
    double epsilon;      /* adam, adagrad, rmsprop; default 1e-8 */
    double beta;         /* ftrl; default 1; below 0 counts as 0 */
    double l1, l2;       /* of sparse tables; default 0.  L1: sgd, adagrad
                            and ftrl only */
} pl_optim_opts;

typedef struct pl_optim pl_optim;

typedef struct pl_optim_ops {
    const char *name;
    int slot_count;
    const char *slots[PL_MAX_SLOTS]; /* their names in a checkpoint */
    double sparse_lr; /* default of sparse models: one that learns in every
                         mode, also from gradients that are late */
    /* Optional: what all elements of the slots start at; default 0. */
    double (*initial)(const pl_optim_opts *opts);
    /* Optional: set what depends on the number of the update, from 1. */
    void (*begin)(pl_optim *optim, int64_t update);
    bool own_l2; /* optional: makes use of pl_update.l2; else it is decay */
    void (*update)(const pl_optim *optim, const pl_update *args, int64_t count,
                   const float *grad, float *param, float *const *slots);
} pl_optim_ops;

struct pl_optim {
    const pl_optim_ops *ops;
    const pl_kernels *kernels;
    pl_optim_opts opts;
    pl_update args;
    pl_update table_args; /* the same for sparse tables */
    pl_params *slots[PL_MAX_SLOTS];
};

/* NULL-terminated. */
const pl_optim_ops *const *pl_optim_list(void);

/* Slots for `params`, as they are before the first update.  PL_USAGE for an
 * unknown name. */
pl_status pl_optim_new(pl_optim **out, const pl_optim_opts *opts,
                       const pl_params *params,
                       const pl_kernels *kernels) PL_MUST_CHECK;
void pl_optim_free(pl_optim *optim); /* NULL is fine */

/* Slots as they are before the first update. */
void pl_optim_reset(pl_optim *optim);

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

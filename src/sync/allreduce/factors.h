/* factors.h - a step of all-reduce in which dense layers travel as factors.
 *
 * Each rank broadcasts its factors (train/factors.h), forms the products of the
 * other ranks' factors and adds all products in the order of ranks; the rest of
 * the gradient is summed in the same order.  So the sum is bit-identical to
 * that of a parameter server and of --micro-batches, for any number of ranks.
 *
 * The collective's memory after the gradient:
 *
 *   rest     the gradients that do not travel as factors, consecutively
 *   slots    a block of factors for each rank
 *
 * each beginning at a multiple of the grain.
 *
 * Threads: one; uses the pool it was given. */
#ifndef PL_SYNC_ALLREDUCE_FACTORS_H
#define PL_SYNC_ALLREDUCE_FACTORS_H

#include "base/thread.h"
#include "kernels/backend.h"
#include "sync/allreduce/buckets.h"
#include "sync/allreduce/collective.h"
#include "train/factors.h"

typedef struct pl_factor_step {
    pl_factors *source; /* NULL: no layer can travel as factors */
    const pl_params *params;
    const pl_kernels *kernels;
    pl_pool *pool;
    bool on;          /* in this generation */
    bool *chosen;     /* of source->layers, those that travel as factors */
    bool *adds;       /* of these, those that are added as they are formed */
    int *layer_of;    /* parameters: their chosen layer; -1: none */
    int64_t *rest_at; /* ... or else their place in the rest */
    int64_t rest, rest_first, slot, slot_first; /* floats */
    pl_ranks ranks;
    pl_buckets buckets;    /* of the rest */
    int32_t begun;         /* broadcasts of this step */
    int32_t taken;         /* ranges of this step */
    int32_t slots_end;     /* ranges up to the last broadcast */
    int left;              /* chosen layers that are not ready in this step */
    float *product, *room; /* each for the largest layer */
    float *other;          /* likewise; NULL: `room` is used instead */
    double seconds;        /* spent copying and forming products */
} pl_factor_step;

/* Floats that the collective needs after the gradient. */
int64_t pl_factor_step_extra(const pl_factors *source, const pl_params *params,
                             int32_t workers, int64_t grain_most);

/* `source` may be NULL. */
pl_status pl_factor_step_init(pl_factor_step *step, pl_factors *source,
                              const pl_params *params) PL_MUST_CHECK;
void pl_factor_step_close(pl_factor_step *step); /* may be zeroed */

/* A generation begins: choose layers by the link. */
pl_status pl_factor_step_choose(pl_factor_step *step, const pl_ranks *ranks,
                                pl_link_class link,
                                int64_t bucket_bytes) PL_MUST_CHECK;

/* A step begins; returns the number of sums it will start. */
int32_t pl_factor_step_begin(pl_factor_step *step);
/* The gradient of `param`, which lies in `memory`, is computed: get the next
 * range to sum; false: none yet.  `fresh`: the first call for this
 * parameter. */
bool pl_factor_step_take(pl_factor_step *step, int param, bool fresh,
                         float *memory, pl_sum_range *out);
/* The first `slots_end` ranges are complete: replace the gradients in `memory`
 * that travel as factors by their sums.  The other ranges may still be under
 * way. */
void pl_factor_step_multiply(pl_factor_step *step, float *memory,
                             void (*progress)(void *context), void *context);
/* All ranges are summed: likewise replace the rest of the gradient. */
void pl_factor_step_take_rest(pl_factor_step *step, float *memory);

#endif

/* compute_priv.h - the implementations of compute, one file each.
 *
 * dense_compute.c runs a graph in shards; sparse_compute.c works on the keys
 * of a batch; hogwild_compute.c updates a table while it computes. */
#ifndef PL_TRAIN_COMPUTE_COMPUTE_PRIV_H
#define PL_TRAIN_COMPUTE_COMPUTE_PRIV_H

#include "train/compute/compute.h"

typedef struct pl_compute_ops {
    /* The options are complete; `ops` is set by the caller. */
    pl_status (*make)(pl_compute **out, const pl_compute_opts *opts);
    void (*free)(pl_compute *compute);
    pl_status (*memory)(const pl_compute_opts *opts, pl_compute_size *out);
    double (*gradient)(pl_compute *compute, const pl_batch *batch, int64_t step,
                       int64_t part, pl_sync *apply);
    /* The gradient of one parameter, and its keys. */
    const float *(*grad)(const pl_compute *compute, int param,
                         const pl_keys **keys);
    pl_score (*score)(pl_compute *compute, const pl_batch *batch);

    /* Optional. */
    int (*shards)(const pl_compute *compute);      /* default 1 */
    pl_params *(*diff)(const pl_compute *compute); /* default: none */
    pl_status (*stream)(pl_compute *compute, const pl_batch *batch,
                        int64_t step, int64_t part, pl_exec_hooks *hooks,
                        double *loss);                       /* default: none */
    const float *(*probs)(const pl_compute *compute);        /* default: none */
    int64_t (*keep_answers)(pl_compute *compute, bool keep); /* default: 0 */
    const pl_answer *(*answers)(const pl_compute *compute);  /* default: none */
    const float *(*outputs)(const pl_compute *compute);      /* default: none */
    double (*accuracy)(const pl_compute *compute,
                       const pl_batch *batch); /* default: NAN */
    const float *(*logits)(const pl_compute *compute,
                           int64_t *rows); /* default: none */
    pl_status (*prepare)(pl_compute *compute, const pl_batch *batch);
    void (*place)(pl_compute *compute, const pl_values *values);
    pl_status (*check)(const pl_compute *compute); /* default: PL_OK */
} pl_compute_ops;

struct pl_compute {
    const pl_compute_ops *ops;
};

/* PL_FORMAT: feature `id` of an example exceeds the `features` of the table. */
pl_status pl_compute_beyond(uint64_t id, int64_t features) PL_MUST_CHECK;

extern const pl_compute_ops pl_dense_compute;
extern const pl_compute_ops pl_sparse_compute;
extern const pl_compute_ops pl_hogwild_compute;

#endif

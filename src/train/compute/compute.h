/* compute.h - forward and backward over a batch, on several threads.
 *
 * A dense batch is split into shards, each computed by one thread into its own
 * gradients, which are then added in order.  The number of shards depends only
 * on the model and the batch size, so the result is bit-identical for any
 * number of threads, and there is no barrier inside a layer.
 *
 * A sparse batch touches few of a table's millions of weights.  Its gradient is
 * a list of distinct keys with a number each: prepare finds the keys, so that
 * their weights can be requested; the rest is as above.
 *
 * Threads: driven by one thread; uses the given pool. */
#ifndef PL_TRAIN_COMPUTE_COMPUTE_H
#define PL_TRAIN_COMPUTE_COMPUTE_H

#include "base/record/trace.h"
#include "base/thread.h"
#include "data/dataset.h"
#include "graph/plan.h"
#include "nn/model.h"
#include "state/frozen.h"
#include "train/optim/schedule.h"
#include "train/score.h"
#include "train/sync.h"

typedef struct pl_compute pl_compute;

/* Threads update a sparse table without waiting for each other, example by
 * example: the gradient of a batch is applied as it is computed. */
typedef struct pl_hogwild_opts {
    const pl_schedule *schedule; /* of the learning rate; required */
    double l1, l2;
    pl_frozen *frozen; /* notified of changes; or NULL */
} pl_hogwild_opts;

typedef struct pl_compute_opts {
    const pl_network *network; /* required; borrowed, like all pointers here */
    int64_t batch;             /* maximum rows of a batch; required */
    pl_pool *pool;             /* required... */
    int threads;               /* ... except for pl_compute_memory */
    const pl_kernels *kernels; /* default: the best of this processor */
    pl_trace *trace;           /* one lane per thread of the pool, or NULL */
    float *diff;               /* memory for the gradient; default: its own */
    bool sum;                  /* gradients are sums over a batch, not means */
    bool bf16;                 /* compute gradients of large layers from numbers
                                  rounded to bfloat16 (pl_plan_opts); never
                                  scores */
    bool forward;              /* loss and accuracy only, no gradients */
    uint64_t seed;             /* of the random numbers used in training */
    const struct pl_compute *beside; /* never runs at the same time and lives
                                        longer: share its memory; or NULL */
    int64_t beside_batch; /* maximum rows of that one: a large model is scored
                             in batches of at most this size; 0: not known */
    const pl_hogwild_opts *hogwild; /* sparse networks; NULL: by batches */
    bool elsewhere;                 /* a sparse network's parameters are remote;
                                       see pl_compute_place */
    bool any_key_order; /* the order of a sparse gradient's keys is free;
                           default: sorted */
    pl_sync *sync; /* notified of each operator that has finished; or NULL */
    pl_factors *factors; /* of dense layers, kept for each gradient; or NULL */
    bool early;          /* a sparse batch may be prepared long before it is
                            computed, by any thread */
} pl_compute_opts;

pl_status pl_compute_new(pl_compute **out,
                         const pl_compute_opts *opts) PL_MUST_CHECK;
void pl_compute_free(pl_compute *compute); /* NULL is fine */

int pl_compute_shards(const pl_compute *compute);

/* The memory of one object, known before it is allocated. */
typedef struct pl_compute_size {
    int64_t bytes; /* of all executions and gradients */
    int64_t arena; /* of one execution */
    bool large;    /* all threads share one operator */
} pl_compute_size;
pl_status pl_compute_memory(const pl_compute_opts *opts,
                            pl_compute_size *out) PL_MUST_CHECK;

/* Prepare a batch that is about to be computed or scored: find its keys and
 * check that they are valid.  Not needed for dense batches.  If the parameters
 * are remote, only the labels of the batch must outlive this call.
 */
pl_status pl_compute_prepare(pl_compute *compute,
                             const pl_batch *batch) PL_MUST_CHECK;

/* The values at the keys that prepare found, for remote parameters; they stay
 * valid until the batch is done. */
void pl_compute_place(pl_compute *compute, const pl_values *values);

/* The mean loss and the gradient of a batch.  `part` is the number of the batch
 * within the step, over all workers: worker * micro-batches + micro-batch;
 * random numbers follow from seed, step and part.  With `apply`, the update is
 * made during the computation, range by range (pl_sync_ops.local). */
double pl_compute_gradient(pl_compute *compute, const pl_batch *batch,
                           int64_t step, int64_t part, pl_sync *apply);

/* The same on the calling thread alone, or one operator at a time, waiting for
 * parameters and handing over gradients during the computation; only for a
 * dense network with one shard. */
pl_status pl_compute_stream(pl_compute *compute, const pl_batch *batch,
                            int64_t step, int64_t part, pl_exec_hooks *hooks,
                            double *loss) PL_MUST_CHECK;

/* What was wrong with a batch whose loss was not a number; PL_OK if unknown. */
pl_status pl_compute_check(const pl_compute *compute) PL_MUST_CHECK;

/* The gradient of parameter `param` by the last pl_compute_gradient, valid
 * until the next.  *keys: its keys, known after prepare; NULL: all. */
const float *pl_compute_grad(const pl_compute *compute, int param,
                             const pl_keys **keys);
/* The same for all parameters, if none is sparse. */
pl_params *pl_compute_diff(const pl_compute *compute);

/* Mean loss and accuracy of a batch, for an object made with `forward`. */
pl_score pl_compute_score(pl_compute *compute, const pl_batch *batch);

/* Accuracy on the batch of the last pl_compute_gradient, before the update,
 * over the rows whose answers are still in memory (the last that each thread
 * computed).  NAN: not known. */
double pl_compute_accuracy(const pl_compute *compute, const pl_batch *batch);

/* The logits of *rows rows of the last pl_compute_gradient; valid until this
 * object, or one that shares its memory, runs again.  Dense networks only. */
const float *pl_compute_logits(const pl_compute *compute, int64_t *rows);

/* A classifier's answer to an example. */
typedef struct pl_answer {
    int32_t predicted;
    float probability; /* of that class; 0 if the answer is right */
} pl_answer;

/* Keep the answers of each pl_compute_score from now on, or stop keeping them.
 * Returns the number of classes; 0: not kept, as for sparse models and those
 * with more classes than PL_CONFUSION_CLASSES. */
int64_t pl_compute_keep_answers(pl_compute *compute, bool keep);
/* Answers to the rows of the last pl_compute_score, valid until the next; NULL
 * if not kept. */
const pl_answer *pl_compute_answers(const pl_compute *compute);

/* For a regression model: the outputs of the last pl_compute_score, [rows,
 * numbers], valid until the next.  NULL for other models. */
const float *pl_compute_outputs(const pl_compute *compute);

/* For a binary model: the probabilities computed by the last score or gradient,
 * valid until the next.  NULL if not kept. */
const float *pl_compute_probs(const pl_compute *compute);

#endif

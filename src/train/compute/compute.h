/* compute.h - forward and backward over a batch, on several threads.
 *
 * A dense batch is split into shards, each computed by one thread into
 * gradients of its own, which are then added in order.  The number of shards
 * depends on the model and the batch size alone, so the result is the same,
 * bit for bit, on one thread or sixteen, and there is no barrier inside a
 * layer.
 *
 * A sparse batch touches few of a table's millions of weights.  Its gradient
 * is a list of distinct keys with a number each: prepare finds the keys, so
 * that their weights can be asked for; the rest is as above.
 *
 * Threads: driven by one thread; uses the pool it was given. */
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

/* Let threads update a sparse table without waiting for each other, example
 * by example: the gradient of a batch is applied as it is computed. */
typedef struct pl_hogwild_opts {
    const pl_schedule *schedule; /* of the learning rate; required */
    double l1, l2;
    pl_frozen *frozen; /* where changes are announced; NULL: nowhere */
} pl_hogwild_opts;

typedef struct pl_compute_opts {
    const pl_network *network; /* required; borrowed, as all here */
    int64_t batch;             /* the most rows a batch has; required */
    pl_pool *pool;             /* required... */
    int threads;               /* ... but for pl_compute_memory */
    const pl_kernels *kernels; /* default: the best of this processor */
    pl_trace *trace;           /* one lane per thread of the pool, or NULL */
    float *diff;               /* memory for the gradient; default: its own */
    bool sum;                  /* gradients are sums over a batch, not means */
    bool bf16;                 /* gradients of large layers from numbers rounded
                                  to bfloat16 (pl_plan_opts); scores never */
    bool forward;              /* loss and accuracy only, no gradients */
    uint64_t seed;             /* of what is random in training */
    const struct pl_compute *beside; /* never runs at the same time and lives
                                        longer: share its memory; or NULL */
    int64_t beside_batch; /* the most rows that one takes: a large model is
                             scored no more at a time; 0: not known */
    const pl_hogwild_opts *hogwild; /* sparse networks; NULL: by batches */
    bool elsewhere;      /* a sparse network's parameters are not in memory
                            here: pl_compute_place brings those of a batch */
    bool any_key_order;  /* of a sparse gradient; default: sorted */
    pl_sync *sync;       /* told of each operator that has finished; or NULL */
    pl_factors *factors; /* of dense layers, kept of each gradient; or NULL */
    bool early;          /* a sparse batch is prepared long before it is
                            computed, by any thread */
} pl_compute_opts;

pl_status pl_compute_new(pl_compute **out,
                         const pl_compute_opts *opts) PL_MUST_CHECK;
void pl_compute_free(pl_compute *compute); /* NULL is fine */

int pl_compute_shards(const pl_compute *compute);

/* The memory of one, known before it is allocated. */
typedef struct pl_compute_size {
    int64_t bytes; /* of all executions and gradients */
    int64_t arena; /* of one execution */
    bool large;    /* all threads work in one operator */
} pl_compute_size;
pl_status pl_compute_memory(const pl_compute_opts *opts,
                            pl_compute_size *out) PL_MUST_CHECK;

/* Look at a batch that is about to be computed or scored: which keys does it
 * have, and can they be.  Dense batches need it not.  Of a network whose
 * parameters are elsewhere, all but the labels of the batch may be gone then.
 */
pl_status pl_compute_prepare(pl_compute *compute,
                             const pl_batch *batch) PL_MUST_CHECK;

/* The values at the keys that prepare found, for a network whose parameters
 * are elsewhere; they stay until the batch is done. */
void pl_compute_place(pl_compute *compute, const pl_values *values);

/* The mean loss and the gradient of a batch.  `part` says which batch of the
 * step it is, over all workers: worker * micro-batches + micro-batch; what is
 * random follows from seed, step and part.  With `apply`, the update is made
 * on the way, range by range (pl_sync_ops.local). */
double pl_compute_gradient(pl_compute *compute, const pl_batch *batch,
                           int64_t step, int64_t part, pl_sync *apply);

/* The same on the calling thread alone, or in one operator after the other,
 * with parameters that come and gradients that go on the way; only where
 * there is one shard, and of dense networks. */
pl_status pl_compute_stream(pl_compute *compute, const pl_batch *batch,
                            int64_t step, int64_t part, pl_exec_hooks *hooks,
                            double *loss) PL_MUST_CHECK;

/* What was wrong with the batch whose loss was not a number; PL_OK when
 * nothing is known. */
pl_status pl_compute_check(const pl_compute *compute) PL_MUST_CHECK;

/* The gradient of parameter `param` by the last pl_compute_gradient; until
 * the next.  *keys: the keys it has, known from prepare on; NULL: all. */
const float *pl_compute_grad(const pl_compute *compute, int param,
                             const pl_keys **keys);
/* The same of all parameters, where none is sparse. */
pl_params *pl_compute_diff(const pl_compute *compute);

/* Mean loss and accuracy of a batch, for one made with `forward`. */
pl_score pl_compute_score(pl_compute *compute, const pl_batch *batch);

/* The share of right answers in the batch of the last pl_compute_gradient, of
 * those rows whose answers are still in memory (of each thread, the last it
 * computed), before the update.  NAN: not known. */
double pl_compute_accuracy(const pl_compute *compute, const pl_batch *batch);

/* The logits of some rows of the last pl_compute_gradient, *rows of them;
 * until the next run of this one, or of one beside it.  Of dense networks. */
const float *pl_compute_logits(const pl_compute *compute, int64_t *rows);

/* What a classifier says of an example. */
typedef struct pl_answer {
    int32_t predicted;
    float probability; /* of that class; 0 where the answer is right */
} pl_answer;

/* Keep the answers of each pl_compute_score from now on, or no longer.  Returns
 * the number of classes; 0: of sparse models and those with more classes than
 * PL_CONFUSION_CLASSES they are not kept. */
int64_t pl_compute_keep_answers(pl_compute *compute, bool keep);
/* To the rows of the last pl_compute_score, until the next; NULL where they are
 * not kept. */
const pl_answer *pl_compute_answers(const pl_compute *compute);

/* Of a model that predicts numbers: those of the last pl_compute_score, [rows,
 * numbers]; until the next.  NULL of other models. */
const float *pl_compute_outputs(const pl_compute *compute);

/* Of a model that answers yes or no: the probabilities of yes that the last
 * score or gradient came from; until the next.  NULL where they are not
 * kept. */
const float *pl_compute_probs(const pl_compute *compute);

#endif

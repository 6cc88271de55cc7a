/* loop.h - the training loop.
 *
 * One step: take a batch (or several micro-batches), compute the gradient, hand
 * it to the sync (train/sync.h).  Between steps: evaluate, save, check whether
 * to stop.  The loop is independent of cluster and terminal: it records events
 * in metrics and trace.
 *
 * Threads: one loop, one thread; any thread may set the interrupt. */
#ifndef PL_TRAIN_LOOP_LOOP_H
#define PL_TRAIN_LOOP_LOOP_H

#include "base/param/param.h"
#include "base/record/confusion.h"
#include "base/record/metric.h"
#include "train/compute/compute.h"
#include "train/loop/course.h"
#include "train/losses.h"
#include "train/optim/schedule.h"

#include <stdatomic.h>

typedef enum pl_aggregate {
    PL_AGGREGATE_MEAN,
    PL_AGGREGATE_SUM,
} pl_aggregate;

typedef struct pl_loop_opts {
    const pl_network *network;    /* required; all pointers are borrowed */
    pl_dataset *train;            /* required */
    pl_dataset *test;             /* NULL: no evaluation */
    pl_sync *sync;                /* required */
    pl_pool *pool;                /* required */
    pl_metrics *metrics;          /* required */
    const pl_schedule *schedule;  /* required; for the record */
    pl_trace *trace;              /* may be NULL */
    const pl_kernels *kernels;    /* default: the best */
    bool bf16;                    /* as pl_compute_opts.bf16 */
    const atomic_bool *interrupt; /* finish the step and return; or NULL */

    pl_reader_opts order;   /* batch, micro_batches, worker, workers, seed;
                               keep_rest with hogwild only */
    int64_t steps;          /* total updates; 0: by epochs */
    int64_t epochs;         /* when steps is 0; >= 1 */
    int64_t epoch_steps;    /* steps per epoch; default: a pass over the data */
    pl_aggregate aggregate; /* combines micro-batches */
    pl_aggregate batch_reduction;   /* combines the examples of a batch */
    double clip;                    /* gradient norm to clip to; 0: no limit */
    const pl_hogwild_opts *hogwild; /* NULL: by mini-batches */
    pl_targets targets;             /* what tests decide */
    double kept_loss; /* with targets.keep_best: loss of a resumed run's best
                         checkpoint; 0: none */
    /* The checkpoint of this test is complete and is the best so far. */
    pl_status (*keep_best)(void *context, int64_t step, const pl_score *test);
    void *context;
    pl_every eval_every;
    pl_every save_every;
    double late_save_s; /* a checkpoint being written longer than this is late;
                           default 10 */
    pl_every histograms_every;       /* of weights, gradients, predictions */
    pl_every record_every;           /* points of the curves (recorder.h) */
    int64_t eval_batch;              /* default: pl_loop_eval_batch */
    pl_confusion *confusion;         /* of the last test; NULL: not wanted.
                                        Closed by the caller. */
    int64_t trace_first, trace_last; /* steps to trace, inclusive; from 1 */
    pl_progress start;               /* progress of a resumed run; else zero */
    bool far_start; /* the loss may start far above that of random answers */

    /* For one worker of several (order.workers). */
    bool follower;    /* not the chief: does not save, nor end the job */
    bool own_pace;    /* each gradient is an update; --epochs counts passes over
                         the own share, the job counts --steps */
    int32_t replicas; /* gradients per update; default: all workers' */
} pl_loop_opts;

/* Time spent in steps, by phase. */
typedef struct pl_phases {
    double input_s;   /* waiting for and preparing batches */
    double compute_s; /* forward, backward, local update */
    double send_s;    /* handing gradients over */
    double wait_s;    /* for parameters and for other tasks */
} pl_phases;

typedef struct pl_loop_result {
    pl_progress progress;
    double epochs; /* passes over the data, with fraction */
    pl_mean_loss train_loss;
    pl_score test; /* of the final parameters */
    bool tested;
    bool ended; /* all steps were made; the final save may have failed */
    int64_t target_step;   /* of the first test that met a target; -1: none */
    double target_seconds; /* of training before that step */
    double eval_seconds;
    double held_seconds; /* of tests between steps, during which no worker makes
                            steps */
    double save_seconds;
    int64_t tests, saves; /* that took these times */
    int64_t own_steps;    /* gradients this worker made that were used */
    int64_t own_examples;
    int64_t dropped;
    int64_t rolled_back; /* updates made again after a server was lost */
    pl_phases phases;
    double throttled_s;  /* a quota of processor time was exhausted */
    double stolen_share; /* of the host's processor time (base/host/steal.h) */
    double usual_step_s; /* median step time without waiting; NAN: no steps */
    pl_stopped_by stopped_by;
} pl_loop_result;

/* Train.  PL_NUMERIC when the loss is not a number: *result is still filled in,
 * and nothing was saved after the last good step. */
pl_status pl_loop_run(const pl_loop_opts *opts,
                      pl_loop_result *result) PL_MUST_CHECK;

/* Examples tested at once: `given`, or if that is 0, at most 1000 and at most
 * 64 MB of numbers; never more than the set has. */
int64_t pl_loop_eval_batch(const pl_dataset *set, int64_t given);

/* Mean loss and accuracy over a data set; `batch` follows that rule.  `sync`
 * supplies remote parameters (pl_sync_ops.keyed); or NULL.  `confusion` is
 * reset (train/answers.h); NULL: not wanted. */
pl_status pl_loop_evaluate(pl_compute *compute, pl_dataset *set, int64_t batch,
                           pl_sync *sync, pl_confusion *confusion,
                           pl_score *out) PL_MUST_CHECK;

#endif

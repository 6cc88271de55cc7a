/* recorder.h - records the training loop's progress as metrics.
 *
 * Progress is set at every step; displayed loss and speed every 50 ms, since
 * steps may take microseconds.  The displayed loss is the training loss
 * (losses.h), as in the summary.  Curves get a point as often at first, and
 * less often as they grow (base/record/sampler.h), or at a given interval.  The
 * gradient norm is computed so seldom that it takes at most half a percent of
 * the time.  Before a test and at the end the last step is always recorded.
 * docs/formats/run.md lists the names.
 *
 * Threads: the loop's thread. */
#ifndef PL_TRAIN_RECORDER_H
#define PL_TRAIN_RECORDER_H

#include "base/record/metric.h"
#include "base/record/sampler.h"
#include "kernels/backend.h"
#include "tensor/params.h"
#include "train/loop/due.h"
#include "train/losses.h"
#include "train/optim/schedule.h"
#include "train/score.h"
#include "train/sync.h"

typedef struct pl_recorder_opts {
    pl_metrics *metrics;         /* required; all pointers are borrowed */
    const pl_schedule *schedule; /* required */
    const pl_kernels *kernels;   /* required */
    const pl_params *params;     /* required */
    pl_sync *sync;               /* required */
    bool own_pace;               /* other workers update between our updates */
    int64_t epoch_updates;       /* 0: not known */
    int64_t epoch_steps;         /* of this worker; 0: not known */
    pl_every every;              /* of points; auto: set by the sampler */
    pl_due_pace pace;            /* of `every` ... */
    int64_t start_step;          /* ... and the step where the run begins */
    /* A parameter's last gradient, *count elements; NULL: not available. */
    const float *(*gradient)(void *context, int param, int64_t *count);
    /* The accuracy on the last batch; NAN: not known. */
    double (*accuracy)(void *context);
    void *context;
} pl_recorder_opts;

/* The state after a step. */
typedef struct pl_recorder_step {
    int64_t step, examples; /* of the job */
    int64_t own;            /* all updates of this worker */
    int64_t own_examples;   /* ... and their examples, since this process
                               started */
    int64_t dropped;
    int64_t behind;        /* updates by other workers since this one began */
    double loss;           /* of the step ... */
    int64_t loss_examples; /* ... and the number of examples it averages */
    uint64_t now, waited;  /* ticks: the time, and the total spent waiting */
} pl_recorder_step;

/* The state at some moment, as the start of an interval. */
typedef struct pl_recorder_mark {
    uint64_t now, waited; /* ticks; 0: not set */
    int64_t examples;     /* of this worker */
    int64_t behind, steps;
} pl_recorder_mark;

typedef struct pl_recorder {
    pl_recorder_opts opts;
    struct {
        int step, epoch, examples, loss, train_loss, train_loss_examples,
            accuracy, lr, tests, test_loss, test_accuracy, test_auc,
            test_precision, test_recall, test_calibration, test_top5, test_rmse,
            test_mae, test_r2, own_steps, own_examples, dropped, rate, waiting,
            norm, staleness, sent, received, restart, activity;
    } tags;
    bool started; /* a first step was recorded */
    pl_losses losses;
    uint64_t next;                    /* ticks: next display */
    uint64_t next_norm;               /* ... and next gradient norm */
    pl_sampler points;                /* of the curves */
    pl_due due;                       /* likewise, with opts.every */
    int64_t behind, steps;            /* sum of staleness, and its number of
                                         steps */
    pl_recorder_mark shown, recorded; /* at the last display and point */
    pl_recorder_step at;              /* the last step... */
    bool pending;      /* ... which is not in the curves yet... */
    bool norm_pending; /* ... nor is its gradient norm */
    struct {
        int64_t next;     /* the step that ends the current one */
        int64_t steps;    /* of this worker in the current one... */
        double loss;      /* ... the sum of their losses... */
        uint64_t begin;   /* ... its start, in ticks and... */
        int64_t examples; /* ... examples of the job */
        bool ended;       /* `last` is not recorded yet: its test may follow */
        pl_epoch last;
    } epoch;
} pl_recorder;

/* No close is needed. */
pl_status pl_recorder_init(pl_recorder *recorder,
                           const pl_recorder_opts *opts) PL_MUST_CHECK;

void pl_recorder_put(pl_recorder *recorder, const pl_recorder_step *step);

/* Record a warning that the training goes wrong at this step. */
void pl_recorder_warn(pl_recorder *recorder, int64_t step, const char *text);

/* The job continues at `step`: points recorded beyond it are void.  It was at
 * step `from` and rolled back to `restored`; if that is not less, nothing was
 * undone. */
void pl_recorder_restart(pl_recorder *recorder, int64_t step, int64_t from,
                         int64_t restored);
/* A checkpoint of `step` was begun. */
void pl_recorder_checkpoint(pl_recorder *recorder, int64_t step);

void pl_recorder_test(pl_recorder *recorder, int64_t step,
                      const pl_score *score);

/* Set the loop's current activity. */
void pl_recorder_activity(pl_recorder *recorder, pl_activity activity);

/* Record the distributions of the parameters and their last gradients. */
void pl_recorder_histograms(pl_recorder *recorder, int64_t step);
/* Record the probabilities of the answers, from their logits. */
void pl_recorder_predictions(pl_recorder *recorder, int64_t step,
                             const float *logits, int64_t rows,
                             int64_t classes);
/* The same for a binary model, from its probabilities. */
void pl_recorder_probabilities(pl_recorder *recorder, int64_t step,
                               const float *probs, int64_t rows);

/* Record the last step if it is pending.  `computed` is false if its batch and
 * gradient are gone: their curves then end earlier. */
void pl_recorder_flush(pl_recorder *recorder, bool computed);

/* Call when the loop pauses or ends. */
void pl_recorder_end(pl_recorder *recorder, int64_t own_examples,
                     int64_t dropped);

/* Record the last epoch, with or without a test. */
void pl_recorder_end_epoch(pl_recorder *recorder);

#endif

/* recorder.h - what the training loop tells of itself, as metrics.
 *
 * How far it is, is set at every step; what is shown of loss and speed, every
 * 50 ms, since steps may take microseconds: of the loss the training loss
 * (losses.h), as the summary has it.  Curves get a point as often as
 * that at first, and less often as they grow (base/record/sampler.h), or as
 * often as they are asked to; the norm
 * of the gradient is taken so seldom that it takes no more than half a percent
 * of the time.  Before a test and at the end the last step is recorded in any
 * case.
 * docs/formats/run.md lists the names.
 *
 * Threads: the loop's. */
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
    pl_metrics *metrics;         /* required; all is borrowed */
    const pl_schedule *schedule; /* required */
    const pl_kernels *kernels;   /* required */
    const pl_params *params;     /* required */
    pl_sync *sync;               /* required */
    bool own_pace;               /* others update between our updates */
    int64_t epoch_updates;       /* 0: not known */
    int64_t epoch_steps;         /* of this worker; 0: not known */
    pl_every every;              /* points; auto: as the sampler says */
    pl_due_pace pace;            /* of `every` ... */
    int64_t start_step;          /* ... and where the run begins */
    /* The last gradient of a parameter, *count of them; NULL: not to be had. */
    const float *(*gradient)(void *context, int param, int64_t *count);
    /* The share of right answers in the last batch; NAN: not known. */
    double (*accuracy)(void *context);
    void *context;
} pl_recorder_opts;

/* How it stands after a step. */
typedef struct pl_recorder_step {
    int64_t step, examples; /* of the job */
    int64_t own;            /* updates of this worker, ever */
    int64_t own_examples;   /* ... and their examples, since it was started */
    int64_t dropped;
    int64_t behind;        /* updates by others, since this one began */
    double loss;           /* of the step ... */
    int64_t loss_examples; /* ... and the examples it is the mean of */
    uint64_t now, waited;  /* ticks: the time, and that spent waiting, in all */
} pl_recorder_step;

/* How it stood at some moment, to tell what happened since then. */
typedef struct pl_recorder_mark {
    uint64_t now, waited; /* ticks; 0: there was no such moment */
    int64_t examples;     /* own ones */
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
    bool started; /* there was a step */
    pl_losses losses;
    uint64_t next;                    /* ticks: when to show again */
    uint64_t next_norm;               /* ... to take the norm of the gradient */
    pl_sampler points;                /* of the curves */
    pl_due due;                       /* likewise, with opts.every */
    int64_t behind, steps;            /* staleness, summed, of so many steps */
    pl_recorder_mark shown, recorded; /* when that was done last */
    pl_recorder_step at;              /* the last step... */
    bool pending;      /* ... which is not in the curves yet... */
    bool norm_pending; /* ... nor its gradient's norm */
    struct {
        int64_t next;     /* the step that ends the present one */
        int64_t steps;    /* of this worker in the present one... */
        double loss;      /* ... the sum of their losses... */
        uint64_t begin;   /* ... and its begin, in ticks and... */
        int64_t examples; /* ... examples of the job */
        bool ended;       /* `last` is not put yet: its test may come */
        pl_epoch last;
    } epoch;
} pl_recorder;

/* Nothing is to be closed. */
pl_status pl_recorder_init(pl_recorder *recorder,
                           const pl_recorder_opts *opts) PL_MUST_CHECK;

void pl_recorder_put(pl_recorder *recorder, const pl_recorder_step *step);

/* The training goes wrong at this step: how. */
void pl_recorder_warn(pl_recorder *recorder, int64_t step, const char *text);

/* The job goes on at `step`: what was recorded beyond it is void.  It came
 * from step `from` and went back to `restored`; where that is not less, nothing
 * was undone. */
void pl_recorder_restart(pl_recorder *recorder, int64_t step, int64_t from,
                         int64_t restored);
/* A checkpoint of `step` was begun. */
void pl_recorder_checkpoint(pl_recorder *recorder, int64_t step);

void pl_recorder_test(pl_recorder *recorder, int64_t step,
                      const pl_score *score);

/* What the loop does from now on. */
void pl_recorder_activity(pl_recorder *recorder, pl_activity activity);

/* How the parameters and their last gradients lie. */
void pl_recorder_histograms(pl_recorder *recorder, int64_t step);
/* How likely the answers were found, from their logits. */
void pl_recorder_predictions(pl_recorder *recorder, int64_t step,
                             const float *logits, int64_t rows,
                             int64_t classes);
/* The same of a model that answers yes or no. */
void pl_recorder_probabilities(pl_recorder *recorder, int64_t step,
                               const float *probs, int64_t rows);

/* Record the last step where that was left for later.  `computed` is false
 * when its batch and gradient are no longer there: their curves then end
 * earlier. */
void pl_recorder_flush(pl_recorder *recorder, bool computed);

/* As the loop pauses or ends. */
void pl_recorder_end(pl_recorder *recorder, int64_t own_examples,
                     int64_t dropped);

/* The last epoch is put, with or without a test. */
void pl_recorder_end_epoch(pl_recorder *recorder);

#endif

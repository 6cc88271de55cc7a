/* train.h - training inside a program.
 *
 *     pl_training *training;
 *     pl_train_result result;
 *     if (pl_train_start(&training, &(pl_train_opts) {
 *             .model = "softmax", .train = data, .flags = "--epochs 3" }) ||
 *         pl_train_wait(training, &result))
 *         puts(pl_error_message());
 *
 * The settings are the flags of `paceline train`, with the same names, defaults
 * and checks: as one text, or as names and values.
 *
 * A training runs on its own threads.  It prints nothing, catches no signals,
 * and neither ends nor changes the process; its messages go to pl_log_to
 * (paceline/base.h).  Any number of trainings may run at the same time.
 *
 * Records and checkpoints are kept in the folder of the flag run.  Without that
 * flag they are kept in a temporary folder, which pl_train_free removes; a task
 * of a cluster needs the flag.
 *
 * Every struct here may be zeroed first; a field that is 0 has its default.
 *
 * Threads: start, wait and free of one training from one thread at a time;
 * poll and interrupt from any, between start and free. */
#ifndef PACELINE_TRAIN_H
#define PACELINE_TRAIN_H

#include <paceline/data.h>
#include <paceline/model.h>
#include <paceline/predict.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct pl_training pl_training;

typedef enum pl_train_state {
    PL_TRAIN_STARTING, /* opens data and model, joins the other tasks */
    PL_TRAIN_RUNNING,
    PL_TRAIN_ENDED, /* successfully or not: pl_train_wait returns at once */
} pl_train_state;

/* The progress of a training.  Numbers that are not known (yet) are -1 or
 * NAN. */
typedef struct pl_train_progress {
    int32_t state;        /* of pl_train_state */
    int64_t step;         /* updates so far... */
    int64_t end_step;     /* ... and where it ends; -1: not known */
    int64_t epoch_steps;  /* of an epoch */
    int64_t examples;     /* of all workers */
    double seconds;       /* since the start, all phases included */
    double loss;          /* of training, as on the progress line */
    double test_loss;     /* of the last test */
    double test_accuracy; /* 0 .. 1 */
} pl_train_progress;

/* Called a few times a second while it trains, and once at the end, on a thread
 * of the training.  It must not call the library, except pl_train_interrupt. */
typedef void pl_train_callback(void *context,
                               const pl_train_progress *progress);

typedef struct pl_train_opts {
    /* Exactly one of three: */
    const char *model;   /* a built-in model by name, "lenet", or an ONNX file,
                            "net.onnx" */
    const pl_model *own; /* the program's own model; borrowed until the free */
    const pl_net *net;   /* the same, built by calls */

    /* The examples; borrowed until the free.  If NULL, the flags data and
     * test-data name the sources.  Without test data and holdout nothing is
     * tested: eval-every is then never. */
    const pl_data *train;
    const pl_data *test;

    /* "--lr 0.1 --optimizer adam": words separated by spaces; a word that
     * contains spaces is quoted with ' or ". */
    const char *flags;
    /* Additionally or instead, alternating names (without --) and values, then
     * NULL: { "lr", "0.1", "nesterov", "true", NULL }.  A flag without a value
     * takes "true" or "false". */
    const char *const *settings;

    pl_train_callback *progress; /* optional */
    void *context;               /* passed to it */

    /* First values of parameters, by name, as from pl_predict_get; borrowed
     * until the training begins, which copies them.  Other parameters and the
     * optimizer start as usual.  For a single worker only, and not with
     * resume. */
    const pl_predict_tensor *initial;
    int32_t initial_count;
} pl_train_opts;

/* Check everything that can be checked without data, and start.  PL_USAGE, with
 * the flag's name, for what the command line refuses, and for flags about the
 * terminal (json, quiet, progress) and about processes (restarts, chaos, engine
 * mpi), which do not apply here.
 *
 * With workers and ps (or with workers alone: a ring) the tasks of the job are
 * threads, which communicate as processes do.  A task that fails ends the job.
 * With cluster, role, index and run this is one task of a job whose other tasks
 * are elsewhere. */
pl_status pl_train_start(pl_training **out,
                         const pl_train_opts *opts) PL_MUST_CHECK;

/* Wait for the end of the training, at most `wait_ms`, then read its
 * progress. */
void pl_train_poll(pl_training *training, int32_t wait_ms,
                   pl_train_progress *out);

/* Request the end: the training finishes its step and saves.  May be called
 * from any thread and from a signal handler. */
void pl_train_interrupt(pl_training *training);

/* The result of a training.  Texts live until pl_train_free. */
typedef struct pl_train_result {
    int64_t steps, examples;
    double epochs;
    double seconds; /* of training alone */
    double examples_per_s;
    double train_loss;
    double test_loss, test_accuracy; /* NAN: not tested */
    double test_auc;                 /* of binary classifiers; otherwise NAN */
    bool deterministic;
    const char
        *stopped_by; /* "epochs", "steps", "stop_loss", "interrupt", ... */
    const char *parameters_sha256; /* docs/formats/run.md */
    const char *run;               /* the run folder */
    const char *summary;           /* all that `--json` prints, as JSON text */
} pl_train_result;

/* Wait for the end.  Returns the first failure of the job, with its message.
 * An interrupted training is not a failure, unless it had not begun
 * (PL_INTERRUPTED).  A task other than the chief has no result: it is zeroed.
 * May be called again. */
pl_status pl_train_wait(pl_training *training,
                        pl_train_result *out) PL_MUST_CHECK;

/* Interrupts the training if it still runs, waits, frees.  NULL is fine. */
void pl_train_free(pl_training *training);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif

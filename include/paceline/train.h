/* train.h - training inside a program.
 *
 *     pl_training *training;
 *     pl_train_result result;
 *     if (pl_train_start(&training, &(pl_train_opts) {
 *             .model = "softmax", .train = data, .flags = "--epochs 3" }) ||
 *         pl_train_wait(training, &result))
 *         puts(pl_error_message());
 *
 * What the flags of `paceline train` say is said here by the same names, with
 * the same defaults and the same checks: as one text, or as names and values.
 *
 * A training runs on threads of its own.  It prints nothing, catches no
 * signal, ends no process and changes nothing of it; what it has to say goes to
 * pl_log_to (paceline/base.h).  Any number of them may run at the same time.
 *
 * Where it keeps its records and checkpoints: in the folder of the flag run.
 * Without that flag, in a folder for temporary files, which pl_train_free
 * removes; a task of a cluster needs the flag.
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
    PL_TRAIN_STARTING, /* opens data and model, meets the other tasks */
    PL_TRAIN_RUNNING,
    PL_TRAIN_ENDED, /* well or not: pl_train_wait returns at once */
} pl_train_state;

/* How far it is.  Numbers that are not known (yet) are -1 or NAN. */
typedef struct pl_train_progress {
    int32_t state;        /* of pl_train_state */
    int64_t step;         /* updates so far... */
    int64_t end_step;     /* ... and where it ends; -1: not known */
    int64_t epoch_steps;  /* of an epoch */
    int64_t examples;     /* of all workers */
    double seconds;       /* since the start, with everything */
    double loss;          /* of training, as the progress line has it */
    double test_loss;     /* of the latest test */
    double test_accuracy; /* 0 .. 1 */
} pl_train_progress;

/* Called a few times a second while it trains, and once at the end, on a thread
 * of the training.  It must not call the library but for pl_train_interrupt. */
typedef void pl_train_callback(void *context,
                               const pl_train_progress *progress);

typedef struct pl_train_opts {
    /* One of three: */
    const char *model;   /* a built-in model by name, "lenet", or an ONNX file,
                            "net.onnx" */
    const pl_model *own; /* a model of one's own; borrowed until the free */
    const pl_net *net;   /* the same, made by calls */

    /* The examples; borrowed until the free.  Without, the flags data and
     * test-data say what is read.  Without test data and holdout nothing is
     * tested: eval-every is then never. */
    const pl_data *train;
    const pl_data *test;

    /* "--lr 0.1 --optimizer adam", words apart by spaces; one with spaces in it
     * stands between ' or ". */
    const char *flags;
    /* And, or instead, names and values in turn, without --, then NULL: { "lr",
     * "0.1", "nesterov", "true", NULL }.  A flag without a value takes "true"
     * or "false". */
    const char *const *settings;

    pl_train_callback *progress; /* optional */
    void *context;               /* handed to it */

    /* First values of parameters, by name, as pl_predict_get has them; copied
     * when the training begins, until then borrowed.  Others start as init
     * says, and so does the optimizer.  For one worker alone, not with
     * resume. */
    const pl_predict_tensor *initial;
    int32_t initial_count;
} pl_train_opts;

/* Check everything that can be checked without data, and begin.  PL_USAGE, with
 * a sentence that names the flag, for what the command line refuses, and for
 * flags about the terminal (json, quiet, progress) and about processes
 * (restarts, chaos, engine mpi): a training here has none.
 *
 * With workers and ps (or with workers alone: a ring) the tasks of the job are
 * threads, which talk as those of processes do.  A task that fails ends the
 * job.  With cluster, role, index and run this is one task of a job whose other
 * tasks are elsewhere. */
pl_status pl_train_start(pl_training **out,
                         const pl_train_opts *opts) PL_MUST_CHECK;

/* How far it is, at the latest after `wait_ms`, at once when it ends. */
void pl_train_poll(pl_training *training, int32_t wait_ms,
                   pl_train_progress *out);

/* Ask it to end: it finishes its step and saves.  From any thread, also from a
 * handler of a signal. */
void pl_train_interrupt(pl_training *training);

/* What came of it.  Texts live until pl_train_free. */
typedef struct pl_train_result {
    int64_t steps, examples;
    double epochs;
    double seconds; /* of training alone */
    double examples_per_s;
    double train_loss;
    double test_loss, test_accuracy; /* NAN: not tested */
    double test_auc;                 /* of yes-or-no models; else NAN */
    bool deterministic;
    const char
        *stopped_by; /* "epochs", "steps", "stop_loss", "interrupt", ... */
    const char *parameters_sha256; /* docs/formats/run.md */
    const char *run;               /* the run folder */
    const char *summary;           /* all that `--json` prints, as JSON text */
} pl_train_result;

/* Wait for the end.  The first failure of the job is this call's, with its
 * sentence.  An interrupted training is no failure, unless it had not begun
 * (PL_INTERRUPTED).  A task that is not the chief has no result: it is zeroed.
 * May be called again. */
pl_status pl_train_wait(pl_training *training,
                        pl_train_result *out) PL_MUST_CHECK;

/* Interrupts it where it still runs, waits, frees.  NULL is fine. */
void pl_train_free(pl_training *training);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif

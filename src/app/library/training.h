/* training.h - the inside of a pl_training (paceline/train.h).
 *
 * Threads: a driver of its own trains, or supervises the tasks that do; a
 * reporter calls the program back.  `lock` guards what they share with the
 * program's threads. */
#ifndef PL_APP_LIBRARY_TRAINING_H
#define PL_APP_LIBRARY_TRAINING_H

#include "app/app.h"
#include "app/library/arguments.h"
#include "app/task/part.h"
#include "app/train/trainer.h"
#include "base/error.h"
#include "base/record/run_record.h"
#include "base/thread.h"

/* Tags of the metrics that make up the progress. */
typedef struct pl_training_tags {
    int step, examples, loss, tests, test_loss, test_accuracy;
} pl_training_tags;

struct pl_training {
    pl_train_opts opts;
    pl_app app;
    pl_app_files files; /* holds a model that is read from a file */
    const pl_model *model;
    pl_arguments arguments;
    pl_options options;
    pl_run_record record; /* of the run to resume */
    pl_part part;
    char *temporary; /* a temporary run folder; NULL: the program's */
    int64_t begin_ns;
    pl_trainer_host host; /* of the worker that trains here */
    pl_thread *driver, *reporter;
    atomic_bool interrupt;

    pl_mutex lock; /* guards all that follows */
    pl_cond changed;
    bool ended;
    pl_error failed;
    pl_train_progress progress; /* as last known */
    pl_metrics *metrics;        /* while it trains in this process alone */
    pl_training_tags tags;
    pl_train_result result;
    char *texts[4]; /* for the result */
};

/* check: PL_USAGE or PL_UNSUPPORTED where first values cannot be given.  set:
 * copy them, as a pl_trainer_host.initial (initial.c). */
pl_status pl_training_check_initial(const pl_training *training) PL_MUST_CHECK;
pl_status pl_training_set_initial(void *context,
                                  pl_params *params) PL_MUST_CHECK;

/* For the driver: the progress of a job of threads. */
void pl_training_report(pl_training *training,
                        const pl_train_progress *progress);
/* Keep a copy of the summary; a pl_trainer_host.result. */
pl_status pl_training_keep(void *context,
                           const pl_summary *summary) PL_MUST_CHECK;

/* Run the whole job as threads (threads.c). */
pl_status pl_training_threads(pl_training *training) PL_MUST_CHECK;

/* The requested model: the program's own, a built-in one, or one from an ONNX
 * file, which is added to the files of the app. */
pl_status pl_library_model(const pl_app *app, const char *name,
                           const pl_model *own, const pl_net *net,
                           const pl_model **out) PL_MUST_CHECK;

#endif

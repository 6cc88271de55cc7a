/* trained.h - a run's network with the parameters of its newest checkpoint, or
 * of its best.
 *
 * Threads: one. */
#ifndef PL_APP_TRAIN_TRAINED_H
#define PL_APP_TRAIN_TRAINED_H

#include "app/app.h"
#include "app/train/job.h"
#include "base/record/run_record.h"
#include "train/sync.h"

typedef struct pl_trained {
    pl_run_record record; /* run.json; the options point into it */
    pl_options options;
    pl_job job;
    pl_progress progress; /* of the checkpoint */
} pl_trained;

typedef struct pl_trained_opts {
    const pl_app *app;     /* knows the models; required */
    const char *run;       /* the run's folder; required */
    int64_t threads;       /* default: the number of cores */
    const char *test_data; /* default: the run's */
    bool no_data;          /* open no data, if the record describes it */
    bool best;             /* its best checkpoint (--keep-best) */
} pl_trained_opts;

/* PL_NOTFOUND when the run has no complete checkpoint.  The options are
 * borrowed until the free. */
pl_status pl_trained_new(pl_trained **out,
                         const pl_trained_opts *opts) PL_MUST_CHECK;
void pl_trained_free(pl_trained *trained); /* NULL is fine */

#endif

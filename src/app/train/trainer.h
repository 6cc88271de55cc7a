/* trainer.h - one worker from options to summary: alone, or as a task of a
 * job.
 *
 * Threads: one; a supervised worker has a second that tells how far it is. */
#ifndef PL_APP_TRAIN_TRAINER_H
#define PL_APP_TRAIN_TRAINER_H

#include "app/app.h"
#include "app/options/options.h"
#include "app/run/task_log.h"
#include "base/record/metric.h"
#include "base/record/summary.h"
#include "job/cluster/cluster.h"
#include "job/supervise/control.h"
#include "net/endpoint.h"

#include <stdatomic.h>

/* The program that a training runs in, where that is not ours alone: it is told
 * what else would be printed, and no signal is caught. */
typedef struct pl_trainer_host {
    atomic_bool *interrupt; /* required */
    bool threads;           /* its tasks are threads of one process */
    /* Optional: the metrics are there from the one to the other. */
    void (*begun)(void *context, pl_metrics *metrics, int64_t end_step,
                  int64_t epoch_steps);
    void (*done)(void *context);
    /* Optional: give parameters other first values. */
    pl_status (*initial)(void *context, pl_params *params);
    /* Required: the chief's summary, which is borrowed. */
    pl_status (*result)(void *context, const pl_summary *summary);
    void *context;
} pl_trainer_host;

typedef struct pl_trainer_opts {
    const pl_app *app;           /* required; all are borrowed */
    const pl_options *options;   /* required */
    const pl_cluster *cluster;   /* with addresses; NULL: alone */
    pl_task task;                /* of the cluster: chief or worker */
    pl_control *control;         /* NULL: no supervisor */
    const pl_job_keys *keys;     /* NULL: no authentication */
    pl_endpoint *listen;         /* a ring's; else NULL */
    pl_task_log *log;            /* opened in the run folder; NULL: none */
    int64_t begin_ns;            /* when the process began */
    const pl_trainer_host *host; /* NULL: the terminal, and its signals */
} pl_trainer_opts;

/* The flag that ends the task: its host's, or that of signals. */
atomic_bool *pl_trainer_interrupt(const pl_trainer_opts *opts);
/* Tell the host, where there is one, of metrics that it may look at, and that
 * it may not any more. */
void pl_trainer_begun(const pl_trainer_opts *opts, pl_metrics *metrics,
                      int64_t end_step, int64_t epoch_steps);
void pl_trainer_done(const pl_trainer_opts *opts);
/* Let the host, where there is one, give parameters their first values. */
pl_status pl_trainer_initial(const pl_trainer_opts *opts,
                             pl_params *params) PL_MUST_CHECK;
/* True when parameters start as the host or --init says, not as the model. */
bool pl_trainer_starts_far(const pl_trainer_opts *opts);
/* Hand the summary to the host, or print it. */
pl_status pl_trainer_show(const pl_trainer_opts *opts,
                          const pl_summary *summary) PL_MUST_CHECK;

/* A task other than the chief learns where the chief's run folder is: choose
 * where this one keeps its records, and open its log there.  *out stays NULL
 * when there is no place, which is told and ends nothing. */
void pl_trainer_locate(const pl_trainer_opts *opts, uint64_t job,
                       const char *chief, char **out);

/* Train, write the run folder, print the summary (the chief does both). */
pl_status pl_trainer_run(const pl_trainer_opts *opts) PL_MUST_CHECK;

/* Print a summary as --json asks. */
pl_status pl_trainer_print(const pl_options *options,
                           const pl_summary *summary) PL_MUST_CHECK;

/* What all tasks of a job must have been told alike. */
pl_status pl_trainer_settings(const pl_options *options,
                              pl_json **out) PL_MUST_CHECK;

#endif

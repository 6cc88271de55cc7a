/* trainer.h - one worker from options to summary: alone, or as a task of a
 * job.
 *
 * Threads: one; a supervised worker has a second one, which reports its
 * progress. */
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

/* The program that a training runs in, if it is not ours alone: it receives
 * what would otherwise be printed, and no signals are caught. */
typedef struct pl_trainer_host {
    atomic_bool *interrupt; /* required */
    bool threads;           /* its tasks are threads of one process */
    /* Optional: between these calls the program may read the metrics. */
    void (*begun)(void *context, pl_metrics *metrics, int64_t end_step,
                  int64_t epoch_steps);
    void (*done)(void *context);
    /* Optional: set other first values of parameters. */
    pl_status (*initial)(void *context, pl_params *params);
    /* Required: the chief's summary, which is borrowed. */
    pl_status (*result)(void *context, const pl_summary *summary);
    void *context;
} pl_trainer_host;

typedef struct pl_trainer_opts {
    const pl_app *app;           /* required; everything is borrowed */
    const pl_options *options;   /* required */
    const pl_cluster *cluster;   /* with addresses; NULL: alone */
    pl_task task;                /* of the cluster: chief or worker */
    pl_control *control;         /* NULL: no supervisor */
    const pl_job_keys *keys;     /* NULL: no authentication */
    pl_endpoint *listen;         /* for a ring; otherwise NULL */
    pl_task_log *log;            /* opened in the run folder; NULL: none */
    int64_t begin_ns;            /* when the process started */
    const pl_trainer_host *host; /* NULL: the terminal, and its signals */
} pl_trainer_opts;

/* The flag that ends the task: the host's, or the one that signals set. */
atomic_bool *pl_trainer_interrupt(const pl_trainer_opts *opts);
/* Notify the host, if there is one, when it may read the metrics, and when it
 * may no longer. */
void pl_trainer_begun(const pl_trainer_opts *opts, pl_metrics *metrics,
                      int64_t end_step, int64_t epoch_steps);
void pl_trainer_done(const pl_trainer_opts *opts);
/* Let the host, if there is one, set first values of parameters. */
pl_status pl_trainer_initial(const pl_trainer_opts *opts,
                             pl_params *params) PL_MUST_CHECK;
/* True when first values come from the host or --init, not from the model. */
bool pl_trainer_starts_far(const pl_trainer_opts *opts);
/* Pass the summary to the host, or print it. */
pl_status pl_trainer_show(const pl_trainer_opts *opts,
                          const pl_summary *summary) PL_MUST_CHECK;

/* A task other than the chief has received the path of the chief's run folder:
 * choose where this one keeps its records, and open its log there.  *out stays
 * NULL when there is no place, which is logged and not a failure. */
void pl_trainer_locate(const pl_trainer_opts *opts, uint64_t job,
                       const char *chief, char **out);

/* Train, write the run folder, print the summary (the chief does both). */
pl_status pl_trainer_run(const pl_trainer_opts *opts) PL_MUST_CHECK;

/* Print a summary, with --json as JSON. */
pl_status pl_trainer_print(const pl_options *options,
                           const pl_summary *summary) PL_MUST_CHECK;

/* The settings that all tasks of a job must share. */
pl_status pl_trainer_settings(const pl_options *options,
                              pl_json **out) PL_MUST_CHECK;

#endif

/* work.h - one worker's step, the input of a plan: measured on this machine, or
 * taken from a run.
 *
 * Threads: one. */
#ifndef PL_APP_PLAN_WORK_H
#define PL_APP_PLAN_WORK_H

#include "app/app.h"
#include "app/options/options.h"
#include "app/train/job.h"
#include "base/record/run_record.h"
#include "observe/steps/steps.h"
#include "train/factors.h"

#define PL_FORECAST_FORWARD                                                    \
    (1 / 3.0)                      /* forward's share, where only the sum with \
                                      backward is known */
#define PL_FORECAST_LOCAL_RATE 4e9 /* bytes a second of shared memory */

typedef struct pl_forecast_work {
    pl_step_layer *layers; /* owned */
    /* For a dense network whose gradients are of one batch: the parameters that
     * may travel as factors have sizes; otherwise NULL. */
    pl_factor_layer *dense;
    size_t dense_count; /* parameters */
    pl_step_work step;  /* of a worker with `threads` threads: */
    int32_t threads;
    double serial;           /* the share of computing that more threads do not
                                shorten (Amdahl's law) */
    pl_step_net net;         /* processor time of messages, without the link */
    int64_t examples;        /* of a gradient */
    int64_t worker_bytes;    /* of memory: of a process that trains alone... */
    int64_t optimizer_bytes; /* ... and its part on parameter servers */
    int64_t parameter_bytes;
} pl_forecast_work;

void pl_forecast_work_close(pl_forecast_work *work); /* a zeroed one is fine */

/* Train here for about that many seconds, in memory, with resolved options. */
pl_status pl_forecast_measure(pl_forecast_work *out, const pl_options *options,
                              double seconds) PL_MUST_CHECK;

/* From the summary of the run whose run.json the options were recalled from.
 * Values that are not recorded get typical costs. */
pl_status pl_forecast_recall(pl_forecast_work *out, const pl_options *options,
                             const pl_run_record *record,
                             const char *run) PL_MUST_CHECK;

/* For both: layers for the parameters of a dense network, and the memory of a
 * process. */
pl_status pl_forecast_work_init(pl_forecast_work *work,
                                const pl_job *job) PL_MUST_CHECK;

#endif

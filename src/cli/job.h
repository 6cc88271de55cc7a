/* job.h - what a command needs to train or test a model: data, network,
 * threads, optimizer, put together from the options.
 *
 * Threads: one. */
#ifndef PL_CLI_JOB_H
#define PL_CLI_JOB_H

#include "base/thread.h"
#include "cli/options.h"
#include "data/dataset.h"
#include "train/schedule.h"

typedef struct pl_job {
    const pl_options *options;
    const pl_kernels *kernels;
    pl_dataset *train; /* NULL when only the test set was wanted */
    pl_dataset *test;
    pl_network *network;
    pl_pool *pool;
    pl_optim *optim;
    pl_schedule schedule;
    char *cache;
} pl_job;

/* Open everything the options ask for. */
pl_status pl_job_init(pl_job *job, const pl_options *options,
                      bool test_only) PL_MUST_CHECK;
void pl_job_close(pl_job *job); /* a zeroed one is fine */

/* The SHA-256 of the trainable parameters (docs/formats/run.md) as 64
 * hexadecimal digits. */
void pl_job_hash(const pl_job *job, char hex[65]);

#endif

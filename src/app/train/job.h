/* job.h - what a command needs to train or test a model: data, network,
 * threads, optimizer, put together from the options.
 *
 * Threads: one. */
#ifndef PL_APP_TRAIN_JOB_H
#define PL_APP_TRAIN_JOB_H

#include "app/options/options.h"
#include "base/thread.h"
#include "data/source.h"
#include "train/loop/course.h"
#include "train/optim/schedule.h"

typedef struct pl_job {
    const pl_options *options;
    const pl_kernels *kernels;
    pl_dataset *train;    /* NULL when it was not wanted */
    pl_dataset *test;     /* the same */
    pl_shape example;     /* what the network is built for */
    int32_t classes;      /* or how many numbers are predicted */
    uint32_t numbering;   /* of sparse ids, as pl_dataset has it */
    pl_encoding encoding; /* of dense values: what training data taught */
    pl_network *network;
    pl_pool *pool;
    pl_optim *optim; /* NULL when the parameters are elsewhere */
    bool elsewhere;
    bool unlabelled;
    pl_schedule schedule; /* run_steps is left to who knows it */
    char *cache;
} pl_job;

typedef enum pl_job_data {
    PL_JOB_DATA_ALL, /* for a training */
    PL_JOB_DATA_TEST,
    PL_JOB_DATA_NONE, /* needs pl_job_opts.example */
} pl_job_data;

typedef struct pl_job_opts {
    const pl_options *options; /* required; borrowed */
    pl_job_data data;          /* what to open; default: all */
    pl_shape example;          /* to build for; default: the data's */
    int32_t classes;           /* with `example` */
    uint32_t numbering;        /* with `example` */
    const pl_json *encoding;   /* with `example`: what the run has kept */
    bool unlabelled;           /* sets may have no labels: to predict */
    bool elsewhere;            /* parameter servers have the parameters of a
                                  sparse network: neither they nor an
                                  optimizer are in memory here */
} pl_job_opts;

/* Open everything the options ask for.  PL_USAGE when the data does not fit
 * the network. */
pl_status pl_job_init(pl_job *job, const pl_job_opts *opts) PL_MUST_CHECK;
void pl_job_close(pl_job *job); /* a zeroed one is fine */

/* What a checkpoint is made of; nothing when the parameters are elsewhere. */
pl_planes pl_job_planes(const pl_job *job);

/* What its tests decide. */
pl_targets pl_job_targets(const pl_job *job);

/* When a test that decides is due, of a job in which each gradient is an update
 * (async, ssp); never where none decides. */
pl_due_steps pl_job_deciding_tests(const pl_job *job, int64_t epoch_updates);

/* What the training data taught, as the settings of a checkpoint have it
 * under "input". */
pl_status pl_job_keep_encoding(const pl_job *job,
                               pl_json *settings) PL_MUST_CHECK;

/* Open a data set as the options say it; the caller frees it before the job. */
pl_status pl_job_open_set(pl_job *job, const char *source, pl_split split,
                          pl_dataset **out) PL_MUST_CHECK;

/* All of what a program has in memory, read as test data is: scaled and
 * standardized as the options say.  Labels may be missing. */
pl_status pl_job_open_memory(pl_job *job, const pl_data *data,
                             pl_dataset **out) PL_MUST_CHECK;

/* PL_USAGE when the data of the job is not of the kind and shape that its
 * network is built for. */
pl_status pl_job_check_data(const pl_job *job) PL_MUST_CHECK;

/* PL_USAGE when the ids of a set do not mean what they mean to the network. */
pl_status pl_job_check_numbering(const pl_job *job,
                                 const pl_dataset *set) PL_MUST_CHECK;

/* Where generated data is kept, `given` or the usual folder; *out stays NULL
 * when there is no home. */
pl_status pl_job_cache_folder(const char *given, char **out) PL_MUST_CHECK;

/* The SHA-256 of the trainable parameters (docs/formats/run.md) as 64
 * hexadecimal digits. */
void pl_job_hash(const pl_job *job, char hex[65]);

/* The same of parameters that are elsewhere: `read` gives `count` floats of
 * the block from `first` on. */
typedef pl_status (*pl_job_read)(void *context, int64_t first, int64_t count,
                                 float *to);
pl_status pl_job_hash_read(const pl_job *job, pl_job_read read, void *context,
                           char hex[65]) PL_MUST_CHECK;

#endif

/* job.h - data, network, threads and optimizer of a command that trains or
 * tests a model, made from the options.
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
    pl_dataset *train;    /* NULL if not requested */
    pl_dataset *test;     /* NULL if not requested */
    pl_shape example;     /* the network's input */
    int32_t classes;      /* or the number of predicted numbers */
    uint32_t numbering;   /* of sparse ids, as in pl_dataset */
    pl_encoding encoding; /* of dense values: learned from training data */
    pl_network *network;
    pl_pool *pool;
    pl_optim *optim; /* NULL when servers have the parameters */
    bool elsewhere;
    bool unlabelled;
    pl_schedule schedule; /* the caller sets run_steps */
    char *cache;
} pl_job;

typedef enum pl_job_data {
    PL_JOB_DATA_ALL, /* for a training */
    PL_JOB_DATA_TEST,
    PL_JOB_DATA_NONE, /* needs pl_job_opts.example */
} pl_job_data;

typedef struct pl_job_opts {
    const pl_options *options; /* required; borrowed */
    pl_job_data data;          /* sets to open; default: all */
    pl_shape example;          /* the network's input; default: the data's */
    int32_t classes;           /* with `example` */
    uint32_t numbering;        /* with `example` */
    const pl_json *encoding;   /* with `example`: from the run's settings */
    bool unlabelled;           /* sets may have no labels: for predictions */
    bool elsewhere;            /* servers have the parameters of a sparse
                                  network: this process has neither them nor an
                                  optimizer */
} pl_job_opts;

/* Open everything that the options name.  PL_USAGE when the data does not fit
 * the network. */
pl_status pl_job_init(pl_job *job, const pl_job_opts *opts) PL_MUST_CHECK;
void pl_job_close(pl_job *job); /* a zeroed one is fine */

/* The memory that a checkpoint saves; empty when servers have the
 * parameters. */
pl_planes pl_job_planes(const pl_job *job);

/* The decisions that depend on its tests. */
pl_targets pl_job_targets(const pl_job *job);

/* When the next deciding test is due, for a job in which each gradient is an
 * update (async, ssp); never if tests decide nothing. */
pl_due_steps pl_job_deciding_tests(const pl_job *job, int64_t epoch_updates);

/* Store what was learned from the training data in the settings of a
 * checkpoint, under "input". */
pl_status pl_job_keep_encoding(const pl_job *job,
                               pl_json *settings) PL_MUST_CHECK;

/* Open a data set with the options' settings; the caller frees it before the
 * job. */
pl_status pl_job_open_set(pl_job *job, const char *source, pl_split split,
                          pl_dataset **out) PL_MUST_CHECK;

/* All of what a program has in memory, read as test data is: scaled and
 * standardized as the options say.  Labels may be missing. */
pl_status pl_job_open_memory(pl_job *job, const pl_data *data,
                             pl_dataset **out) PL_MUST_CHECK;

/* PL_USAGE when the job's data does not have the kind and shape that its
 * network was built for. */
pl_status pl_job_check_data(const pl_job *job) PL_MUST_CHECK;

/* PL_USAGE when the ids of a set are numbered differently from the
 * network's. */
pl_status pl_job_check_numbering(const pl_job *job,
                                 const pl_dataset *set) PL_MUST_CHECK;

/* The folder of generated data, `given` or the usual folder; *out stays NULL
 * without a home directory. */
pl_status pl_job_cache_folder(const char *given, char **out) PL_MUST_CHECK;

/* The SHA-256 of the trainable parameters (docs/formats/run.md) as 64
 * hexadecimal digits. */
void pl_job_hash(const pl_job *job, char hex[65]);

/* The same for parameters that servers have: `read` returns `count` floats of
 * the block from `first` on. */
typedef pl_status (*pl_job_read)(void *context, int64_t first, int64_t count,
                                 float *to);
pl_status pl_job_hash_read(const pl_job *job, pl_job_read read, void *context,
                           char hex[65]) PL_MUST_CHECK;

#endif

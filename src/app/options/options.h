/* options.h - the flags of `train`, as one struct and one table.
 *
 * Threads: the tables are constant. */
#ifndef PL_APP_OPTIONS_OPTIONS_H
#define PL_APP_OPTIONS_OPTIONS_H

#include "base/json/json.h"
#include "base/param/param.h"
#include "paceline/nn.h"
#include "train/loop/loop.h"
#include "train/optim/optim.h"

/* The values of the choices, in the order of their names. */
/* Of allreduce: who moves the sums. */
typedef enum pl_train_engine {
    PL_TRAIN_ENGINE_MPI,
    PL_TRAIN_ENGINE_RING,
} pl_train_engine;

typedef enum pl_train_strategy {
    PL_TRAIN_STRATEGY_SINGLE,
    PL_TRAIN_STRATEGY_PS,
    PL_TRAIN_STRATEGY_ALLREDUCE,
} pl_train_strategy;

typedef enum pl_train_mode {
    PL_TRAIN_MODE_SYNC,
    PL_TRAIN_MODE_ASYNC,
    PL_TRAIN_MODE_SSP,
} pl_train_mode;

typedef enum pl_train_loss { /* what to do when a worker is lost */
    PL_TRAIN_LOSS_WAIT,
    PL_TRAIN_LOSS_CONTINUE,
    PL_TRAIN_LOSS_ABORT,
} pl_train_loss;

typedef enum pl_train_transport {
    PL_TRAIN_TRANSPORT_AUTO,
    PL_TRAIN_TRANSPORT_TCP,
    PL_TRAIN_TRANSPORT_SHM,
} pl_train_transport;

typedef enum pl_train_shard {
    PL_TRAIN_SHARD_AUTO,
    PL_TRAIN_SHARD_NONE,
} pl_train_shard;

typedef enum pl_train_eval {
    PL_TRAIN_EVAL_CHIEF,
    PL_TRAIN_EVAL_WORKERS,
} pl_train_eval;

typedef struct pl_train_options {
    /* data */
    const char *data;
    const char *test_data;
    int64_t examples;
    int64_t features;       /* 0: those of the data */
    double holdout;         /* 0: the source's own test part */
    int64_t train_examples; /* 0: all */
    const char *cache;
    int shard; /* pl_train_shard */
    int64_t shuffle_buffer;
    int64_t skip_bad;
    int64_t unpack_ratio;
    const char *label_feature;
    const char *index_feature;
    const char *value_feature;
    int integers; /* pl_integers */
    /* training */
    int64_t batch;
    int64_t global_batch; /* 0: not given; pl_part_init makes it `batch` */
    int64_t micro_batches;
    int aggregate;
    int batch_reduction; /* pl_aggregate */
    int64_t epochs;
    int64_t steps;
    int64_t steps_per_epoch; /* 0: a pass over the data */
    double lr;
    int64_t warmup;
    int schedule;
    int64_t decay_steps;
    double decay;
    int optimizer;
    double momentum;
    bool nesterov;
    double beta1;
    double beta2;
    double rho;
    double initial_accumulator;
    double epsilon;
    double ftrl_beta;
    double l1;
    double l2;
    bool hogwild;
    double weight_decay;
    double clip;
    const char *init;
    int64_t seed;
    /* evaluation */
    pl_every eval_every;
    int64_t eval_batch;
    double stop_loss;
    /* cluster; pl_part_init fills in what was left out */
    int strategy; /* pl_train_strategy */
    int mode;     /* pl_train_mode */
    int64_t workers;
    int64_t ps;
    const char *cluster;
    const char *deploy;
    int role; /* pl_role */
    int64_t index;
    int64_t replicas_to_aggregate;
    int64_t staleness;
    int on_worker_loss;       /* pl_train_loss */
    int64_t join_timeout;     /* s */
    int64_t rejoin_timeout;   /* s */
    double heartbeat_timeout; /* s */
    int transport;            /* pl_train_transport */
    int eval_on;              /* pl_train_eval */
    bool evaluator;
    int64_t restarts;
    double chaos;         /* faults a second; 0: none */
    int engine;           /* pl_train_engine; -1: not given */
    int64_t bucket_bytes; /* 0: measured */
    int64_t min_workers;  /* 0: all */
    const char *keys;     /* a file; NULL: not given */
    bool insecure;
    int64_t control;   /* a descriptor; 0: nobody supervises */
    int64_t restarted; /* times, by who supervises */
    /* run */
    const char *run;
    bool resume; /* also with: */
    bool resume_or_start;
    pl_every checkpoint_every;
    int64_t keep;
    int64_t threads;
    int kernels;
    pl_every histograms_every;
    double monitor_every; /* s; 0: never */
    const char *profile;  /* "A:B"; NULL: none */
    bool json;
    bool quiet;
} pl_train_options;

#define PL_OPTIONS_FEATURES INT64_C(4294967295) /* of --features: the most */
#define PL_OPTION_GROUPS    6
#define PL_OPTION_MOST      64 /* flags in one group */

/* Everything one command line set. */
typedef struct pl_options {
    const pl_model *model;
    pl_train_options train;
    void *model_options; /* the model's own struct; NULL when it has none */
    pl_param_group groups[PL_OPTION_GROUPS];
    size_t group_count;
    bool given[PL_OPTION_GROUPS][PL_OPTION_MOST];
} pl_options;

/* Groups for `model` with all defaults set; the struct must not move. */
pl_status pl_options_init(pl_options *options,
                          const pl_model *model) PL_MUST_CHECK;
void pl_options_close(pl_options *options);

/* Read the flags behind `train MODEL`; nothing else may be there. */
pl_status pl_options_parse(pl_options *options, int argc,
                           char **argv) PL_MUST_CHECK;

/* Fill what was left out from the model, then check what no single flag can
 * check.  PL_USAGE names the flags. */
pl_status pl_options_resolve(pl_options *options) PL_MUST_CHECK;

/* True when the user gave --name. */
bool pl_options_given(const pl_options *options, const char *name);

/* What the model's own --classes says; 0 when it has no such flag. */
int32_t pl_options_classes(const pl_options *options);

/* All flags as {name: text}, or only those that must not change when a run
 * is resumed. */
pl_status pl_options_record(const pl_options *options, bool kept_only,
                            pl_json **out) PL_MUST_CHECK;

/* Take from a record what the user did not give.  What is taken points into
 * `record`.  PL_USAGE when something was given that must not change. */
pl_status pl_options_recall(pl_options *options,
                            const pl_json *record) PL_MUST_CHECK;

/* Silence that means lost: a little less than --heartbeat-timeout, so that it
 * is noticed within that time though nobody looks all the time. */
int64_t pl_options_silence_ms(const pl_train_options *train);

/* The chosen kernels; PL_USAGE when this processor lacks them. */
pl_status pl_options_kernels(const pl_options *options,
                             const pl_kernels **out) PL_MUST_CHECK;

/* Steps from `first` to `last`, both included, counted from 1; a `first` of 0:
 * the `last` steps from where the run begins.  Both 0: none. */
typedef struct pl_range {
    int64_t first, last;
} pl_range;
/* What --profile asks for.  PL_USAGE for what is no range. */
pl_status pl_options_profile(const pl_options *options,
                             pl_range *out) PL_MUST_CHECK;

pl_optim_opts pl_options_optim(const pl_options *options);
pl_schedule pl_options_schedule(const pl_options *options);

#endif

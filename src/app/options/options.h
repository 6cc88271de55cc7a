/* options.h - the flags of `train`, as one struct and one table.
 *
 * Threads: the tables are constant. */
#ifndef PL_APP_OPTIONS_OPTIONS_H
#define PL_APP_OPTIONS_OPTIONS_H

#include "base/json/json.h"
#include "base/param/param.h"
#include "paceline/data.h"
#include "paceline/nn.h"
#include "sync/codec.h"
#include "train/loop/loop.h"
#include "train/optim/optim.h"

/* The values of the choices, in the order of their names. */
/* Of allreduce: what computes the sums. */
typedef enum pl_train_engine {
    PL_TRAIN_ENGINE_MPI,
    PL_TRAIN_ENGINE_RING,
} pl_train_engine;

typedef enum pl_train_codec { /* of gradients on the wire */
    PL_TRAIN_CODEC_AUTO,
    PL_TRAIN_CODEC_PLAIN,
    PL_TRAIN_CODEC_FACTORS,
    PL_TRAIN_CODEC_BF16,
    PL_TRAIN_CODEC_TOPK,
} pl_train_codec;

typedef enum pl_train_precision { /* of the operands of large layers */
    PL_TRAIN_PRECISION_FLOAT32,
    PL_TRAIN_PRECISION_BF16,
} pl_train_precision;

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

typedef enum pl_train_loss { /* what to do after the loss of a worker */
    PL_TRAIN_LOSS_WAIT,
    PL_TRAIN_LOSS_CONTINUE,
    PL_TRAIN_LOSS_ABORT,
} pl_train_loss;

typedef enum pl_train_traffic {
    PL_TRAIN_TRAFFIC_SPARSE,
    PL_TRAIN_TRAFFIC_DENSE,
} pl_train_traffic;

typedef enum pl_train_shard {
    PL_TRAIN_SHARD_AUTO,
    PL_TRAIN_SHARD_NONE,
} pl_train_shard;

typedef enum pl_train_eval {
    PL_TRAIN_EVAL_CHIEF,
    PL_TRAIN_EVAL_WORKERS,
} pl_train_eval;

/* A field for each flag: flags_*.def.  pl_part_init fills in the cluster's
 * flags that were left out, pl_options_resolve the others. */
typedef struct pl_train_options {
#define INT(field, ...)    int64_t field;
#define REAL(field, ...)   double field;
#define TEXT(field, ...)   const char *field;
#define FLAG(field, ...)   bool field;
#define CHOICE(field, ...) int field;
#define EVERY(field, ...)  pl_every field;
#include "app/options/flags_cluster.def"
#include "app/options/flags_data.def"
#include "app/options/flags_eval.def"
#include "app/options/flags_run.def"
#include "app/options/flags_train.def"
#undef INT
#undef REAL
#undef TEXT
#undef FLAG
#undef CHOICE
#undef EVERY
} pl_train_options;

#define PL_OPTIONS_FEATURES INT64_C(4294967295) /* the largest --features */
#define PL_OPTIONS_DATA     "digits" /* for a model that names no data */
#define PL_OPTIONS_MEMORY   "memory" /* --data of a program's own arrays */
#define PL_OPTION_GROUPS    6
#define PL_OPTION_MOST      64 /* flags in one group */

/* The result of parsing one command line. */
typedef struct pl_options {
    const pl_model *model;
    pl_train_options train;
    void *model_options; /* the model's own struct; NULL when it has none */
    pl_param_group groups[PL_OPTION_GROUPS];
    size_t group_count;
    bool given[PL_OPTION_GROUPS][PL_OPTION_MOST];
    /* The data of the source `memory`; borrowed, NULL: none. */
    const pl_data *train_data, *test_data;
} pl_options;

/* Create the groups for `model` with all defaults; the struct must not move. */
pl_status pl_options_init(pl_options *options,
                          const pl_model *model) PL_MUST_CHECK;
void pl_options_close(pl_options *options);

/* Read the flags after `train MODEL`; other words are refused. */
pl_status pl_options_parse(pl_options *options, int argc,
                           char **argv) PL_MUST_CHECK;

/* Refuse flags that have no effect with the model, the data, the other flags
 * and the job.  `start` says how the tasks of the job are started ("alone",
 * "here" or "hand"); NULL: the job is not known yet. */
pl_status pl_options_check(const pl_options *options,
                           const char *start) PL_MUST_CHECK;

/* The wording of the flags' conditions, without facts. */
pl_param_facts pl_options_facts(const pl_options *options);

/* Fill in what was left out from the model, then check combinations of flags.
 * PL_USAGE names the flags. */
pl_status pl_options_resolve(pl_options *options) PL_MUST_CHECK;

/* PL_USAGE for a given flag that is about the terminal or about processes: for
 * a training that runs inside a program. */
pl_status pl_options_check_program(const pl_options *options) PL_MUST_CHECK;

/* For the help: fill in the model's defaults, and return the facts that decide
 * which flags the model has.  `list` must live as long as the result. */
#define PL_OPTIONS_FACTS 3
pl_param_facts pl_options_help_facts(pl_options *options,
                                     pl_param_fact list[PL_OPTIONS_FACTS]);

/* True when the user gave the flag of this field of pl_train_options. */
#define PL_GIVEN(options, field)                                               \
    pl_options_given(options, offsetof(pl_train_options, field))
bool pl_options_given(const pl_options *options, size_t offset);

/* The flags that every model has. */
const pl_param_group *pl_options_flags(size_t *group_count);

/* The value of the model's own --classes; 0 when it has no such flag. */
int32_t pl_options_classes(const pl_options *options);

/* Flags as {name: text}. */
typedef enum pl_options_part {
    PL_OPTIONS_RECORDED, /* all of run.json */
    PL_OPTIONS_KEPT,     /* must not change when a run is resumed */
    PL_OPTIONS_AGREED,   /* equal in all tasks of a job */
    PL_OPTIONS_HPARAMS,  /* values that people compare */
} pl_options_part;

pl_status pl_options_record(const pl_options *options, pl_options_part part,
                            pl_json **out) PL_MUST_CHECK;

/* Take flags that the user did not give from a record; texts point into
 * `record`. PL_USAGE when a given flag must not change. */
pl_status pl_options_recall(pl_options *options,
                            const pl_json *record) PL_MUST_CHECK;

/* True where servers hold a sparse model's parameters by keys, and workers
 * request the keys of a batch. */
bool pl_options_keyed(const pl_options *options);

/* How long a silent task counts as alive: a little less than
 * --heartbeat-timeout, so that a loss is noticed within that time without
 * constant polling. */
int64_t pl_options_silence_ms(const pl_train_options *train);

bool pl_options_bf16(const pl_train_options *train);

/* --codec for parameter servers and for the ring's sums. */
const pl_codec *pl_options_codec(const pl_train_options *train,
                                 pl_codec_topk *topk);
/* The momentum that each worker applies to its own gradients, because a codec
 * sends part of them late; 0: the optimizer applies it. */
double pl_options_own_momentum(const pl_train_options *train);
/* Would --codec bf16 be accepted in place of a lossless codec? */
bool pl_options_may_use_bf16(const pl_options *options);
/* MPI only adds float32. */
bool pl_options_codec_needs_ring(const pl_train_options *train);
/* PL_USAGE where --codec has no effect; strategy and engine are chosen. */
pl_status pl_options_check_codec(const pl_options *options) PL_MUST_CHECK;

/* The chosen kernels; PL_USAGE when this processor lacks them. */
pl_status pl_options_kernels(const pl_options *options,
                             const pl_kernels **out) PL_MUST_CHECK;

/* Steps `first` to `last`, inclusive, counted from 1.  If `first` is 0: `last`
 * steps from where the run begins or resumes.  Both 0: none. */
typedef struct pl_range {
    int64_t first, last;
} pl_range;
/* The range of --profile.  PL_USAGE for an invalid one. */
pl_status pl_options_profile(const pl_options *options,
                             pl_range *out) PL_MUST_CHECK;

pl_optim_opts pl_options_optim(const pl_options *options);
pl_schedule pl_options_schedule(const pl_options *options);

#endif

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
/* Of allreduce: who moves the sums. */
typedef enum pl_train_engine {
    PL_TRAIN_ENGINE_MPI,
    PL_TRAIN_ENGINE_RING,
} pl_train_engine;

typedef enum pl_train_codec { /* of gradients, on their way */
    PL_TRAIN_CODEC_AUTO,
    PL_TRAIN_CODEC_PLAIN,
    PL_TRAIN_CODEC_FACTORS,
    PL_TRAIN_CODEC_BF16,
    PL_TRAIN_CODEC_TOPK,
} pl_train_codec;

typedef enum pl_train_precision { /* of what large layers multiply */
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

typedef enum pl_train_loss { /* what to do when a worker is lost */
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

/* A field for each flag: flags_*.def.  pl_part_init fills in what was left out
 * of the cluster's, pl_options_resolve the rest. */
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

#define PL_OPTIONS_FEATURES INT64_C(4294967295) /* of --features: the most */
#define PL_OPTIONS_DATA     "digits" /* of a model that names no data */
#define PL_OPTIONS_MEMORY   "memory" /* --data of a program's own arrays */
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
    /* What the source `memory` stands for; borrowed, NULL: nothing. */
    const pl_data *train_data, *test_data;
} pl_options;

/* Groups for `model` with all defaults set; the struct must not move. */
pl_status pl_options_init(pl_options *options,
                          const pl_model *model) PL_MUST_CHECK;
void pl_options_close(pl_options *options);

/* Read the flags behind `train MODEL`; nothing else may be there. */
pl_status pl_options_parse(pl_options *options, int argc,
                           char **argv) PL_MUST_CHECK;

/* Refuse flags that have no effect with the model, the data, the other flags
 * and, where `start` says how the tasks of the job are started ("alone",
 * "here" or "hand"), with the job; NULL: nothing is known of it yet. */
pl_status pl_options_check(const pl_options *options,
                           const char *start) PL_MUST_CHECK;

/* How the conditions of the flags read, without facts. */
pl_param_facts pl_options_facts(const pl_options *options);

/* Fill what was left out from the model, then check what no single flag can
 * check.  PL_USAGE names the flags. */
pl_status pl_options_resolve(pl_options *options) PL_MUST_CHECK;

/* PL_USAGE for a flag that was given and is about the terminal or about
 * processes: for a training that runs inside a program. */
pl_status pl_options_check_program(const pl_options *options) PL_MUST_CHECK;

/* For the help: fill in the model's defaults, and tell which flags it has.
 * `list` must live as long as what is returned. */
#define PL_OPTIONS_FACTS 3
pl_param_facts pl_options_help_facts(pl_options *options,
                                     pl_param_fact list[PL_OPTIONS_FACTS]);

/* True when the user gave the flag of this field of pl_train_options. */
#define PL_GIVEN(options, field)                                               \
    pl_options_given(options, offsetof(pl_train_options, field))
bool pl_options_given(const pl_options *options, size_t offset);

/* The flags that every model has. */
const pl_param_group *pl_options_flags(size_t *group_count);

/* What the model's own --classes says; 0 when it has no such flag. */
int32_t pl_options_classes(const pl_options *options);

/* Flags as {name: text}. */
typedef enum pl_options_part {
    PL_OPTIONS_RECORDED, /* all of run.json */
    PL_OPTIONS_KEPT,     /* that must not change when a run is resumed */
    PL_OPTIONS_AGREED,   /* that are equal in all tasks of a job */
    PL_OPTIONS_HPARAMS,  /* whose values people compare */
} pl_options_part;

pl_status pl_options_record(const pl_options *options, pl_options_part part,
                            pl_json **out) PL_MUST_CHECK;

/* Take from a record what the user did not give.  What is taken points into
 * `record`.  PL_USAGE when something was given that must not change. */
pl_status pl_options_recall(pl_options *options,
                            const pl_json *record) PL_MUST_CHECK;

/* True where servers hold a sparse model's parameters by keys, and workers ask
 * for those of a batch. */
bool pl_options_keyed(const pl_options *options);

/* Silence that means lost: a little less than --heartbeat-timeout, so that it
 * is noticed within that time without constant polling. */
int64_t pl_options_silence_ms(const pl_train_options *train);

bool pl_options_bf16(const pl_train_options *train);

/* --codec of parameter servers and of the ring's sums. */
const pl_codec *pl_options_codec(const pl_train_options *train,
                                 pl_codec_topk *topk);
/* The momentum that each worker keeps of its own gradients, since a part of
 * them is sent late; 0: the optimizer keeps it. */
double pl_options_own_momentum(const pl_train_options *train);
/* Would --codec bf16 be taken in place of a codec that keeps all bits? */
bool pl_options_may_use_bf16(const pl_options *options);
/* MPI only adds float32. */
bool pl_options_codec_needs_ring(const pl_train_options *train);
/* PL_USAGE where --codec has no effect; strategy and engine are chosen. */
pl_status pl_options_check_codec(const pl_options *options) PL_MUST_CHECK;

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

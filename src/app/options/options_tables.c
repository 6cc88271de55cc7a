/* The tables of the flags of `train`, one for each group, from the rows in
 * flags_*.def; defines the names of conditions and traits used there. */
#include "app/options/options_priv.h"

#include "data/source.h"
#include "job/cluster/cluster.h"
#include "net/transport.h"

#define DAY_S 86400

/* Where a flag has an effect; options_check.c has the wording. */
#define SPARSE     "model=sparse"
#define DENSE      "model=dense"
#define FILES      "source=files"
#define TFRECORD   "data=tfrecord"
#define CSV        "data=csv"
#define ARRAYS     "data=npy|npz|idx|tfrecord"
#define IMAGES     "data=images|tfrecord"
#define NO_HOGWILD "hogwild=false"
#define TESTS      "eval-every!=never"
#define JOB        "strategy!=single"
#define PS         "strategy=ps"
#define ALLREDUCE  "strategy=allreduce"
#define NOT_MPI    JOB ", engine!=mpi"
#define BY_HAND    NOT_MPI ", start=hand"

/* Traits of a flag, abbreviated. */
enum {
    MAY_CHANGE = PL_PARAM_MAY_CHANGE,
    LOCAL = PL_PARAM_LOCAL,
    NOT_RECORDED = PL_PARAM_NOT_RECORDED,
    NOT_HPARAM = PL_PARAM_NOT_HPARAM,
    NOT_COMPARED = PL_PARAM_NOT_COMPARED,
    REPEATS = PL_PARAM_REPEATS,
    INTERNAL = PL_PARAM_INTERNAL,
    OF_MODEL = PL_PARAM_OF_MODEL,
    COMMON = PL_PARAM_COMMON,
    TASKS = PL_OPTION_TASKS,
    OF_TASKS = PL_OPTION_OF_TASKS,
    LENGTH = PL_OPTION_LENGTH,
    NOT_RECALLED = PL_OPTION_NOT_RECALLED,
    FILLED = PL_OPTION_FILLED,
    NOT_FORWARDED = PL_OPTION_NOT_FORWARDED,
    LAUNCH = PL_OPTION_LAUNCH,
    NOT_SWEPT = PL_OPTION_NOT_SWEPT,
    BY_TESTS = PL_OPTION_BY_TESTS,
    COMMAND = PL_OPTION_COMMAND,
    /* How a host computes, not what is trained. */
    OF_HOST = MAY_CHANGE | LOCAL | NOT_HPARAM,
    /* About this process only. */
    OF_PROCESS = NOT_RECORDED | NOT_FORWARDED | NOT_SWEPT,
};

#define ROW(type, field, flag, ...)                                            \
    { .name = flag,                                                            \
      .kind = type,                                                            \
      .offset = offsetof(pl_train_options, field),                             \
      __VA_ARGS__ },
#define INT(...)    ROW(PL_PARAM_INT, __VA_ARGS__)
#define REAL(...)   ROW(PL_PARAM_REAL, __VA_ARGS__)
#define TEXT(...)   ROW(PL_PARAM_TEXT, __VA_ARGS__)
#define FLAG(...)   ROW(PL_PARAM_FLAG, __VA_ARGS__)
#define CHOICE(...) ROW(PL_PARAM_CHOICE, __VA_ARGS__)
#define EVERY(...)  ROW(PL_PARAM_EVERY, __VA_ARGS__)

static const pl_param data_params[] = {
#include "app/options/flags_data.def"
};

static const pl_param train_params[] = {
#include "app/options/flags_train.def"
};

static const pl_param eval_params[] = {
#include "app/options/flags_eval.def"
};

static const pl_param cluster_params[] = {
#include "app/options/flags_cluster.def"
};

static const pl_param run_params[] = {
#include "app/options/flags_run.def"
};

#define GROUP(title, table)                                                    \
    {                                                                          \
        title, table, sizeof(table) / sizeof *(table), NULL, NULL              \
    }

const pl_param_group pl_options_tables[PL_OPTION_TABLES] = {
    GROUP("Data", data_params),       /* where the examples come from */
    GROUP("Training", train_params),  /* how updates are computed */
    GROUP("Evaluation", eval_params), /* when the model is tested */
    GROUP("Cluster", cluster_params), /* which tasks take part */
    GROUP("Run", run_params),         /* what is kept and shown */
};

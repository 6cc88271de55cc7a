/* summary.h - summary.json, the result of a run: a struct and its field table.
 *
 * app fills and prints it, observe reads it.  Numbers that are not known, as
 * in a summary of an older version, are -1 or NAN, texts NULL.
 *
 * Threads: none of its own. */
#ifndef PL_BASE_RECORD_SUMMARY_H
#define PL_BASE_RECORD_SUMMARY_H

#include "base/record/report.h"
#include "base/record/timeline.h"

/* A change, and the speedup of the job that is expected from it. */
typedef struct pl_cure {
    char text[64]; /* "--ps 2" */
    double gain;
} pl_cure;

#define PL_CURES_MAX 16

/* The start of a bottleneck's text when other processes used the cores that the
 * run needed. */
#define PL_BOTTLENECK_CROWDED "other processes have the cores"

/* What limited the speed of the run. */
typedef struct pl_bottleneck {
    char what[24];  /* "computing"; docs/observe.md lists them */
    double share;   /* of the time of all workers */
    int32_t worker; /* that the others wait for; -1: none */
    char task[32];  /* the cause: "worker 2"; "": not one alone */
    char host[256]; /* of that task */
    bool spells;    /* intermittent */
    pl_cure *cures; /* the best first */
    size_t cure_count;
    char text[768]; /* for people */
} pl_bottleneck;

/* The cost of dense traffic, all parameters and all gradients, for a run whose
 * sparse parameters are on servers. */
typedef struct pl_dense_traffic {
    int64_t bytes_per_gradient; /* if the traffic were dense */
    int64_t moved_per_gradient; /* in this run */
    double seconds_per_gradient, link_bytes_per_s; /* NAN: not known */
    char link[16]; /* "shared memory", "loopback", "network" */
} pl_dense_traffic;

/* How gradients were encoded, and what that saved the busiest link in a
 * step. */
typedef struct pl_codec_layer {
    char layer[64]; /* the parameter */
    int64_t plain_bytes, sent_bytes;
} pl_codec_layer;

typedef struct pl_codec_use {
    char name[16];          /* "plain", "factors", "bf16" */
    bool changes_bits;      /* the result depends on it */
    int64_t local_steps;    /* between two means of the parameters; 0: every
                               gradient is sent */
    double seconds;         /* of the chief, total, for products of factors */
    pl_codec_layer *layers; /* those not sent plain */
    size_t layer_count;
} pl_codec_use;

#define PL_CODEC_LAYERS_MAX 10000

#define PL_INCIDENTS_MAX 1000 /* further ones are in the timeline only */

typedef struct pl_summary {
    const char *model, *strategy, *mode; /* mode: of parameter servers */
    int32_t workers, ps;
    int64_t batch, micro_batches;
    int64_t steps;
    double epochs;
    int64_t examples, examples_left_out;
    double seconds, startup_seconds, eval_seconds, checkpoint_seconds;
    int64_t tests, checkpoints; /* how many the chief made */
    double examples_per_s, steps_per_s;
    double train_loss;
    pl_test_result test;
    const char *stopped_by;
    int64_t target_step;   /* of the first test that met --stop-loss or
                              --stop-accuracy; -1: none did */
    double target_seconds; /* of training until then; NAN: none did */
    int64_t resumed_step, restarts, faults;
    int64_t rollbacks;       /* times that the job went back to a checkpoint */
    pl_run_event *incidents; /* losses, restarts and rollbacks */
    size_t incident_count;
    double started; /* seconds since 1970; NAN: not known */
    bool deterministic;
    int64_t bad_examples; /* -1: the data has no examples that can be bad */
    int64_t dropped_gradients, rolled_back;
    int64_t bytes_sent, bytes_received;
    int64_t peak_rss_mb;                 /* of the largest task... */
    int64_t total_rss_mb;                /* ... and of all tasks together */
    double user_seconds, system_seconds; /* of processors, all tasks */
    double cpu_percent; /* of one core: the mean of each task while it lived,
                           added up; NAN: too short to be measured */
    int64_t disk_read_bytes, disk_written_bytes;
    pl_task_report *per_server;
    size_t server_count;
    bool has_evaluator;
    pl_task_report evaluator;
    int64_t events_dropped;
    const char *kernels;
    char parameters_sha256[65]; /* "": not the parameters of `steps` */
    const char *run;            /* the folder */
    pl_worker_report *per_worker;
    size_t worker_count;
    bool has_bottleneck;
    pl_bottleneck bottleneck;
    bool has_codec; /* of several workers */
    pl_codec_use codec;
    bool has_dense_traffic;
    pl_dense_traffic dense_traffic;

    pl_json *own_json; /* of a summary that was read: holds the texts */
} pl_summary;
extern const pl_fields pl_summary_fields;

/* Read a summary.json.  PL_NOTFOUND when the file is not there. */
pl_status pl_summary_read(pl_summary *out, const char *path) PL_MUST_CHECK;
void pl_summary_close(pl_summary *summary); /* a zeroed one is fine */

#endif

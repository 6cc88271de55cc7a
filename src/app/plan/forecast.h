/* forecast.h - how fast a model would train on a cluster: every strategy, mode
 * and number of tasks, predicted by the model of the step (observe/steps).
 *
 * Threads: any. */
#ifndef PL_APP_PLAN_FORECAST_H
#define PL_APP_PLAN_FORECAST_H

#include "app/plan/work.h"
#include "base/json/fields.h"

#define PL_FORECAST_HOSTS_MAX 1000
#define PL_FORECAST_PAYLOAD                                                    \
    0.95 /* of a link's bytes: 1448 of 1526 of a full packet of Ethernet */

/* The cluster that is planned for. */
typedef struct pl_forecast_opts {
    const pl_options *options;    /* --strategy, --mode, --workers, --ps and
                                     --threads that were given hold; borrowed */
    const pl_forecast_work *work; /* borrowed */
    int32_t hosts, cores;
    double link_bytes_per_s; /* with headers; 0: unlimited */
    double round_trip_s;
    double speedup;      /* wanted; 0: none */
    bool no_limits;      /* of rows: not found, which is faster */
    const char *command; /* what the flags of a row are appended to, where the
                            job is of several hosts... */
    const char *here;    /* ... and where it is of one */
} pl_forecast_opts;

typedef struct pl_forecast_row {
    const char *strategy, *mode; /* static; mode: NULL but for ps */
    int32_t workers, ps;
    const char *codec; /* of gradients */
    double step_seconds, examples_per_s;
    double speedup, efficiency; /* beside one process on one host */
    int64_t link_bytes;         /* each step, of the busiest host link */
    int64_t worker_bytes, server_bytes; /* of memory; server_bytes 0: none */
    const char *limit;                  /* what a step takes longest for */
} pl_forecast_row;
extern const pl_fields pl_forecast_row_fields;

/* A row with the command that trains so. */
typedef struct pl_forecast_choice {
    pl_forecast_row row;
    char *command;
} pl_forecast_choice;

typedef struct pl_forecast {
    const char *model;
    int64_t batch;
    int32_t hosts, cores;
    double link_bytes_per_s, round_trip_seconds;
    pl_forecast_row *rows;
    size_t row_count;
    pl_forecast_choice best; /* the fastest that updates as one process would */
    bool has_wanted;
    double wanted;               /* the speed-up */
    bool has_smallest;           /* it can be had: */
    pl_forecast_choice smallest; /* with the fewest workers */
} pl_forecast;
extern const pl_fields pl_forecast_fields;

/* Steps between two exchanges that --local-steps asks for; 1: none. */
int32_t pl_forecast_local_steps(const pl_forecast_opts *opts);

/* PL_USAGE when the flags that were given leave no row.  Texts of the plan
 * point into the options. */
pl_status pl_forecast_make(pl_forecast *out,
                           const pl_forecast_opts *opts) PL_MUST_CHECK;
void pl_forecast_close(pl_forecast *plan); /* a zeroed one is fine */

#endif

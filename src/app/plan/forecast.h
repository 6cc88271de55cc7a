/* forecast.h - predicts how fast a model trains on a cluster, for every
 * strategy, mode and number of tasks, with the model of the step
 * (observe/steps).
 *
 * Threads: any. */
#ifndef PL_APP_PLAN_FORECAST_H
#define PL_APP_PLAN_FORECAST_H

#include "app/plan/work.h"
#include "base/json/fields.h"

#define PL_FORECAST_HOSTS_MAX 1000
#define PL_FORECAST_PAYLOAD                                                    \
    0.95 /* of a link's bytes: 1448 of 1526 of a full packet of Ethernet */

/* The planned cluster. */
typedef struct pl_forecast_opts {
    const pl_options *options;    /* given --strategy, --mode, --workers, --ps
                                     and --threads restrict it; borrowed */
    const pl_forecast_work *work; /* borrowed */
    int32_t hosts, cores;
    double link_bytes_per_s; /* with headers; 0: unlimited */
    double round_trip_s;
    double speedup;      /* requested; 0: none */
    bool no_limits;      /* do not compute `limit` of rows, which is faster */
    const char *command; /* to append the flags of a row to, for several
                            hosts... */
    const char *here;    /* ... and for one host */
} pl_forecast_opts;

typedef struct pl_forecast_row {
    const char *strategy, *mode; /* static; mode: NULL except for ps */
    int32_t workers, ps;
    const char *codec; /* of gradients */
    double step_seconds, examples_per_s;
    double speedup, efficiency; /* relative to one process on one host */
    int64_t link_bytes;         /* per step, on the busiest host link */
    int64_t worker_bytes, server_bytes; /* of memory; server_bytes 0: none */
    const char *limit;                  /* what takes most of a step */
} pl_forecast_row;
extern const pl_fields pl_forecast_row_fields;

/* A row with its command. */
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
    pl_forecast_choice best; /* the fastest with updates as of one process */
    bool has_wanted;
    double wanted;               /* the requested speed-up */
    bool has_smallest;           /* it can be reached: */
    pl_forecast_choice smallest; /* with the fewest workers */
} pl_forecast;
extern const pl_fields pl_forecast_fields;

/* Steps between two exchanges with --local-steps; 1: every step. */
int32_t pl_forecast_local_steps(const pl_forecast_opts *opts);

/* PL_USAGE when the given flags leave no row.  Texts of the plan point into the
 * options. */
pl_status pl_forecast_make(pl_forecast *out,
                           const pl_forecast_opts *opts) PL_MUST_CHECK;
void pl_forecast_close(pl_forecast *plan); /* a zeroed one is fine */

#endif

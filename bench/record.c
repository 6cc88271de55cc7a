#include "base/record/metric.h"

#include "base/clock.h"
#include "base/record/trace.h"
#include "bench.h"
#include "proto/event.h"
#include "train/recorder.h"

#include <stdio.h>

#define QUEUE       16384
#define ROOM        65536
#define GOAL_NS     100
#define EVENT_BYTES ((size_t)256 << 10) /* written at once */
#define STEP_SPANS  10 /* operators of a small model, barrier and combine */

typedef struct recorders {
    pl_metrics *metrics;
    pl_trace *trace;
    int tag;
    pl_schedule schedule;
    pl_params *params;
    pl_recorder recorder;
    pl_buffer buffer;
    pl_status status;
} recorders;

static void run_ticks(void *arg, int64_t times)
{
    (void)arg;
    uint64_t sum = 0;
    for (int64_t i = 0; i < times; i++)
        sum += pl_ticks_now();
    measure_keep(&sum);
}

static void run_set(void *arg, int64_t times)
{
    recorders *r = arg;
    for (int64_t i = 0; i < times; i++)
        pl_metrics_set(r->metrics, r->tag, (double)i);
}

static void run_scalar(void *arg, int64_t times)
{
    recorders *r = arg;
    for (int64_t i = 0; i < times; i++)
        pl_metrics_scalar(r->metrics, r->tag, i, (double)i);
}

static void empty_queue(void *arg)
{
    recorders *r = arg;
    pl_scalar scalar;
    while (pl_metrics_take(r->metrics, &scalar))
        ;
}

static void run_span(void *arg, int64_t times)
{
    recorders *r = arg;
    for (int64_t i = 0; i < times; i++)
        pl_trace_span(r->trace, 0, "span", i, 1, 2);
}

/* A lane cannot be emptied, so each run gets a new recorder. */
static void renew_trace(void *arg)
{
    recorders *r = arg;
    pl_trace_free(r->trace);
    r->trace = NULL;
    r->status =
        pl_trace_new(&r->trace, &(pl_trace_opts) { .lanes = 1, .room = ROOM });
    if (r->status == PL_OK)
        pl_trace_switch(r->trace, true);
}

/* What one step records (train/loop/loop.c, train/compute/compute.c): the end
 * of four phases and two sides of the barrier, its progress, every 50 ms a
 * point of each curve, and whether the trace is on. */
static void run_step(void *arg, int64_t times)
{
    recorders *r = arg;
    uint64_t sum = 0;
    for (int64_t i = 0; i < times; i++) {
        for (int t = 0; t < 6; t++)
            sum += pl_ticks_now();
        pl_recorder_put(&r->recorder, &(pl_recorder_step) {
                                          .step = i,
                                          .loss = 1,
                                          .now = pl_ticks_now(),
                                      });
        if (pl_trace_on(r->trace))
            sum++;
    }
    measure_keep(&sum);
}

static void run_traced_step(void *arg, int64_t times)
{
    recorders *r = arg;
    run_step(arg, times);
    uint64_t begin = pl_ticks_now();
    for (int64_t i = 0; i < times * STEP_SPANS; i++) {
        uint64_t end = pl_ticks_now();
        pl_trace_span(r->trace, 0, "span", i, begin, end);
        begin = end;
    }
}

/* An event of the file, as the writer's thread builds it. */
static void run_event(void *arg, int64_t times)
{
    recorders *r = arg;
    for (int64_t i = 0; i < times; i++) {
        pl_event_scalar(&r->buffer, 1e9, i, "examples_per_s", (double)i);
        if (r->buffer.bytes > EVENT_BYTES)
            pl_buffer_clear(&r->buffer);
    }
}

/* Returns the nanoseconds. */
static double print_row(bench *b, const char *what, recorders *r,
                        const measure_opts *opts, double goal_ns)
{
    measure_opts mine = *opts;
    mine.arg = r;
    mine.window_s = b->window_s;
    measurement m = measure(&mine);
    table_text(&b->table, "what", what);
    table_measured(&b->table, "ns", m);
    if (goal_ns > 0)
        table_text(&b->table, "goal",
                   m.median <= goal_ns ? "at most 100 ns: met"
                                       : "at most 100 ns: missed");
    else
        table_empty(&b->table, "goal");
    table_row_end(&b->table);
    return m.median;
}

/* Returns the nanoseconds of a step without trace. */
static double print_rows(bench *b, recorders *r)
{
    print_row(b, "pl_ticks_now", r, &(measure_opts) { .run = run_ticks }, 0);
    print_row(b, "pl_metrics_set", r, &(measure_opts) { .run = run_set }, 0);
    print_row(b, "pl_metrics_scalar", r,
              &(measure_opts) { .run = run_scalar,
                                .reset = empty_queue,
                                .most_once = QUEUE / 2 },
              0);
    print_row(b, "an event of the file", r,
              &(measure_opts) { .run = run_event }, 0);
    print_row(b, "pl_trace_span, off", r, &(measure_opts) { .run = run_span },
              0);
    double step_ns = print_row(b, "a step, trace off", r,
                               &(measure_opts) { .run = run_step }, GOAL_NS);
    print_row(b, "pl_trace_span, on", r,
              &(measure_opts) {
                  .run = run_span, .reset = renew_trace, .most_once = ROOM },
              0);
    print_row(b, "a step, 10 spans traced", r,
              &(measure_opts) { .run = run_traced_step,
                                .reset = renew_trace,
                                .most_once = ROOM / STEP_SPANS },
              0);
    return step_ns;
}

static const pl_sync_ops no_ops = { .name = "none" };
static pl_sync no_sync = { &no_ops };

static pl_status open_recorders(recorders *r)
{
    PL_TRY(pl_metrics_new(&r->metrics, &(pl_metrics_opts) { .queue = QUEUE }));
    PL_TRY(pl_metrics_tag(r->metrics, "step", &r->tag));
    PL_TRY(pl_params_new(&r->params));
    PL_TRY(pl_recorder_init(&r->recorder, &(pl_recorder_opts) {
                                              .metrics = r->metrics,
                                              .schedule = &r->schedule,
                                              .kernels = pl_kernels_best(),
                                              .params = r->params,
                                              .sync = &no_sync,
                                          }));
    return pl_trace_new(&r->trace, &(pl_trace_opts) { .lanes = 1 });
}

pl_status bench_record(bench *b)
{
    recorders r = { .status = PL_OK };
    pl_status status = open_recorders(&r);
    if (status == PL_OK) {
        table_begin(&b->table, "record", "Recorders",
                    "A step without trace reads the ticks 7 times, tells how "
                    "far it is, every 50 ms adds\nto its curves, and asks "
                    "once whether the trace is on.");
        double step_ns = print_rows(b, &r);
        table_end(&b->table);
        status = r.status;
        if (status == PL_OK)
            status = bench_record_share(b, step_ns);
    }
    pl_metrics_free(r.metrics);
    pl_params_free(r.params);
    pl_buffer_close(&r.buffer);
    pl_trace_free(r.trace);
    return status;
}

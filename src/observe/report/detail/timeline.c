/* timeline.c - the activity of each thread of a traced run in a few steps from
 * the middle of its trace, as data for the page: all tasks on one clock. */
#include "base/error.h"
#include "base/mem.h"
#include "base/text/quote.h"
#include "observe/report/report_priv.h"
#include "observe/runs/profile.h"

#include <math.h>
#include <string.h>

#define STEPS       3    /* shown */
#define SPANS_MOST  6000 /* per run */
#define NUMBER_MOST ((int64_t)1 << 53)

typedef struct window {
    int64_t pid, first; /* steps of that task, from step `first` on */
    double begin, end;  /* us */
} window;

static bool is_span(const pl_json *event)
{
    const char *kind;
    return pl_json_get_text(event, "ph", &kind) == PL_OK &&
           strcmp(kind, "X") == 0;
}

static int64_t whole(const pl_json *event, const char *key)
{
    int64_t value;
    return pl_json_get_int(event, key, 0, NUMBER_MOST, &value) == PL_OK ? value
                                                                        : -1;
}

static double real(const pl_json *event, const char *key)
{
    double value;
    return pl_json_get_real(event, key, &value) == PL_OK ? value : NAN;
}

static int64_t step_of(const pl_json *event)
{
    const pl_json *args;
    return pl_json_get_object(event, "args", &args) == PL_OK
               ? whole(args, "step")
               : -1;
}

static bool name_of(const pl_json *event, const char **name)
{
    const pl_json *args;
    return pl_json_get_object(event, "args", &args) == PL_OK &&
           pl_json_get_text(args, "name", name) == PL_OK;
}

/* The first task that is not a server. */
static int64_t find_worker(const pl_json *events)
{
    for (size_t i = 0; i < pl_json_length(events); i++) {
        const pl_json *event = pl_json_at(events, i);
        const char *name, *kind;
        if (pl_json_get_text(event, "name", &kind) == PL_OK &&
            strcmp(kind, "process_name") == 0 && name_of(event, &name) &&
            strncmp(name, "ps ", 3) != 0)
            return whole(event, "pid");
    }
    return -1;
}

/* Neither the first steps, which are slow, nor the last. */
static bool find_window(const pl_json *events, window *w)
{
    int64_t least = INT64_MAX, most = -1;
    *w = (window) { .pid = find_worker(events), .begin = NAN, .end = NAN };
    for (size_t i = 0; i < pl_json_length(events); i++) {
        const pl_json *event = pl_json_at(events, i);
        int64_t step = is_span(event) ? step_of(event) : -1;
        if (step < 0 || whole(event, "pid") != w->pid)
            continue;
        least = step < least ? step : least;
        most = step > most ? step : most;
    }
    w->first = least + (most - least) / 2;
    for (size_t i = 0; most >= 0 && i < pl_json_length(events); i++) {
        const pl_json *event = pl_json_at(events, i);
        int64_t step = is_span(event) ? step_of(event) : -1;
        if (step < w->first || step >= w->first + STEPS ||
            whole(event, "pid") != w->pid)
            continue;
        double from = real(event, "ts"), to = from + real(event, "dur");
        w->begin = fmin(w->begin, from);
        w->end = fmax(w->end, to);
    }
    return w->end > w->begin;
}

static void put_names(const pl_json *events, pl_buffer *out)
{
    bool any = false;
    pl_buffer_text(out, ",\"lanes\":[");
    for (size_t i = 0; i < pl_json_length(events); i++) {
        const pl_json *event = pl_json_at(events, i);
        const char *name, *kind;
        if (is_span(event) || pl_json_get_text(event, "name", &kind) != PL_OK ||
            !name_of(event, &name))
            continue;
        pl_buffer_format(out, "%s[%lld,%lld,", any ? "," : "",
                         (long long)whole(event, "pid"),
                         strcmp(kind, "process_name") == 0
                             ? -1LL
                             : (long long)whole(event, "tid"));
        pl_quote_json(out, name);
        pl_buffer_text(out, "]");
        any = true;
    }
    pl_buffer_text(out, "]");
}

static void put_spans(const pl_json *events, const window *w, pl_buffer *out)
{
    size_t count = 0;
    pl_buffer_text(out, ",\n\"spans\":[");
    for (size_t i = 0; i < pl_json_length(events) && count < SPANS_MOST; i++) {
        const pl_json *event = pl_json_at(events, i);
        const char *name;
        double from = real(event, "ts"), took = real(event, "dur");
        if (!is_span(event) || !(from < w->end) || !(from + took > w->begin) ||
            pl_json_get_text(event, "name", &name) != PL_OK)
            continue;
        pl_buffer_format(out, "%s[%lld,%lld,%.3f,%.3f,%lld,",
                         count++ > 0 ? "," : "", (long long)whole(event, "pid"),
                         (long long)whole(event, "tid"), from - w->begin, took,
                         (long long)step_of(event));
        pl_quote_json(out, name);
        pl_buffer_text(out, "]");
    }
    pl_buffer_text(out, "]");
}

pl_status pl_report_timeline(pl_json *const *traces, size_t count, size_t run,
                             pl_buffer *out)
{
    pl_json *merged;
    const pl_json *events;
    window w;
    pl_status status = pl_profile_merge(traces, count, &merged);
    if (status != PL_OK) /* clocks cannot be compared: only a table */
        return status == PL_NOMEM ? status : PL_OK;
    status = pl_json_get_array(merged, "traceEvents", &events);
    if (status == PL_OK && find_window(events, &w)) {
        pl_buffer_format(out, "%s{\"run\":%zu,\"first\":%lld,\"us\":%.3f",
                         out->bytes > 0 ? ",\n" : "", run, (long long)w.first,
                         w.end - w.begin);
        put_names(events, out);
        put_spans(events, &w, out);
        pl_buffer_text(out, "}");
    }
    pl_json_free(merged);
    return status == PL_OK ? pl_buffer_status(out) : status;
}

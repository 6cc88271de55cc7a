/* What the spans of a trace add up to: each span's time belongs to the
 * innermost span that holds it, each operator's work counts once a step.  Times
 * are microseconds with three digits, so that sums of nanoseconds stay exact
 * also on the merged clock. */
#include "observe/profile.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MOST 4096 /* names of operators */

/* One name. */
typedef struct row {
    char *name, *op, *shape; /* op and shape NULL: not an operator */
    double step_flop, step_bytes;
    int64_t calls;
    double self_us;
    double flop, bytes;    /* of all steps */
    double gflops, gbytes; /* the machine's limits */
} row;

struct pl_profile {
    row *rows;
    size_t count;
    size_t last; /* found: its successor is likely next */
    int64_t dropped;
};

/* A span as it is read; what is inside others is taken out of them. */
typedef struct span {
    size_t row;
    int64_t lane, step;
    double begin, took, self; /* us */
} span;

pl_status pl_profile_new(pl_profile **out)
{
    pl_profile *profile;
    PL_TRY(PL_NEW(profile, 1));
    pl_status status = PL_NEW(profile->rows, ROWS_MOST);
    if (status != PL_OK) {
        pl_mem_free(profile);
        return status;
    }
    *out = profile;
    return PL_OK;
}

void pl_profile_free(pl_profile *profile)
{
    if (profile == NULL)
        return;
    for (size_t i = 0; i < profile->count; i++) {
        pl_mem_free(profile->rows[i].name);
        pl_mem_free(profile->rows[i].op);
        pl_mem_free(profile->rows[i].shape);
    }
    pl_mem_free(profile->rows);
    pl_mem_free(profile);
}

static pl_status find_row(pl_profile *profile, const char *name, size_t *out)
{
    for (size_t i = 0; i < profile->count; i++) {
        size_t at = (profile->last + 1 + i) % profile->count;
        if (strcmp(profile->rows[at].name, name) == 0) {
            *out = profile->last = at;
            return PL_OK;
        }
    }
    if (profile->count == ROWS_MOST)
        return PL_FAIL(PL_UNSUPPORTED, "more than %d names of operators",
                       ROWS_MOST);
    PL_TRY(pl_mem_copy_text(&profile->rows[profile->count].name, name));
    *out = profile->last = profile->count++;
    return PL_OK;
}

static pl_status read_operator(pl_profile *profile, const pl_json *json,
                               const pl_json *about)
{
    const char *name, *op, *shape;
    size_t at;
    PL_TRY(pl_json_get_text(json, "name", &name));
    PL_TRY(pl_json_get_text(json, "op", &op));
    PL_TRY(pl_json_get_text(json, "shape", &shape));
    PL_TRY(find_row(profile, name, &at));
    row *r = &profile->rows[at];
    PL_TRY(pl_json_get_real(json, "flop", &r->step_flop));
    PL_TRY(pl_json_get_real(json, "bytes", &r->step_bytes));
    PL_TRY(pl_json_get_real(about, "gflops", &r->gflops));
    PL_TRY(pl_json_get_real(about, "gbytes", &r->gbytes));
    if (r->op == NULL)
        PL_TRY(pl_mem_copy_text(&r->op, op));
    if (r->shape == NULL)
        PL_TRY(pl_mem_copy_text(&r->shape, shape));
    return PL_OK;
}

static pl_status read_operators(pl_profile *profile, const pl_json *trace)
{
    const pl_json *about, *list;
    int64_t dropped;
    PL_TRY(pl_json_get_object(trace, "otherData", &about));
    PL_TRY(pl_json_get_int(about, "dropped", 0, INT64_MAX, &dropped));
    profile->dropped += dropped;
    PL_TRY(pl_json_get_array(about, "operators", &list));
    for (size_t i = 0; i < pl_json_length(list); i++)
        PL_TRY(read_operator(profile, pl_json_at(list, i), about));
    return PL_OK;
}

/* False for what is no span: the names of processes and threads. */
static bool is_span(const pl_json *event)
{
    const char *phase;
    return pl_json_get_text(event, "ph", &phase) == PL_OK &&
           strcmp(phase, "X") == 0;
}

static pl_status read_span(pl_profile *profile, const pl_json *event, span *out)
{
    const char *name;
    const pl_json *args;
    *out = (span) { 0 };
    PL_TRY(pl_json_get_text(event, "name", &name));
    PL_TRY(pl_json_get_real(event, "ts", &out->begin));
    PL_TRY(pl_json_get_real(event, "dur", &out->took));
    PL_TRY(pl_json_get_int(event, "tid", 0, INT32_MAX, &out->lane));
    if (pl_json_has(event, "args")) {
        PL_TRY(pl_json_get_object(event, "args", &args));
        PL_TRY(pl_json_get_int(args, "step", INT64_MIN, INT64_MAX, &out->step));
    }
    out->self = out->took;
    return find_row(profile, name, &out->row);
}

/* By lane, then by time; what holds others before them. */
static int compare_spans(const void *a, const void *b)
{
    const span *x = a, *y = b;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->took > y->took ? -1 : x->took < y->took;
}

/* Take each span's time out of the innermost one that holds it.  `above` has
 * room for the numbers of all: those that are open. */
static void take_out(span *spans, size_t count, size_t *above)
{
    size_t open = 0;
    for (size_t i = 0; i < count; i++) {
        while (open > 0) {
            const span *holder = &spans[above[open - 1]];
            if (holder->lane == spans[i].lane &&
                spans[i].begin + spans[i].took <=
                    holder->begin + holder->took + 0.0005)
                break;
            open--;
        }
        if (open > 0)
            spans[above[open - 1]].self -= spans[i].took;
        above[open++] = i;
    }
}

static int compare_steps(const void *a, const void *b)
{
    const span *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

/* Add the spans to their rows.  The parts of a batch are computed by several
 * spans: what an operator does in a step it did once in each. */
static void add_up(pl_profile *profile, span *spans, size_t count)
{
    qsort(spans, count, sizeof *spans, compare_steps);
    for (size_t i = 0; i < count; i++) {
        row *r = &profile->rows[spans[i].row];
        bool again = i > 0 && compare_steps(&spans[i - 1], &spans[i]) == 0;
        r->calls++;
        r->self_us += spans[i].self > 0 ? spans[i].self : 0;
        r->flop += again ? 0 : r->step_flop;
        r->bytes += again ? 0 : r->step_bytes;
    }
}

static pl_status add_spans(pl_profile *profile, const pl_json *events)
{
    size_t length = pl_json_length(events), count = 0;
    span *spans = NULL;
    size_t *above = NULL;
    pl_status status;
    PL_TRY_OUT(status, PL_NEW(spans, length));
    PL_TRY_OUT(status, PL_NEW(above, length));
    for (size_t i = 0; i < length; i++)
        if (is_span(pl_json_at(events, i)))
            PL_TRY_OUT(status, read_span(profile, pl_json_at(events, i),
                                         &spans[count++]));
    qsort(spans, count, sizeof *spans, compare_spans);
    take_out(spans, count, above);
    add_up(profile, spans, count);
out:
    pl_mem_free(spans);
    pl_mem_free(above);
    return status;
}

pl_status pl_profile_add(pl_profile *profile, const pl_json *trace,
                         const char *what)
{
    const pl_json *events;
    pl_status status = read_operators(profile, trace);
    if (status == PL_OK)
        status = pl_json_get_array(trace, "traceEvents", &events);
    if (status == PL_OK)
        status = add_spans(profile, events);
    return status == PL_OK
               ? PL_OK
               : pl_context(status, "%s is not a trace of paceline", what);
}

int64_t pl_profile_dropped(const pl_profile *profile)
{
    return profile->dropped;
}

static int compare_rows(const void *a, const void *b)
{
    const row *x = a, *y = b;
    return x->self_us > y->self_us ? -1 : x->self_us < y->self_us;
}

static void put_row(pl_table *table, const char *role, const row *r,
                    double all_us)
{
    double seconds = r->self_us * 1e-6;
    bool computes = r->flop > 0, moves = !computes && r->bytes > 0;
    double speed = (computes ? r->flop : r->bytes) * 1e-9 / seconds;
    double limit = computes ? r->gflops : r->gbytes;
    pl_table_add_row(table);
    if (role != NULL)
        pl_table_put_text(table, role);
    pl_table_put_text(table, r->name);
    pl_table_put_text(table, r->op != NULL ? r->op : "");
    pl_table_put_text(table, r->shape != NULL ? r->shape : "");
    pl_table_put_number(table, (double)r->calls);
    pl_table_put_number(table, r->self_us / 1000);
    pl_table_put_number(table, r->self_us / (double)r->calls);
    pl_table_put_number(table, r->self_us / all_us);
    pl_table_put_number(table, computes ? speed : NAN);
    pl_table_put_number(table, moves ? speed : NAN);
    pl_table_put_number(table,
                        (computes || moves) && limit > 0 ? speed / limit : NAN);
}

static void add_columns(pl_table *table, bool roles)
{
    static const pl_table_column role = { .key = "role" };
    static const pl_table_column columns[] = {
        { .key = "name", .label = "operator" },
        { .key = "op", .label = "kind" },
        { .key = "shape", .label = "result" },
        { .key = "calls" },
        { .key = "total_ms", .label = "total", .unit = "ms", .digits = 2 },
        { .key = "mean_us", .label = "mean", .unit = "us", .digits = 1 },
        { .key = "share", .unit = "%", .digits = 1 },
        { .key = "gflops", .label = "GFLOP/s", .digits = 1 },
        { .key = "gbytes", .label = "GB/s", .digits = 1 },
        { .key = "of_limit", .label = "of limit", .unit = "%", .digits = 0 },
    };
    if (roles)
        pl_table_add_column(table, &role);
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
        pl_table_add_column(table, &columns[c]);
}

static pl_status put_part(pl_table *table, const pl_profile_part *part)
{
    const pl_profile *profile = part->profile;
    row *sorted;
    double all_us = 0;
    PL_TRY(PL_NEW(sorted, profile->count + 1));
    memcpy(sorted, profile->rows, profile->count * sizeof *sorted);
    qsort(sorted, profile->count, sizeof *sorted, compare_rows);
    for (size_t i = 0; i < profile->count; i++)
        all_us += sorted[i].self_us;
    for (size_t i = 0; i < profile->count; i++)
        if (sorted[i].calls > 0)
            put_row(table, part->role, &sorted[i], all_us);
    pl_mem_free(sorted);
    return PL_OK;
}

pl_status pl_profile_table(const pl_profile_part *parts, size_t count,
                           const char *name, const char *title, pl_table **out)
{
    pl_table *table;
    PL_TRY(pl_table_new(&table, name, title));
    add_columns(table, count > 0 && parts[0].role != NULL);
    pl_status status = PL_OK;
    for (size_t i = 0; status == PL_OK && i < count; i++)
        status = put_part(table, &parts[i]);
    if (status == PL_OK)
        status = pl_table_status(table);
    if (status != PL_OK) {
        pl_table_free(table);
        return status;
    }
    *out = table;
    return PL_OK;
}

/* When a trace began, in nanoseconds of the clock that all have: that of
 * server 0 where every task but that one knows how far it is ahead, else
 * calendar time. */
static pl_status begin_of(const pl_json *trace, bool calendar, int64_t *out)
{
    const pl_json *about;
    int64_t ahead = 0;
    PL_TRY(pl_json_get_object(trace, "otherData", &about));
    if (calendar)
        return pl_json_get_int(about, "begin_wall_ns", 0, INT64_MAX, out);
    PL_TRY(pl_json_get_int(about, "begin_clock_ns", 0, INT64_MAX / 2, out));
    if (pl_json_has(about, "ahead_ns"))
        PL_TRY(pl_json_get_int(about, "ahead_ns", INT64_MIN / 2, INT64_MAX / 2,
                               &ahead));
    *out += ahead;
    return PL_OK;
}

/* Traces that do not know how far the job's clock is ahead; one may: that of
 * who has it. */
static size_t count_unknown(pl_json *const *traces, size_t count)
{
    size_t unknown = 0;
    for (size_t i = 0; i < count; i++) {
        const pl_json *about;
        unknown +=
            pl_json_get_object(traces[i], "otherData", &about) != PL_OK ||
            !pl_json_has(about, "ahead_ns");
    }
    return unknown;
}

static pl_status move_events(pl_json *to, const pl_json *trace, int64_t pid,
                             double shift_us)
{
    const pl_json *events;
    PL_TRY(pl_json_get_array(trace, "traceEvents", &events));
    for (size_t i = 0; i < pl_json_length(events); i++) {
        pl_json *event;
        double time = 0;
        PL_TRY(pl_json_copy(&event, pl_json_at(events, i)));
        pl_status status = pl_json_set_int(event, "pid", pid);
        if (status == PL_OK && is_span(event))
            status = pl_json_get_real(event, "ts", &time);
        if (status == PL_OK && is_span(event))
            status = pl_json_set_real(event, "ts",
                                      round((time + shift_us) * 1000) / 1000);
        if (status != PL_OK) {
            pl_json_free(event);
            return status;
        }
        PL_TRY(pl_json_append_take(to, event));
    }
    return PL_OK;
}

static pl_status merge_into(pl_json *merged, pl_json *const *traces,
                            size_t count)
{
    bool calendar = count_unknown(traces, count) > 1;
    int64_t first = INT64_MAX, begin;
    pl_json *events;
    for (size_t i = 0; i < count; i++) {
        PL_TRY(begin_of(traces[i], calendar, &begin));
        first = begin < first ? begin : first;
    }
    PL_TRY(pl_json_set_text(merged, "displayTimeUnit", "ns"));
    PL_TRY(pl_json_new_array(&events));
    for (size_t i = 0; i < count; i++) {
        pl_status status = begin_of(traces[i], calendar, &begin);
        if (status == PL_OK)
            status = move_events(events, traces[i], (int64_t)i,
                                 (double)(begin - first) / 1000);
        if (status != PL_OK) {
            pl_json_free(events);
            return status;
        }
    }
    return pl_json_set_take(merged, "traceEvents", events);
}

pl_status pl_profile_merge(pl_json *const *traces, size_t count, pl_json **out)
{
    pl_json *merged;
    PL_TRY(pl_json_new_object(&merged));
    pl_status status = merge_into(merged, traces, count);
    if (status != PL_OK) {
        pl_json_free(merged);
        return status;
    }
    *out = merged;
    return PL_OK;
}

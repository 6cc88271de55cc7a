/* Adds up the spans of a trace: each span's time belongs to the innermost span
 * that contains it, each operator's work counts once per step.  Times are
 * microseconds with three digits, so that sums of nanoseconds stay exact, even
 * on the merged clock. */
#include "observe/runs/profile.h"

#include "base/json/fields.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MOST 4096 /* names of operators */
/* The sum or difference of two of these does not overflow. */
#define DROPPED_MOST (INT64_MAX / 2)
#define TIME_MOST    (INT64_MAX / 4)    /* ns */
#define BYTES_MOST   (INT64_C(1) << 50) /* per span */

/* Sums for one name. */
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
    size_t last; /* last found: its successor is likely next */
    int64_t dropped;
};

/* --- a trace file ------------------------------------------------------ */

typedef struct trace_operator {
    const char *name, *op, *shape;
    double flop, bytes; /* per step */
} trace_operator;

static const pl_field operator_rows[] = {
    { "name", PL_FIELD_TEXT(trace_operator, name) },
    { "op", PL_FIELD_TEXT(trace_operator, op) },
    { "shape", PL_FIELD_TEXT(trace_operator, shape) },
    { "flop", PL_FIELD_REAL(trace_operator, flop) },
    { "bytes", PL_FIELD_REAL(trace_operator, bytes) },
};
static const pl_fields operator_fields =
    PL_FIELDS(trace_operator, operator_rows);

typedef struct trace_about {
    int64_t dropped; /* spans that did not fit */
    trace_operator *operators;
    size_t operator_count;
    double gflops, gbytes;                 /* the machine's limits */
    int64_t begin_wall_ns, begin_clock_ns; /* -1: not known */
    bool has_ahead;
    int64_t ahead_ns; /* how far the job's clock is ahead of this task's */
} trace_about;

static const pl_field about_rows[] = {
    { "dropped", PL_FIELD_INT(trace_about, dropped) },
    { "operators",
      PL_FIELD_LIST(trace_about, operators, operator_count, &operator_fields),
      .most = 1 << 20 },
    { "gflops", PL_FIELD_REAL(trace_about, gflops), .when = PL_WHEN_KNOWN },
    { "gbytes", PL_FIELD_REAL(trace_about, gbytes), .when = PL_WHEN_KNOWN },
    { "begin_wall_ns", PL_FIELD_INT(trace_about, begin_wall_ns),
      .when = PL_WHEN_KNOWN, .or_null = true },
    { "begin_clock_ns", PL_FIELD_INT(trace_about, begin_clock_ns),
      .when = PL_WHEN_KNOWN, .or_null = true, .most = TIME_MOST },
    { "ahead_ns", PL_FIELD_INT(trace_about, ahead_ns),
      PL_FIELD_GIVEN(trace_about, has_ahead), .least = -TIME_MOST,
      .most = TIME_MOST },
};
static const pl_fields about_fields = PL_FIELDS(trace_about, about_rows);

typedef struct trace_file {
    trace_about about;
    const pl_json *events;
} trace_file;

static const pl_field file_rows[] = {
    { "otherData", PL_FIELD_OBJECT(trace_file, about, &about_fields) },
    { "traceEvents", PL_FIELD_ANY_LIST(trace_file, events) },
};
static const pl_fields file_fields = PL_FIELDS(trace_file, file_rows);

typedef struct trace_args {
    int64_t step, bytes;
} trace_args;

static const pl_field args_rows[] = {
    { "step", PL_FIELD_INT(trace_args, step), .least = INT64_MIN,
      .most = INT64_MAX },
    { "bytes", PL_FIELD_INT(trace_args, bytes), .when = PL_WHEN_SET,
      .most = BYTES_MOST },
};
static const pl_fields args_fields = PL_FIELDS(trace_args, args_rows);

typedef struct trace_span {
    const char *name;
    double ts, dur; /* us */
    int32_t tid;
    bool has_args;
    trace_args args;
} trace_span;

static const pl_field span_rows[] = {
    { "name", PL_FIELD_TEXT(trace_span, name) },
    { "ts", PL_FIELD_REAL(trace_span, ts) },
    { "dur", PL_FIELD_REAL(trace_span, dur) },
    { "tid", PL_FIELD_INT(trace_span, tid) },
    { "args", PL_FIELD_OBJECT(trace_span, args, &args_fields),
      PL_FIELD_GIVEN(trace_span, has_args) },
};
static const pl_fields span_fields = PL_FIELDS(trace_span, span_rows);

/* --- sums -------------------------------------------------------------- */

/* A span as read; spans inside it are subtracted. */
typedef struct span {
    size_t row;
    int64_t lane, step;
    int64_t bytes; /* moved; 0: what its operator moves in each step */
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

static pl_status add_operator(pl_profile *profile, const trace_operator *given,
                              const trace_about *about)
{
    size_t at;
    PL_TRY(find_row(profile, given->name, &at));
    row *r = &profile->rows[at];
    r->step_flop = given->flop;
    r->step_bytes = given->bytes;
    r->gflops = about->gflops;
    r->gbytes = about->gbytes;
    if (r->op == NULL)
        PL_TRY(pl_mem_copy_text(&r->op, given->op));
    if (r->shape == NULL)
        PL_TRY(pl_mem_copy_text(&r->shape, given->shape));
    return PL_OK;
}

static pl_status add_operators(pl_profile *profile, const trace_about *about)
{
    profile->dropped = about->dropped > DROPPED_MOST - profile->dropped
                           ? DROPPED_MOST
                           : profile->dropped + about->dropped;
    for (size_t i = 0; i < about->operator_count; i++)
        PL_TRY(add_operator(profile, &about->operators[i], about));
    return PL_OK;
}

/* False for other events: the names of processes and threads. */
static bool is_span(const pl_json *event)
{
    const char *phase;
    return pl_json_get_text(event, "ph", &phase) == PL_OK &&
           strcmp(phase, "X") == 0;
}

static pl_status read_span(pl_profile *profile, const pl_json *event, span *out)
{
    trace_span given;
    PL_TRY(pl_fields_read(&span_fields, event, &given));
    *out = (span) {
        .lane = given.tid,
        .step = given.args.step,
        .bytes = given.args.bytes,
        .begin = given.ts,
        .took = given.dur,
        .self = given.dur,
    };
    return find_row(profile, given.name, &out->row);
}

/* By lane, then by time; enclosing spans first. */
static int compare_spans(const void *a, const void *b)
{
    const span *x = a, *y = b;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->took > y->took ? -1 : x->took < y->took;
}

/* Subtract each span's time from the innermost span that contains it.  `above`,
 * the stack of open spans, has room for all. */
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

/* Add the spans to their rows.  If the parts of a batch have several spans,
 * they count as one execution of the operator per step. */
static void add_up(pl_profile *profile, span *spans, size_t count)
{
    qsort(spans, count, sizeof *spans, compare_steps);
    for (size_t i = 0; i < count; i++) {
        row *r = &profile->rows[spans[i].row];
        bool again = i > 0 && compare_steps(&spans[i - 1], &spans[i]) == 0;
        r->calls++;
        r->self_us += spans[i].self > 0 ? spans[i].self : 0;
        r->flop += again ? 0 : r->step_flop;
        if (spans[i].bytes > 0)
            r->bytes += (double)spans[i].bytes;
        else
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
    trace_file file;
    pl_status status = pl_fields_read(&file_fields, trace, &file);
    if (status == PL_OK) {
        status = add_operators(profile, &file.about);
        if (status == PL_OK)
            status = add_spans(profile, file.events);
        pl_fields_close(&file_fields, &file);
    }
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

/* Why an operator exceeds the limit it is compared with. */
static const char *note_of(double share, bool computes)
{
    if (!(share > 1))
        return "";
    return computes ? "limit measured on a busier machine" : "data in cache";
}

static void put_row(pl_table *table, const char *role, const row *r,
                    double all_us)
{
    double seconds = r->self_us * 1e-6;
    bool computes = r->flop > 0, moves = !computes && r->bytes > 0;
    double speed = (computes ? r->flop : r->bytes) * 1e-9 / seconds;
    double limit = computes ? r->gflops : r->gbytes;
    double share = (computes || moves) && limit > 0 ? speed / limit : NAN;
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
    pl_table_put_number(table, share);
    pl_table_put_text(table, note_of(share, computes));
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
        { .key = "note" },
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

/* Every other name is work. */
static bool is_operator(const row *r)
{
    static const char *const others[] = { "wait", "send",     "read",
                                          "save", "evaluate", "checkpoint" };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(r->name, others[i]) == 0)
            return false;
    return r->self_us > 0;
}

/* Insert into a sorted list, dropping the smallest. */
static size_t insert(pl_profile_share *list, size_t count, size_t most,
                     pl_profile_share one)
{
    size_t at = count;
    while (at > 0 && list[at - 1].share < one.share)
        at--;
    if (at == most)
        return count;
    size_t kept = count < most ? count : most - 1;
    memmove(list + at + 1, list + at, (kept - at) * sizeof *list);
    list[at] = one;
    return kept + 1;
}

size_t pl_profile_longest(const pl_profile *profile, pl_profile_share *out,
                          size_t most)
{
    double all_us = 0;
    size_t count = 0;
    for (size_t i = 0; i < profile->count; i++)
        all_us += is_operator(&profile->rows[i]) ? profile->rows[i].self_us : 0;
    for (size_t i = 0; i < profile->count; i++) {
        const row *r = &profile->rows[i];
        if (is_operator(r))
            count = insert(out, count, most,
                           (pl_profile_share) { r->name, r->self_us / all_us });
    }
    return count;
}

/* When a trace began, in nanoseconds of the common clock: that of server 0 if
 * every other task knows its offset from it, otherwise calendar time. */
static pl_status begin_of(const trace_about *about, bool calendar, int64_t *out)
{
    int64_t begin = calendar ? about->begin_wall_ns : about->begin_clock_ns;
    if (begin < 0)
        return PL_FAIL(PL_FORMAT, "%s: missing",
                       calendar ? "begin_wall_ns" : "begin_clock_ns");
    *out = calendar ? begin : begin + about->ahead_ns;
    return PL_OK;
}

static pl_status move_events(pl_json *to, const pl_json *events, int64_t pid,
                             double shift_us)
{
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

/* Traces that do not know their offset from the job's clock; one may not: that
 * of the task that has the clock. */
static size_t count_unknown(const trace_file *files, size_t count)
{
    size_t unknown = 0;
    for (size_t i = 0; i < count; i++)
        unknown += !files[i].about.has_ahead;
    return unknown;
}

static pl_status merge_events(pl_json *events, const trace_file *files,
                              size_t count)
{
    bool calendar = count_unknown(files, count) > 1;
    int64_t first = INT64_MAX, begin;
    for (size_t i = 0; i < count; i++) {
        PL_TRY(begin_of(&files[i].about, calendar, &begin));
        first = begin < first ? begin : first;
    }
    for (size_t i = 0; i < count; i++) {
        PL_TRY(begin_of(&files[i].about, calendar, &begin));
        PL_TRY(move_events(events, files[i].events, (int64_t)i,
                           (double)(begin - first) / 1000));
    }
    return PL_OK;
}

static pl_status merge_into(pl_json *merged, const trace_file *files,
                            size_t count)
{
    pl_json *events;
    PL_TRY(pl_json_set_text(merged, "displayTimeUnit", "ns"));
    PL_TRY(pl_json_new_array(&events));
    PL_TRY(pl_json_set_take(merged, "traceEvents", events));
    return merge_events(events, files, count);
}

pl_status pl_profile_merge(pl_json *const *traces, size_t count, pl_json **out)
{
    pl_json *merged = NULL;
    trace_file *files;
    size_t read = 0;
    pl_status status;
    PL_TRY(PL_NEW(files, count));
    for (; read < count; read++)
        PL_TRY_OUT(status,
                   pl_fields_read(&file_fields, traces[read], &files[read]));
    PL_TRY_OUT(status, pl_json_new_object(&merged));
    PL_TRY_OUT(status, merge_into(merged, files, count));
    *out = merged;
    merged = NULL;
out:
    for (size_t i = 0; i < read; i++)
        pl_fields_close(&file_fields, &files[i]);
    pl_mem_free(files);
    pl_json_free(merged);
    return status;
}

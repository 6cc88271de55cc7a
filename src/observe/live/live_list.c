/* live_list.c - the table of runs of the live page: decides what each column
 * shows for a run that ended, is in progress or fell silent, and the order of
 * runs.  For a run in progress, the numbers are the latest of its chief. */
#include "observe/live/live_priv.h"

#include "base/file/file.h"
#include "base/mem.h"
#include "base/text/duration.h"
#include "base/text/quote.h"
#include "observe/runs/curve_read.h"
#include "observe/runs/experiment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define CURVES_MOST  50         /* runs with a drawn curve: the newest */
#define EVENTS_MOST  (16 << 20) /* bytes read of one file */
#define POINTS       60         /* of a small curve */
#define CURVE_WIDTH  120
#define CURVE_HEIGHT 24
#define GIVEN_UP_S   600.0 /* a run silent for this long is not in progress */
#define MINUTE_S     60.0
#define DAY_S        86400.0

pl_status pl_live_written(const char *folder, int depth, time_t *out)
{
    char **names;
    size_t count;
    pl_status status = pl_file_list(&names, &count, folder);
    if (status != PL_OK)
        return status == PL_NOMEM ? status : PL_OK; /* not created yet */
    for (size_t i = 0; i < count && status == PL_OK; i++) {
        char *path;
        struct stat info;
        PL_TRY_OUT(status, pl_file_join(&path, folder, names[i]));
        bool there = stat(path, &info) == 0;
        if (there && S_ISREG(info.st_mode) && info.st_mtime > *out)
            *out = info.st_mtime;
        if (there && S_ISDIR(info.st_mode) && depth > 0)
            status = pl_live_written(path, depth - 1, out);
        pl_mem_free(path);
    }
out:
    pl_mem_free(names);
    return status;
}

/* --- the chief's curves ------------------------------------------------ */

/* Only the end of a file that --record-every made large. */
static pl_status read_file(pl_curves *curves, const char *path)
{
    struct stat info;
    size_t room = 1, bytes;
    int64_t first;
    char *text;
    if (stat(path, &info) == 0 && info.st_size > 0)
        room += info.st_size < EVENTS_MOST ? (size_t)info.st_size : EVENTS_MOST;
    PL_TRY(PL_NEW(text, room));
    pl_status status = pl_file_read_end(path, text, room, &bytes, &first);
    if (status == PL_OK) {
        const uint8_t *data = (const uint8_t *)text;
        size_t skip = first > 0 ? pl_events_first(data, bytes) : 0;
        status = pl_events_read(curves, data + skip, bytes - skip, path);
    }
    pl_mem_free(text);
    return status == PL_NOMEM ? status : PL_OK; /* shown without a curve */
}

pl_status pl_live_curves(pl_curves *curves, const char *run, const char *task)
{
    char *folder, **names;
    size_t count;
    PL_TRY(pl_mem_format(&folder, "%s/events/%s", run, task));
    pl_status status = pl_file_list(&names, &count, folder);
    if (status != PL_OK) {
        pl_mem_free(folder);
        return status == PL_NOMEM ? status : PL_OK;
    }
    for (size_t i = 0; i < count && status == PL_OK; i++) {
        char *path;
        if (strstr(names[i], ".tfevents.") == NULL)
            continue;
        PL_TRY_OUT(status, pl_file_join(&path, folder, names[i]));
        status = read_file(curves, path);
        pl_mem_free(path);
    }
out:
    pl_mem_free(names);
    pl_mem_free(folder);
    return status;
}

double pl_live_last(const pl_curves *curves, const char *name, double *x)
{
    const pl_curve *curve = pl_curves_find(curves, name);
    if (curve == NULL || curve->count == 0)
        return NAN;
    if (x != NULL)
        *x = curve->points[curve->count - 1].x;
    return curve->points[curve->count - 1].y;
}

/* --- one run ------------------------------------------------------------ */

static const char *state_of(const pl_record *record)
{
    const char *by = pl_record_stopped_by(record);
    return strcmp(by, "interrupt") == 0 ? "stopped"
           : strcmp(by, "nan") == 0     ? "failed"
                                        : "done";
}

static void take_summary(pl_live_run *run)
{
    const pl_record *record = run->record;
    run->step = pl_record_number(record, "steps");
    run->loss = pl_record_number(record, "train_loss");
    run->rate = pl_record_number(record, "examples_per_s");
    snprintf(run->state, sizeof run->state, "%s", state_of(record));
    if (record->summary.has_bottleneck)
        run->limit = record->summary.bottleneck.text;
}

/* When the run was last started or resumed, in seconds since 1970; 0: not
 * known. */
static double started_of(const pl_record *record)
{
    struct tm parts = { 0 };
    if (record->run.started == NULL ||
        strptime(record->run.started, "%Y-%m-%dT%H:%M:%SZ", &parts) == NULL)
        return 0;
    return (double)timegm(&parts);
}

/* Seconds per step since then: earlier steps are those of the resumed run, or
 * of the chief before its restart.  NAN: fewer than two points since. */
static double step_s(const pl_live_run *run)
{
    double started = started_of(run->record);
    const pl_curve *loss = pl_curves_find(&run->curves, "loss");
    if (loss == NULL || loss->count == 0)
        return NAN;
    const pl_point *first = loss->points, *last = first + loss->count - 1;
    while (first < last && first->time < started)
        first++;
    return last->x > first->x
               ? (last->time - first->time) / (last->x - first->x)
               : NAN;
}

/* Seconds since the last write. */
static pl_status silence_of(const pl_record *record, double *out)
{
    time_t last = 0;
    PL_TRY(pl_live_written(record->path, 2, &last));
    *out = difftime(time(NULL), last);
    return PL_OK;
}

const char *pl_live_silence(double seconds, char text[PL_DURATION])
{
    if (seconds < MINUTE_S)
        snprintf(text, PL_DURATION, "%.0f s", seconds);
    else if (seconds < 2 * DAY_S)
        pl_duration_text(seconds, text);
    else
        snprintf(text, PL_DURATION, "%.0f days", floor(seconds / DAY_S));
    return text;
}

static pl_status take_running(pl_live_run *run)
{
    const pl_record *record = run->record;
    char shown[PL_DURATION];
    double silent;
    PL_TRY(silence_of(record, &silent));
    run->running = silent <= PL_LIVE_SILENT_S;
    if (run->running)
        snprintf(run->state, sizeof run->state, "running");
    else
        snprintf(run->state, sizeof run->state, "silent for %s",
                 pl_live_silence(silent, shown));
    run->step = NAN;
    run->loss = pl_live_last(&run->curves, "loss", &run->step);
    run->rate = pl_live_tasks_rate(&run->tasks);
    pl_live_waits_text(&run->tasks, run->waits);
    if (run->running && record->run.end_step > 0)
        run->left_s = ((double)record->run.end_step - run->step) * step_s(run);
    return PL_OK;
}

/* Moves the chief's curves to the run. */
static pl_status take_tasks(pl_live_run *run, pl_model_run *read)
{
    PL_TRY(pl_live_tasks_init(&run->tasks, run->record, read));
    for (size_t i = 0; i < run->tasks.count; i++) {
        pl_live_task *task = &run->tasks.list[i];
        if (strcmp(task->name, "worker-0") != 0 &&
            strcmp(task->name, "chief-0") != 0)
            continue;
        run->curves = task->curves;
        task->curves = (pl_curves) { 0 };
        break;
    }
    return PL_OK;
}

static pl_status take_chief(pl_live_run *run)
{
    const char *path = run->record->path;
    PL_TRY(pl_live_curves(&run->curves, path, "worker-0"));
    return run->curves.count > 0
               ? PL_OK
               : pl_live_curves(&run->curves, path, "chief-0");
}

/* Values derived from curves and summary; `status` is the result of reading the
 * curves. */
static pl_status finish_run(pl_live_run *run, pl_status status)
{
    if (status == PL_OK && run->record->ended)
        take_summary(run);
    else if (status == PL_OK)
        status = take_running(run);
    if (status == PL_OK)
        pl_live_take_test(run);
    else
        pl_live_run_close(run);
    return status;
}

pl_status pl_live_run_init(pl_live_run *run, const pl_record *record,
                           pl_live_detail detail)
{
    *run = (pl_live_run) { .record = record, .left_s = NAN };
    pl_status status = PL_OK;
    if (!record->ended || detail == PL_LIVE_TASKS)
        status = take_tasks(run, NULL);
    else if (detail == PL_LIVE_CURVES)
        status = take_chief(run);
    return finish_run(run, status);
}

pl_status pl_live_run_take(pl_live_run *run, const pl_record *record,
                           pl_model_run *read)
{
    *run = (pl_live_run) { .record = record, .left_s = NAN };
    return finish_run(run, take_tasks(run, read));
}

void pl_live_run_close(pl_live_run *run)
{
    pl_curves_close(&run->curves);
    pl_live_tasks_close(&run->tasks);
}

/* --- the table ---------------------------------------------------------- */

/* A cell with a number: the value to sort by, and the text shown.  Unknown
 * numbers are empty. */
static void put_number(pl_buffer *out, double value, const char *shown)
{
    if (isfinite(value))
        pl_buffer_format(out, "<td data-sort=\"%.9g\">%s", value, shown);
    else
        pl_buffer_text(out, "<td>");
}

const char *pl_live_count(double value, char text[PL_LIVE_COUNT])
{
    char plain[PL_LIVE_COUNT / 2]; /* only the beginning of a hostile one */
    size_t used = 0;
    snprintf(plain, sizeof plain, "%.0f", value);
    size_t digits = strlen(plain);
    for (size_t i = 0; i < digits; i++) {
        if (i > 0 && digits > 4 && (digits - i) % 3 == 0)
            text[used++] = ',';
        text[used++] = plain[i];
    }
    text[used] = '\0';
    return text;
}

static void put_text(pl_buffer *out, const char *class, const char *text)
{
    pl_buffer_format(out, "<td class=\"text %s\">", class);
    pl_quote_html(out, text != NULL ? text : "");
}

static void put_steps(pl_buffer *out, const pl_live_run *run)
{
    int64_t all = run->record->run.end_step;
    char shown[2 * PL_LIVE_COUNT + 1], step[PL_LIVE_COUNT], end[PL_LIVE_COUNT];
    snprintf(shown, sizeof shown, "%s%s%s", pl_live_count(run->step, step),
             all > 0 ? "/" : "",
             all > 0 ? pl_live_count((double)all, end) : "");
    put_number(out, run->step, shown);
}

static void put_left(pl_buffer *out, double seconds)
{
    char shown[PL_DURATION];
    put_number(out, seconds, pl_duration_text(seconds, shown));
}

/* The usual measure, accuracy, as a number only: "98.04 %", "RMSE 0.3443". */
static void put_test(pl_buffer *out, const pl_live_run *run)
{
    char shown[PL_LIVE_COUNT + 32], value[PL_LIVE_COUNT];
    bool usual = run->measure->unit[0] == '%';
    snprintf(shown, sizeof shown, "%s%s%s",
             usual ? "" : run->measure->label + strlen("test "),
             usual ? "" : " ",
             pl_live_test_text(run->measure, run->test, value));
    put_number(out, run->test, shown);
}

/* "sync, 3 workers" as two cells.  Only jobs with parameter servers have a
 * mode. */
static void put_job(pl_buffer *out, const pl_record *record)
{
    bool served = strtol(pl_record_arg(record, "ps"), NULL, 10) > 0;
    const char *mode = pl_record_arg(record, served ? "mode" : "strategy");
    long workers = strtol(pl_record_arg(record, "workers"), NULL, 10);
    char shown[32];
    put_text(out, "", mode[0] != '\0' ? mode : "single");
    snprintf(shown, sizeof shown, "%ld", workers > 0 ? workers : 1);
    put_number(out, workers > 0 ? (double)workers : 1, shown);
}

/* The loss as a line, between its least and its largest value. */
static void put_curve(pl_buffer *out, pl_live_run *run)
{
    pl_curve *curve = (pl_curve *)pl_curves_find(&run->curves, "loss");
    pl_buffer_text(out, "<td class=curve>");
    if (curve == NULL || curve->count < 2)
        return;
    pl_curve_thin(curve, POINTS);
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < curve->count; i++) {
        low = fmin(low, curve->points[i].y);
        high = fmax(high, curve->points[i].y);
    }
    double first = curve->points[0].x;
    double wide = curve->points[curve->count - 1].x - first;
    pl_buffer_format(out,
                     "<svg width=%d height=%d role=img aria-label=\"loss from "
                     "%.4g to %.4g\"><polyline points=\"",
                     CURVE_WIDTH, CURVE_HEIGHT, curve->points[0].y,
                     curve->points[curve->count - 1].y);
    for (size_t i = 0; i < curve->count && wide > 0; i++)
        pl_buffer_format(
            out, "%s%.1f,%.1f", i > 0 ? " " : "",
            (curve->points[i].x - first) / wide * (CURVE_WIDTH - 2) + 1,
            CURVE_HEIGHT - 2 -
                (high > low ? (curve->points[i].y - low) / (high - low) : 0) *
                    (CURVE_HEIGHT - 4));
    pl_buffer_text(out, "\"/></svg>");
}

/* The limit and its share of the time, without the cause of a straggler, the
 * other shares and the cures. */
static void put_limit(pl_buffer *out, const pl_live_run *run)
{
    static const char usual[] = " of the time";
    const char *text = run->limit != NULL ? run->limit : run->waits;
    const char *cures = strstr(text, ". Cures");
    size_t length = strcspn(text, "(;"), tail = strlen(usual);
    char shown[128];
    if (cures != NULL && (size_t)(cures - text) < length)
        length = (size_t)(cures - text);
    while (length > 0 && text[length - 1] == ' ')
        length--;
    if (length > tail && memcmp(text + length - tail, usual, tail) == 0)
        length -= tail;
    snprintf(shown, sizeof shown, "%.*s", (int)length, text);
    put_text(out, "limit", shown);
}

static void put_cells(pl_buffer *out, pl_live_run *run)
{
    char shown[64];
    put_text(out, "", run->record->run.model);
    put_job(out, run->record);
    put_steps(out, run);
    put_left(out, run->left_s);
    snprintf(shown, sizeof shown, "%.4f", run->loss);
    put_number(out, run->loss, shown);
    put_test(out, run);
    put_number(out, run->rate, pl_live_count(run->rate, shown));
    put_curve(out, run);
    put_limit(out, run);
}

static void put_row(pl_buffer *out, pl_live_run *run)
{
    const char *sweep = pl_experiment_name(run->record);
    pl_buffer_format(out, "<tr%s",
                     run->running                        ? " class=running"
                     : strcmp(run->state, "failed") == 0 ? " class=failed"
                                                         : "");
    if (sweep[0] != '\0') {
        pl_buffer_text(out, " data-sweep=\"");
        pl_quote_html(out, sweep);
        pl_buffer_text(out, "\"");
    }
    pl_buffer_text(out, "><td><input type=checkbox value=\"");
    pl_live_encode(out, run->record->name);
    pl_buffer_text(out, "\" aria-label=\"overlay ");
    pl_quote_html(out, run->record->name);
    pl_buffer_text(out, "\">");
    put_text(out, run->running || run->record->ended ? "state" : "state silent",
             run->state);
    pl_buffer_text(out, "<td class=text><a href=\"" PL_LIVE_RUN);
    pl_live_encode(out, run->record->name);
    pl_buffer_text(out, "\">");
    pl_quote_html(out, run->record->name);
    pl_buffer_text(out, "</a>");
    put_cells(out, run);
    pl_buffer_text(out, "</tr>\n");
}

static const char head[] =
    "<div class=wide><table id=runs "
    "class=live><caption>Runs</caption><thead><tr>"
    "<th class=plain><th class=text>state<th class=text>run"
    "<th class=text>model<th class=text>mode<th>workers<th>step<th>left"
    "<th>loss<th>test<th>examples/s<th class=\"text plain\">loss curve"
    "<th class=text>limited by</thead><tbody>\n";

/* A run and its row of the table. */
typedef struct row {
    const pl_record *record;
    bool goes_on;
} row;

/* Runs in progress come first, then the newest, by start time. A run that was
 * silent for long may never end: its processes died. */
static int by_age(const void *a, const void *b)
{
    const row *left = a, *right = b;
    if (left->goes_on != right->goes_on)
        return left->goes_on ? -1 : 1;
    const char *x = left->record->run.started, *y = right->record->run.started;
    int order = strcmp(y != NULL ? y : "", x != NULL ? x : "");
    return order != 0 ? order : strcmp(right->record->name, left->record->name);
}

static pl_status order_rows(row *rows, const pl_records *records)
{
    for (size_t i = 0; i < records->count; i++) {
        const pl_record *record = &records->list[i];
        double silent = INFINITY;
        if (!record->ended)
            PL_TRY(silence_of(record, &silent));
        rows[i] = (row) { record, silent < GIVEN_UP_S };
    }
    qsort(rows, records->count, sizeof *rows, by_age);
    return PL_OK;
}

pl_status pl_live_table(pl_buffer *out, const pl_records *records)
{
    row *rows;
    PL_TRY(PL_NEW(rows, records->count + 1));
    pl_status status = order_rows(rows, records);
    pl_buffer_text(out, head);
    for (size_t i = 0; i < records->count && status == PL_OK; i++) {
        pl_live_run run;
        status = pl_live_run_init(&run, rows[i].record,
                                  i < CURVES_MOST ? PL_LIVE_CURVES
                                                  : PL_LIVE_NUMBERS);
        if (status != PL_OK)
            break;
        put_row(out, &run);
        pl_live_run_close(&run);
    }
    pl_buffer_text(out, "</tbody></table></div>\n");
    pl_mem_free(rows);
    return status == PL_OK ? pl_buffer_status(out) : status;
}

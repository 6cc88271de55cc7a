/* model_json.c - a model as the JSON document from which figures are drawn;
 * decides how many points of each series it has. */
#include "base/mem.h"
#include "base/text/decimal.h"
#include "base/text/quote.h"
#include "observe/compare/compare.h"
#include "observe/model/metric.h"
#include "observe/model/model_priv.h"
#include "observe/runs/experiment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A point takes about 24 bytes, all of them about 14 MB. */
#define POINTS_MOST  600000
#define POINTS_EACH  2000 /* per series: more than the columns of a screen */
#define POINTS_LIVE  1000 /* of a run in progress: requested repeatedly */
#define POINTS_LEAST 16
#define LABEL_BYTES  512

static void put_number(pl_buffer *out, double value, int digits)
{
    if (isfinite(value))
        pl_buffer_format(out, "%.*g", digits, value);
    else
        pl_buffer_text(out, "null");
}

/* A comma before all members but the first. */
static void put_key(pl_buffer *out, bool *any, const char *key)
{
    pl_buffer_text(out, *any ? "," : "");
    *any = true;
    pl_quote_json(out, key);
    pl_buffer_text(out, ":");
}

static void put_metrics(pl_buffer *out)
{
    size_t count;
    const pl_metric *metrics = pl_metrics(&count);
    bool any = false;
    pl_buffer_text(out, "\"metrics\":{");
    for (size_t i = 0; i < count; i++) {
        put_key(out, &any, metrics[i].key);
        pl_buffer_text(out, "{\"label\":");
        pl_quote_json(out, metrics[i].label);
        pl_buffer_text(out, ",\"unit\":");
        pl_quote_json(out, metrics[i].unit);
        pl_buffer_format(out, ",\"scale\":%g,\"result\":%s}", metrics[i].scale,
                         metrics[i].result ? "true" : "false");
    }
    pl_buffer_text(out, "}");
}

static bool is_axis_before(const pl_runs_model *model, size_t part,
                           const char *name)
{
    for (size_t p = 0; p < part; p++)
        for (size_t a = 0; a < model->parts[p].axis_count; a++)
            if (strcmp(model->parts[p].axes[a], name) == 0)
                return true;
    return false;
}

static void put_axes(const pl_runs_model *model, pl_buffer *out)
{
    bool any = false;
    pl_buffer_text(out, ",\n\"axes\":[");
    for (size_t p = 0; p < model->part_count; p++)
        for (size_t a = 0; a < model->parts[p].axis_count; a++) {
            const char *name = model->parts[p].axes[a];
            if (is_axis_before(model, p, name))
                continue;
            pl_buffer_text(out, any ? "," : "");
            pl_quote_json(out, name);
            any = true;
        }
    pl_buffer_text(out, "]");
}

/* The names of the sweeps; "": runs without one. */
static void put_parts(const pl_runs_model *model, pl_buffer *out)
{
    pl_buffer_text(out, ",\n\"parts\":[");
    for (size_t p = 0; p < model->part_count; p++) {
        pl_buffer_text(out, p > 0 ? "," : "");
        pl_quote_json(out,
                      pl_experiment_name(&model->parts[p].records.list[0]));
    }
    pl_buffer_text(out, "]");
}

/* --- runs ------------------------------------------------------------- */

/* For all parts: a flag that only another sweep varied has a value here,
 * too. */
static void put_flags(const pl_runs_model *model, const pl_model_part *part,
                      size_t run, pl_buffer *out)
{
    bool any = false;
    pl_buffer_text(out, ",\"flags\":{");
    for (size_t p = 0; p < model->part_count; p++)
        for (size_t a = 0; a < model->parts[p].axis_count; a++) {
            const char *name = model->parts[p].axes[a];
            const char *value = pl_model_flag(part, run, name);
            if (value[0] == '\0' || is_axis_before(model, p, name))
                continue;
            put_key(out, &any, name);
            pl_quote_json(out, value);
        }
    pl_buffer_text(out, "}");
}

static void put_results(const pl_record *record, pl_buffer *out)
{
    size_t count;
    const pl_metric *metrics = pl_metrics(&count);
    bool any = false;
    pl_buffer_text(out, ",\"results\":{");
    for (size_t i = 0; i < count; i++) {
        double value = metrics[i].result
                           ? pl_metric_result(record, metrics[i].key)
                           : (double)NAN;
        if (!isfinite(value))
            continue;
        put_key(out, &any, metrics[i].key);
        put_number(out, value, 9);
    }
    pl_buffer_text(out, "}");
}

static void put_published(const pl_record *record, pl_buffer *out)
{
    const char *const *names = pl_compare_results();
    bool any = false;
    if (!pl_experiment_comparable(record))
        return;
    pl_buffer_text(out, ",\"published\":{");
    for (size_t i = 0; names[i] != NULL; i++) {
        double value = pl_experiment_published(record, names[i]);
        if (!isfinite(value))
            continue;
        put_key(out, &any, names[i]);
        put_number(out, value, 9);
    }
    pl_buffer_text(out, "}");
}

static double number_of(const pl_record *record, const char *arg)
{
    return strtod(pl_record_arg(record, arg), NULL);
}

/* For a run in progress, from its flags: with --steps the number of steps per
 * epoch is not known. */
static void expect_each(const pl_record *record, double *epochs,
                        double *examples)
{
    bool alone = number_of(record, "ps") > 0 &&
                 strcmp(pl_record_arg(record, "mode"), "sync") != 0;
    double workers = fmax(1, number_of(record, "workers"));
    if (number_of(record, "steps") > 0)
        return;
    *epochs = number_of(record, "epochs") / (double)record->run.end_step;
    *examples = number_of(record, "batch") * (alone ? 1 : workers);
}

/* The progress per step. */
static void put_each(const pl_record *record, pl_buffer *out)
{
    double steps = pl_record_number(record, "steps");
    double epochs = pl_record_number(record, "epochs") / steps;
    double examples = pl_record_number(record, "examples") / steps;
    if (!record->ended)
        expect_each(record, &epochs, &examples);
    if (!(epochs > 0) || !(examples > 0) || !isfinite(epochs + examples))
        return;
    pl_buffer_format(out, ",\"each\":{\"epoch\":%.9g,\"examples\":%.9g}",
                     epochs, examples);
}

/* The index of a run in its part, not counting repetitions. */
static size_t colour_of(const pl_model_part *part, size_t run)
{
    size_t colour = 0;
    for (size_t i = 0; i < part->like[run]; i++)
        colour += part->like[i] == i;
    return colour;
}

static void put_run(const pl_runs_model *model, size_t p, size_t run,
                    pl_buffer *out)
{
    const pl_model_part *part = &model->parts[p];
    const pl_records *records = &part->records;
    const pl_record *record = &records->list[run];
    char label[LABEL_BYTES];
    pl_model_label(model, part, run, label, sizeof label);
    pl_buffer_text(out, "{\"name\":");
    pl_quote_json(out, record->name);
    pl_buffer_text(out, ",\"label\":");
    pl_quote_json(out, label);
    pl_buffer_format(out,
                     ",\"part\":%zu,\"like\":%zu,\"colour\":%zu,\"ended\":%s,"
                     "\"model\":",
                     p, part->first + part->like[run], colour_of(part, run),
                     record->ended ? "true" : "false");
    pl_quote_json(out, record->run.model);
    put_flags(model, part, run, out);
    put_results(record, out);
    put_published(record, out);
    put_each(record, out);
    pl_buffer_text(out, "}");
}

static void put_runs(const pl_runs_model *model, pl_buffer *out)
{
    pl_buffer_text(out, ",\n\"runs\":[");
    for (size_t p = 0; p < model->part_count; p++)
        for (size_t i = 0; i < model->parts[p].records.count; i++) {
            pl_buffer_text(out, p + i > 0 ? ",\n" : "");
            put_run(model, p, i, out);
        }
    pl_buffer_text(out, "]");
}

/* --- series ----------------------------------------------------------- */

static size_t count_curves(const pl_runs_model *model)
{
    size_t count = 0;
    for (size_t i = 0; i < model->records->count; i++)
        for (size_t t = 0; t < model->runs[i].count; t++)
            count += model->runs[i].tasks[t].curves.count;
    return count;
}

static void put_column(pl_buffer *out, const char *key, const pl_curve *curve,
                       double begin)
{
    char text[PL_DECIMAL];
    pl_buffer_format(out, ",\"%s\":[", key);
    for (size_t i = 0; i < curve->count; i++) {
        const pl_point *point = &curve->points[i];
        double value = key[0] == 'x'   ? point->x
                       : key[0] == 'y' ? point->y
                                       : point->time - begin;
        if (i > 0)
            pl_buffer_put(out, ",", 1);
        if (!isfinite(value))
            pl_buffer_text(out, "null");
        else
            pl_buffer_put(out, text, pl_decimal_text(value, text));
    }
    pl_buffer_text(out, "]");
}

static void put_curve(pl_buffer *out, const pl_runs_model *model, size_t run,
                      const pl_model_task *task, const pl_curve *curve)
{
    pl_buffer_format(out, "{\"run\":%zu,\"task\":", run);
    pl_quote_json(out, task->name);
    pl_buffer_text(out, ",\"metric\":");
    pl_quote_json(out, curve->name);
    if (!task->host)
        put_column(out, "x", curve, 0);
    put_column(out, "t", curve, model->runs[run].begin);
    put_column(out, "y", curve, 0);
    pl_buffer_text(out, "}");
}

/* The curve itself keeps all points. */
static void put_thinned(pl_buffer *out, const pl_runs_model *model, size_t run,
                        const pl_model_task *task, const pl_curve *curve,
                        size_t most)
{
    pl_curve copy = *curve;
    copy.points = pl_mem_alloc(curve->count + 1, sizeof *copy.points);
    if (copy.points == NULL) {
        out->failed = true;
        return;
    }
    memcpy(copy.points, curve->points, curve->count * sizeof *copy.points);
    pl_curve_thin(&copy, most);
    put_curve(out, model, run, task, &copy);
    pl_mem_free(copy.points);
}

static void put_run_series(pl_buffer *out, const pl_runs_model *model,
                           size_t run, size_t most, bool *any)
{
    for (size_t t = 0; t < model->runs[run].count; t++) {
        const pl_model_task *task = &model->runs[run].tasks[t];
        for (size_t c = 0; c < task->curves.count; c++) {
            if (task->curves.list[c].count == 0)
                continue;
            pl_buffer_text(out, *any ? ",\n" : "");
            put_thinned(out, model, run, task, &task->curves.list[c], most);
            *any = true;
        }
    }
}

static void put_series(const pl_runs_model *model, pl_buffer *out)
{
    size_t curves = count_curves(model), most = POINTS_EACH;
    bool any = false;
    if (curves * most > POINTS_MOST)
        most = POINTS_MOST / curves;
    if (most < POINTS_LEAST)
        most = POINTS_LEAST;
    pl_buffer_text(out, ",\n\"series\":[");
    for (size_t i = 0; i < model->records->count; i++) {
        bool live = !model->records->list[i].ended;
        put_run_series(out, model, i,
                       live && most > POINTS_LIVE ? POINTS_LIVE : most, &any);
    }
    pl_buffer_text(out, "]");
}

/* --- events ----------------------------------------------------------- */

static void put_event(pl_buffer *out, size_t run, double begin,
                      const pl_run_event *event)
{
    const char *kind = pl_event_kind_names[event->kind];
    char text[LABEL_BYTES];
    snprintf(text, sizeof text, "%s%s%s%s%s", event->task,
             event->task[0] != '\0' ? ": " : "", kind,
             event->text[0] != '\0' ? ", " : "", event->text);
    pl_buffer_format(out, "{\"run\":%zu,\"t\":", run);
    put_number(out, event->time - begin, 6);
    if (event->step >= 0)
        pl_buffer_format(out, ",\"step\":%lld", (long long)event->step);
    pl_buffer_format(out, ",\"kind\":\"%s\",\"task\":", kind);
    pl_quote_json(out, event->task);
    pl_buffer_text(out, ",\"text\":");
    pl_quote_json(out, text);
    pl_buffer_text(out, "}");
}

static void put_events(const pl_runs_model *model, pl_buffer *out)
{
    bool any = false;
    pl_buffer_text(out, ",\n\"events\":[");
    for (size_t i = 0; i < model->records->count; i++) {
        const pl_model_run *run = &model->runs[i];
        for (size_t e = 0; e < run->events.count; e++) {
            pl_buffer_text(out, any ? ",\n" : "");
            put_event(out, i, run->begin, &run->events.list[e]);
            any = true;
        }
    }
    pl_buffer_text(out, "]");
}

void pl_model_json(const pl_runs_model *model, pl_buffer *out)
{
    put_metrics(out);
    put_axes(model, out);
    pl_buffer_format(out, ",\n\"apart\":%s", model->apart ? "true" : "false");
    put_parts(model, out);
    put_runs(model, out);
    put_series(model, out);
    put_events(model, out);
    pl_model_tests_json(model, out);
    pl_model_pairs_json(model, out);
}

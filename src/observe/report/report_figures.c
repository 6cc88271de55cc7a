/* report_figures.c - chooses the figures of one part by what its runs varied,
 * in the order in which a reader needs them, up to a limit. Each figure is a
 * row of a table below. */
#include "base/mem.h"
#include "observe/compare/compare.h"
#include "observe/model/metric.h"
#include "observe/report/report_priv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NAME_BYTES  256
#define TITLE_BYTES 256
#define LABEL_BYTES 128
#define LOG_FROM    20  /* times the smallest: the axis is logarithmic */
#define POINTS_MOST 300 /* per line for gnuplot */
#define LINES_MOST  40
#define BARS_MOST   60
#define AXES_MOST   3 /* flags that get separate figures */

typedef struct chooser {
    pl_report *report;
    const pl_model_part *part;
    size_t number; /* of the part */
    const char *prefix;
    size_t most, count;
    const char *axes[AXES_MOST]; /* numeric flags */
    size_t axis_count;
} chooser;

/* --- conditions ------------------------------------------------------- */

static bool any_result(const chooser *c, const char *key)
{
    for (size_t i = 0; i < c->part->records.count; i++)
        if (isfinite(pl_metric_result(&c->part->records.list[i], key)))
            return true;
    return false;
}

static bool to_target(const chooser *c)
{
    for (size_t i = 0; i < c->part->records.count; i++)
        if (strcmp(pl_record_stopped_by(&c->part->records.list[i]),
                   "stop_loss") == 0)
            return true;
    return false;
}

/* The most informative measure of quality of these runs; a loss at which all
 * stopped is not. */
static const char *quality(const chooser *c)
{
    static const char *const keys[] = { "test_accuracy", "test_auc",
                                        "test_rmse", "test_loss",
                                        "train_loss" };
    size_t count = sizeof keys / sizeof *keys;
    for (size_t i = 0; i < (to_target(c) ? 3 : count); i++)
        if (any_result(c, keys[i]))
            return keys[i];
    return NULL;
}

static bool over_network(const chooser *c)
{
    for (size_t i = 0; i < c->part->records.count; i++)
        if (pl_record_number(&c->part->records.list[i], "bytes_sent") > 0)
            return true;
    return false;
}

/* --- adding a figure -------------------------------------------------- */

/* Figures without points are not shown; the page checks whether one has
 * failed. */
static void take(chooser *c, pl_figure *figure)
{
    c->count += !pl_figure_is_empty(figure);
    pl_page_take_figure(c->report->page, figure);
}

/* "Test accuracy": a metric's label begins a title. */
static void title_of(const char *label, char *text, size_t room)
{
    snprintf(text, room, "%s", label);
    if (text[0] >= 'a' && text[0] <= 'z')
        text[0] = (char)(text[0] - 'a' + 'A');
}

/* --- results by flag -------------------------------------------------- */

typedef struct by_flag {
    const char *metric;
    const char *name;  /* prefix of the file name */
    const char *title; /* NULL: the metric's label */
    const char *y;     /* NULL: the metric's label with its unit */
    pl_report_derived derived;
    const char *flag; /* the only flag of this figure; NULL: any */
} by_flag;

static pl_status put_by_flag(chooser *c, const by_flag *row, const char *flag)
{
    char name[NAME_BYTES], begin[LABEL_BYTES], title[TITLE_BYTES];
    char label[LABEL_BYTES];
    double least, most;
    pl_figure *figure;
    if (c->count >= c->most || !any_result(c, row->metric) ||
        !pl_model_is_numeric(c->part, flag, &least, &most))
        return PL_OK;
    title_of(row->title != NULL ? row->title
                                : pl_metric_find(row->metric)->label,
             begin, sizeof begin);
    snprintf(title, sizeof title, "%s by %s", begin, flag);
    snprintf(name, sizeof name, "%s%s-by-%s", c->prefix, row->name, flag);
    pl_metric_label(row->metric, label, sizeof label);
    bool plain = row->derived == PL_REPORT_PLAIN;
    PL_TRY(pl_figure_new(
        &figure, &(pl_figure_opts) {
                     .name = name,
                     .title = title,
                     .x = flag,
                     .y = row->y != NULL ? row->y : label,
                     .log_x = plain && least > 0 && most >= LOG_FROM * least,
                     .marks = true,
                     .x_key = plain ? flag : NULL,
                     .y_key = row->metric,
                     .part = c->number,
                 }));
    pl_status status =
        pl_report_lines(c->part, flag, row->metric, row->derived, figure);
    /* Single points without any line do not show the effect of a flag: the runs
     * differ in more than that flag. */
    if (status == PL_OK)
        status = pl_figure_status(figure);
    if (status != PL_OK || pl_figure_longest(figure) < 2) {
        pl_figure_free(figure);
        return status;
    }
    take(c, figure);
    return PL_OK;
}

/* Figures other than quality and time are for the first flag only. */
static pl_status put_results(chooser *c, const char *flag, bool first)
{
    const char *best = quality(c);
    bool target = to_target(c);
    const by_flag rows[] = {
        { .metric = best,
          .name = best != NULL ? best + strcspn(best, "_") + 1 : "" },
        { .metric = "seconds",
          .name = "time",
          .title = target ? "Time to target" : NULL },
        { .metric = target ? "steps" : NULL,
          .name = "steps",
          .title = "Steps to target" },
        { .metric = target && first ? "epochs" : NULL,
          .name = "epochs",
          .title = "Epochs to target" },
        { .metric = first ? "examples_per_s" : NULL, .name = "throughput" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].metric != NULL)
            PL_TRY(put_by_flag(c, &rows[i], flag));
    return PL_OK;
}

/* Effects of more workers, if their number was varied. */
static const by_flag scaling[] = {
    { .metric = "examples_per_s",
      .name = "speed-up",
      .title = "Speed-up",
      .y = "examples/s, times those of the fewest workers",
      .derived = PL_REPORT_SPEEDUP,
      .flag = "workers" },
    { .metric = "examples_per_s",
      .name = "efficiency",
      .title = "Efficiency",
      .y = "of the ideal [%]",
      .derived = PL_REPORT_EFFICIENCY,
      .flag = "workers" },
};

static pl_status put_scaling(chooser *c)
{
    for (size_t a = 0; a < c->axis_count; a++)
        for (size_t i = 0; i < sizeof scaling / sizeof *scaling; i++)
            if (strcmp(c->axes[a], scaling[i].flag) == 0)
                PL_TRY(put_by_flag(c, &scaling[i], c->axes[a]));
    return PL_OK;
}

/* The resources of the tasks; by role if there are servers. */
static const by_flag usage[] = {
    { .metric = "total_rss_mb", .name = "memory" },
    { .metric = "cpu_percent", .name = "cpu" },
    { .metric = "bytes_sent",
      .name = "sent",
      .title = "Bytes sent by all tasks" },
};
static const by_flag role_usage[] = {
    { .metric = "worker_rss_mb", .name = "worker-memory" },
    { .metric = "ps_rss_mb", .name = "ps-memory" },
    { .metric = "ps_cpu_percent", .name = "ps-cpu" },
    { .metric = "ps_bytes_sent",
      .name = "ps-sent",
      .title = "Bytes sent by a server" },
};

#define USAGES      (sizeof usage / sizeof *usage)
#define ROLE_USAGES (sizeof role_usage / sizeof *role_usage)

static pl_status put_role_usage(chooser *c)
{
    for (size_t i = 0; i < ROLE_USAGES && c->axis_count > 0; i++)
        if (any_result(c, "ps_rss_mb"))
            PL_TRY(put_by_flag(c, &role_usage[i], c->axes[0]));
    return PL_OK;
}

/* --- curves ----------------------------------------------------------- */

typedef struct curve_row {
    const char *metric, *name, *x;
    bool alone; /* only in the report of a single run, with all of its tasks */
} curve_row;

static const curve_row curve_rows[] = {
    { "loss", "curve-loss", "step", false },
    { "test_accuracy", "curve-test-accuracy", "step", false },
    { "test_auc", "curve-test-auc", "step", false },
    { "test_precision", "curve-test-precision", "step", false },
    { "test_rmse", "curve-test-rmse", "step", false },
    { "test_loss", "curve-test-loss", "step", false },
    { "test_r2", "curve-test-r2", "step", true },
    { "accuracy", "curve-accuracy", "step", true },
    { "examples_per_s", "curve-throughput", "step", true },
    { "waiting_share", "curve-waiting", "step", true },
    { "updates_per_s", "curve-updates", "step", true },
    { "staleness", "curve-staleness", "step", true },
    { "gradient_norm", "curve-gradient-norm", "step", true },
    { "job_cpu", "curve-cpu", "time [s]", false },
    { "job_rss_mb", "curve-memory", "time [s]", false },
    { "job_sent_bytes_per_s", "curve-sent", "time [s]", false },
};

static void add_curve(pl_figure *figure, const char *name,
                      const pl_curve *curve, double scale)
{
    pl_curve copy = *curve;
    pl_status status = PL_NEW(copy.points, curve->count);
    if (status != PL_OK) {
        pl_figure_fail(figure);
        return;
    }
    memcpy(copy.points, curve->points, curve->count * sizeof *copy.points);
    pl_curve_thin(&copy, POINTS_MOST);
    pl_figure_add_series(figure, name, PL_FIGURE_MEASURED);
    pl_figure_add_curve(figure, &copy, scale);
    pl_mem_free(copy.points);
}

static void add_tasks(pl_figure *figure, const pl_model_run *run,
                      const char *key, double scale)
{
    for (size_t t = 0; t < run->count && t < LINES_MOST; t++) {
        const pl_curve *curve = pl_curves_find(&run->tasks[t].curves, key);
        if (curve != NULL && curve->count > 0)
            add_curve(figure, run->tasks[t].name, curve, scale);
    }
}

static void add_runs(const chooser *c, pl_figure *figure, const char *key,
                     double scale)
{
    for (size_t i = 0; i < c->part->records.count && i < LINES_MOST; i++) {
        const pl_model_run *run = &c->report->model.runs[c->part->first + i];
        const pl_curve *curve = pl_model_curve(run, key);
        if (curve != NULL)
            add_curve(figure, c->part->records.list[i].name, curve, scale);
    }
}

static pl_status put_curve(chooser *c, const curve_row *row)
{
    char name[NAME_BYTES], title[TITLE_BYTES], label[LABEL_BYTES];
    const pl_metric *metric = pl_metric_find(row->metric);
    bool alone = c->part->records.count == 1;
    pl_figure *figure;
    if (c->count >= c->most || (row->alone && !alone) ||
        !pl_model_has_curve(&c->report->model, c->part, row->metric))
        return PL_OK;
    title_of(metric->label, title, sizeof title);
    snprintf(name, sizeof name, "%s%s", c->prefix, row->name);
    pl_metric_label(row->metric, label, sizeof label);
    PL_TRY(
        pl_figure_new(&figure, &(pl_figure_opts) {
                                   .name = name,
                                   .title = title,
                                   .x = row->x,
                                   .y = label,
                                   .kind = PL_FIGURE_CURVES,
                                   .x_key = row->x[0] == 's' ? "step" : "time",
                                   .y_key = row->metric,
                                   .part = c->number,
                                   .tasks = alone,
                               }));
    if (alone)
        add_tasks(figure, &c->report->model.runs[c->part->first], row->metric,
                  metric->scale);
    else
        add_runs(c, figure, row->metric, metric->scale);
    take(c, figure);
    return PL_OK;
}

/* A test result besides the most informative one; for several runs only
 * precision, which binary models have: most of their examples are of one
 * class. */
static bool is_second(const chooser *c, const char *metric)
{
    const char *best = quality(c);
    return strncmp(metric, "test_", 5) == 0 && best != NULL &&
           strcmp(metric, best) != 0 && strcmp(metric, "test_precision") != 0 &&
           c->part->records.count > 1;
}

/* Learning curves come before those of resources. */
static pl_status put_curves(chooser *c, bool timed)
{
    for (size_t i = 0; i < sizeof curve_rows / sizeof *curve_rows; i++) {
        const curve_row *row = &curve_rows[i];
        if ((row->x[0] == 't') == timed && !is_second(c, row->metric))
            PL_TRY(put_curve(c, row));
    }
    return PL_OK;
}

/* --- bars ------------------------------------------------------------- */

typedef struct bar_row {
    const char *name, *title, *y;
    pl_figure_kind kind;
    const char *metrics[5]; /* NULL-terminated */
} bar_row;

static const bar_row shares = { "time-shares",
                                "Where the workers' time went",
                                "share of time [%]",
                                PL_FIGURE_STACKED,
                                { "computing_share", "input_share",
                                  "sending_share", "waiting_share" } };

/* One bar per run; repetitions are represented by the first. */
static pl_status put_bars(chooser *c, const bar_row *row)
{
    const pl_records *records = &c->part->records;
    char name[NAME_BYTES], label[LABEL_BYTES * 2];
    pl_figure *figure;
    snprintf(name, sizeof name, "%s%s", c->prefix, row->name);
    if (c->count >= c->most || !any_result(c, row->metrics[0]))
        return PL_OK;
    PL_TRY(pl_figure_new(&figure, &(pl_figure_opts) {
                                      .name = name,
                                      .title = row->title,
                                      .x = "run",
                                      .y = row->y,
                                      .kind = row->kind,
                                      .part = c->number,
                                  }));
    for (size_t m = 0; m < 5 && row->metrics[m] != NULL; m++) {
        const pl_metric *metric = pl_metric_find(row->metrics[m]);
        size_t place = 0;
        pl_figure_add_series(figure, metric->label, PL_FIGURE_MEASURED);
        for (size_t i = 0; i < records->count && place < BARS_MOST; i++) {
            if (c->part->like[i] != i)
                continue;
            if (m == 0) {
                pl_model_label(&c->report->model, c->part, i, label,
                               sizeof label);
                pl_figure_add_category(figure, label, c->part->first + i);
            }
            pl_figure_add_point(
                figure, (double)place++,
                metric->scale *
                    pl_metric_result(&records->list[i], metric->key),
                0);
        }
    }
    take(c, figure);
    return PL_OK;
}

static pl_status put_metric_bars(chooser *c, const char *key, const char *name,
                                 const char *title)
{
    char file[NAME_BYTES], begin[TITLE_BYTES], label[LABEL_BYTES];
    title_of(title != NULL ? title : pl_metric_find(key)->label, begin,
             sizeof begin);
    pl_metric_label(key, label, sizeof label);
    snprintf(file, sizeof file, "%s-by-run", name);
    return put_bars(c,
                    &(bar_row) { file, begin, label, PL_FIGURE_BARS, { key } });
}

/* The runs side by side. */
static pl_status put_runs(chooser *c)
{
    const char *const keys[] = { quality(c), "seconds", "examples_per_s" };
    for (size_t i = 0; i < 3; i++)
        if (keys[i] != NULL)
            PL_TRY(put_metric_bars(c, keys[i], keys[i], NULL));
    return PL_OK;
}

/* By the first numeric flag; side by side if there is none. */
static pl_status put_usage(chooser *c)
{
    for (size_t i = 0; i < USAGES; i++) {
        const by_flag *row = &usage[i];
        if (strcmp(row->metric, "bytes_sent") == 0 && !over_network(c))
            continue;
        if (c->axis_count > 0)
            PL_TRY(put_by_flag(c, row, c->axes[0]));
        else if (c->part->records.count > 1)
            PL_TRY(put_metric_bars(c, row->metric, row->name, row->title));
    }
    return PL_OK;
}

/* --- all -------------------------------------------------------------- */

static void find_axes(chooser *c)
{
    double least, most;
    for (size_t a = 0; a < c->part->axis_count; a++)
        if (c->axis_count < AXES_MOST &&
            pl_model_is_numeric(c->part, c->part->axes[a], &least, &most) &&
            most > least)
            c->axes[c->axis_count++] = c->part->axes[a];
}

static pl_status put_overlay(chooser *c)
{
    PL_TRY(put_curves(c, false));
    PL_TRY(put_runs(c));
    PL_TRY(put_bars(c, &shares));
    return put_curves(c, true);
}

static pl_status put_all(chooser *c)
{
    for (size_t a = 0; a < c->axis_count; a++)
        PL_TRY(put_results(c, c->axes[a], a < 1));
    PL_TRY(put_scaling(c));
    if (c->count == 0 && c->part->records.count > 1)
        PL_TRY(put_runs(c));
    PL_TRY(put_curves(c, false));
    PL_TRY(put_bars(c, &shares));
    PL_TRY(put_usage(c));
    PL_TRY(put_curves(c, true));
    return put_role_usage(c);
}

pl_status pl_report_figures(pl_report *report, size_t part, const char *prefix,
                            size_t most)
{
    chooser c = { .report = report,
                  .part = &report->model.parts[part],
                  .number = part,
                  .prefix = prefix,
                  .most = most };
    find_axes(&c);
    pl_page_begin_figures(report->page);
    PL_TRY(report->model.apart ? put_overlay(&c) : put_all(&c));
    pl_page_end_figures(report->page);
    return PL_OK;
}

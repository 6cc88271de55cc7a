/* report_lines.c - groups the runs of a part into the lines of a figure over
 * one flag. Two runs share a line if the other flags are the same. A flag that
 * no run with this x has is ignored: one worker has no --mode, so it is the
 * first point of the lines of every mode. */
#include "base/mem.h"
#include "observe/compare/compare.h"
#include "observe/model/metric.h"
#include "observe/report/report_priv.h"
#include "observe/runs/experiment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MOST  40 /* per figure: more are indistinguishable */
#define LABEL_BYTES 256

typedef struct spot {
    double x, y, spread;
    size_t run;
} spot;

typedef struct lines {
    const pl_model_part *part;
    const char *flag;
    const pl_metric *metric;
    pl_report_derived derived;
    pl_figure *figure;
    spot *spots;   /* room for one per run */
    bool *lacking; /* [runs][axes]: no run with this x has the flag */
    double least, most;
} lines;

static bool same(const lines *l, size_t a, size_t b, size_t axis)
{
    const char **values = l->part->values;
    size_t width = l->part->axis_count;
    return strcmp(values[a * width + axis], values[b * width + axis]) == 0;
}

static bool is_x(const lines *l, size_t axis)
{
    return strcmp(l->part->axes[axis], l->flag) == 0;
}

static bool lacks(const lines *l, size_t run, size_t axis)
{
    return l->lacking[run * l->part->axis_count + axis];
}

static bool find_lacking(const lines *l, size_t run, size_t axis)
{
    const char *x = pl_model_flag(l->part, run, l->flag);
    if (is_x(l, axis) ||
        l->part->values[run * l->part->axis_count + axis][0] != '\0')
        return false;
    for (size_t i = 0; i < l->part->records.count; i++)
        if (strcmp(pl_model_flag(l->part, i, l->flag), x) == 0 &&
            !same(l, i, run, axis))
            return false;
    return true;
}

static size_t count_lacking(const lines *l, size_t run)
{
    size_t count = 0;
    for (size_t a = 0; a < l->part->axis_count; a++)
        count += lacks(l, run, a);
    return count;
}

static bool belongs(const lines *l, size_t run, size_t first)
{
    for (size_t a = 0; a < l->part->axis_count; a++)
        if (!is_x(l, a) && !same(l, run, first, a) && !lacks(l, run, a) &&
            !lacks(l, first, a))
            return false;
    return true;
}

/* Does the run represent a line?  No earlier run does, and no run of that line
 * has more of the flags. */
static bool begins_line(const lines *l, size_t run)
{
    size_t lacking = count_lacking(l, run);
    for (size_t i = 0; i < l->part->records.count; i++) {
        size_t other = count_lacking(l, i);
        if (belongs(l, i, run) &&
            (other < lacking || (other == lacking && i < run)))
            return false;
    }
    return true;
}

static int by_x(const void *a, const void *b)
{
    double left = ((const spot *)a)->x, right = ((const spot *)b)->x;
    return (left > right) - (left < right);
}

static double published(const lines *l, size_t run)
{
    const pl_record *record = &l->part->records.list[run];
    /* Other data or lengths would be misleading. */
    return pl_experiment_comparable(record)
               ? pl_experiment_published(record, l->metric->key)
               : (double)NAN;
}

/* Measured or published values of the line of run `first`. */
static size_t collect(const lines *l, size_t first, bool foreign)
{
    const pl_records *records = &l->part->records;
    size_t count = 0;
    for (size_t i = 0; i < records->count; i++) {
        const char *text = pl_model_flag(l->part, i, l->flag);
        spot *s = &l->spots[count];
        if (text[0] == '\0' || l->part->like[i] != i || !belongs(l, i, first))
            continue;
        *s = (spot) { .x = strtod(text, NULL), .run = i };
        s->y = foreign ? published(l, i)
                       : pl_model_mean(l->part, i, l->metric->key, &s->spread);
        count += isfinite(s->y) ? 1 : 0;
    }
    qsort(l->spots, count, sizeof *l->spots, by_x);
    return count;
}

/* Relative to the first point of the line. */
static void derive(const lines *l, size_t count)
{
    spot base = l->spots[0];
    for (size_t i = 0; i < count && l->derived != PL_REPORT_PLAIN; i++) {
        spot *s = &l->spots[i];
        double ideal = s->x / base.x;
        double unit =
            l->derived == PL_REPORT_SPEEDUP ? base.y : base.y * ideal / 100;
        s->y /= unit;
        s->spread /= unit;
    }
}

static void add_runs(const lines *l, size_t run)
{
    for (size_t i = run; i < l->part->records.count; i++)
        if (l->part->like[i] == run)
            pl_figure_add_run(l->figure, l->part->first + i);
}

static void add_line(lines *l, size_t first, bool foreign)
{
    char label[LABEL_BYTES], shown[LABEL_BYTES + 16];
    double scale = l->derived == PL_REPORT_PLAIN ? l->metric->scale : 1;
    size_t count = collect(l, first, foreign);
    if (count == 0 || (l->derived != PL_REPORT_PLAIN && count < 2))
        return;
    derive(l, count);
    pl_compare_label(&l->part->records, first, l->part->axes,
                     l->part->axis_count, l->flag, label, sizeof label);
    snprintf(shown, sizeof shown, "%s%s", foreign ? "published: " : "", label);
    pl_figure_add_series(l->figure, shown,
                         foreign ? PL_FIGURE_PUBLISHED : PL_FIGURE_MEASURED);
    for (size_t i = 0; i < count; i++) {
        const spot *s = &l->spots[i];
        pl_figure_add_point(l->figure, s->x, scale * s->y, scale * s->spread);
        add_runs(l, s->run);
        l->least = fmin(l->least, s->x);
        l->most = fmax(l->most, s->x);
    }
}

/* The ideal line, if no task waited for another. */
static void add_ideal(const lines *l)
{
    if (!(l->most > l->least))
        return;
    bool speed = l->derived == PL_REPORT_SPEEDUP;
    pl_figure_add_series(l->figure, "ideal", PL_FIGURE_IDEAL);
    pl_figure_add_point(l->figure, l->least, speed ? 1 : 100, 0);
    pl_figure_add_point(l->figure, l->most, speed ? l->most / l->least : 100,
                        0);
}

pl_status pl_report_lines(const pl_model_part *part, const char *flag,
                          const char *metric, pl_report_derived derived,
                          pl_figure *figure)
{
    lines l = { .part = part,
                .flag = flag,
                .metric = pl_metric_find(metric),
                .derived = derived,
                .figure = figure,
                .least = INFINITY,
                .most = -INFINITY };
    size_t runs = part->records.count, count = 0;
    pl_status status = PL_NEW(l.spots, runs + 1);
    if (status == PL_OK)
        status = PL_NEW(l.lacking, runs * part->axis_count + 1);
    for (size_t i = 0; i < runs && status == PL_OK; i++)
        for (size_t a = 0; a < part->axis_count; a++)
            l.lacking[i * part->axis_count + a] = find_lacking(&l, i, a);
    for (size_t i = 0; i < runs && status == PL_OK && count < LINES_MOST; i++)
        if (begins_line(&l, i)) {
            add_line(&l, i, false);
            if (derived == PL_REPORT_PLAIN)
                add_line(&l, i, true);
            count++;
        }
    if (derived != PL_REPORT_PLAIN && status == PL_OK)
        add_ideal(&l);
    pl_mem_free(l.spots);
    pl_mem_free(l.lacking);
    return status;
}

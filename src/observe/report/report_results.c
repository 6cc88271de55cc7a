/* Results, and how they go with what was varied: for each flag with numbers a
 * figure of accuracy, time and speed, one line for each combination of the
 * other flags, and one for what was published. Runs of several sweeps have a
 * section for each. */
#include "base/mem.h"
#include "observe/findings/findings.h"
#include "observe/report/report_priv.h"
#include "observe/runs/compare.h"
#include "observe/runs/experiment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGS_MOST   32
#define LINES_MOST  40 /* of one figure: more cannot be told apart */
#define LABEL_BYTES 256
#define NAME_BYTES  256
#define TITLE_BYTES 512
#define LOG_FROM    20 /* times the smallest: the axis is logarithmic */

static const struct metric {
    const char *key, *name, *title, *label;
    double scale;
} metrics[] = {
    { "test_accuracy", "accuracy", "Test accuracy", "test accuracy [%]", 100 },
    { "test_loss", "loss", "Test loss", "test loss", 1 },
    { "test_auc", "auc", "Test AUC", "test AUC", 1 },
    { "seconds", "time", "Training time", "time [s]", 1 },
    { "steps", "steps", "Steps", "steps", 1 },
    { "epochs", "epochs", "Passes over the data", "epochs", 1 },
    { "examples_per_s", "speed", "Speed", "examples/s", 1 },
};

#define METRICS (sizeof metrics / sizeof *metrics)

typedef struct axes {
    const pl_records *records;
    const char *names[ARGS_MOST];
    size_t count;
    const char *prefix; /* of the figures' names: tells sweeps apart */
} axes;

static bool number_of(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return text[0] != '\0' && *end == '\0' && isfinite(*out);
}

/* All runs have a number there. */
static bool is_numeric(const axes *a, const char *name, double *least,
                       double *most)
{
    *least = INFINITY;
    *most = -INFINITY;
    for (size_t i = 0; i < a->records->count; i++) {
        double value;
        if (!number_of(pl_record_arg(&a->records->list[i], name), &value))
            return false;
        *least = fmin(*least, value);
        *most = fmax(*most, value);
    }
    return true;
}

/* The run without what is on the x axis. */
static void describe(const axes *a, size_t run, const char *without,
                     char text[LABEL_BYTES])
{
    pl_compare_label(a->records, run, a->names, a->count, without, text,
                     LABEL_BYTES);
}

typedef struct spot {
    double x, y, spread;
} spot;

static int by_x(const void *a, const void *b)
{
    double left = ((const spot *)a)->x, right = ((const spot *)b)->x;
    return (left > right) - (left < right);
}

/* What was measured, or published, of run `run`. */
static void find_spot(const axes *a, size_t run, const struct metric *metric,
                      bool published, spot *s)
{
    if (!published) {
        s->y = pl_compare_mean(a->records, run, metric->key, &s->spread);
        return;
    }
    s->y = pl_experiment_published(&a->records->list[run], metric->key);
    s->spread = 0;
}

/* All runs whose other flags are those of run `first`. */
static void add_line(pl_figure *figure, const axes *a, size_t first,
                     const char *axis, const struct metric *metric,
                     bool published, spot *spots)
{
    char label[LABEL_BYTES], other[LABEL_BYTES], shown[LABEL_BYTES + 16];
    size_t count = 0;
    describe(a, first, axis, label);
    for (size_t i = first; i < a->records->count; i++) {
        spot *s = &spots[count];
        describe(a, i, axis, other);
        if (strcmp(label, other) != 0 ||
            pl_records_first_like(a->records, i) != i ||
            !number_of(pl_record_arg(&a->records->list[i], axis), &s->x))
            continue;
        find_spot(a, i, metric, published, s);
        count += !published || !isnan(s->y);
    }
    if (count == 0)
        return;
    qsort(spots, count, sizeof *spots, by_x);
    snprintf(shown, sizeof shown, "%s%s", published ? "published: " : "",
             label);
    pl_figure_add_series(figure, shown);
    for (size_t i = 0; i < count; i++)
        pl_figure_add_point(figure, spots[i].x, metric->scale * spots[i].y,
                            metric->scale * spots[i].spread);
}

/* No run before it belongs to the same line. */
static bool begins_line(const axes *a, size_t run, const char *axis)
{
    char label[LABEL_BYTES], other[LABEL_BYTES];
    describe(a, run, axis, label);
    for (size_t i = 0; i < run; i++) {
        describe(a, i, axis, other);
        if (strcmp(label, other) == 0)
            return false;
    }
    return true;
}

static pl_status add_lines(pl_report *report, const axes *a, const char *axis,
                           const struct metric *metric, bool log_x)
{
    char name[NAME_BYTES], title[128];
    pl_figure *figure;
    spot *spots;
    size_t lines = 0;
    snprintf(name, sizeof name, "%s%s-by-%s", a->prefix, metric->name, axis);
    snprintf(title, sizeof title, "%s by %s", metric->title, axis);
    PL_TRY(PL_NEW(spots, a->records->count));
    pl_status status = pl_figure_new(&figure, &(pl_figure_opts) {
                                                  .name = name,
                                                  .title = title,
                                                  .x = axis,
                                                  .y = metric->label,
                                                  .log_x = log_x,
                                                  .marks = true,
                                              });
    for (size_t i = 0; status == PL_OK && i < a->records->count; i++)
        if (lines < LINES_MOST && begins_line(a, i, axis)) {
            add_line(figure, a, i, axis, metric, false, spots);
            /* Of other data or lengths it would only mislead. */
            if (pl_experiment_comparable(&a->records->list[i]))
                add_line(figure, a, i, axis, metric, true, spots);
            lines++;
        }
    pl_mem_free(spots);
    if (status == PL_OK)
        pl_page_take_figure(report->page, figure);
    return status;
}

/* No flag with numbers was varied: the runs beside each other. */
static pl_status add_bars(pl_report *report, const axes *a,
                          const struct metric *metric)
{
    const pl_records *records = a->records;
    char name[NAME_BYTES], title[128];
    pl_figure *figure;
    size_t place = 0;
    snprintf(name, sizeof name, "%s%s-by-run", a->prefix, metric->name);
    snprintf(title, sizeof title, "%s of each run", metric->title);
    PL_TRY(pl_figure_new(&figure, &(pl_figure_opts) {
                                      .name = name,
                                      .title = title,
                                      .x = "run",
                                      .y = metric->label,
                                      .kind = PL_FIGURE_BARS,
                                  }));
    pl_figure_add_series(figure, metric->label);
    for (size_t i = 0; i < records->count; i++) {
        double spread;
        if (pl_records_first_like(records, i) != i)
            continue;
        pl_figure_add_category(figure, records->list[i].name);
        pl_figure_add_point(
            figure, (double)place++,
            metric->scale * pl_compare_mean(records, i, metric->key, &spread),
            0);
    }
    pl_page_take_figure(report->page, figure);
    return PL_OK;
}

/* The length is worth a figure where nobody has set it, but the loss decided;
 * then that is the same for all. */
static bool is_wanted(const axes *a, const struct metric *metric)
{
    bool length =
        strcmp(metric->key, "steps") == 0 || strcmp(metric->key, "epochs") == 0;
    bool there = false, by_loss = false;
    for (size_t i = 0; i < a->records->count; i++) {
        const pl_record *record = &a->records->list[i];
        there = there || !isnan(pl_record_number(record, metric->key));
        by_loss =
            by_loss || strcmp(pl_record_stopped_by(record), "stop_loss") == 0;
    }
    if (length)
        return there && by_loss;
    return there && !(by_loss && strcmp(metric->key, "test_loss") == 0);
}

static pl_status put_figures(pl_report *report, const pl_records *records,
                             const char *prefix)
{
    axes a = { .records = records, .prefix = prefix };
    bool any = false;
    a.count = pl_compare_args(a.records, a.names, ARGS_MOST);
    for (size_t i = 0; i < a.count; i++) {
        double least, most;
        if (!is_numeric(&a, a.names[i], &least, &most) ||
            pl_compare_follows(a.records, a.names, a.count, a.names[i]))
            continue;
        any = true;
        for (size_t m = 0; m < METRICS; m++)
            if (is_wanted(&a, &metrics[m]))
                PL_TRY(add_lines(report, &a, a.names[i], &metrics[m],
                                 least > 0 && most >= LOG_FROM * least));
    }
    for (size_t m = 0; m < METRICS && !any && a.records->count > 1; m++)
        if (is_wanted(&a, &metrics[m]))
            PL_TRY(add_bars(report, &a, &metrics[m]));
    return PL_OK;
}

/* Sentences, a line each, as paragraphs. */
static void put_sentences(pl_report *report, pl_buffer *lines)
{
    char *text = lines->data;
    for (char *end; text != NULL && (end = strchr(text, '\n')) != NULL;
         text = end + 1) {
        *end = '\0';
        pl_page_text(report->page, text);
    }
}

static pl_status put_findings(pl_report *report, const pl_records *part)
{
    pl_buffer lines = { 0 };
    pl_status status = pl_findings(part, &lines);
    if (status == PL_OK)
        put_sentences(report, &lines);
    pl_buffer_close(&lines);
    return status;
}

static pl_status put_notes(pl_report *report, const pl_records *part)
{
    pl_buffer lines = { 0 };
    pl_compare_notes(part, &lines);
    pl_status status = pl_buffer_status(&lines);
    if (status == PL_OK)
        put_sentences(report, &lines);
    pl_buffer_close(&lines);
    return status;
}

/* The runs of one sweep; all that there are, when `alone`. */
static pl_status put_part(pl_report *report, const pl_records *part, bool alone)
{
    char title[TITLE_BYTES], name[NAME_BYTES], prefix[NAME_BYTES / 2] = "";
    pl_table *table;
    const pl_experiment *e = part->list[0].experiment;
    bool plain = e == NULL || (alone && e->about.question == NULL);
    pl_experiment_title(&part->list[0], title, sizeof title);
    pl_page_heading(report->page, plain ? "Results" : title);
    PL_TRY(put_findings(report, part));
    PL_TRY(pl_compare(&table, part, pl_compare_repeats(part)));
    if (!alone) {
        const char *sweep = pl_experiment_name(&part->list[0]);
        snprintf(prefix, sizeof prefix, "%s-", sweep[0] ? sweep : "others");
        snprintf(name, sizeof name, "%sruns", prefix);
        pl_status status = pl_table_rename(table, name, "Runs");
        if (status != PL_OK) {
            pl_table_free(table);
            return status;
        }
    }
    pl_page_take_table(report->page, table);
    PL_TRY(put_notes(report, part));
    return put_figures(report, part, prefix);
}

pl_status pl_report_results(pl_report *report)
{
    pl_records part;
    for (size_t first = 0, end; first < report->records->count; first = end) {
        end = pl_experiment_part(report->records, first, &part);
        PL_TRY(put_part(report, &part, part.count == report->records->count));
    }
    return PL_OK;
}

/* figure.h - the data of a chart; drawn by the page (figures.js) or by gnuplot.
 *
 * The x axis of lines has numbers, that of bars names.  Curves are lines that
 * the page takes from the model (observe/model/model.h); their points are for
 * gnuplot only.  If memory runs out, that is remembered; see pl_figure_status.
 *
 * Threads: one at a time. */
#ifndef PL_OBSERVE_REPORT_FIGURE_FIGURE_H
#define PL_OBSERVE_REPORT_FIGURE_FIGURE_H

#include "base/buffer.h"
#include "observe/runs/curve.h"

typedef enum pl_figure_kind {
    PL_FIGURE_LINES,
    PL_FIGURE_BARS,
    PL_FIGURE_STACKED, /* bars, stacked */
    PL_FIGURE_CURVES,
} pl_figure_kind;

typedef struct pl_figure_opts {
    const char *name;  /* required: of its file, "accuracy-by-batch"; converted
                          to a valid one by pl_quote_file_name */
    const char *title; /* required */
    const char *x;     /* required: labels with units, "batch size" */
    const char *y;     /* required */
    pl_figure_kind kind;
    bool log_x, log_y; /* lines */
    bool marks;        /* lines: mark each point */
    /* Initial flag and metric when the reader explores the figure; NULL: it
     * cannot be explored.  Curves: y_key is required. */
    const char *x_key, *y_key;
    size_t part; /* of the model */
    bool tasks;  /* curves: one per task, not per run */
} pl_figure_opts;

typedef struct pl_figure pl_figure;

pl_status pl_figure_new(pl_figure **out,
                        const pl_figure_opts *opts) PL_MUST_CHECK;
void pl_figure_free(pl_figure *figure); /* NULL is fine */
pl_status pl_figure_status(const pl_figure *figure) PL_MUST_CHECK;
/* Mark the figure as failed: part of it could not be made. */
void pl_figure_fail(pl_figure *figure);
const char *pl_figure_name(const pl_figure *figure);
const char *pl_figure_title(const pl_figure *figure);
bool pl_figure_is_empty(const pl_figure *figure); /* nothing to draw */
/* Points of the longest series; 0: no series. */
size_t pl_figure_longest(const pl_figure *figure);

/* Bars: the next category on the x axis, which belongs to a run of the
 * model. */
void pl_figure_add_category(pl_figure *figure, const char *name, size_t run);

typedef enum pl_figure_style {
    PL_FIGURE_MEASURED,
    PL_FIGURE_PUBLISHED,
    PL_FIGURE_IDEAL,
} pl_figure_style;

void pl_figure_add_series(pl_figure *figure, const char *name,
                          pl_figure_style style);
/* A point of the last series; bars: x is the number of the category.  `spread`
 * is 0 if there is none.  Values that are not finite are skipped. */
void pl_figure_add_point(pl_figure *figure, double x, double y, double spread);
/* The last point also belongs to this run of the model. */
void pl_figure_add_run(pl_figure *figure, size_t run);
void pl_figure_add_curve(pl_figure *figure, const pl_curve *curve,
                         double scale);

/* Append the figure as a JSON object for the page's script. */
void pl_figure_json(const pl_figure *figure, pl_buffer *out);
/* Append commands for gnuplot that write <name>.svg. */
void pl_figure_gnuplot(const pl_figure *figure, pl_buffer *out);

#endif

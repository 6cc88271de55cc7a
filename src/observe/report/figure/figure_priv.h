/* figure_priv.h - the parts of a figure, for the files that draw it. */
#ifndef PL_OBSERVE_REPORT_FIGURE_FIGURE_PRIV_H
#define PL_OBSERVE_REPORT_FIGURE_FIGURE_PRIV_H

#include "observe/report/figure/figure.h"

typedef struct pl_series_point {
    double x, y, spread;
    size_t run, run_count; /* its runs: index of the first in pl_figure.runs,
                              and their number */
} pl_series_point;

typedef struct pl_figure_series {
    char *name;
    pl_figure_style style;
    pl_series_point *points;
    size_t count, room;
} pl_figure_series;

typedef struct pl_figure_category {
    char *name;
    size_t run;
} pl_figure_category;

struct pl_figure {
    char *name, *title, *x, *y;
    char *x_key, *y_key; /* NULL: none */
    pl_figure_kind kind;
    bool log_x, log_y, marks, tasks;
    size_t part;
    pl_figure_category *categories;
    size_t category_count, category_room;
    pl_figure_series *series;
    size_t series_count, series_room;
    size_t *runs; /* of all points, consecutive */
    size_t run_count, run_room;
    bool failed;
};

#endif

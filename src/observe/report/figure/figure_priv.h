/* figure_priv.h - the parts of a figure, for the files that draw it. */
#ifndef PL_OBSERVE_REPORT_FIGURE_FIGURE_PRIV_H
#define PL_OBSERVE_REPORT_FIGURE_FIGURE_PRIV_H

#include "observe/report/figure/figure.h"

typedef struct pl_series_point {
    double x, y, spread;
} pl_series_point;

typedef struct pl_figure_series {
    char *name;
    pl_series_point *points;
    size_t count, room;
} pl_figure_series;

struct pl_figure {
    char *name, *title, *x, *y;
    pl_figure_kind kind;
    bool log_x, marks;
    char **categories;
    size_t category_count, category_room;
    pl_figure_series *series;
    size_t series_count, series_room;
    bool failed;
};

#endif

/* curve.h - values over steps or time, read from what a run recorded.
 *
 * Threads: one at a time. */
#ifndef PL_OBSERVE_RUNS_CURVE_H
#define PL_OBSERVE_RUNS_CURVE_H

#include "paceline/base.h"

#include <stddef.h>

typedef struct pl_point {
    double x, y;
    double time; /* seconds since 1970; 0: not known */
} pl_point;

typedef struct pl_curve {
    char *name;
    pl_point *points; /* sorted by x unless the file is not */
    size_t count, room;
} pl_curve;

typedef struct pl_curves {
    pl_curve *list;
    size_t count, room;
} pl_curves;

void pl_curves_close(pl_curves *curves); /* a zeroed one is fine */

/* The curve with this name; NULL: none. */
const pl_curve *pl_curves_find(const pl_curves *curves, const char *name);

/* Append a point to the curve with this name, which is created if missing.
 * PL_FORMAT if the name contains a NUL, or there are too many curves. */
pl_status pl_curves_add(pl_curves *curves, const char *name, size_t name_bytes,
                        pl_point point) PL_MUST_CHECK;

/* Drop all points beyond x. */
void pl_curves_cut(pl_curves *curves, double x);

/* Keep at most `most` (>= 3) of the points without losing peaks: the first, the
 * last, and the lowest and highest of each equal share of the others. */
void pl_curve_thin(pl_curve *curve, size_t most);

/* The mean is over x: a point is weighted by its distance from the previous
 * one. */
typedef struct pl_curve_stats {
    double mean, most;
} pl_curve_stats;
pl_curve_stats pl_curve_measure(const pl_curve *curve); /* NAN: no points */

#endif

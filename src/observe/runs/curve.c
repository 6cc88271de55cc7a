/* curve.c - holds values over steps or time, and thins them without losing
 * visible peaks. */
#include "observe/runs/curve.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

#define CURVES_MOST 4096 /* per file: more indicate a foreign file */

void pl_curves_close(pl_curves *curves)
{
    for (size_t i = 0; i < curves->count; i++) {
        pl_mem_free(curves->list[i].name);
        pl_mem_free(curves->list[i].points);
    }
    pl_mem_free(curves->list);
    *curves = (pl_curves) { 0 };
}

static pl_curve *find(const pl_curves *curves, const char *name, size_t bytes)
{
    for (size_t i = 0; i < curves->count; i++)
        if (strlen(curves->list[i].name) == bytes &&
            memcmp(curves->list[i].name, name, bytes) == 0)
            return &curves->list[i];
    return NULL;
}

const pl_curve *pl_curves_find(const pl_curves *curves, const char *name)
{
    return find(curves, name, strlen(name));
}

static pl_status make(pl_curves *curves, const char *name, size_t bytes,
                      pl_curve **out)
{
    if (memchr(name, '\0', bytes) != NULL)
        return PL_FAIL(PL_FORMAT, "the name of a curve holds a NUL");
    if (curves->count == CURVES_MOST)
        return PL_FAIL(PL_FORMAT, "more than %d curves", CURVES_MOST);
    PL_TRY(PL_GROW(curves->list, curves->count, curves->room));
    pl_curve *curve = &curves->list[curves->count];
    *curve = (pl_curve) { 0 };
    PL_TRY(pl_mem_format(&curve->name, "%.*s", (int)bytes, name));
    curves->count++;
    *out = curve;
    return PL_OK;
}

pl_status pl_curves_add(pl_curves *curves, const char *name, size_t name_bytes,
                        pl_point point)
{
    pl_curve *curve = find(curves, name, name_bytes);
    if (curve == NULL)
        PL_TRY(make(curves, name, name_bytes, &curve));
    PL_TRY(PL_GROW(curve->points, curve->count, curve->room));
    curve->points[curve->count++] = point;
    return PL_OK;
}

void pl_curves_cut(pl_curves *curves, double x)
{
    for (size_t i = 0; i < curves->count; i++) {
        pl_curve *curve = &curves->list[i];
        size_t kept = 0;
        for (size_t p = 0; p < curve->count; p++)
            if (curve->points[p].x <= x)
                curve->points[kept++] = curve->points[p];
        curve->count = kept;
    }
}

/* Among from .. to-1, the first lowest and the last highest point. */
static void find_ends(const pl_point *points, size_t from, size_t to,
                      size_t *lowest, size_t *highest)
{
    *lowest = *highest = from;
    for (size_t i = from; i < to; i++) {
        if (points[i].y < points[*lowest].y)
            *lowest = i;
        if (points[i].y >= points[*highest].y)
            *highest = i;
    }
}

/* With room for one point only: the extreme farther from the start of the
 * curve. */
static size_t farther(const pl_point *points, size_t lowest, size_t highest)
{
    return fabs(points[highest].y - points[0].y) >=
                   fabs(points[lowest].y - points[0].y)
               ? highest
               : lowest;
}

void pl_curve_thin(pl_curve *curve, size_t most)
{
    pl_point *points = curve->points;
    if (curve->count <= most || most < 3)
        return;
    size_t inner = curve->count - 2, kept = 1;
    size_t buckets = most < 4 ? 1 : (most - 2) / 2;
    for (size_t b = 0; b < buckets; b++) {
        size_t from = 1 + inner * b / buckets, low, high;
        find_ends(points, from, 1 + inner * (b + 1) / buckets, &low, &high);
        if (most < 4)
            low = high = farther(points, low, high);
        /* Writes stay behind reads, once both points are read. */
        pl_point first = points[low < high ? low : high];
        pl_point second = points[low < high ? high : low];
        points[kept++] = first;
        if (low != high)
            points[kept++] = second;
    }
    points[kept++] = points[curve->count - 1];
    curve->count = kept;
    pl_point *smaller = pl_mem_resize(points, kept, sizeof *points);
    curve->points = smaller != NULL ? smaller : points;
    curve->room = smaller != NULL ? kept : curve->room;
}

/* The first point has no predecessor and is weighted like the second. */
static double weight_of(const pl_curve *curve, size_t i)
{
    size_t last = i > 0 ? i : 1;
    if (curve->count < 2)
        return 1;
    double way = curve->points[last].x - curve->points[last - 1].x;
    return way > 0 ? way : 0;
}

pl_curve_stats pl_curve_measure(const pl_curve *curve)
{
    pl_curve_stats stats = { NAN, NAN };
    double sum = 0, weights = 0;
    if (curve == NULL || curve->count == 0)
        return stats;
    for (size_t i = 0; i < curve->count; i++) {
        double weight = weight_of(curve, i);
        sum += weight * curve->points[i].y;
        weights += weight;
        if (!(curve->points[i].y <= stats.most))
            stats.most = curve->points[i].y;
    }
    stats.mean = sum / weights;
    return stats;
}

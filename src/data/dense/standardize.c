/* standardize.c - learns mean and deviation in two passes over the training
 * examples, in float64, and applies them once, in memory. */
#include "data/dense/standardize.h"

#include "base/mem.h"
#include "tensor/shape.h"

#include <math.h>

typedef struct standard_set {
    pl_dataset base;
    pl_dataset *inner; /* keeps labels and name */
    float *memory;
} standard_set;

/* Features in groups that share a mean. */
typedef struct groups {
    int64_t count, size; /* count * size features */
} groups;

static void release(pl_dataset *base)
{
    standard_set *set = (standard_set *)base;
    pl_dataset_free(set->inner);
    pl_mem_free(set->memory);
    pl_mem_free(set);
}

static const pl_dataset_ops standard_ops = {
    .kind = "standardized",
    .free = release,
};

static double value_at(const pl_view *view, int64_t row, int64_t column)
{
    double value = view->dtype == PL_UINT8
                       ? (double)pl_view_row_u8(view, row)[column]
                       : (double)pl_view_row_f32(view, row)[column];
    return value * (double)view->scale;
}

static groups groups_of(pl_shape shape)
{
    int64_t row = pl_shape_row(shape);
    int64_t count = shape.rank == 1 || shape.rank == 3 ? shape.dim[0] : 1;
    return (groups) { count, row / count };
}

/* Set sums[g] to the sum of (x - shift[g])^power over the group. */
static void add_up(const pl_dataset *set, groups g, const double *shift,
                   bool squares, double *sums)
{
    for (int64_t i = 0; i < g.count; i++)
        sums[i] = 0;
    for (int64_t r = 0; r < set->count; r++)
        for (int64_t i = 0; i < g.count; i++) {
            double sum = 0;
            for (int64_t c = i * g.size; c < (i + 1) * g.size; c++) {
                double x = value_at(&set->features, r, c) - shift[i];
                sum += squares ? x * x : x;
            }
            sums[i] += sum;
        }
}

static pl_status check_finite(const pl_dataset *set, const double *mean,
                              groups g)
{
    for (int64_t i = 0; i < g.count; i++)
        for (int64_t r = 0; r < set->count && !isfinite(mean[i]); r++)
            for (int64_t c = i * g.size; c < (i + 1) * g.size; c++)
                if (!isfinite(value_at(&set->features, r, c)))
                    return PL_FAIL(PL_NUMERIC,
                                   "%s: feature %lld of row %lld is not a "
                                   "finite number; --standardize needs one "
                                   "everywhere",
                                   set->name, (long long)c, (long long)r);
    return PL_OK;
}

static pl_status learn(const pl_dataset *set, groups g, double *mean,
                       double *deviation)
{
    double count = (double)(set->count * g.size);
    for (int64_t i = 0; i < g.count; i++)
        deviation[i] = 0;
    add_up(set, g, deviation, false, mean);
    for (int64_t i = 0; i < g.count; i++)
        mean[i] /= count;
    PL_TRY(check_finite(set, mean, g));
    add_up(set, g, mean, true, deviation);
    for (int64_t i = 0; i < g.count; i++) {
        deviation[i] = sqrt(deviation[i] / count);
        deviation[i] = deviation[i] > 0 ? deviation[i] : 1;
    }
    return PL_OK;
}

static pl_status check_counts(const pl_dataset *set, groups g, size_t means,
                              size_t deviations)
{
    if (means == (size_t)g.count && deviations == (size_t)g.count)
        return PL_OK;
    return PL_FAIL(PL_USAGE,
                   "%s has %lld features or channels, but the run keeps the "
                   "mean of %zu",
                   set->name, (long long)g.count, means);
}

/* Mean and deviation of each group: those of the run, or of this set. */
static pl_status find(const pl_dataset *set, groups g, pl_encoding *encoding,
                      double **mean, double **deviation)
{
    size_t means = 0, deviations = 0;
    size_t count = (size_t)g.count;
    if (encoding->fixed) {
        PL_TRY(pl_encoding_numbers(encoding, "mean", mean, &means));
        PL_TRY(
            pl_encoding_numbers(encoding, "deviation", deviation, &deviations));
        return check_counts(set, g, means, deviations);
    }
    if (count > PL_ENCODING_COLUMNS)
        return PL_FAIL(PL_UNSUPPORTED,
                       "--standardize: %s has %zu features, at most %d have a "
                       "mean each",
                       set->name, count, PL_ENCODING_COLUMNS);
    PL_TRY(PL_NEW(*mean, count));
    PL_TRY(PL_NEW(*deviation, count));
    PL_TRY(learn(set, g, *mean, *deviation));
    PL_TRY(pl_encoding_set_numbers(encoding, "mean", *mean, count));
    return pl_encoding_set_numbers(encoding, "deviation", *deviation, count);
}

static void apply(standard_set *set, groups g, const double *mean,
                  const double *deviation)
{
    const pl_view *view = &set->inner->features;
    float *to = set->memory;
    for (int64_t r = 0; r < set->base.count; r++)
        for (int64_t i = 0; i < g.count; i++)
            for (int64_t c = i * g.size; c < (i + 1) * g.size; c++)
                *to++ =
                    (float)((value_at(view, r, c) - mean[i]) / deviation[i]);
}

static pl_status fill(standard_set *set, groups g, pl_encoding *encoding)
{
    double *mean = NULL, *deviation = NULL;
    size_t count = (size_t)(set->base.count * g.count * g.size);
    pl_status status = find(&set->base, g, encoding, &mean, &deviation);
    if (status == PL_OK)
        status = PL_NEW_ALIGNED(set->memory, count);
    if (status == PL_OK)
        apply(set, g, mean, deviation);
    pl_mem_free(mean);
    pl_mem_free(deviation);
    return status == PL_OK ? pl_dataset_check(set->inner, true) : status;
}

pl_status pl_standardize(pl_dataset **out, pl_encoding *encoding)
{
    pl_dataset *inner = *out;
    standard_set *set;
    groups g = groups_of(inner->shape);
    PL_TRY(PL_NEW(set, 1));
    set->base = *inner;
    set->inner = inner;
    pl_status status = fill(set, g, encoding);
    if (status != PL_OK) {
        pl_mem_free(set->memory);
        pl_mem_free(set);
        return status;
    }
    set->base.ops = &standard_ops;
    set->base.held_bytes +=
        set->base.count * g.count * g.size * (int64_t)sizeof(float);
    set->base.features = (pl_view) {
        .data = set->memory,
        .stride = g.count * g.size,
        .dtype = PL_FLOAT32,
        .scale = 1.0f,
    };
    *out = &set->base;
    return PL_OK;
}

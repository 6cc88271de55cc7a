/* Errors of a regression model: double-precision sums over the examples in
 * order; the variance of the labels by Welford's update, so that a large mean
 * costs no precision. */
#include "base/assert.h"
#include "base/mem.h"
#include "train/score.h"

#include <math.h>

/* For one output number. */
typedef struct sums {
    double squares, absolutes; /* of the errors */
    double mean, variance;     /* of the labels; the variance times the count */
} sums;

struct pl_errors {
    int64_t width, count;
    sums *of; /* [width] */
};

pl_status pl_errors_new(pl_errors **out, int64_t width)
{
    pl_errors *errors;
    PL_TRY(PL_NEW(errors, 1));
    errors->width = width;
    pl_status status = PL_NEW(errors->of, (size_t)width);
    if (status == PL_OK)
        *out = errors;
    else
        pl_mem_free(errors);
    return status;
}

void pl_errors_free(pl_errors *errors)
{
    if (errors == NULL)
        return;
    pl_mem_free(errors->of);
    pl_mem_free(errors);
}

void pl_errors_add(pl_errors *errors, int64_t rows, const float *predicted,
                   const pl_view *labels)
{
    for (int64_t r = 0; r < rows; r++, predicted += errors->width) {
        const float *label = pl_view_row_f32(labels, r);
        errors->count++;
        for (int64_t i = 0; i < errors->width; i++) {
            sums *s = &errors->of[i];
            double value = (double)label[i];
            double error = (double)predicted[i] - value;
            double away = value - s->mean;
            s->squares += error * error;
            s->absolutes += fabs(error);
            s->mean += away / (double)errors->count;
            s->variance += away * (value - s->mean);
        }
    }
}

static double explained(const sums *s)
{
    if (s->variance > 0)
        return 1 - s->squares / s->variance;
    return s->squares > 0 ? 0 : 1;
}

void pl_errors_score(const pl_errors *errors, pl_score *out)
{
    double count = (double)errors->count, width = (double)errors->width;
    PL_ASSERT(errors->count > 0);
    out->numeric = true;
    out->accuracy = out->top5 = (double)NAN;
    out->rmse = out->mae = out->r2 = 0;
    for (int64_t i = 0; i < errors->width; i++) {
        const sums *s = &errors->of[i];
        out->rmse += sqrt(s->squares / count) / width;
        out->mae += s->absolutes / count / width;
        out->r2 += explained(s) / width;
    }
}

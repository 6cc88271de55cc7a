/* coded.h - the effect of a codec on a predicted step: the bytes it sends, and
 * the time for products of factors.
 *
 * Threads: any. */
#ifndef PL_APP_PLAN_CODED_H
#define PL_APP_PLAN_CODED_H

#include "app/plan/forecast.h"

typedef enum pl_coded {
    PL_CODED_PLAIN,
    PL_CODED_FACTORS,
    PL_CODED_BF16, /* only if --codec requests it */
    PL_CODED_TOPK, /* likewise */
    PL_CODED_KINDS,
} pl_coded;
extern const char *const pl_coded_names[PL_CODED_KINDS];

/* Does the plan have this row for that many workers? */
bool pl_coded_is_wanted(const pl_forecast_opts *opts, pl_coded coded,
                        pl_step_strategy strategy, int32_t workers);

/* Change the bytes of `layers`, the layers of opts->work; returns the seconds
 * that an update takes longer. */
double pl_coded_apply(const pl_forecast_opts *opts, pl_coded coded,
                      int32_t workers, pl_step_layer *layers);

#endif

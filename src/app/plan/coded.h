/* coded.h - what a codec does to a step that is predicted: other bytes, and
 * the products of factors.
 *
 * Threads: any. */
#ifndef PL_APP_PLAN_CODED_H
#define PL_APP_PLAN_CODED_H

#include "app/plan/forecast.h"

typedef enum pl_coded {
    PL_CODED_PLAIN,
    PL_CODED_FACTORS,
    PL_CODED_BF16, /* only where --codec asks for it */
    PL_CODED_TOPK, /* likewise */
    PL_CODED_KINDS,
} pl_coded;
extern const char *const pl_coded_names[PL_CODED_KINDS];

/* Has the plan such a row for so many workers? */
bool pl_coded_is_wanted(const pl_forecast_opts *opts, pl_coded coded,
                        pl_step_strategy strategy, int32_t workers);

/* Change the bytes of `layers`, those of opts->work; seconds that an update
 * takes longer. */
double pl_coded_apply(const pl_forecast_opts *opts, pl_coded coded,
                      int32_t workers, pl_step_layer *layers);

#endif

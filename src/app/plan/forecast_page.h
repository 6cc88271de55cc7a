/* forecast_page.h - a forecast for people: its table, and a page with the
 * curves.
 *
 * Threads: any; the same plan in one at a time. */
#ifndef PL_APP_PLAN_FORECAST_PAGE_H
#define PL_APP_PLAN_FORECAST_PAGE_H

#include "app/plan/forecast.h"
#include "observe/report/page.h"

/* A row for each row of the plan; of a plan with many rows, the best number of
 * servers alone. */
pl_status pl_forecast_table(pl_table **out,
                            const pl_forecast *plan) PL_MUST_CHECK;

/* The table, speed-up and efficiency by workers with a line for each strategy,
 * and for each strategy the speed-up over links of several rates.  `opts` are
 * those that the plan was made with. */
pl_status pl_forecast_page(pl_page **out, const pl_forecast *plan,
                           const pl_forecast_opts *opts) PL_MUST_CHECK;

/* Why there is no `smallest`, as one sentence. */
void pl_forecast_put_none(const pl_forecast *plan, pl_buffer *out);

#endif

/* forecast_page.h - a forecast for people: its table, and a page with the
 * curves.
 *
 * Threads: any; one at a time for the same plan. */
#ifndef PL_APP_PLAN_FORECAST_PAGE_H
#define PL_APP_PLAN_FORECAST_PAGE_H

#include "app/plan/forecast.h"
#include "observe/report/page.h"

/* One line for each row of the plan; if there are many rows, only those with
 * the best number of servers. */
pl_status pl_forecast_table(pl_table **out,
                            const pl_forecast *plan) PL_MUST_CHECK;

/* The table, speed-up and efficiency by workers with a line for each strategy,
 * and for each strategy the speed-up over links of several rates.  `opts` must
 * be those of the plan. */
pl_status pl_forecast_page(pl_page **out, const pl_forecast *plan,
                           const pl_forecast_opts *opts) PL_MUST_CHECK;

/* Why there is no `smallest`, as one sentence. */
void pl_forecast_put_none(const pl_forecast *plan, pl_buffer *out);

#endif

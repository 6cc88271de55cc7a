/* units.h - rates, times and factors as text: "1Gbit", "0.2ms", "10x".
 *
 * Threads: pure functions. */
#ifndef PL_APP_PLAN_UNITS_H
#define PL_APP_PLAN_UNITS_H

#include "paceline/base.h"

/* PL_USAGE names the flag, the text and the expected form. */

/* "100Mbit", "1Gbit/s"; "unlimited" is 0. */
pl_status pl_units_rate(double *bytes_per_s, const char *flag,
                        const char *text) PL_MUST_CHECK;
/* "100 Mbit/s", "10 Gbit/s"; 0 is "unlimited"; returns `text`. */
#define PL_UNITS_TEXT 32
const char *pl_units_rate_text(double bytes_per_s, char text[PL_UNITS_TEXT]);
/* "200us", "0.2ms", "1s" */
pl_status pl_units_time(double *seconds, const char *flag,
                        const char *text) PL_MUST_CHECK;
/* "10x", "2.5" */
pl_status pl_units_factor(double *factor, const char *flag,
                          const char *text) PL_MUST_CHECK;

#endif

/* about.h - the description of a sweep's runs, for sweep.json.
 *
 * Threads: any. */
#ifndef PL_APP_SWEEP_ABOUT_H
#define PL_APP_SWEEP_ABOUT_H

#include "app/sweep/plan.h"

/* "about" of sweep.json (observe/runs/experiment.h): the experiment, the
 * published results that depend on the machine, and the differences between the
 * runs and the experiment.  The caller frees *out. */
pl_status pl_sweep_about(pl_json **out,
                         const pl_sweep_plan_opts *opts) PL_MUST_CHECK;

#endif

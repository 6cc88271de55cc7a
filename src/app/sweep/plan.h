/* plan.h - the cells of a sweep: one training each.
 *
 * Threads: any. */
#ifndef PL_APP_SWEEP_PLAN_H
#define PL_APP_SWEEP_PLAN_H

#include "base/json/json.h"
#include "paceline/nn.h"

#define PL_SWEEP_CELLS_MOST 10000

typedef struct pl_sweep_plan_opts {
    const pl_json *spec;   /* required; from spec.h */
    const pl_model *model; /* required: the spec's */
    char *const *flags;    /* additional ones, after the spec's */
    int flag_count;
    int64_t repeat;   /* 0: the spec's */
    const char *data; /* "mnist:DIR", for a spec that requires this kind; or
                         NULL */
    bool quick;       /* apply the spec's line quick */
} pl_sweep_plan_opts;

/* All cells in order, checked against the flags of `train`: [{"name", "args":
 * [...], "values": {flag: value}, "repeat": 1, "published": {result:
 * number}}].  PL_USAGE names the cell and the flag, or the line. */
pl_status pl_sweep_plan(pl_json **out,
                        const pl_sweep_plan_opts *opts) PL_MUST_CHECK;

/* False if the spec requires a kind of data that `data` is not: the cells then
 * train on the model's own data. */
bool pl_sweep_plan_has_data(const pl_sweep_plan_opts *opts);

#endif

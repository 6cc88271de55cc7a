/* spec.h - the description of a sweep, read from text.
 *
 * docs/formats/sweep.md has the format.  The result is
 *
 *   {"model": "softmax", "flags": ["--lr", "0.1"], "repeat": 1,
 *    "grids": [{"mode": ["sync", "async"], "batch": ["10", "50"]}],
 *    "experiment": {"id": "A1", "question": "..."},
 *    "data": {"kind": "mnist", "flags": ["--train-examples", "55000"]},
 *    "published": [...],
 *    "quick": {"flags": ["--epochs", "1"], "grid": {"batch": ["10"]}}}
 *
 * without those of the last four that the text lacks (published.h describes the
 * entries of "published").  Names and values are checked where the cells are
 * made (plan.h).
 *
 * Threads: any. */
#ifndef PL_APP_SWEEP_SPEC_H
#define PL_APP_SWEEP_SPEC_H

#include "base/json/json.h"

#define PL_SWEEP_REPEAT_MOST 1000

/* `what` (a file name) is used in messages, with the line. */
pl_status pl_sweep_spec_parse(pl_json **out, const char *text,
                              const char *what) PL_MUST_CHECK;

/* The same from the command line: one grid for one model. */
pl_status pl_sweep_spec_grid(pl_json **out, const char *model,
                             const char *grid) PL_MUST_CHECK;

#endif

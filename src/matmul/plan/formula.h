/* formula.h - whole numbers from a formula of i, j, W and B.
 *
 * Threads: any. */
#ifndef PL_MATMUL_PLAN_FORMULA_H
#define PL_MATMUL_PLAN_FORMULA_H

#include "paceline/base.h"

#include <stdint.h>

typedef struct pl_formula_values {
    int64_t i, j, workers, blocks;
} pl_formula_values;

/* Division rounds down, so that % of a positive number is never negative.
 * PL_USAGE gives the place in the formula. */
pl_status pl_formula_value(const char *formula, const pl_formula_values *values,
                           int64_t *out) PL_MUST_CHECK;

#endif

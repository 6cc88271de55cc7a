/* plan.h - what one worker computes, step by step, and fetches for it.
 *
 * A product goes along k: step k adds A_ik B_kj to every C_ij the worker holds,
 * so it needs the blocks of column k of A and row k of B for its own rows and
 * columns, each block once (SUMMA; van de Geijn and Watts 1997).  A step of the
 * traces is one pair of blocks.  Steps without missing blocks come first: while
 * they are computed, the blocks of later ones arrive.  Each worker begins at
 * another k, so that not all send requests to the same one at once.
 *
 * Threads: constant once made. */
#ifndef PL_MATMUL_PLAN_PLAN_H
#define PL_MATMUL_PLAN_PLAN_H

#include "matmul/entries.h"

/* Steps whose blocks are kept at once: one computed, others arriving. */
#define PL_MATMUL_SLOTS 3

/* A block that another worker holds. */
typedef struct pl_want {
    int32_t matrix, i, j;
    int32_t owner;
    int64_t floats;
    int64_t at; /* offset in the memory of its step, in floats */
} pl_want;

typedef struct pl_matmul_step {
    int32_t i, j;       /* of the pair; product: i is k */
    int32_t turn;       /* order among steps that lack the same amount */
    int32_t want, last; /* its wants: [want, last) */
    int64_t floats;     /* of these */
} pl_matmul_step;

typedef struct pl_matmul_plan {
    pl_matmul_step *steps;
    pl_want *wants;
    int32_t step_count, want_count;
    int64_t slot_floats;   /* the most a step fetches */
    double flops;          /* of all steps */
    int64_t result_floats; /* blocks of C held; 0 for the traces */
} pl_matmul_plan;

pl_status pl_matmul_plan_init(pl_matmul_plan *plan, const pl_placement *p,
                              int32_t worker) PL_MUST_CHECK;
void pl_matmul_plan_close(pl_matmul_plan *plan); /* may be zeroed */

/* Bytes that the worker will hold: its blocks, its part of the result, and
 * fetched blocks. */
int64_t pl_matmul_plan_bytes(const pl_matmul_plan *plan, const pl_placement *p,
                             int32_t worker);

#endif

/* placement.h - which worker holds which block of the matrices.
 *
 * A matrix of n x n is cut into B x B blocks, and every worker holds some of
 * them.  Their placement determines what must be moved: a worker computes the
 * blocks of the result that it holds and fetches the inputs that it lacks.
 *
 * Threads: constant once made. */
#ifndef PL_MATMUL_PLAN_PLACEMENT_H
#define PL_MATMUL_PLAN_PLACEMENT_H

#include "paceline/base.h"

#include <stdint.h>

/* The largest n for which every sum of a product is exact in a float:
 * entries.h. */
#define PL_MATMUL_N_MAX       262144
#define PL_MATMUL_BLOCKS_MAX  256
#define PL_MATMUL_WORKERS_MAX 60

typedef enum pl_matmul_op {
    PL_MATMUL_TRACE,   /* sum of the traces of A_ij A_ji */
    PL_MATMUL_PRODUCT, /* C = A B */
} pl_matmul_op;

/* The computation and the number of workers. */
typedef struct pl_matmul_job {
    pl_matmul_op op;
    int64_t n;
    int32_t blocks; /* in each direction; <= n */
    int32_t workers;
    uint64_t seed;
} pl_matmul_job;

typedef struct pl_placement {
    pl_matmul_job job;
    int32_t *owner; /* [blocks * blocks] */
} pl_placement;

/* Rows (or columns) before block `block`; that of `blocks` is n. */
int64_t pl_matmul_first(const pl_matmul_job *job, int32_t block);

/* By a formula of i (row of the block), j (column), W (workers) and B (blocks):
 * numbers, + - * / %, parentheses.  PL_USAGE gives the place of an error, or a
 * block without a valid worker. */
pl_status pl_placement_parse(pl_placement *out, const pl_matmul_job *job,
                             const char *formula) PL_MUST_CHECK;
/* The placement that moves the least among those that share the work evenly:
 * for a product a grid of workers, for the traces both blocks of a pair
 * together. */
pl_status pl_placement_best(pl_placement *out,
                            const pl_matmul_job *job) PL_MUST_CHECK;
void pl_placement_close(pl_placement *placement); /* may be zeroed */

int32_t pl_placement_owner(const pl_placement *p, int32_t i, int32_t j);
int64_t pl_placement_floats(const pl_placement *p, int32_t i, int32_t j);

/* The worker that computes the trace of A_ij A_ji, i <= j: one of the two
 * owners, alternately. */
int32_t pl_placement_tracer(const pl_placement *p, int32_t i, int32_t j);

/* Floats of the matrices that `worker` holds (of one matrix) and that it
 * fetches. */
int64_t pl_placement_held(const pl_placement *p, int32_t worker);
int64_t pl_placement_moved(const pl_placement *p, int32_t worker);

#endif

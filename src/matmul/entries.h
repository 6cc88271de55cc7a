/* entries.h - the entries of the matrices, computed where they are needed.
 *
 * An entry is a function of the seed, the matrix, its row and its column: a
 * multiple of 1/8 from -1 to 7/8.  A product of two is a multiple of 1/64, and
 * a sum of up to 2^18 of these is exact in a float, in any order of summation:
 * a result is correct in every bit, or wrong.
 *
 * Threads: pure functions. */
#ifndef PL_MATMUL_ENTRIES_H
#define PL_MATMUL_ENTRIES_H

#include "matmul/plan/placement.h"

#define PL_MATRIX_A 0
#define PL_MATRIX_B 1
#define PL_MATRICES 2

/* Block (i, j) of a matrix, row by row. */
void pl_entries_block(const pl_matmul_job *job, int matrix, int32_t i,
                      int32_t j, float *out);

/* Entry (row, column) of A B. */
double pl_entries_product(const pl_matmul_job *job, int64_t row,
                          int64_t column);
/* The trace of A_ij A_ji. */
double pl_entries_trace(const pl_matmul_job *job, int32_t i, int32_t j);

#endif

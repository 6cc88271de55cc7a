/* rows.h - sparse examples in memory.
 *
 * Four arrays that grow together: where each row starts, the ids and values
 * of its non-zeros, its label.  Decoders fill them block by block.
 *
 * Threads: one at a time. */
#ifndef PL_DATA_SPARSE_ROWS_H
#define PL_DATA_SPARSE_ROWS_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct pl_sparse_rows {
    int64_t count;
    int64_t *start;  /* [count + 1]; start[0] is 0 */
    int32_t *labels; /* 0 or 1 */
    uint64_t *ids;
    float *values; /* not filled in when all are 1, */
    bool weighted; /* otherwise true */
    int64_t count_room, id_room;
} pl_sparse_rows;

void pl_sparse_rows_close(
    pl_sparse_rows *rows); /* a zeroed one is fine; zeroes it */

/* Make room for so many rows and non-zeros in total; existing ones stay. */
pl_status pl_sparse_rows_reserve(pl_sparse_rows *rows, int64_t count,
                                 int64_t ids) PL_MUST_CHECK;
void pl_sparse_rows_clear(pl_sparse_rows *rows);        /* keeps the memory */
void pl_sparse_rows_fill(float *values, int64_t count); /* with 1 */

static inline int64_t pl_sparse_rows_ids(const pl_sparse_rows *rows)
{
    return rows->count > 0 ? rows->start[rows->count] : 0;
}

/* Append rows [first, first + count) of another set. */
pl_status pl_sparse_rows_append(pl_sparse_rows *rows,
                                const pl_sparse_rows *from, int64_t first,
                                int64_t count) PL_MUST_CHECK;

/* Bytes of memory allocated. */
int64_t pl_sparse_rows_bytes(const pl_sparse_rows *rows);

#endif

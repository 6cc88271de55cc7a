/* sparse.h - kernels over rows of non-zeros, for tables of millions of
 * weights.
 *
 * A mini-batch is computed by key, not by row.  Its non-zeros become entries
 * (id in the upper 32 bits, where it came from in the lower), which are
 * sorted; equal neighbours are one key.  Then a weight is read once and a
 * key's gradient is one sum, always in the order of the rows: no table of
 * hashes, no scattered additions, and the same bits however keys are dealt to
 * threads.  Packing prefetches the table, so that its lines arrive while the
 * entries are sorted.
 *
 * Loops over memory that is not there yet, not over arithmetic: plain C does
 * as well as vectors with gathers (measured), so there is one version.
 *
 * Threads: any; they allocate nothing and cannot fail. */
#ifndef PL_KERNELS_SPARSE_H
#define PL_KERNELS_SPARSE_H

#include "tensor/view.h"

#include <stdint.h>

/* Ids are below this: an entry has 32 bits for them. */
#define PL_SPARSE_MOST_IDS ((int64_t)1 << 32)

/* Rows of non-zeros.  Row r has those from start[s] to start[s + 1], where s
 * is index[r], or r without an index. */
typedef struct pl_rows {
    int64_t count;
    const int64_t *start;
    const uint32_t *index;
    const uint64_t *ids;
    const float *values; /* NULL: all 1 */
} pl_rows;

static inline int64_t pl_rows_source(const pl_rows *rows, int64_t row)
{
    return rows->index != NULL ? (int64_t)rows->index[row] : row;
}

/* The ids of shuffled rows lie anywhere: fetch those of a row some way behind
 * `row`, and where the ids of one behind that begin. */
static inline void pl_rows_prefetch(const pl_rows *rows, int64_t row)
{
    if (rows->index == NULL || row + 16 >= rows->count)
        return;
    __builtin_prefetch(rows->start + rows->index[row + 16]);
    int64_t s = rows->index[row + 8];
    const char *at = (const char *)(rows->ids + rows->start[s]);
    const char *end = (const char *)(rows->ids + rows->start[s + 1]);
    for (; at < end; at += 64)
        __builtin_prefetch(at);
}

/* Non-zeros in all rows; must be below 2^32. */
int64_t pl_rows_entries(const pl_rows *rows);

/* One entry per non-zero, in order.  Its lower half is the row where values
 * are all 1; else its number, under which row_of and value tell the rest. */
typedef struct pl_entries {
    int64_t count;
    uint64_t *list;
    uint32_t *row_of; /* NULL: the lower half is the row */
    float *value;     /* likewise */
} pl_entries;

/* Fill the lists of `out`; *largest is the largest id.  `table` is about to
 * be read and written at the ids: it is prefetched there. */
void pl_sparse_pack(const pl_rows *rows, const float *table, pl_entries *out,
                    uint64_t *largest);

/* Sort by id, keeping the order of equal ones; ids have at most `bits` bits.
 * The result is in one of the two lists, which is returned. */
uint64_t *pl_sparse_sort(int64_t count, int bits, uint64_t *list,
                         uint64_t *other);

/* The distinct keys of sorted entries: key k has the entries from first[k] to
 * first[k + 1].  Both lists have room for one more than there are entries;
 * the number of keys is returned. */
int64_t pl_sparse_keys(int64_t count, const uint64_t *list, uint64_t *keys,
                       uint32_t *first);

/* dst[k] = table[keys[k]] */
void pl_sparse_gather(int64_t count, const uint64_t *keys, const float *table,
                      float *dst);

/* logits[row] += weights[k] * value, for the entries of keys 0 .. keys-1. */
void pl_sparse_forward(int64_t keys, const uint32_t *first,
                       const pl_entries *entries, const float *weights,
                       float *logits);

/* grad[k] = the sum of diff[row] * value over the key's entries. */
void pl_sparse_backward(int64_t keys, const uint32_t *first,
                        const pl_entries *entries, const float *diff,
                        float *grad);

/* The products of rows first .. first+count-1 with a whole table, plus a
 * bias: for tests of a model.  dst[i] belongs to row first + i. */
void pl_sparse_rows(const pl_rows *rows, int64_t first, int64_t count,
                    const float *table, float bias, float *dst);

/* The sum of -log(likelihood) of labels 0 and 1, given the probability of
 * each row to be a 1.  A likelihood below 1e-38 counts as that. */
double pl_sparse_loss(int64_t rows, const float *probs, const pl_view *labels);

#endif

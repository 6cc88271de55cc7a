/* sparse.h - kernels over rows of non-zeros, for tables of millions of
 * weights.
 *
 * A mini-batch has some thousand distinct ids, its keys.  They are numbered,
 * and every non-zero gets the number of its key, its slot; after that only
 * short arrays are read and written, which stay in the nearest caches. Logits
 * are sums over rows, gradients are sums over rows in order: the bits of both
 * do not depend on the numbering of the keys.
 *
 * The loops are limited by cache misses, not arithmetic: plain C is as fast as
 * vectors with gathers (measured), so there is one version.
 *
 * Threads: any; they allocate nothing and cannot fail. */
#ifndef PL_KERNELS_SPARSE_H
#define PL_KERNELS_SPARSE_H

#include "tensor/view.h"

#include <stdbool.h>
#include <stdint.h>

/* Ids are below this, since sorting uses 32 bits. */
#define PL_SPARSE_MOST_IDS ((int64_t)1 << 32)

/* Rows of non-zeros.  Row r has those from start[s] to start[s + 1], where s is
 * index[r], or r if there is no index. */
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

/* The ids of shuffled rows are scattered: prefetch those of a later row, and
 * the start of the ids of one still later. */
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

/* The distinct ids of a batch: a hash table of their numbers, which are the
 * positions of the ids among the keys.  Numbers continue from batch to batch,
 * so that old entries are recognized by their numbers and nothing is
 * cleared. */
typedef struct pl_key_map {
    uint32_t *cells; /* [1 << bits], zeroed at first; more cells than ids: the
                        more, the fewer collisions */
    int bits;        /* at most 32 */
    uint32_t base;   /* first number of the next batch; 0 at first */
} pl_key_map;

/* The non-zeros of a batch in the order of its rows, as slots. */
typedef struct pl_slots {
    uint32_t *list; /* [non-zeros] */
    int64_t *start; /* [rows + 1]: where each row begins */
} pl_slots;

/* Number the distinct ids of `rows` in order of appearance: keys has room for
 * one more than there are non-zeros; returns the number of keys. *largest is
 * the largest id; if it is not below PL_SPARSE_MOST_IDS, the other results are
 * invalid.  `table`, if not NULL, is prefetched at the ids. */
int64_t pl_sparse_find(pl_key_map *map, const pl_rows *rows, const float *table,
                       uint64_t *keys, pl_slots *slots, uint64_t *largest);

/* Renumber the keys in the order of their ids, which have at most `bits` bits,
 * and update the slots of `entries` non-zeros.  Both work areas have room for
 * the keys. */
void pl_sparse_order(int64_t count, int bits, uint64_t *keys, int64_t entries,
                     uint32_t *slots, uint64_t *work, uint64_t *other);

/* dst[k] = table[keys[k]] */
void pl_sparse_gather(int64_t count, const uint64_t *keys, const float *table,
                      float *dst);

/* logits[row] = bias + the sum of weights[slot] * value over the row, for the
 * rows first .. first+count-1. */
void pl_sparse_forward(const pl_rows *rows, const pl_slots *slots,
                       int64_t first, int64_t count, const float *weights,
                       float bias, float *logits);

/* grad[slot] += diff[row] * value over the same rows, in order. */
void pl_sparse_backward(const pl_rows *rows, const pl_slots *slots,
                        int64_t first, int64_t count, const float *diff,
                        float *grad);

/* The products of rows first .. first+count-1 with a whole table, plus a bias,
 * for tests of a model.  dst[i] belongs to row first + i. */
void pl_sparse_rows(const pl_rows *rows, int64_t first, int64_t count,
                    const float *table, float bias, float *dst);

/* The sum of -log(likelihood) of labels 0 and 1, given the probability of 1 for
 * each row.  A likelihood below 1e-38 counts as 1e-38. */
double pl_sparse_loss(int64_t rows, const float *probs, const pl_view *labels);

#endif

#include "kernels/sparse.h"

#include <math.h>

#define DIGIT_BITS    9 /* 512 counters of a pass stay in the nearest cache */
#define DIGITS        (1 << DIGIT_BITS)
#define MAX_PASSES    4 /* of 32 bits */
#define WEIGHTS_AHEAD 2 /* rows whose weights are fetched */

int64_t pl_rows_entries(const pl_rows *rows)
{
    int64_t count = 0;
    if (rows->index == NULL)
        return rows->start[rows->count] - rows->start[0];
    for (int64_t r = 0; r < rows->count; r++) {
        int64_t s = rows->index[r];
        count += rows->start[s + 1] - rows->start[s];
    }
    return count;
}

/* Entries whose lower half is `from`; returns the largest id. */
static inline uint64_t pack_ids(int64_t count, const uint64_t *ids,
                                uint64_t from, const float *table,
                                uint64_t *list)
{
    uint64_t largest = 0;
    for (int64_t j = 0; j < count; j++) {
        uint64_t id = ids[j];
        largest = id > largest ? id : largest;
        __builtin_prefetch(table + (uint32_t)id, 1);
        list[j] = id << 32 | from;
    }
    return largest;
}

/* The same, numbered from `first` on, each with its row and value. */
static inline uint64_t pack_values(int64_t count, const uint64_t *ids,
                                   const float *values, int64_t first,
                                   int64_t row, const float *table,
                                   const pl_entries *out)
{
    uint64_t largest = pack_ids(count, ids, 0, table, out->list + first);
    for (int64_t j = first; j < first + count; j++) {
        out->list[j] |= (uint64_t)j;
        out->row_of[j] = (uint32_t)row;
        out->value[j] = values[j - first];
    }
    return largest;
}

void pl_sparse_pack(const pl_rows *rows, const float *table, pl_entries *out,
                    uint64_t *largest)
{
    uint64_t most = 0;
    int64_t at = 0;
    for (int64_t r = 0; r < rows->count; r++) {
        int64_t s = pl_rows_source(rows, r), from = rows->start[s];
        int64_t count = rows->start[s + 1] - from;
        const uint64_t *ids = rows->ids + from;
        pl_rows_prefetch(rows, r);
        uint64_t here =
            rows->values == NULL
                ? pack_ids(count, ids, (uint64_t)r, table, out->list + at)
                : pack_values(count, ids, rows->values + from, at, r, table,
                              out);
        most = here > most ? here : most;
        at += count;
    }
    out->count = at;
    *largest = most;
}

/* How often each digit of each pass occurs; inlined, `passes` is a number. */
static inline void count_digits(int64_t count, const uint64_t *list, int passes,
                                uint32_t counts[MAX_PASSES][DIGITS])
{
    for (int64_t i = 0; i < count; i++)
        for (int p = 0; p < passes; p++)
            counts[p][list[i] >> (32 + p * DIGIT_BITS) & (DIGITS - 1)]++;
}

uint64_t *pl_sparse_sort(int64_t count, int bits, uint64_t *list,
                         uint64_t *other)
{
    uint32_t counts[MAX_PASSES][DIGITS] = { { 0 } };
    int passes = (bits + DIGIT_BITS - 1) / DIGIT_BITS;
    if (passes == 3) /* of 33 million features */
        count_digits(count, list, 3, counts);
    else
        count_digits(count, list, passes, counts);
    for (int p = 0; p < passes; p++) {
        uint32_t *place = counts[p], sum = 0;
        for (int d = 0; d < DIGITS; d++) {
            uint32_t here = place[d];
            place[d] = sum;
            sum += here;
        }
        for (int64_t i = 0; i < count; i++) {
            uint64_t entry = list[i];
            other[place[entry >> (32 + p * DIGIT_BITS) & (DIGITS - 1)]++] =
                entry;
        }
        uint64_t *swap = list;
        list = other;
        other = swap;
    }
    return list;
}

int64_t pl_sparse_keys(int64_t count, const uint64_t *list, uint64_t *keys,
                       uint32_t *first)
{
    int64_t k = 0;
    uint64_t last = UINT64_MAX;
    for (int64_t i = 0; i < count; i++) {
        uint64_t id = list[i] >> 32;
        /* Written in any case and kept when it is new: nothing to guess. */
        keys[k] = id;
        first[k] = (uint32_t)i;
        k += id != last;
        last = id;
    }
    first[k] = (uint32_t)count;
    return k;
}

void pl_sparse_gather(int64_t count, const uint64_t *keys, const float *table,
                      float *dst)
{
    for (int64_t k = 0; k < count; k++)
        dst[k] = table[keys[k]];
}

/* Runs of equal keys have no length that a processor could guess: both loops
 * go over entries, and count keys as they come. */
void pl_sparse_forward(int64_t keys, const uint32_t *first,
                       const pl_entries *entries, const float *weights,
                       float *logits)
{
    const uint64_t *list = entries->list;
    uint64_t last = UINT64_MAX;
    int64_t k = -1;
    for (uint32_t i = first[0]; i < first[keys]; i++) {
        uint64_t id = list[i] >> 32;
        uint32_t from = (uint32_t)list[i];
        k += id != last;
        last = id;
        if (entries->value == NULL)
            logits[from] += weights[k];
        else
            logits[entries->row_of[from]] += weights[k] * entries->value[from];
    }
}

void pl_sparse_backward(int64_t keys, const uint32_t *first,
                        const pl_entries *entries, const float *diff,
                        float *grad)
{
    static const float keep[2] = { 0.0f, 1.0f };
    const uint64_t *list = entries->list;
    uint64_t last = UINT64_MAX;
    int64_t k = -1;
    float sum = 0;
    for (uint32_t i = first[0]; i < first[keys]; i++) {
        uint64_t id = list[i] >> 32;
        uint32_t from = (uint32_t)list[i];
        k += id != last;
        sum *= keep[id == last]; /* diff is finite, or so is no loss */
        last = id;
        if (entries->value == NULL)
            sum += diff[from];
        else
            sum += diff[entries->row_of[from]] * entries->value[from];
        grad[k] = sum; /* the last one stays */
    }
}

static inline void prefetch_weights(const pl_rows *rows, int64_t row,
                                    const float *table)
{
    if (row >= rows->count)
        return;
    int64_t s = pl_rows_source(rows, row);
    for (int64_t j = rows->start[s]; j < rows->start[s + 1]; j++)
        __builtin_prefetch(table + rows->ids[j]);
}

void pl_sparse_rows(const pl_rows *rows, int64_t first, int64_t count,
                    const float *table, float bias, float *dst)
{
    for (int64_t r = first; r < first + count; r++) {
        int64_t s = pl_rows_source(rows, r);
        float sum = bias;
        pl_rows_prefetch(rows, r);
        prefetch_weights(rows, r + WEIGHTS_AHEAD, table);
        for (int64_t j = rows->start[s]; j < rows->start[s + 1]; j++)
            sum += table[rows->ids[j]] *
                   (rows->values != NULL ? rows->values[j] : 1.0f);
        dst[r - first] = sum;
    }
}

/* A logarithm takes longer than the rest of a row: the likelihoods are
 * multiplied, and the product is turned into its logarithm before it could
 * become too small. */
double pl_sparse_loss(int64_t rows, const float *probs, const pl_view *labels)
{
    double sum = 0, product = 1;
    for (int64_t r = 0; r < rows; r++) {
        float p = pl_view_label(labels, r) != 0 ? probs[r] : 1.0f - probs[r];
        product *= p < 1e-38f ? 1e-38 : (double)p;
        if (product < 1e-200) {
            sum -= log(product);
            product = 1;
        }
    }
    return sum - log(product);
}

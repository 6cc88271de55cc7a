/* Kernels of sparse batches: find the distinct keys of a batch, sort them,
 * gather their weights, forward and backward over rows, loss. Plain C: the time
 * goes into cache misses, so the design relies on prefetching, branch-free
 * hashing, and counting sort passes that stay in the first-level cache. */
#include "kernels/sparse.h"

#include <math.h>
#include <string.h>

#define DIGIT_BITS    9 /* 512 counters per pass, in the first-level cache */
#define DIGITS        (1 << DIGIT_BITS)
#define MAX_PASSES    4 /* of 32 bits */
#define WEIGHTS_AHEAD 2 /* rows whose weights are prefetched */

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

/* The number of an id, or the next number if the id is new: keys[known] holds
 * the id during the search.  Whether it is new is unpredictable, so both cases
 * take the same path, and only a collision is a branch. */
static inline uint32_t number_of(const pl_key_map *map, uint64_t id,
                                 uint64_t *keys, uint32_t *known)
{
    uint64_t mask = ((uint64_t)1 << map->bits) - 1;
    uint64_t at = id * 0x9e3779b97f4a7c15u >> (64 - map->bits);
    uint32_t count = *known, found;
    keys[count] = id;
    for (;; at = (at + 1) & mask) {
        uint32_t number = map->cells[at] - map->base; /* huge if stale */
        found = number < count ? number : count;
        if (keys[found] == id)
            break;
    }
    map->cells[at] = map->base + found;
    *known = count + (found == count);
    return found;
}

/* Numbers grow until they would overflow; then the map is cleared. */
static void begin_batch(pl_key_map *map, int64_t entries)
{
    if (map->base != 0 && (int64_t)map->base + entries < UINT32_MAX)
        return;
    memset(map->cells, 0, sizeof *map->cells << map->bits);
    map->base = 1;
}

int64_t pl_sparse_find(pl_key_map *map, const pl_rows *rows, const float *table,
                       uint64_t *keys, pl_slots *slots, uint64_t *largest)
{
    uint64_t most = 0;
    int64_t at = 0;
    begin_batch(map, pl_rows_entries(rows));
    const pl_key_map local = *map; /* keeps it in registers */
    uint32_t known = 0;
    for (int64_t r = 0; r < rows->count; r++) {
        int64_t s = pl_rows_source(rows, r), from = rows->start[s];
        int64_t count = rows->start[s + 1] - from;
        const uint64_t *ids = rows->ids + from;
        uint32_t *list = slots->list + at;
        pl_rows_prefetch(rows, r);
        for (int64_t j = 0; j < count; j++) {
            uint64_t id = ids[j];
            most = id > most ? id : most;
            if (table != NULL)
                __builtin_prefetch(table + (uint32_t)id, 1);
            list[j] = number_of(&local, (uint32_t)id, keys, &known);
        }
        slots->start[r] = at;
        at += count;
    }
    slots->start[rows->count] = at;
    *largest = most;
    map->base += known;
    return known;
}

/* Count each digit of each pass; inlined, so that `passes` is a constant. */
static inline void count_digits(int64_t count, const uint64_t *list, int passes,
                                uint32_t counts[MAX_PASSES][DIGITS])
{
    for (int64_t i = 0; i < count; i++)
        for (int p = 0; p < passes; p++)
            counts[p][list[i] >> (32 + p * DIGIT_BITS) & (DIGITS - 1)]++;
}

/* Sort by the upper halves, which have at most `bits` bits, in one of the two
 * lists, which is returned. */
static uint64_t *sort(int64_t count, int bits, uint64_t *list, uint64_t *other)
{
    uint32_t counts[MAX_PASSES][DIGITS] = { { 0 } };
    int passes = (bits + DIGIT_BITS - 1) / DIGIT_BITS;
    if (passes == 3) /* for 33 million features */
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

void pl_sparse_order(int64_t count, int bits, uint64_t *keys, int64_t entries,
                     uint32_t *slots, uint64_t *work, uint64_t *other)
{
    for (int64_t k = 0; k < count; k++)
        work[k] = keys[k] << 32 | (uint64_t)k;
    const uint64_t *sorted = sort(count, bits, work, other);
    uint64_t *place = sorted == work ? other : work;
    for (int64_t k = 0; k < count; k++) {
        keys[k] = sorted[k] >> 32;
        place[(uint32_t)sorted[k]] = (uint64_t)k;
    }
    for (int64_t i = 0; i < entries; i++)
        slots[i] = (uint32_t)place[slots[i]];
}

void pl_sparse_gather(int64_t count, const uint64_t *keys, const float *table,
                      float *dst)
{
    for (int64_t k = 0; k < count; k++)
        dst[k] = table[keys[k]];
}

/* Four independent sums hide the latency of additions. */
static inline float row_sum(int64_t count, const uint32_t *slots,
                            const float *values, const float *weights)
{
    float sums[4] = { 0 };
    int64_t j = 0;
    for (; j + 4 <= count; j += 4)
        for (int k = 0; k < 4; k++)
            sums[k] +=
                weights[slots[j + k]] * (values != NULL ? values[j + k] : 1.0f);
    for (; j < count; j++)
        sums[0] += weights[slots[j]] * (values != NULL ? values[j] : 1.0f);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void pl_sparse_forward(const pl_rows *rows, const pl_slots *slots,
                       int64_t first, int64_t count, const float *weights,
                       float bias, float *logits)
{
    for (int64_t r = first; r < first + count; r++) {
        int64_t at = slots->start[r], n = slots->start[r + 1] - at;
        const uint32_t *list = slots->list + at;
        float sum =
            rows->values == NULL
                ? row_sum(n, list, NULL, weights)
                : row_sum(n, list,
                          rows->values + rows->start[pl_rows_source(rows, r)],
                          weights);
        logits[r] = bias + sum;
    }
}

void pl_sparse_backward(const pl_rows *rows, const pl_slots *slots,
                        int64_t first, int64_t count, const float *diff,
                        float *grad)
{
    for (int64_t r = first; r < first + count; r++) {
        int64_t at = slots->start[r], n = slots->start[r + 1] - at;
        const uint32_t *list = slots->list + at;
        float by = diff[r];
        if (rows->values == NULL) {
            for (int64_t j = 0; j < n; j++)
                grad[list[j]] += by;
            continue;
        }
        const float *values =
            rows->values + rows->start[pl_rows_source(rows, r)];
        for (int64_t j = 0; j < n; j++)
            grad[list[j]] += by * values[j];
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

/* A logarithm takes longer than the rest of a row: likelihoods are multiplied,
 * and the logarithm is taken before the product could underflow. */
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

/* One pass of lock-free SGD (Niu et al. 2011) over sparse rows. Threads race
 * on the weights by design: loads and stores are relaxed atomics, updates
 * may be lost. The hottest weights are kept in a copy per thread and merged
 * by pl_hogwild_merge; the weights of the next rows are prefetched, since a
 * pass waits for memory, not arithmetic. */
#include "kernels/hogwild.h"

#include <math.h>

#define AHEAD        2  /* rows whose weights are prefetched */
#define LABELS_AHEAD 16 /* labels of shuffled rows are scattered, too */

/* The table is shared without locks: relaxed atomics tell the compiler.  They
 * cost nothing on any processor that reads a float at once. */
static inline float load(const float *at)
{
    float value;
    __atomic_load(at, &value, __ATOMIC_RELAXED);
    return value;
}

static inline void store(float *at, float value)
{
    __atomic_store(at, &value, __ATOMIC_RELAXED);
}

static inline float *place(const pl_hogwild *h, uint64_t id)
{
    float *base = id < (uint64_t)h->hot_count ? h->hot : h->table;
    return base + id;
}

/* Prefetch the weights of a row and check its ids; false: an id is out of
 * range. */
static inline bool look_ahead(pl_hogwild *h, const pl_rows *rows, int64_t row)
{
    if (row >= rows->count)
        return true;
    int64_t s = pl_rows_source(rows, row);
    uint64_t largest = 0;
    for (int64_t j = rows->start[s]; j < rows->start[s + 1]; j++) {
        uint64_t id = rows->ids[j];
        __builtin_prefetch(place(h, id), 1);
        largest = id > largest ? id : largest;
    }
    if (largest < (uint64_t)h->features)
        return true;
    h->wrong = largest;
    return false;
}

static inline void prefetch_label(const pl_view *labels, int64_t bytes,
                                  int64_t row)
{
    if (labels->index != NULL)
        __builtin_prefetch((const char *)labels->data +
                           labels->index[row] * bytes);
}

static inline float product(const pl_hogwild *h, int64_t count,
                            const uint64_t *ids, const float *values)
{
    float sums[4] = { 0 }; /* independent sums hide the latency of additions */
    int64_t j = 0;
    for (; j + 4 <= count; j += 4)
        for (int k = 0; k < 4; k++)
            sums[k] += load(place(h, ids[j + k])) *
                       (values != NULL ? values[j + k] : 1.0f);
    for (; j < count; j++)
        sums[0] += load(place(h, ids[j])) * (values != NULL ? values[j] : 1.0f);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* Towards zero, but not beyond. */
static inline float shrink(float w, float by)
{
    if (w > by)
        return w - by;
    return w < -by ? w + by : w * 0.0f; /* NaN stays NaN */
}

static inline void update(const pl_hogwild *h, int64_t count,
                          const uint64_t *ids, const float *values, float step)
{
    if (h->l1 == 0 && h->l2 == 0) {
        for (int64_t j = 0; j < count; j++) {
            float *at = place(h, ids[j]);
            store(at, load(at) - step * (values != NULL ? values[j] : 1.0f));
        }
        return;
    }
    for (int64_t j = 0; j < count; j++) {
        float *at = place(h, ids[j]), old = load(at);
        float moved = old - step * (values != NULL ? values[j] : 1.0f) -
                      h->lr * h->l2 * old;
        store(at, shrink(moved, h->lr * h->l1));
    }
}

void pl_hogwild_rows(pl_hogwild *h, const pl_rows *rows, const pl_view *labels,
                     int64_t first, int64_t count)
{
    double likely = 1; /* see pl_sparse_loss */
    int64_t right = 0;
    int64_t label_bytes = labels->stride * pl_dtype_bytes(labels->dtype);
    bool good = true;
    for (int64_t r = first; r < first + AHEAD && good; r++)
        good = look_ahead(h, rows, r);
    for (int64_t r = first; r < first + count && good; r++) {
        int64_t s = pl_rows_source(rows, r);
        int64_t from = rows->start[s], n = rows->start[s + 1] - from;
        const uint64_t *ids = rows->ids + from;
        const float *values = rows->values != NULL ? rows->values + from : NULL;
        pl_rows_prefetch(rows, r);
        if (r + LABELS_AHEAD < rows->count)
            prefetch_label(labels, label_bytes, r + LABELS_AHEAD);
        good = look_ahead(h, rows, r + AHEAD);
        float logit = product(h, n, ids, values) + h->bias;
        float prob = 1.0f / (1.0f + expf(-logit));
        bool label = pl_view_label(labels, r) != 0;
        float diff = label ? prob - 1.0f : prob;
        float p = label ? prob : 1.0f - prob;
        right += (prob >= 0.5f) == label;
        update(h, n, ids, values, h->lr * diff);
        h->bias -= h->lr * diff;
        likely *= p < 1e-38f ? 1e-38 : (double)p;
        if (likely < 1e-200) {
            h->loss -= log(likely);
            likely = 1;
        }
    }
    h->loss -= log(likely);
    h->right += right;
}

void pl_hogwild_fetch(int64_t count, const float *shared, float *own,
                      float *base)
{
    for (int64_t i = 0; i < count; i++)
        own[i] = base[i] = load(shared + i);
}

void pl_hogwild_merge(int64_t count, float *shared, float *own, float *base)
{
    for (int64_t i = 0; i < count; i++) {
        float theirs = load(shared + i);
        float both = theirs == base[i] ? own[i] : 0.5f * (theirs + own[i]);
        store(shared + i, both);
        own[i] = base[i] = both;
    }
}

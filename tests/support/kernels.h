/* kernels.h - for tests of compute kernels: tables, numbers, guarded memory.
 *
 * Guarded memory ends where an inaccessible page begins, so a kernel
 * that reads or writes one element too many crashes in every build, and its
 * start is aligned to nothing but the element. */
#ifndef PL_TESTS_KERNELS_H
#define PL_TESTS_KERNELS_H

#include "base/rng.h"
#include "kernels/backend.h"
#include "support/unit.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Run what follows for each table that this processor has. */
#define FOR_EACH_TABLE(table)                                                  \
    for (const pl_kernels *const *each_ = pl_kernels_all(), *table = NULL;     \
         *each_ != NULL; each_++)                                              \
        if ((table = pl_kernels_find((*each_)->name)) != NULL)

static inline const pl_kernels *reference_table(void)
{
    const pl_kernels *reference = pl_kernels_find("reference");
    assert_non_null(reference);
    return reference;
}

/* The next number of a fixed sequence, least .. most. */
static inline float draw(float least, float most)
{
    static uint64_t counter;
    return least +
           (most - least) * (float)pl_rng_uniform(0x70616365u, counter++);
}

static inline int64_t draw_int(int64_t least, int64_t most)
{
    static uint64_t counter;
    return least + (int64_t)pl_rng_below(0x6c696e65u, counter++,
                                         (uint32_t)(most - least + 1));
}

static inline void draw_all(float *data, int64_t count, float least, float most)
{
    for (int64_t i = 0; i < count; i++)
        data[i] = draw(least, most);
}

#define GUARD_BYTES 64 /* watched for writes before the memory */

typedef struct guard {
    uint8_t *map;
    size_t map_bytes;
    uint8_t *end;   /* the forbidden page */
    uint8_t *begin; /* of what guard_get gave last */
} guard;

static inline guard guard_make(int64_t most_floats)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t room = (size_t)most_floats * sizeof(float) + GUARD_BYTES;
    guard g = { .map_bytes = (room + page - 1) / page * page + page };
    g.map = mmap(NULL, g.map_bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(g.map != MAP_FAILED);
    g.end = g.map + g.map_bytes - page;
    assert_int_equal(0, mprotect(g.end, page, PROT_NONE));
    return g;
}

/* The last `bytes` before the forbidden page; all bits set, NaN as floats. */
static inline void *guard_get(guard *g, int64_t bytes)
{
    assert_true((size_t)bytes + GUARD_BYTES <= (size_t)(g->end - g->map));
    g->begin = g->end - bytes;
    memset(g->begin - GUARD_BYTES, 0xa5, GUARD_BYTES);
    memset(g->begin, 0xff, (size_t)bytes);
    return g->begin;
}

static inline float *guard_floats(guard *g, int64_t count)
{
    return guard_get(g, count * (int64_t)sizeof(float));
}

/* The same, with the numbers of `from`. */
static inline float *guard_copy(guard *g, const float *from, int64_t count)
{
    return memcpy(guard_floats(g, count), from, (size_t)count * sizeof *from);
}

/* Nothing was written before the memory. */
static inline void guard_check(const guard *g)
{
    for (size_t i = 1; i <= GUARD_BYTES; i++)
        assert_int_equal(0xa5, g->begin[-(ptrdiff_t)i]);
}

static inline void guard_drop(guard *g)
{
    munmap(g->map, g->map_bytes);
}

/* How far `got` is from the exact value, in units of the last place of a
 * float of that size. */
static inline double ulps(float got, double exact)
{
    float rounded = fabsf((float)exact);
    if (rounded < FLT_MIN)
        rounded = FLT_MIN;
    double unit = (double)nextafterf(rounded, INFINITY) - (double)rounded;
    return fabs((double)got - exact) / unit;
}

/* |got - expected| <= limit; a NaN is never near anything. */
static inline bool is_near(double got, double expected, double limit)
{
    return fabs(got - expected) <= limit;
}

#endif

/* limits.c - measures the machine's peak multiply-adds and memory bandwidth, on
 * the given pool. */
#include "app/train/limits.h"

#include "base/clock.h"
#include "base/mem.h"
#include "kernels/peak.h"

#define ROUNDS 20 /* short ones; the best counts: others may interfere */
#define TURNS  ((int64_t)1 << 18)
#define FLOATS ((int64_t)8 << 20) /* 32 MB: beyond most caches */

typedef struct load {
    const pl_peak *peak;
    float *memory; /* NULL: compute */
    int threads;
    volatile float sink; /* keeps the loops from being optimized away */
} load;

static void run_share(void *arg, int item, int thread)
{
    (void)thread;
    load *l = arg;
    int64_t share = FLOATS / l->threads / 128 * 128;
    float sum = l->memory == NULL
                    ? l->peak->fma(TURNS)
                    : l->peak->read(share, l->memory + item * share);
    if (item == 0)
        l->sink = sum;
}

/* The seconds of the fastest round. */
static double measure(pl_pool *pool, load *l)
{
    double least = 0;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t begin = pl_clock_now_ns(pl_clock_real());
        pl_pool_run(pool, l->threads, run_share, l);
        double took = (double)(pl_clock_now_ns(pl_clock_real()) - begin) * 1e-9;
        if (round == 0 || took < least)
            least = took;
    }
    return least > 0 ? least : 1e-9;
}

pl_status pl_limits_measure(pl_pool *pool, int threads, pl_limits *out)
{
    const pl_peak *peak = pl_peak_list();
    load l = { .peak = peak, .threads = threads };
    double count =
        (double)TURNS * (double)peak->chains * (double)peak->lanes * threads;
    out->gflops = 2 * count * 1e-9 / measure(pool, &l);
    PL_TRY(PL_NEW_ALIGNED(l.memory, (size_t)FLOATS));
    for (int64_t i = 0; i < FLOATS; i += 1024) /* get own pages */
        l.memory[i] = 1;
    int64_t read = FLOATS / threads / 128 * 128 * threads;
    out->gbytes = (double)read * sizeof(float) * 1e-9 / measure(pool, &l);
    pl_mem_free(l.memory);
    return PL_OK;
}

#include "base/mem.h"
#include "base/thread.h"
#include "bench.h"

#include <stdio.h>
#include <unistd.h>

#define CACHE_FLOATS (24 * 1024) /* twice 96 KiB: in the second level */
/* Two streams a power of two apart hit the same banks: half the speed. */
#define MEMORY_GAP   (16 * 5265)        /* floats */
#define MEMORY_BYTES ((int64_t)1 << 30) /* beyond any cache */

/* One loop on all threads of a pool, each with its own share of memory. */
typedef struct load {
    const pl_peak *peak;
    pl_pool *pool;
    float *memory;
    int64_t floats; /* of the whole memory */
    int64_t gap;    /* further floats between the two streams of saxpy */
    int64_t times;
    enum {
        FMA,
        READ,
        SAXPY
    } loop;
} load;

static void run_share(void *arg, int item, int thread)
{
    (void)thread;
    const load *l = arg;
    if (l->loop == FMA) {
        float sum = l->peak->fma(l->times);
        measure_keep(&sum);
        return;
    }
    int64_t share = l->floats / pl_pool_threads(l->pool) / 256 * 256;
    float *mine = l->memory + item * (share + l->gap);
    for (int64_t i = 0; i < l->times; i++) {
        if (l->loop == READ) {
            float sum = l->peak->read(share, mine);
            measure_keep(&sum);
        } else {
            l->peak->saxpy(share / 2, 0.5f, mine, mine + share / 2 + l->gap);
            measure_keep(mine);
        }
    }
}

static void run_load(void *arg, int64_t times)
{
    load *l = arg;
    l->times = times;
    pl_pool_run(l->pool, pl_pool_threads(l->pool), run_share, l);
}

static measurement measure_load(const bench *b, load *l)
{
    return measure(
        &(measure_opts) { .run = run_load, .arg = l, .window_s = b->window_s });
}

static measurement fma_gflops(const bench *b, const pl_peak *p, pl_pool *pool)
{
    load l = { .peak = p, .pool = pool, .loop = FMA };
    double flops = 2.0 * p->chains * p->lanes * pl_pool_threads(pool);
    return measure_inverse(measure_load(b, &l), flops);
}

/* GB/s: reading moves every byte once; saxpy reads two streams of half the
 * memory and writes one. */
static measurement memory_gbs(const bench *b, load *l)
{
    int threads = pl_pool_threads(l->pool);
    double floats = (double)(l->floats / threads / 256 * 256 * threads);
    double bytes = floats * 4 * (l->loop == SAXPY ? 1.5 : 1);
    return measure_inverse(measure_load(b, l), bytes);
}

static pl_status open_pools(const bench *b, pl_pool *pools[2])
{
    PL_TRY(pl_pool_new(&pools[0], 1));
    pl_status status = pl_pool_new(&pools[1], b->threads);
    if (status != PL_OK)
        pl_pool_free(pools[0]);
    return status;
}

static void close_pools(pl_pool *pools[2])
{
    pl_pool_free(pools[0]);
    pl_pool_free(pools[1]);
}

typedef struct cpu_figures {
    measurement gflops[MAX_PEAKS][2], cache[MAX_PEAKS];
} cpu_figures;

static pl_status measure_cpu(bench *b, cpu_figures *out)
{
    pl_pool *pools[2];
    float *memory;
    PL_TRY(PL_NEW_ALIGNED(memory, 2 * CACHE_FLOATS));
    pl_status status = open_pools(b, pools);
    if (status != PL_OK) {
        pl_mem_free(memory);
        return status;
    }
    for (int i = 0; pl_peak_list()[i].name != NULL; i++) {
        const pl_peak *p = &pl_peak_list()[i];
        load cache = { p, pools[0], memory, 2 * CACHE_FLOATS, 0, 0, SAXPY };
        for (int all = 0; all < 2; all++)
            out->gflops[i][all] = fma_gflops(b, p, pools[all]);
        out->cache[i] = memory_gbs(b, &cache);
        b->limits[i] = (limits) {
            .gflops_one = out->gflops[i][0].median,
            .gflops_all = out->gflops[i][1].median,
            .cache_gbs = out->cache[i].median,
        };
    }
    b->has_cpu_limits = true;
    close_pools(pools);
    pl_mem_free(memory);
    return PL_OK;
}

typedef struct memory_figures {
    measurement read[2], saxpy[2];
    double bytes;
} memory_figures;

/* At most a quarter of the machine's memory. */
static int64_t memory_floats(void)
{
    int64_t all = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    int64_t bytes = all / 4 < MEMORY_BYTES ? all / 4 : MEMORY_BYTES;
    return bytes / 4 / 1024 * 1024;
}

static pl_status measure_memory(bench *b, memory_figures *out)
{
    int64_t floats = memory_floats();
    int64_t gaps = b->threads * MEMORY_GAP;
    pl_pool *pools[2];
    float *memory;
    PL_TRY(PL_NEW_ALIGNED(memory, (size_t)(floats + gaps)));
    pl_status status = open_pools(b, pools);
    if (status != PL_OK) {
        pl_mem_free(memory);
        return status;
    }
    for (int all = 0; all < 2; all++) {
        load l = { pl_peak_list(), pools[all], memory, floats,
                   MEMORY_GAP,     0,          READ };
        out->read[all] = memory_gbs(b, &l);
        l.loop = SAXPY;
        out->saxpy[all] = memory_gbs(b, &l);
    }
    out->bytes = (double)floats * 4;
    b->read_gbs_one = out->read[0].median;
    b->read_gbs_all = out->read[1].median;
    b->saxpy_gbs_one = out->saxpy[0].median;
    b->saxpy_gbs_all = out->saxpy[1].median;
    b->has_memory_limits = true;
    close_pools(pools);
    pl_mem_free(memory);
    return PL_OK;
}

pl_status bench_need_cpu_limits(bench *b)
{
    cpu_figures figures;
    return b->has_cpu_limits ? PL_OK : measure_cpu(b, &figures);
}

pl_status bench_need_memory_limits(bench *b)
{
    memory_figures figures;
    return b->has_memory_limits ? PL_OK : measure_memory(b, &figures);
}

const limits *bench_limits_of(const bench *b, const pl_kernels *kernels)
{
    const pl_peak *list = pl_peak_list();
    int i = 0;
    while (list[i].lanes > kernels->lanes && list[i + 1].name != NULL)
        i++;
    return &b->limits[i];
}

static void print_row(bench *b, const char *what, const char *unit,
                      const measurement *one, const measurement *all)
{
    table_text(&b->table, "limit", what);
    table_text(&b->table, "unit", unit);
    table_measured(&b->table, "1 thread", *one);
    if (all != NULL)
        table_measured(&b->table, "all threads", *all);
    else
        table_empty(&b->table, "all threads");
    table_row_end(&b->table);
}

pl_status bench_limits(bench *b)
{
    cpu_figures cpu;
    memory_figures memory;
    PL_TRY(measure_cpu(b, &cpu));
    PL_TRY(measure_memory(b, &memory));
    table_begin(&b->table, "limits", "Limits of this machine",
                "Multiply-adds in registers, count 2 each; saxpy moves 12 "
                "bytes an element (two\nreads, one write), in 192 KiB for "
                "the cache; memory is 1 GiB or a quarter of what\nthere is.");
    char text[64];
    const pl_peak *list = pl_peak_list();
    for (int i = 0; list[i].name != NULL; i++) {
        snprintf(text, sizeof text, "%s, %s", list[i].name,
                 list[i].fused ? "fused multiply-add" : "multiply, add");
        print_row(b, text, "GFLOP/s", &cpu.gflops[i][0], &cpu.gflops[i][1]);
    }
    for (int i = 0; list[i].name != NULL; i++) {
        snprintf(text, sizeof text, "%s, saxpy in cache", list[i].name);
        print_row(b, text, "GB/s", &cpu.cache[i], NULL);
    }
    print_row(b, "memory, read", "GB/s", &memory.read[0], &memory.read[1]);
    print_row(b, "memory, saxpy", "GB/s", &memory.saxpy[0], &memory.saxpy[1]);
    table_end(&b->table);
    return PL_OK;
}

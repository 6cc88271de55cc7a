#include "train/optim/optim.h"

#include "base/mem.h"
#include "base/thread.h"
#include "bench.h"

#include <stdio.h>

#define PARAMETERS ((int64_t)32 << 20) /* beyond any cache */

/* Bytes moved per parameter: gradient and parameter read, parameter written,
 * each slot read and written. */
static double bytes_moved(const pl_optim *optim)
{
    return 4.0 * (3 + 2 * optim->ops->slot_count);
}

typedef struct updates {
    pl_optim *optim;
    pl_pool *pool;
    pl_params *params, *grads;
    int64_t made;
} updates;

static void update_share(void *arg, int item, int thread)
{
    (void)thread;
    const updates *u = arg;
    int64_t lines = pl_params_block_count(u->params) / 16;
    int threads = pl_pool_threads(u->pool);
    int64_t first = lines * item / threads * 16;
    int64_t last = lines * (item + 1) / threads * 16;
    pl_optim_update(u->optim, first, last - first,
                    pl_params_block(u->grads) + first,
                    pl_params_block(u->params));
}

static void run_updates(void *arg, int64_t times)
{
    updates *u = arg;
    for (int64_t i = 0; i < times; i++) {
        pl_optim_begin(u->optim, ++u->made, 1e-3);
        pl_pool_run(u->pool, pl_pool_threads(u->pool), update_share, u);
    }
}

static void touch(const pl_params *params, float value)
{
    float *block = pl_params_block(params);
    int64_t count = pl_params_block_count(params);
    for (int64_t i = 0; i < count; i++)
        block[i] = value;
}

static pl_status bench_one(bench *b, updates *u, const pl_optim_opts *opts,
                           const pl_kernels *kernels)
{
    PL_TRY(pl_optim_new(&u->optim, opts, u->params, kernels));
    for (int s = 0; s < u->optim->ops->slot_count; s++)
        touch(u->optim->slots[s], 0.0f);
    bool one = pl_pool_threads(u->pool) == 1;
    measurement m = measure(&(measure_opts) {
        .run = run_updates, .arg = u, .window_s = b->window_s / 2 });
    double scale = 1e6 / (double)PARAMETERS;
    double gbs = bytes_moved(u->optim) * (double)PARAMETERS / m.median;
    table_text(&b->table, "optimizer",
               opts->nesterov ? "nesterov" : opts->name);
    table_text(&b->table, "kernels", kernels->name);
    table_count(&b->table, "threads", pl_pool_threads(u->pool));
    table_measured(
        &b->table, "ns per 1M parameters",
        (measurement) { m.median * scale, m.least * scale, m.most * scale });
    table_number(&b->table, "GB/s", gbs);
    table_share(&b->table, "share of saxpy", gbs,
                one ? b->saxpy_gbs_one : b->saxpy_gbs_all);
    table_row_end(&b->table);
    pl_optim_free(u->optim);
    return PL_OK;
}

static pl_status bench_kernels(bench *b, updates *u, const pl_kernels *kernels)
{
    const pl_optim_ops *const *list = pl_optim_list();
    for (int i = 0; i < PL_OPTIMS; i++)
        PL_TRY(bench_one(b, u, &(pl_optim_opts) { .name = list[i]->name },
                         kernels));
    return bench_one(b, u,
                     &(pl_optim_opts) { .name = "momentum", .nesterov = true },
                     kernels);
}

static pl_status bench_all(bench *b, updates *u)
{
    PL_TRY(pl_params_new(&u->params));
    PL_TRY(pl_params_add(u->params, "all", PL_SHAPE(PARAMETERS)));
    PL_TRY(pl_params_seal(u->params));
    PL_TRY(pl_params_like(&u->grads, u->params));
    touch(u->params, 1.0f);
    touch(u->grads, 1e-3f);
    PL_TRY(pl_pool_new(&u->pool, 1));
    for (const pl_kernels *const *k = pl_kernels_all(); *k != NULL; k++)
        if (pl_kernels_find((*k)->name) != NULL)
            PL_TRY(bench_kernels(b, u, *k));
    pl_pool_free(u->pool);
    u->pool = NULL;
    PL_TRY(pl_pool_new(&u->pool, b->threads));
    return bench_kernels(b, u, pl_kernels_best());
}

pl_status bench_optim(bench *b)
{
    PL_TRY(bench_need_memory_limits(b));
    table_begin(&b->table, "optim", "Optimizers",
                "32 M parameters, so all of it comes from memory; bytes are "
                "gradient, parameter and\nslots read, parameter and slots "
                "written.");
    updates u = { .made = 0 };
    pl_status status = bench_all(b, &u);
    pl_pool_free(u.pool);
    pl_params_free(u.params);
    pl_params_free(u.grads);
    table_end(&b->table);
    return status;
}

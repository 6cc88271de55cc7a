/* store.c - lays out and fills the blocks that one worker holds, in memory that
 * other processes of the host can read. */
#include "matmul/store.h"

#include "base/mem.h"

struct pl_store {
    const pl_placement *placement;
    int32_t worker;
    pl_area *area;
    float **block; /* [PL_MATRICES * blocks * blocks]; NULL: not held */
};

static int matrices(const pl_store *store)
{
    return store->placement->job.op == PL_MATMUL_PRODUCT ? PL_MATRICES : 1;
}

static size_t place(const pl_store *store, int matrix, int32_t i, int32_t j)
{
    size_t blocks = (size_t)store->placement->job.blocks;
    return ((size_t)matrix * blocks + (size_t)i) * blocks + (size_t)j;
}

static void lay_out(pl_store *store)
{
    const pl_placement *p = store->placement;
    float *at = pl_area_data(store->area);
    for (int m = 0; m < matrices(store); m++)
        for (int32_t i = 0; i < p->job.blocks; i++)
            for (int32_t j = 0; j < p->job.blocks; j++)
                if (pl_placement_owner(p, i, j) == store->worker) {
                    store->block[place(store, m, i, j)] = at;
                    at += pl_placement_floats(p, i, j);
                }
}

static pl_status build(pl_store *store)
{
    size_t blocks = (size_t)store->placement->job.blocks;
    int64_t held = pl_placement_held(store->placement, store->worker);
    PL_TRY(PL_NEW(store->block, PL_MATRICES * blocks * blocks));
    if (held == 0)
        return PL_OK;
    PL_TRY(pl_area_new(&store->area,
                       (size_t)held * sizeof(float) * (size_t)matrices(store)));
    lay_out(store);
    return PL_OK;
}

pl_status pl_store_new(pl_store **out, const pl_placement *placement,
                       int32_t worker)
{
    pl_store *store;
    PL_TRY(PL_NEW(store, 1));
    store->placement = placement;
    store->worker = worker;
    pl_status status = build(store);
    if (status != PL_OK) {
        pl_store_free(store);
        return status;
    }
    *out = store;
    return PL_OK;
}

void pl_store_free(pl_store *store)
{
    if (store == NULL)
        return;
    pl_area_free(store->area);
    pl_mem_free(store->block);
    pl_mem_free(store);
}

void pl_store_fill(pl_store *store)
{
    const pl_matmul_job *job = &store->placement->job;
    for (int m = 0; m < matrices(store); m++)
        for (int32_t i = 0; i < job->blocks; i++)
            for (int32_t j = 0; j < job->blocks; j++) {
                float *block = store->block[place(store, m, i, j)];
                if (block != NULL)
                    pl_entries_block(job, m, i, j, block);
            }
}

const float *pl_store_block(const pl_store *store, int matrix, int32_t i,
                            int32_t j)
{
    return store->block[place(store, matrix, i, j)];
}

pl_area *pl_store_area(const pl_store *store)
{
    return store->area;
}

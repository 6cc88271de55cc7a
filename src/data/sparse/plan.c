/* Which blocks a worker reads: dealt once by the seed, reordered each
 * epoch, cut into windows of --shuffle-buffer examples. */
#include "data/sparse/plan.h"

#include "base/mem.h"
#include "base/rng.h"

#include <string.h>

#define PERMUTED_ONCE 65536

/* A permutation of 0 .. count-1. */
static void permute(uint64_t key, int64_t count, uint32_t *out)
{
    for (int64_t at = 0; at < count; at += PERMUTED_ONCE) {
        int64_t left = count - at;
        pl_rng_permute(key, (uint64_t)count, (uint64_t)at,
                       (uint32_t)(left < PERMUTED_ONCE ? left : PERMUTED_ONCE),
                       out + at);
    }
}

/* Deal the blocks in the order of `dealt`. */
static void deal(pl_stream_share *share, const pl_sparse_set *set,
                 const uint32_t *dealt, const pl_reader_opts *opts)
{
    for (int32_t worker = 0; worker < opts->workers; worker++) {
        int64_t rows = 0;
        for (int64_t i = worker; i < set->blocks.count; i += opts->workers) {
            rows += set->blocks.list[dealt[i]].rows;
            if (worker == opts->worker)
                share->blocks[share->count++] = dealt[i];
        }
        if (worker == opts->worker)
            share->rows = rows;
        if (worker == 0 || rows < share->least)
            share->least = rows;
    }
}

void pl_stream_share_close(pl_stream_share *share)
{
    pl_mem_free(share->blocks);
    *share = (pl_stream_share) { .count = 0 };
}

pl_status pl_stream_share_init(pl_stream_share *share, const pl_sparse_set *set,
                               const pl_reader_opts *opts)
{
    size_t count = (size_t)set->blocks.count;
    uint32_t *dealt = NULL;
    *share = (pl_stream_share) { .count = 0 };
    PL_TRY(PL_NEW(share->blocks, count));
    if (opts->one_pass) {
        for (size_t i = 0; i < count; i++)
            share->blocks[i] = (uint32_t)i;
        share->count = set->blocks.count;
        share->rows = share->least = set->base.count;
        return PL_OK;
    }
    pl_status status = PL_NEW(dealt, count);
    if (status != PL_OK) {
        pl_stream_share_close(share);
        return status;
    }
    permute(pl_rng_key_text(opts->seed, "data deal"), set->blocks.count, dealt);
    deal(share, set, dealt, opts);
    pl_mem_free(dealt);
    return PL_OK;
}

void pl_stream_plan_close(pl_stream_plan *plan)
{
    pl_mem_free(plan->order);
    pl_mem_free(plan->windows);
    *plan = (pl_stream_plan) { .epoch = -1 };
}

pl_status pl_stream_plan_init(pl_stream_plan *plan,
                              const pl_stream_share *share)
{
    *plan = (pl_stream_plan) { .epoch = -1 };
    PL_TRY(PL_NEW(plan->order, (size_t)share->count));
    pl_status status = PL_NEW(plan->windows, (size_t)share->count + 1);
    if (status != PL_OK)
        pl_stream_plan_close(plan);
    return status;
}

/* Divide the order into windows. */
static void cut(pl_stream_plan *plan, const pl_stream_share *share,
                const pl_sparse_set *set)
{
    plan->count = 0;
    pl_stream_window window = { .first = 0 };
    for (int64_t i = 0; i < share->count; i++) {
        window.rows += set->blocks.list[plan->order[i]].rows;
        window.count++;
        bool last = i + 1 == share->count;
        if (window.rows < set->opts.shuffle_buffer && !last)
            continue;
        if (window.rows > 0)
            plan->windows[plan->count++] = window;
        window = (pl_stream_window) { .first = window.first + window.rows,
                                      .block = i + 1 };
    }
}

void pl_stream_plan_make(pl_stream_plan *plan, const pl_stream_share *share,
                         const pl_sparse_set *set, const pl_reader_opts *opts,
                         int64_t epoch)
{
    if (plan->epoch == epoch)
        return;
    plan->epoch = epoch;
    if (opts->one_pass) {
        memcpy(plan->order, share->blocks,
               (size_t)share->count * sizeof *plan->order);
    } else {
        uint64_t key = pl_rng_key_text(opts->seed, "data blocks");
        permute(pl_rng_key(key, (uint64_t)epoch), share->count, plan->order);
        for (int64_t i = 0; i < share->count; i++)
            plan->order[i] = share->blocks[plan->order[i]];
    }
    cut(plan, share, set);
}

int64_t pl_stream_plan_find(const pl_stream_plan *plan, int64_t position)
{
    int64_t low = 0, high = plan->count - 1;
    while (low < high) { /* the last window that begins at or before it */
        int64_t middle = low + (high - low + 1) / 2;
        if (plan->windows[middle].first <= position)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

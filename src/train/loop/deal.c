/* Decides which data share each of the present workers reads, and from which
 * step on. */
#include "train/loop/deal.h"

#include "base/assert.h"

#include <string.h>

#define WORDS (PL_DEAL_WORKERS / 64)

void pl_workers_add(pl_workers *workers, int32_t worker)
{
    PL_ASSERT(worker >= 0 && worker < PL_DEAL_WORKERS);
    workers->bits[worker / 64] |= UINT64_C(1) << (worker % 64);
}

bool pl_workers_has(const pl_workers *workers, int32_t worker)
{
    return worker >= 0 && worker < PL_DEAL_WORKERS &&
           (workers->bits[worker / 64] >> (worker % 64) & 1) != 0;
}

int32_t pl_workers_count(const pl_workers *workers)
{
    int32_t count = 0;
    for (int i = 0; i < WORDS; i++)
        count += __builtin_popcountll(workers->bits[i]);
    return count;
}

bool pl_workers_equal(const pl_workers *a, const pl_workers *b)
{
    return memcmp(a->bits, b->bits, sizeof a->bits) == 0;
}

pl_deal pl_deal_first(int32_t workers)
{
    pl_deal deal = { .step = 0 };
    for (int32_t w = 0; w < workers; w++)
        pl_workers_add(&deal.workers, w);
    return deal;
}

pl_deal pl_deal_next(const pl_deal *now, int64_t per_epoch,
                     const pl_workers *present, int64_t step)
{
    int64_t made = step > now->step ? step - now->step : 0;
    int64_t epochs = (made + per_epoch - 1) / per_epoch;
    return (pl_deal) {
        .step = now->step + epochs * per_epoch,
        .epoch = now->epoch + epochs,
        .workers = *present,
    };
}

/* The rank of a worker in a set. */
static int32_t rank_in(const pl_workers *workers, int32_t worker)
{
    int32_t rank = 0;
    for (int32_t w = 0; w < worker; w++)
        rank += pl_workers_has(workers, w);
    return rank;
}

int32_t pl_deal_rank(const pl_deal *deal, const pl_workers *present,
                     int32_t worker)
{
    int32_t before = 0;
    if (pl_workers_has(&deal->workers, worker))
        return rank_in(&deal->workers, worker);
    for (int32_t w = 0; w < worker; w++)
        before +=
            pl_workers_has(present, w) && !pl_workers_has(&deal->workers, w);
    for (int32_t w = 0; w < PL_DEAL_WORKERS; w++)
        if (pl_workers_has(&deal->workers, w) && !pl_workers_has(present, w) &&
            before-- == 0)
            return rank_in(&deal->workers, w);
    return worker % pl_workers_count(&deal->workers);
}

int64_t pl_deal_read(const pl_deal *deal, int64_t per_epoch, int64_t step)
{
    return deal->epoch * per_epoch + (step - deal->step);
}

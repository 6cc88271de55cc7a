/* deal.h - who reads which share of the data in an epoch.
 *
 * A deal says from which step on, and from which epoch on, the examples are
 * shared out among which workers: in their order, each takes the batches of its
 * rank among them (data/dataset.h).  A job begins with a deal among all its
 * workers.  When it goes on without one of them, or one comes back, those who
 * are present when the epoch ends share the data again: until then the share of
 * a lost worker stays unread, and from then on every example is read once.
 *
 * Everybody computes the same deals from the same deal, step and workers.
 *
 * Threads: any. */
#ifndef PL_TRAIN_LOOP_DEAL_H
#define PL_TRAIN_LOOP_DEAL_H

#include <stdbool.h>
#include <stdint.h>

#define PL_DEAL_WORKERS 1024 /* at most */

typedef struct pl_workers {
    uint64_t bits[PL_DEAL_WORKERS / 64];
} pl_workers;

typedef struct pl_deal {
    int64_t step;       /* the first of its first epoch */
    int64_t epoch;      /* that one's number */
    pl_workers workers; /* who shares */
} pl_deal;

void pl_workers_add(pl_workers *workers, int32_t worker);
bool pl_workers_has(const pl_workers *workers, int32_t worker);
int32_t pl_workers_count(const pl_workers *workers);
bool pl_workers_equal(const pl_workers *a, const pl_workers *b);

/* Among `workers` workers, from the beginning. */
pl_deal pl_deal_first(int32_t workers);
/* The deal that `present` make at `step`, from the end of the epoch on that the
 * job is in by `now`, whose epochs have `per_epoch` steps. */
pl_deal pl_deal_next(const pl_deal *now, int64_t per_epoch,
                     const pl_workers *present, int64_t step);
/* The rank whose share `worker` reads.  One that is not in the deal, as it came
 * back in mid-epoch, takes the share of one that is absent; where nobody is,
 * its examples are read twice until the epoch ends. */
int32_t pl_deal_rank(const pl_deal *deal, const pl_workers *present,
                     int32_t worker);
/* Which step of a reader of the deal belongs to a step of the job. */
int64_t pl_deal_read(const pl_deal *deal, int64_t per_epoch, int64_t step);

#endif

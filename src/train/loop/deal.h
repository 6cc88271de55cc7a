/* deal.h - which worker reads which share of the data in an epoch.
 *
 * A deal states among which workers the examples are distributed, from which
 * step and epoch on: each worker takes the batches of its rank in the deal
 * (data/dataset.h).  A job begins with a deal among all its workers. When a
 * worker is lost or rejoins, the workers present at the end of the epoch make a
 * new deal: until then the share of a lost worker stays unread; from then on
 * every example is read once per epoch.
 *
 * All tasks compute the same deal from the same deal, step and workers.
 *
 * Threads: any. */
#ifndef PL_TRAIN_LOOP_DEAL_H
#define PL_TRAIN_LOOP_DEAL_H

#include <stdbool.h>
#include <stdint.h>

#define PL_DEAL_WORKERS 1024 /* maximum */

typedef struct pl_workers {
    uint64_t bits[PL_DEAL_WORKERS / 64];
} pl_workers;

typedef struct pl_deal {
    int64_t step;       /* the first step of its first epoch */
    int64_t epoch;      /* the number of that epoch */
    pl_workers workers; /* that share the data */
} pl_deal;

void pl_workers_add(pl_workers *workers, int32_t worker);
bool pl_workers_has(const pl_workers *workers, int32_t worker);
int32_t pl_workers_count(const pl_workers *workers);
bool pl_workers_equal(const pl_workers *a, const pl_workers *b);

/* Among all `workers` workers, from the first step. */
pl_deal pl_deal_first(int32_t workers);
/* The next deal, among the workers `present` at `step`, from the end of the
 * epoch that `step` is in according to `now`; epochs have `per_epoch` steps. */
pl_deal pl_deal_next(const pl_deal *now, int64_t per_epoch,
                     const pl_workers *present, int64_t step);
/* The rank whose share `worker` reads.  A worker that rejoined in mid-epoch and
 * is not in the deal takes the share of an absent worker; if none is absent,
 * the examples of the share it takes are read twice until the epoch ends. */
int32_t pl_deal_rank(const pl_deal *deal, const pl_workers *present,
                     int32_t worker);
/* The reader's step, under the deal, for a step of the job. */
int64_t pl_deal_read(const pl_deal *deal, int64_t per_epoch, int64_t step);

#endif

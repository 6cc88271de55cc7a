/* collective.h - the collective operations of an all-reduce job.
 *
 * An engine (ring, mpi) connects the ranks and implements this table; buckets,
 * checkpoints, evaluation and the end of the job are written once, above it
 * (allreduce.c).
 *
 * Life: join, then any number of sums and status exchanges, free.  Sums are
 * started in the same order, over the same ranges, by all ranks; so are
 * exchanges, but the two are independent of each other and may overlap.
 * Nothing can be cancelled: a rank that has nothing to add still takes part.
 *
 * Bits: after a sum all ranks hold the same bits.  The order in which the
 * ranks' numbers are added depends only on the place in memory and on the
 * number of ranks, not on the order of arrival nor on how ranges are cut.  (An
 * engine that cannot guarantee this for every cut sets cut_matters.)
 *
 * Failure: an engine detects a lost peer while any call waits.  From then on
 * every call fails with the same status, and the message names the peer
 * (worker, host or address) and what happens next:
 *   PL_ROLLED   a new rendezvous is possible: call join
 *   PL_CLOSED   the job is over: another rank failed (its reason is in the
 *               message), or the peer does not rejoin
 * PL_TIMEOUT of a wait is not a failure: nothing was lost, wait again.
 *
 * Threads: all calls come from one thread. */
#ifndef PL_SYNC_ALLREDUCE_COLLECTIVE_H
#define PL_SYNC_ALLREDUCE_COLLECTIVE_H

#include "base/clock.h"
#include "base/host/skew.h"
#include "paceline/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most concurrent sums, and the most bytes of a rank's status. */
#define PL_COLLECTIVE_SUMS_MOST  256
#define PL_COLLECTIVE_BYTES_MOST ((size_t)16384)

typedef struct pl_collective pl_collective;

/* The ranks that take part after a join. */
typedef struct pl_ranks {
    int32_t rank;  /* of this process; the chief always takes part, as 0 */
    int32_t count; /* of all; fewer than workers if the job continues without
                      one */
    int64_t grain; /* ranges of sums begin at multiples of this many floats */
} pl_ranks;

/* How the ranks' numbers are combined; all but the first need an engine with
 * `ordered`. */
typedef enum pl_sum_kind {
    PL_SUM_ANY_ORDER,  /* whichever is fastest */
    PL_SUM_RANK_ORDER, /* ((rank 0 + rank 1) + rank 2) ..., as --micro-batches
                          and parameter servers add */
    PL_SUM_BROADCAST,  /* no sum: all ranks get the numbers of rank `from` */
} pl_sum_kind;

/* What is summed: memory[first .. first + count - 1]. */
typedef struct pl_sum_range {
    int64_t first, count;
    pl_sum_kind kind;
    int32_t from; /* of a broadcast */
    bool exact;   /* not gradients: the codec must not change a bit */
    bool more;    /* the caller continues computing, so the engine must make
                     progress on its own */
} pl_sum_range;

typedef struct pl_collective_view {
    int64_t sent_bytes, received_bytes;
    int64_t sent_messages, received_messages; /* -1: unknown */
    int32_t restarts; /* the chief's: ranks that rejoined as new processes */
    bool shared;      /* memory is shared with the neighbour */
    pl_skew skew;     /* of the chief's clock, if it is compared */
    double coding_seconds; /* spent encoding */
    int64_t busy_ns;       /* of the link to the next rank; -1: unknown */
} pl_collective_view;

/* Adds a rank's status to `total`, which begins as the chief's.  Called in the
 * order of ranks, at the chief or at every rank: it must have no side
 * effects. */
typedef void pl_combine(void *total, const void *status);

typedef struct pl_collective_ops {
    const char *name; /* "ring" */
    bool cut_matters; /* cutting ranges differently may give different bits */
    bool ordered;     /* supports every pl_sum_kind */

    /* The rendezvous; again after PL_ROLLED.  Waits as long as the engine's
     * options say, then PL_TIMEOUT names the missing workers.  Operations under
     * way are discarded; the content of the memory is undefined. */
    pl_status (*join)(pl_collective *c, pl_ranks *out);

    /* The floats that are summed, as many as the engine was made for. */
    float *(*memory)(pl_collective *c);

    /* Begin to replace a range by the sum over all ranks.  *ticket: 0, 1, 2 ...
     * since the last quiet.  Until its wait returns, the range belongs to the
     * engine. */
    pl_status (*start)(pl_collective *c, const pl_sum_range *range,
                       int32_t *ticket);
    /* Wait until the sum is complete and may be read, but not yet written
     * to. */
    pl_status (*wait)(pl_collective *c, int32_t ticket, pl_deadline deadline);
    /* Wait until all started sums are complete, also at ranks that read from
     * this memory: it may be written again.  Tickets restart at 0. */
    pl_status (*quiet)(pl_collective *c, pl_deadline deadline);

    /* Optional: the caller computes before its next call although sums are
     * under way: the engine must make progress on its own. */
    void (*background)(pl_collective *c);

    /* Optional: the state of the codec after the last gradient that counted
     * (sync/codec.h): block number i, or NULL.  keep: the gradient whose sums
     * are complete counts. */
    float *(*slot)(pl_collective *c, int i);
    void (*keep)(pl_collective *c);

    /* A status exchange, one at a time.  Each rank passes its status, of
     * `bytes` bytes (the same number at all ranks, at most
     * PL_COLLECTIVE_BYTES_MOST), which is copied. */
    pl_status (*offer)(pl_collective *c, const void *status, size_t bytes,
                       pl_combine *combine);
    /* ... and gets the combined one, `bytes` long.  Without `combine` the
     * chief gets the statuses of all ranks in their order, [count * bytes],
     * and every other rank the chief's. */
    pl_status (*exchange)(pl_collective *c, void *out, pl_deadline deadline);

    /* Optional: the caller made progress, in a step or by ending one.  A rank
     * that waits for nothing and has not called this for many times its longest
     * step is stuck.  Cheap; from any thread. */
    void (*progress)(pl_collective *c);
    void (*stepped)(pl_collective *c);

    /* This rank fails: end the others with this message. */
    void (*abort)(pl_collective *c, const char *why);

    pl_collective_view (*look)(pl_collective *c);
    void (*free)(pl_collective *c);
} pl_collective_ops;

struct pl_collective {
    const pl_collective_ops *ops;
};

#endif

/* awake.h - the time in which a process was able to run.
 *
 * A process that was stopped, or whose machine slept, has unread messages and
 * must not time out the tasks that sent them.  So its own time stands still
 * while it neither computes nor waits as long as it intended.  A long
 * computation is not sleep and counts in full.
 *
 * Threads: one object, one thread. */
#ifndef PL_BASE_HOST_AWAKE_H
#define PL_BASE_HOST_AWAKE_H

#include <stdint.h>

/* The caller's loop waits for less than this. */
#define PL_ASLEEP_NS INT64_C(500000000)

typedef struct pl_awake {
    int64_t seen_ns;   /* last time it was seen running */
    int64_t worked_ns; /* processor time at the last mark */
    int64_t asleep_ns; /* total */
} pl_awake;

/* Begin at `now_ns`. */
static inline void pl_awake_init(pl_awake *awake, int64_t now_ns,
                                 int64_t processor_ns)
{
    *awake = (pl_awake) { now_ns, processor_ns, 0 };
}

/* Processor time is read only occasionally, at least every PL_ASLEEP_NS while
 * awake: reading it costs more than reading the clock. */
static inline void pl_awake_mark(pl_awake *awake, int64_t processor_ns)
{
    awake->worked_ns = processor_ns;
}

/* Does pl_awake_ns need `processor_ns`? */
static inline int pl_awake_asks(const pl_awake *awake, int64_t now_ns)
{
    return now_ns - awake->seen_ns > PL_ASLEEP_NS;
}

/* `now_ns` less all time asleep; `processor_ns` is used where pl_awake_asks is
 * true. */
static inline int64_t pl_awake_ns(pl_awake *awake, int64_t now_ns,
                                  int64_t processor_ns)
{
    if (pl_awake_asks(awake, now_ns)) {
        int64_t worked = processor_ns - awake->worked_ns;
        int64_t slept = now_ns - awake->seen_ns - (worked > 0 ? worked : 0);
        if (slept > PL_ASLEEP_NS)
            awake->asleep_ns += slept;
        awake->worked_ns = processor_ns;
    }
    awake->seen_ns = now_ns;
    return now_ns - awake->asleep_ns;
}

#endif

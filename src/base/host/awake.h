/* awake.h - time in which a process could do its work.
 *
 * A process that was stopped, or whose machine slept, has not read what others
 * said meanwhile: it must not take that for their silence.  So its own time
 * stands still while it neither waits as long as it meant to nor computes.
 * A long computation is not sleep, and takes the time it takes.
 *
 * Threads: one object, one thread. */
#ifndef PL_BASE_HOST_AWAKE_H
#define PL_BASE_HOST_AWAKE_H

#include <stdint.h>

/* A turn of the caller's loop waits for less. */
#define PL_ASLEEP_NS INT64_C(500000000)

typedef struct pl_awake {
    int64_t seen_ns;   /* last seen to run */
    int64_t worked_ns; /* processor time at the last mark */
    int64_t asleep_ns; /* in all */
} pl_awake;

/* Begin at `now_ns`. */
static inline void pl_awake_init(pl_awake *awake, int64_t now_ns,
                                 int64_t processor_ns)
{
    *awake = (pl_awake) { now_ns, processor_ns, 0 };
}

/* Processor time is read now and then only, at least every PL_ASLEEP_NS while
 * awake: asking for it costs more than asking for the time. */
static inline void pl_awake_mark(pl_awake *awake, int64_t processor_ns)
{
    awake->worked_ns = processor_ns;
}

/* Is `processor_ns` needed to say what time it is? */
static inline int pl_awake_asks(const pl_awake *awake, int64_t now_ns)
{
    return now_ns - awake->seen_ns > PL_ASLEEP_NS;
}

/* The time of a process that was awake since it began, given its processor
 * time where pl_awake_asks for it. */
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

/* counters.h - what the kernel has counted of this process since it began.
 *
 * A process reads its own counters at its end, so that they hold however short
 * it lived: no sample is needed.
 *
 * Threads: any. */
#ifndef PL_BASE_HOST_COUNTERS_H
#define PL_BASE_HOST_COUNTERS_H

#include <stdint.h>

/* What is not known is NAN or -1. */
typedef struct pl_counters {
    double alive_s;        /* since the process began, to 10 ms */
    double user_s;         /* processor time of all threads... */
    double system_s;       /* ... and in the kernel */
    double queued_s;       /* the first thread was ready to run, and had no
                              processor: others had it, or a quota was used up */
    int64_t peak_bytes;    /* the most that was in memory at a time */
    int64_t read_bytes;    /* from disks; what was cached does not count */
    int64_t written_bytes; /* to disks, as far as the kernel began to */
} pl_counters;

pl_counters pl_counters_read(void);

#endif

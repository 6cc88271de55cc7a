/* counters.h - the kernel's counters of this process.
 *
 * A process reads its own counters when it ends, so they are right however
 * short its life was: nothing is sampled.
 *
 * Threads: any. */
#ifndef PL_BASE_HOST_COUNTERS_H
#define PL_BASE_HOST_COUNTERS_H

#include <stdint.h>

/* Unknown values are NAN or -1. */
typedef struct pl_counters {
    double alive_s;  /* since the process began, to 10 ms */
    double user_s;   /* processor time of all threads... */
    double system_s; /* ... and in the kernel */
    double queued_s; /* the first thread was ready to run but had no processor:
                        it was busy, or a quota was used up */
    int64_t peak_bytes;    /* the peak in memory */
    int64_t read_bytes;    /* from disks, without cached reads */
    int64_t written_bytes; /* to disks, as far as writing has begun */
} pl_counters;

pl_counters pl_counters_read(void);

#endif

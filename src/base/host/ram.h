/* ram.h - the memory that this process may still allocate, and its peak.
 *
 * The limit is checked before large allocations: a system that overcommits
 * grants them all and later kills the process without a message.
 *
 * Threads: any. */
#ifndef PL_BASE_HOST_RAM_H
#define PL_BASE_HOST_RAM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pl_ram {
    int64_t bytes;      /* still available; INT64_MAX: not known */
    const char *limit;  /* what sets this, for messages: "the machine" */
    bool address_space; /* it limits addresses: stacks count, too */
} pl_ram;

/* The least memory left by the machine (MemAvailable), by the cgroup (v2) of
 * this process and its ancestors, and by its address space (RLIMIT_AS). */
pl_ram pl_ram_available(void);

/* The same from files under `root` instead of /, and an address space of
 * `most` bytes (-1: no limit): for tests. */
pl_ram pl_ram_read(const char *root, int64_t most);

/* The peak of this process in memory, in bytes; 0: not known.  (getrusage may
 * give the peak of the program that started this one.) */
int64_t pl_ram_peak(void);

#endif

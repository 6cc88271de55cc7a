/* steal.h - processor time that a hypervisor gave to other machines.
 *
 * The root folder is an argument, so that tests read made-up files; "" is the
 * machine's.
 *
 * Threads: any. */
#ifndef PL_BASE_HOST_STEAL_H
#define PL_BASE_HOST_STEAL_H

#include <stdint.h>

/* Ticks of all cores since the machine was booted; both 0: not known. */
typedef struct pl_steal {
    uint64_t stolen;
    uint64_t wanted; /* stolen ticks and those in which a core was busy */
} pl_steal;

pl_steal pl_steal_read(const char *root);

/* The share of the processor time wanted between two readings that was stolen;
 * 0: none, or nothing is known. */
double pl_steal_share(const pl_steal *before, const pl_steal *after);

#endif

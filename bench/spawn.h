/* spawn.h - run a program to its end: its output, time and resources.
 *
 * Threads: one. */
#ifndef BENCH_SPAWN_H
#define BENCH_SPAWN_H

#include "paceline/base.h"

#include <stddef.h>
#include <stdint.h>

typedef struct spawned {
    char text[16384]; /* standard output, NUL-terminated */
    double seconds;   /* from the fork to the end */
    int64_t peak_rss_bytes;
} spawned;

/* argv[0] is the path, a NULL ends the list.  PL_IO when it cannot be started
 * or does not end with status 0. */
pl_status spawn_run(spawned *out, const char *const *argv) PL_MUST_CHECK;

#endif

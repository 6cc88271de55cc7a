/* hosts.h - the hosts of a job, and who works where.
 *
 * Threads: constant once made. */
#ifndef PL_DIST_LAUNCH_HOSTS_H
#define PL_DIST_LAUNCH_HOSTS_H

#include "dist/cluster.h"

#define PL_HOSTS_MAX 1024

typedef struct pl_hosts {
    char **name; /* [count]: as ssh takes it, "b" or "me@b" */
    int32_t count;
} pl_hosts;

/* "a,me@b,c": PL_USAGE for an empty one, a repeated one, and letters that
 * no host has. */
pl_status pl_hosts_parse(pl_hosts *out, const char *text) PL_MUST_CHECK;
/* The nodes of a Slurm allocation: "n[1-3,7],m05". */
pl_status pl_hosts_slurm(pl_hosts *out, const char *nodes) PL_MUST_CHECK;
/* Those of a cluster's addresses. */
pl_status pl_hosts_of_cluster(pl_hosts *out,
                              const pl_cluster *cluster) PL_MUST_CHECK;
void pl_hosts_close(pl_hosts *hosts); /* a zeroed one is fine */

/* The name without the user: "b". */
const char *pl_hosts_address(const pl_hosts *hosts, int32_t host);
/* The host with this address, "b:4000", or -1. */
int32_t pl_hosts_find(const pl_hosts *hosts, const char *address);

#endif

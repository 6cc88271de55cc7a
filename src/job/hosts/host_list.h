/* host_list.h - the hosts of a job.
 *
 * Threads: constant once made. */
#ifndef PL_JOB_HOSTS_HOST_LIST_H
#define PL_JOB_HOSTS_HOST_LIST_H

#include "job/cluster/cluster.h"

#define PL_HOST_LIST_MAX 1024

typedef struct pl_host_list {
    char **name; /* [count]: for ssh, "b" or "me@b" */
    int32_t count;
} pl_host_list;

/* "a,me@b,c": PL_USAGE for an empty or repeated name, or invalid characters. */
pl_status pl_host_list_parse(pl_host_list *out, const char *text) PL_MUST_CHECK;
/* The nodes of a Slurm allocation: "n[1-3,7],m05". */
pl_status pl_host_list_slurm(pl_host_list *out,
                             const char *nodes) PL_MUST_CHECK;
/* The hosts of a cluster's addresses. */
pl_status pl_host_list_of_cluster(pl_host_list *out,
                                  const pl_cluster *cluster) PL_MUST_CHECK;
void pl_host_list_close(pl_host_list *hosts); /* may be zeroed */

/* The name without the user: "b". */
const char *pl_host_list_address(const pl_host_list *hosts, int32_t host);
/* The host with this address, "b:4000", or -1. */
int32_t pl_host_list_find(const pl_host_list *hosts, const char *address);

#endif

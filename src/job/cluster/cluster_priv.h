/* cluster_priv.h - what the readers of a cluster share. */
#ifndef PL_JOB_CLUSTER_CLUSTER_PRIV_H
#define PL_JOB_CLUSTER_CLUSTER_PRIV_H

#include "job/cluster/cluster.h"

/* The role called `name`, also by its old one. */
bool pl_cluster_role(const char *name, pl_role *role);

/* Digits without a leading zero, at most five of them; -1 for others. */
int32_t pl_cluster_number(const char *text);

/* {"chief": [...], "worker": [...], "ps": [...]}; with `open`, an address may
 * be "". */
pl_status pl_cluster_roles(pl_cluster *out, const pl_json *roles,
                           bool open) PL_MUST_CHECK;

#endif

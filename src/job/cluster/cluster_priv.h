/* cluster_priv.h - what the readers of a cluster share. */
#ifndef PL_JOB_CLUSTER_CLUSTER_PRIV_H
#define PL_JOB_CLUSTER_CLUSTER_PRIV_H

#include "job/cluster/cluster.h"

/* The role with this name, current or old. */
bool pl_cluster_role(const char *name, pl_role *role);

/* Digits without a leading zero, at most five of them; otherwise -1. */
int32_t pl_cluster_number(const char *text);

/* {"chief": [...], "worker": [...], "ps": [...]}; with `open`, an address may
 * be "". */
pl_status pl_cluster_roles(pl_cluster *out, const pl_json *roles,
                           bool open) PL_MUST_CHECK;

#endif

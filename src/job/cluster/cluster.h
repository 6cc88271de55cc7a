/* cluster.h - the tasks of a job and where they listen.
 *
 * It is read from a cluster file, from TF_CONFIG in TensorFlow's own format, or
 * from --workers and --ps.  The chief counts as a worker: a named chief is
 * worker 0 and TensorFlow's worker i is worker i + 1; without one, worker 0 is
 * the chief.
 *
 * Threads: constant once made. */
#ifndef PL_JOB_CLUSTER_CLUSTER_H
#define PL_JOB_CLUSTER_CLUSTER_H

#include "base/json/json.h"
#include "paceline/base.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum pl_role {
    PL_ROLE_CHIEF,
    PL_ROLE_WORKER,
    PL_ROLE_PS,
    PL_ROLE_EVALUATOR,
} pl_role;
const char *pl_role_text(pl_role role);   /* "chief" */
extern const char *const pl_role_names[]; /* by role, then NULL */

typedef struct pl_task {
    pl_role role;
    int32_t index; /* as the user sees it: TensorFlow's */
} pl_task;

#define PL_CLUSTER_WORKERS_MAX 1024
#define PL_CLUSTER_PS_MAX      1024

typedef struct pl_cluster {
    bool named_chief;
    bool evaluator;  /* the cluster has, or may have, one */
    int32_t workers; /* including the chief; >= 1 */
    int32_t ps;
    char **worker_address; /* [workers], or NULL if workers do not listen */
    char **ps_address;     /* [ps], "host:port"; NULL entry: not yet known */
} pl_cluster;

/* All tasks on this machine; ps addresses are not yet known. */
pl_status pl_cluster_local(pl_cluster *out, int32_t workers, int32_t ps,
                           bool evaluator) PL_MUST_CHECK;
/* Read a file of `--cluster`; `deploy` selects one of several entries, NULL:
 * the file must have exactly one. */
pl_status pl_cluster_read(pl_cluster *out, const char *path,
                          const char *deploy) PL_MUST_CHECK;
/* Whether a TF_CONFIG has a cluster and names the task of this process.
 * Without a cluster the run is local, as in TensorFlow; null and {} count as
 * empty. */
pl_status pl_cluster_tf_config_has(const char *text, bool *cluster,
                                   bool *task) PL_MUST_CHECK;
/* Read the text of TF_CONFIG; *task is the task of this process.  NULL: only
 * the cluster is read. */
pl_status pl_cluster_tf_config(pl_cluster *out, pl_task *task,
                               const char *text) PL_MUST_CHECK;
/* {"cluster": {"chief": [...], "worker": [...], "ps": [...]}} */
pl_status pl_cluster_json(const pl_cluster *cluster,
                          pl_json **out) PL_MUST_CHECK;
pl_status pl_cluster_from_json(pl_cluster *out,
                               const pl_json *json) PL_MUST_CHECK;
void pl_cluster_close(pl_cluster *cluster);

/* PL_USAGE, with a message, when the cluster has no such task. */
pl_status pl_cluster_check(const pl_cluster *cluster,
                           pl_task task) PL_MUST_CHECK;
/* 0 .. workers - 1; -1 for a ps or the evaluator. */
int32_t pl_cluster_worker(const pl_cluster *cluster, pl_task task);
/* The task that is worker number `worker`. */
pl_task pl_cluster_task(const pl_cluster *cluster, int32_t worker);
bool pl_cluster_is_chief(const pl_cluster *cluster, pl_task task);

#endif

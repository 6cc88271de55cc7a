/* cluster.c - the tasks of a job by role and index: local clusters, lookups,
 * and which worker is the chief. */
#include "job/cluster/cluster.h"

#include "base/assert.h"
#include "base/mem.h"

const char *const pl_role_names[] = {
    [PL_ROLE_CHIEF] = "chief",
    [PL_ROLE_WORKER] = "worker",
    [PL_ROLE_PS] = "ps",
    [PL_ROLE_EVALUATOR] = "evaluator",
    NULL,
};

const char *pl_role_text(pl_role role)
{
    return pl_role_names[role];
}

pl_status pl_cluster_local(pl_cluster *out, int32_t workers, int32_t ps,
                           bool evaluator)
{
    if (workers < 1 || workers > PL_CLUSTER_WORKERS_MAX)
        return PL_FAIL(PL_USAGE, "%d workers, expected 1 to %d", workers,
                       PL_CLUSTER_WORKERS_MAX);
    if (ps < 0 || ps > PL_CLUSTER_PS_MAX)
        return PL_FAIL(PL_USAGE, "%d parameter servers, expected 0 to %d", ps,
                       PL_CLUSTER_PS_MAX);
    pl_cluster cluster = { .evaluator = evaluator,
                           .workers = workers,
                           .ps = ps };
    if (ps > 0)
        PL_TRY(PL_NEW(cluster.ps_address, (size_t)ps));
    *out = cluster;
    return PL_OK;
}

static void free_addresses(char **addresses, int32_t count)
{
    for (int32_t i = 0; addresses != NULL && i < count; i++)
        pl_mem_free(addresses[i]);
    pl_mem_free(addresses);
}

void pl_cluster_close(pl_cluster *cluster)
{
    free_addresses(cluster->worker_address, cluster->workers);
    free_addresses(cluster->ps_address, cluster->ps);
    *cluster = (pl_cluster) { 0 };
}

/* "3 workers, 0 to 2" */
static pl_status no_such(pl_task task, int32_t count)
{
    if (count == 0)
        return PL_FAIL(PL_USAGE, "there is no %s %d: the cluster has no %s",
                       pl_role_text(task.role), task.index,
                       pl_role_text(task.role));
    return PL_FAIL(PL_USAGE,
                   "there is no %s %d: the cluster has %d, numbered from 0",
                   pl_role_text(task.role), task.index, count);
}

pl_status pl_cluster_check(const pl_cluster *cluster, pl_task task)
{
    int32_t count = 0;
    switch (task.role) {
    case PL_ROLE_CHIEF:
        if (!cluster->named_chief)
            return PL_FAIL(PL_USAGE, "the cluster names no chief: worker 0 is "
                                     "its chief");
        count = 1;
        break;
    case PL_ROLE_WORKER:
        count = cluster->workers - cluster->named_chief;
        break;
    case PL_ROLE_PS:
        count = cluster->ps;
        break;
    case PL_ROLE_EVALUATOR:
        count = cluster->evaluator;
        break;
    }
    if (task.index < 0 || task.index >= count)
        return no_such(task, count);
    return PL_OK;
}

int32_t pl_cluster_worker(const pl_cluster *cluster, pl_task task)
{
    switch (task.role) {
    case PL_ROLE_CHIEF:
        return 0;
    case PL_ROLE_WORKER:
        return task.index + cluster->named_chief;
    default:
        return -1;
    }
}

pl_task pl_cluster_task(const pl_cluster *cluster, int32_t worker)
{
    PL_ASSERT(worker >= 0 && worker < cluster->workers);
    if (cluster->named_chief && worker == 0)
        return (pl_task) { PL_ROLE_CHIEF, 0 };
    return (pl_task) { PL_ROLE_WORKER, worker - cluster->named_chief };
}

bool pl_cluster_is_chief(const pl_cluster *cluster, pl_task task)
{
    return pl_cluster_worker(cluster, task) == 0;
}

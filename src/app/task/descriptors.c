/* The number of descriptors that each kind of task needs, counted in
 * /proc/PID/fd of running jobs and rounded up, and whether the process may have
 * them. */
#include "app/task/descriptors.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* Standard streams, logs, records, data and checkpoint files, and a server's
 * descriptors other than connections. */
#define TASK          44
#define OF_WORKER     6 /* at a server: two connections, shared memory */
#define OF_SERVER     8 /* at a worker: a connection, its thread, memory */
#define OF_FELLOW     2 /* at a server: the connection of another one */
#define OF_RING       32
#define OF_MEMBER     4   /* of the ring, at its coordinator */
#define OF_PEER       6   /* of a matrix product: connections both ways */
#define OF_SUPERVISED 4   /* a task, at its supervisor */
#define STRANGERS     160 /* connections of others, beside the tasks' */
#define ALONE         24  /* a training in one process */

int64_t pl_descriptors_of_task(const pl_cluster *cluster, pl_task task)
{
    int64_t workers = cluster->workers, ps = cluster->ps;
    if (task.role == PL_ROLE_PS)
        return TASK + OF_WORKER * workers + OF_FELLOW * ps;
    if (ps > 0)
        return TASK + OF_SERVER * ps;
    bool coordinator = pl_cluster_is_chief(cluster, task);
    return TASK + OF_RING + (coordinator ? OF_MEMBER * workers : 0);
}

int64_t pl_descriptors_of_job(const pl_cluster *cluster)
{
    int64_t most = TASK + OF_SUPERVISED * (cluster->workers + cluster->ps);
    const pl_task tasks[] = { pl_cluster_task(cluster, 0), { PL_ROLE_PS, 0 } };
    for (size_t i = 0; i < (cluster->ps > 0 ? 2 : 1); i++) {
        int64_t need = pl_descriptors_of_task(cluster, tasks[i]);
        most = need > most ? need : most;
    }
    return most;
}

/* The limit is below `need` and may not be raised to it. */
static pl_status too_few(const pl_cluster *cluster, rlim_t need, rlim_t most)
{
    char whose[96] = "a training", fewer[] = " or use fewer tasks";
    if (cluster != NULL && cluster->ps == 0)
        snprintf(whose, sizeof whose, "a task of a job of %d workers",
                 cluster->workers);
    else if (cluster != NULL)
        snprintf(whose, sizeof whose,
                 "a task of a job of %d workers and %d servers",
                 cluster->workers, cluster->ps);
    return PL_FAIL(PL_USAGE,
                   "%s needs up to %llu open files, but this process may have "
                   "%llu at most: raise the limit (ulimit -n %llu)%s",
                   whose, (unsigned long long)need, (unsigned long long)most,
                   (unsigned long long)need, cluster != NULL ? fewer : "");
}

static pl_status ensure(const pl_cluster *cluster, rlim_t need, rlim_t more)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return PL_FAIL(PL_IO, "limit of open files: %s", strerror(errno));
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= need)
        return PL_OK;
    if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < need)
        return too_few(cluster, need, limit.rlim_max);
    limit.rlim_cur =
        limit.rlim_max == RLIM_INFINITY || limit.rlim_max > need + more
            ? need + more
            : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return PL_FAIL(PL_IO, "raise the limit of open files to %llu: %s",
                       (unsigned long long)need, strerror(errno));
    return PL_OK;
}

pl_status pl_descriptors_ensure(const pl_cluster *cluster, int64_t count)
{
    return ensure(cluster, (rlim_t)count, STRANGERS);
}

pl_status pl_descriptors_ensure_alone(void)
{
    return ensure(NULL, ALONE, 0);
}

pl_status pl_descriptors_ensure_product(int32_t workers)
{
    const pl_cluster cluster = { .workers = workers };
    return ensure(&cluster, (rlim_t)(TASK + OF_PEER * workers), 0);
}

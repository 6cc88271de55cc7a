/* matmul.h - shared by the files of `matmul`.
 *
 *   local.c    all workers on this machine: starts and watches them
 *   hosts.c    the same on several hosts, for `launch`
 *   task.c     one worker, started by these, by hand or by a launcher
 *
 * Threads: one. */
#ifndef PL_APP_MATMUL_MATMUL_H
#define PL_APP_MATMUL_MATMUL_H

#include "app/app.h"
#include "app/launch/launch.h"
#include "job/cluster/cluster.h"
#include "matmul/plan/placement.h"
#include "matmul/report.h"

typedef struct pl_matmul_flags {
    int64_t n, blocks, workers, threads, seed, index, join_timeout, control;
    int op, transport, role;
    const char *placement, *cluster, *keys;
    bool insecure, compare, json;
} pl_matmul_flags;

/* The command after its flags were read. */
typedef struct pl_matmul_command {
    const pl_app *app;
    pl_matmul_flags flags;
    pl_cluster cluster; /* of --cluster or TF_CONFIG; otherwise empty */
    bool has_task;      /* TF_CONFIG names this process's task: */
    pl_task task;
    pl_matmul_job job;
    pl_placement placement;
} pl_matmul_command;

/* The placement formula that `best` is compared with. */
#define PL_MATMUL_USUAL "(i+j)%W"

/* A worker's place in a job that mpirun or srun started. */
typedef struct pl_matmul_rank {
    int32_t rank, size;
    bool one_host;
} pl_matmul_rank;
/* False when no such launcher started this process. */
bool pl_matmul_rank_find(pl_matmul_rank *out);

pl_status pl_matmul_local(const pl_matmul_command *command) PL_MUST_CHECK;
/* One worker for each task of the cluster file, otherwise the command's number
 * of workers, assigned to the hosts in turn; argv is the command after
 * "matmul". */
pl_status pl_matmul_hosts(const pl_matmul_command *command,
                          pl_launch_hosts *hosts, int argc,
                          char **argv) PL_MUST_CHECK;
pl_status pl_matmul_task(const pl_matmul_command *command) PL_MUST_CHECK;

/* A folder for the workers' logs; the caller removes it, unless a message names
 * them. */
pl_status pl_matmul_logs(char **out) PL_MUST_CHECK;
/* Remove the logs of a job that succeeded or was interrupted; returns
 * `status`. */
pl_status pl_matmul_drop_logs(char *logs, pl_status status) PL_MUST_CHECK;

/* PL_USAGE when `bytes` exceeds the available memory. */
pl_status pl_matmul_memory(const pl_matmul_command *command, int64_t bytes,
                           const char *whose) PL_MUST_CHECK;

/* Print the result, with the bytes that the other placement would move and,
 * with --compare, the speed of the same product in this process. */
pl_status pl_matmul_print(const pl_matmul_command *command,
                          const pl_matmul_result *result) PL_MUST_CHECK;

#endif

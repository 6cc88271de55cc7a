/* launch.h - shared by the files of `launch` and `doctor`.
 *
 *   job.c     a training on several hosts
 *   copy.c    sends the program to them
 *   data.c    sends the data
 *   agent.c   the agent on a host, and its replies
 *
 * Threads: one. */
#ifndef PL_APP_LAUNCH_LAUNCH_H
#define PL_APP_LAUNCH_LAUNCH_H

#include "app/app.h"
#include "job/hosts/hosts.h"
#include "job/supervise/supervisor.h"

typedef struct pl_launch_flags {
    const char *hosts, *cluster, *deploy, *ssh, *program;
    bool copy, agent;
} pl_launch_flags;

/* The hosts and how they are reached. */
typedef struct pl_launch_hosts {
    pl_host_list list;
    pl_cluster cluster; /* of --cluster; otherwise empty */
    pl_reach reach;
    char *program; /* reach.program where the user gave none */
    char **copies; /* [list.count]: with --copy, its path on each host */
    pl_hosts hosts;
} pl_launch_hosts;

/* Find them from --hosts, --cluster or the nodes of a Slurm allocation.
 * PL_USAGE when there is none of these. */
pl_status pl_launch_hosts_init(pl_launch_hosts *hosts,
                               const pl_launch_flags *flags,
                               const atomic_bool *interrupt) PL_MUST_CHECK;
void pl_launch_hosts_close(pl_launch_hosts *hosts); /* a zeroed one is fine */

pl_status pl_launch_job(const pl_app *app, const pl_launch_flags *flags,
                        int argc, char **argv) PL_MUST_CHECK;
pl_status pl_launch_agent(const pl_app *app) PL_MUST_CHECK;

/* Print a line of a task on a host: the chief's standard output goes to ours,
 * other lines are shown with their task, unless `quiet`. */
void pl_launch_print(const pl_job_task *task, bool error, const char *line,
                     bool quiet);

/* srun forwards standard input unencrypted over its own connections.  With srun
 * the secret is passed in a file in `folder`, which all nodes share and the
 * caller removes.  *out is NULL where none is needed. */
pl_status pl_launch_secret_file(const pl_launch_hosts *hosts,
                                const pl_secret *secret, const char *folder,
                                char **out) PL_MUST_CHECK;

/* A file to be sent. */
typedef struct pl_launch_file {
    const char *path;
    const char *name;   /* for messages */
    const char *script; /* reads standard input, and prints a line */
    int64_t ms;         /* time limit */
} pl_launch_file;

/* Run the script on every host at once.  Its last line goes to answers[], which
 * the caller frees, also on failure. */
pl_status pl_launch_send(const pl_launch_file *file, const pl_host_list *hosts,
                         const pl_reach *reach, char **answers,
                         const atomic_bool *interrupt) PL_MUST_CHECK;

/* Send the files of these sources (--data) to the same paths on every host that
 * does not have them with the same SHA-256.  NULL is not a source. */
pl_status pl_launch_data(const pl_launch_hosts *hosts,
                         const char *const *sources, size_t count,
                         const atomic_bool *interrupt) PL_MUST_CHECK;

/* Send this program to every host; copies[] gets its paths there. */
pl_status pl_launch_copy(const pl_host_list *hosts, const pl_reach *reach,
                         char **copies,
                         const atomic_bool *interrupt) PL_MUST_CHECK;

#endif

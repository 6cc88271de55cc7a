/* launch.h - what the files of `launch` and `doctor` share.
 *
 *   job.c     a training on several hosts
 *   copy.c    sending the program there
 *   agent.c   the agent on a host, and what it answers
 *
 * Threads: one. */
#ifndef PL_APP_LAUNCH_LAUNCH_H
#define PL_APP_LAUNCH_LAUNCH_H

#include "app/app.h"
#include "job/hosts/hosts.h"

typedef struct pl_launch_flags {
    const char *hosts, *cluster, *ssh, *program;
    bool copy, agent;
} pl_launch_flags;

/* The hosts and how they are reached. */
typedef struct pl_launch_hosts {
    pl_host_list list;
    pl_cluster cluster; /* of --cluster; else empty */
    pl_reach reach;
    char *program; /* reach.program where it was not given */
    char **copies; /* [list.count]: with --copy, the program there */
    pl_hosts hosts;
} pl_launch_hosts;

/* By --hosts, --cluster or the nodes of a Slurm allocation. PL_USAGE when
 * there is none of these. */
pl_status pl_launch_hosts_init(pl_launch_hosts *hosts,
                               const pl_launch_flags *flags,
                               const atomic_bool *interrupt) PL_MUST_CHECK;
void pl_launch_hosts_close(pl_launch_hosts *hosts); /* a zeroed one is fine */

pl_status pl_launch_job(const pl_app *app, const pl_launch_flags *flags,
                        int argc, char **argv) PL_MUST_CHECK;
pl_status pl_launch_agent(const pl_app *app) PL_MUST_CHECK;

/* Send this program to every host; where it is there goes to copies[]. */
pl_status pl_launch_copy(const pl_host_list *hosts, const pl_reach *reach,
                         char **copies,
                         const atomic_bool *interrupt) PL_MUST_CHECK;

#endif

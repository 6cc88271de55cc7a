/* hosts.h - the agents of all hosts of a job.
 *
 * Threads: one, which must not end before the agents. */
#ifndef PL_JOB_HOSTS_HOSTS_H
#define PL_JOB_HOSTS_HOSTS_H

#include "job/hosts/host_list.h"
#include "job/hosts/remote.h"

#include <stdatomic.h>

typedef struct pl_hosts {
    const pl_host_list *list;
    pl_remote *remotes; /* [list.count] */
    pl_remote **all;    /* the same, as pointers */
    bool *asked;        /* [count]: an answer is awaited */
    int32_t started;    /* of the remotes */
    const atomic_bool *interrupt;
} pl_hosts;

typedef struct pl_hosts_opts {
    const pl_host_list *list;     /* required; all pointers are borrowed */
    const pl_reach *reach;        /* required */
    const char *const *programs;  /* of each host; NULL: reach's */
    int64_t connect_ms;           /* for all to answer; default 20000 */
    const atomic_bool *interrupt; /* give up; or NULL */
} pl_hosts_opts;

/* Connect to all hosts at once.  If one cannot be used, the message has its
 * name and the reason; if several, each is logged. */
pl_status pl_hosts_init(pl_hosts *hosts,
                        const pl_hosts_opts *opts) PL_MUST_CHECK;
void pl_hosts_close(pl_hosts *hosts); /* may be zeroed */

/* Send a question to one host; takes ownership of *take, also on failure. */
pl_status pl_hosts_ask(pl_hosts *hosts, int32_t host,
                       pl_json *take) PL_MUST_CHECK;
/* Wait for all outstanding answers; failures as above. */
pl_status pl_hosts_wait(pl_hosts *hosts, int64_t limit_ms) PL_MUST_CHECK;
/* The answer of a host; borrowed until its next question. */
pl_status pl_hosts_answer(const pl_hosts *hosts, int32_t host,
                          const pl_json **out) PL_MUST_CHECK;

#endif

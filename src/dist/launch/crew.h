/* crew.h - the agents of all hosts of a job.
 *
 * Threads: one, which stays. */
#ifndef PL_DIST_LAUNCH_CREW_H
#define PL_DIST_LAUNCH_CREW_H

#include "dist/launch/hosts.h"
#include "dist/launch/remote.h"

#include <stdatomic.h>

typedef struct pl_crew {
    const pl_hosts *hosts;
    pl_remote *remotes; /* [hosts.count] */
    pl_remote **all;    /* the same, as pointers */
    bool *asked;        /* [count]: an answer is awaited */
    int32_t started;    /* of the remotes */
    const atomic_bool *interrupt;
} pl_crew;

typedef struct pl_crew_opts {
    const pl_hosts *hosts;        /* required; all are borrowed */
    const pl_reach *reach;        /* required */
    const char *const *programs;  /* of each host; NULL: reach's */
    int64_t connect_ms;           /* for all to answer; default 20000 */
    const atomic_bool *interrupt; /* give up; or NULL */
} pl_crew_opts;

/* Connect to all hosts at once.  When one cannot be used the message names it
 * and the reason; of several, each is named in the log. */
pl_status pl_crew_init(pl_crew *crew, const pl_crew_opts *opts) PL_MUST_CHECK;
void pl_crew_close(pl_crew *crew); /* a zeroed one is fine */

/* Ask one of them; *take is the crew's. */
pl_status pl_crew_ask(pl_crew *crew, int32_t host, pl_json *take) PL_MUST_CHECK;
/* Wait until all who were asked have answered; failures as above. */
pl_status pl_crew_wait(pl_crew *crew, int64_t limit_ms) PL_MUST_CHECK;
/* What it answered; the crew's until it is asked again. */
pl_status pl_crew_answer(const pl_crew *crew, int32_t host,
                         const pl_json **out) PL_MUST_CHECK;

#endif

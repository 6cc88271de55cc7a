/* agent.h - the agent of a launcher on another host.
 *
 * ssh or srun starts it; it communicates with the launcher over its standard
 * input and output (agent_channel.h).  It makes no decisions: it starts tasks
 * as its children, sends their output and exit status, and answers questions.
 * When its input ends, or the launcher is silent for a while, it ends its tasks
 * and itself: no process is left on a host that was disconnected.
 *
 * It handles start, signal, end, heartbeat, record and the questions "ports",
 * "place", "stored" and "records" (records/place.h), and passes other questions
 * to pl_agent_opts.answer (job/supervise/messages.h).
 *
 * Threads: one, which must not end before the tasks: they die with it. */
#ifndef PL_JOB_HOSTS_AGENT_H
#define PL_JOB_HOSTS_AGENT_H

#include "job/hosts/agent_channel.h"

#define PL_AGENT_HEARTBEAT_MS 500
#define PL_AGENT_SILENT_MS    15000 /* of the launcher, before all tasks end */

typedef struct pl_agent_opts {
    int in, out; /* to and from the launcher; owned by the agent */
    /* Answer a question: fill `answer`, or fail with a message. */
    pl_status (*answer)(void *context, const pl_json *question,
                        pl_json *answer);
    void *context;
    const char *cache; /* for run folders not shared with the launcher; NULL: no
                          such folder can be made */
    int64_t silent_ms; /* default PL_AGENT_SILENT_MS */
} pl_agent_opts;

/* Returns when the launcher has closed and all tasks have ended.  PL_CLOSED
 * when the launcher closed without requesting the end. */
pl_status pl_agent_run(const pl_agent_opts *opts) PL_MUST_CHECK;

#endif

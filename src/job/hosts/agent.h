/* agent.h - what runs on another host for a launcher.
 *
 * ssh or srun starts it there; it speaks with the launcher over its standard
 * input and output (agent_channel.h).  It decides nothing: it starts tasks as
 * its children, sends what they print and how they end, and answers questions.
 * When its input ends, or the launcher is silent for a while, it ends its tasks
 * and itself: nothing stays behind on a host that was cut off.
 *
 * It understands start, signal, end, heartbeat, record and the questions
 * "ports", "place", "stored" and "records" (records/place.h), and passes other
 * questions to pl_agent_opts.answer (job/supervise/messages.h).
 *
 * Threads: one, which stays: the tasks die with it. */
#ifndef PL_JOB_HOSTS_AGENT_H
#define PL_JOB_HOSTS_AGENT_H

#include "job/hosts/agent_channel.h"

#define PL_AGENT_HEARTBEAT_MS 500
#define PL_AGENT_SILENT_MS    15000 /* of the launcher, until all is ended */

typedef struct pl_agent_opts {
    int in, out; /* the launcher's; the agent's from here on */
    /* Answer a question: fill `answer`, or fail with a sentence. */
    pl_status (*answer)(void *context, const pl_json *question,
                        pl_json *answer);
    void *context;
    const char *cache; /* for run folders that the launcher's hosts do not
                          share; NULL: none can be kept here */
    int64_t silent_ms; /* default PL_AGENT_SILENT_MS */
} pl_agent_opts;

/* Stay until the launcher has closed and all tasks have ended.  PL_CLOSED
 * when it went without asking for the end first. */
pl_status pl_agent_run(const pl_agent_opts *opts) PL_MUST_CHECK;

#endif

/* sim_scale.h - a large parameter-server job in one process: how much work is
 * a step for server 0?
 *
 * The real cores and worker machines, as in sim.h, with many more of them and
 * a network that loses nothing.  A worker in fifty is killed and restarted once
 * server 0 has declared it lost.  Messages are delivered in rounds, node by
 * node, so that the processor time of server 0's core can be measured round by
 * round.
 *
 * Threads: one simulation, one thread. */
#ifndef PL_TESTS_SIM_SIM_SCALE_H
#define PL_TESTS_SIM_SIM_SCALE_H

#include "paceline/base.h"
#include "sync/ps/messages/protocol.h"

typedef struct pl_sim_scale_opts {
    int32_t workers, servers;
    int64_t steps; /* in async: gradients of each worker */
    pl_ps_mode mode;
    int32_t staleness; /* ssp */
} pl_sim_scale_opts;

typedef struct pl_sim_scale {
    int64_t updates;
    int64_t messages; /* that server 0 received */
    int64_t sent;     /* ... and sent */
    int32_t lost;     /* workers that it declared lost */
    /* Processor time of its core: for messages, with putting what it sends into
     * queues; and for ticks of the clock. */
    double message_s, tick_s;
} pl_sim_scale;

/* PL_NOMEM; PL_CLOSED: the job failed, or ended with other parameters than the
 * sum of its gradients. */
pl_status pl_sim_scale_run(const pl_sim_scale_opts *opts,
                           pl_sim_scale *out) PL_MUST_CHECK;

#endif

/* sim.h - a whole parameter-server job in one process, under a seed.
 *
 * Servers (core.h), workers and their chief (worker.h), perhaps an evaluator,
 * and a network that loses, delays, doubles and reorders messages and is cut
 * for seconds, also into groups and in one direction.  Each node has its own
 * clock, which drifts and jumps, forward and back, and may be slow; disks are
 * slow and fail.  Workers and servers are killed, also in the middle of a
 * checkpoint or a push, frozen, interrupted and restarted, on machines that
 * were booted meanwhile; workers get stuck, or are gone for good; and strangers
 * claim a false identity.  The seed decides everything, so a run that fails
 * fails again.
 *
 * At every event it is checked that
 *   - a server's parameters are the sum of whole gradients, each known by
 *     itself and applied once (sim_ledger.c); every worker receives the outcome
 *     of its own, and in async and ssp all servers agree on it;
 *   - in sync, each gradient is computed on the parameters of one step, the
 *     same on all servers, and each step is made of the same gradients there;
 *     with all workers they are exactly those of one process, to the end, the
 *     optimizer's slots included;
 *   - no ssp worker is further ahead than allowed;
 *   - the chief ends with the parameters the servers end with, and the last
 *     checkpoint has them;
 *   - a checkpoint has the same gradients on all servers, and is complete;
 *   - the data of a worker that is gone for good is read by the others, each
 *     part of it once;
 *   - the job ends, or reports why.
 *
 * Parameters are dense or keyed.  Workers and evaluator are the real machine
 * (worker.h), the real course of a training (course.h) and the real heartbeat
 * (pulse.h); only what they compute is made up.
 *
 * Threads: one simulation, one thread. */
#ifndef PL_TESTS_SIM_SIM_H
#define PL_TESTS_SIM_SIM_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct pl_sim_result {
    bool good;         /* no invariant was broken */
    bool ended_well;   /* the job did what it was to do, or failed with: */
    char why[512];     /* what broke, or why the job failed */
    char setting[256]; /* what the seed chose */
    int64_t steps;
    int64_t events, lost, doubled; /* messages */
    int32_t kills, server_kills, freezes, cuts;
    int32_t saves; /* complete checkpoints */
    int32_t intrusions;
    double seconds; /* of simulated time */
} pl_sim_result;

typedef struct pl_sim_opts {
    uint64_t seed;
    bool verbose; /* print what happens, on standard output */
    bool by_hand; /* a worker declared lost is not killed: it may come back */
} pl_sim_opts;

/* Run one job.  PL_NOMEM is the only failure of the call itself. */
pl_status pl_sim_run(const pl_sim_opts *opts,
                     pl_sim_result *result) PL_MUST_CHECK;

#endif

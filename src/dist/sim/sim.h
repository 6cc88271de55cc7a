/* sim.h - a whole parameter-server job in one process, under a seed.
 *
 * Servers (ps_core.h), workers and their chief (ps_client.h), a clock and a
 * network that loses, delays, doubles and reorders messages and is cut for
 * seconds; workers are killed, frozen and started anew.  The seed decides
 * everything, so a run that fails fails again.
 *
 * At every event it is checked that
 *   - in sync with all workers, each gradient is computed on exactly the
 *     parameters one process would have at that step, and the end is the
 *     same bit for bit;
 *   - each update is made once: not lost, not doubled;
 *   - no ssp worker is further ahead than allowed;
 *   - the job ends, or says why.
 *
 * Threads: one simulation, one thread. */
#ifndef PL_DIST_SIM_SIM_H
#define PL_DIST_SIM_SIM_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct pl_sim_result {
    bool good;         /* no invariant was broken */
    bool ended_well;   /* the job did what it was to do, or says: */
    char why[512];     /* what broke, or why the job failed */
    char setting[256]; /* what the seed chose */
    int64_t steps;
    int64_t events, lost, doubled; /* messages */
    int32_t kills, server_kills, freezes, cuts;
    double seconds; /* of simulated time */
} pl_sim_result;

/* Run one job.  PL_NOMEM is the only failure of the call itself. */
pl_status pl_sim_run(uint64_t seed, bool verbose,
                     pl_sim_result *result) PL_MUST_CHECK;

#endif

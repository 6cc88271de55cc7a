/* sim_ring.h - a whole all-reduce job over a ring in one process, under a seed.
 *
 * Each worker runs the product's own code: the ring's core, the membership
 * machine in it, and pl_allreduce_sync above, on a stack of its own that is
 * left whenever it waits.  The network keeps the order of a connection, delays,
 * and is cut for seconds, also in one direction.  Each host has its own clock,
 * which drifts and jumps, forward and back.  Workers are killed, also together
 * and during a rendezvous, and restarted or not; frozen; and slow.
 *
 * Checked at every commit, join and end:
 *   S1  parameters of step s are those of step s - 1 less exactly one gradient
 *       of each worker in one set, which contains the chief and is as large as
 *       the ring was
 *   S2  all workers that make step s hold the same bits (sums R4)
 *   S3  a worker that joins gets the parameters of the chief's step
 *   S4  the job ends, or reports why; without faults it ends well
 *
 * Threads: one simulation, one thread. */
#ifndef PL_TESTS_SIM_SIM_RING_H
#define PL_TESTS_SIM_SIM_RING_H

#include "sim/sim.h"

/* As pl_sim_run; `steps` of the result are the chief's. */
pl_status pl_sim_ring_run(const pl_sim_opts *opts,
                          pl_sim_result *result) PL_MUST_CHECK;

#endif

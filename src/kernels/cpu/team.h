/* team.h - our loops on the threads that oneDNN works on.
 *
 * OpenMP's threads go on spinning for milliseconds after each operation.
 * Threads of our own would have to share the cores with them, so whatever
 * runs between two of its operations runs on the same threads.
 *
 * Threads: any thread may call; each has a team of its own. */
#ifndef PL_KERNELS_CPU_TEAM_H
#define PL_KERNELS_CPU_TEAM_H

#include "base/thread.h"

/* Run job(arg, i, thread) for i = 0 .. items-1, each once, on whichever of
 * the threads comes first; return when all are done. */
void pl_team_run(int threads, int items, pl_pool_job *job, void *arg);

#endif

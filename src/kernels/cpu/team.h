/* team.h - our loops on oneDNN's threads.
 *
 * OpenMP threads keep spinning for milliseconds after each operation. Our own
 * threads would have to share the cores with them, so work between two oneDNN
 * operations runs on the same threads.
 *
 * Threads: any thread may call; each has its own team. */
#ifndef PL_KERNELS_CPU_TEAM_H
#define PL_KERNELS_CPU_TEAM_H

#include "base/thread.h"

/* Run job(arg, i, thread) for i = 0 .. items-1, each once, on any thread;
 * returns when all are done. */
void pl_team_run(int threads, int items, pl_pool_job *job, void *arg);

#endif

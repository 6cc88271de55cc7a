/* mover.h - the thread that moves blocks between the workers of a job.
 *
 * It answers the others' requests for blocks, fetches those of later steps
 * while the current one is computed, and handles the rendezvous: worker 0 waits
 * until all are ready, starts them, collects their reports and lets them leave.
 * A worker that is silent for a while is named, and the job ends on all
 * workers.
 *
 * Each worker listens, and connects to every other one it needs; on the same
 * host blocks are read from the other's memory.
 *
 * Threads: only the computing thread calls these functions. */
#ifndef PL_MATMUL_MOVER_H
#define PL_MATMUL_MOVER_H

#include "matmul/plan/plan.h"
#include "matmul/store.h"
#include "net/endpoint.h"

#include <stdbool.h>

typedef struct pl_mover pl_mover;

typedef struct pl_mover_opts {
    const pl_placement *placement; /* required; all pointers are borrowed */
    const pl_matmul_plan *plan;    /* required */
    const pl_store *store;         /* required */
    int32_t worker;
    const char *job;         /* required: a text that is the same at all
                                workers */
    const char *address;     /* required: to listen on, "127.0.0.1:0" */
    const pl_secret *secret; /* of the job; NULL: no authentication */
    const pl_transport *transport;
    int64_t join_ms;              /* for all to join; default 60000 */
    int64_t silence_ms;           /* until a worker is lost; default 5000 */
    bool (*ended)(void *context); /* the user requested the end; or NULL */
    void *context;
} pl_mover_opts;

typedef struct pl_mover_counts {
    int64_t fetched_bytes; /* of blocks, from other workers */
    int64_t served_bytes;  /* to them */
} pl_mover_counts;

/* Listen. */
pl_status pl_mover_new(pl_mover **out, const pl_mover_opts *opts) PL_MUST_CHECK;
void pl_mover_free(pl_mover *mover); /* ends the thread; may be NULL */
const char *pl_mover_address(const pl_mover *mover);

/* Begin the rendezvous, with the addresses of all workers, which are copied. */
pl_status pl_mover_start(pl_mover *mover, char *const *addresses) PL_MUST_CHECK;

/* The own blocks are filled: wait until those of all workers are.  A failure of
 * any worker is the status of this and of the waits below. */
pl_status pl_mover_ready(pl_mover *mover) PL_MUST_CHECK;

/* Wait for the fetched blocks of a step; the memory is valid until released.
 * Steps are processed in order. */
pl_status pl_mover_await(pl_mover *mover, int32_t step,
                         const float **wants) PL_MUST_CHECK;
void pl_mover_release(pl_mover *mover, int32_t step);

/* All is computed: submit the report, and serve the others until all are
 * done. */
pl_status pl_mover_finish(pl_mover *mover, const char *report) PL_MUST_CHECK;
/* Worker 0, afterwards: the report of another worker; owned by the mover. */
const char *pl_mover_report(const pl_mover *mover, int32_t worker);

pl_mover_counts pl_mover_count(pl_mover *mover);

#endif

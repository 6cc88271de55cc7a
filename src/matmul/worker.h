/* worker.h - one worker of a distributed matrix product.
 *
 * Makes its blocks, waits for the others, computes its part while the mover
 * fetches missing blocks, checks samples of it against exactly computed
 * entries, and reports.
 *
 * Threads: one, besides those of the mover and of the products. */
#ifndef PL_MATMUL_WORKER_H
#define PL_MATMUL_WORKER_H

#include "matmul/mover.h"
#include "matmul/report.h"

typedef struct pl_matmul_opts {
    const pl_placement *placement; /* required; all pointers are borrowed */
    const char *placed_by;         /* required: "best" or the formula */
    int32_t worker;
    int threads;                   /* of the products; default 1 */
    const char *address;           /* required: to listen on */
    char *const *addresses;        /* of all; NULL: `meet` returns them */
    const pl_secret *secret;       /* NULL: no authentication */
    const pl_transport *transport; /* as pl_endpoint_opts.transport */
    int64_t join_ms;               /* for all to join; default 60000 */
    /* Publish the address of this worker and get those of all, which stay valid
     * until the end. */
    pl_status (*meet)(void *context, const char *address,
                      char *const **addresses);
    bool (*ended)(void *context); /* the user requested the end; or NULL */
    void *context;
} pl_matmul_opts;

/* Run to the end.  Worker 0 gets the result in *out, which it closes
 * (pl_fields_close); all others get a zeroed one.  PL_NUMERIC when an entry is
 * wrong: the message names the worker. */
pl_status pl_matmul_work(pl_matmul_result *out,
                         const pl_matmul_opts *opts) PL_MUST_CHECK;

#endif

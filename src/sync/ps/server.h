/* server.h - a parameter server process: the core around the network.
 *
 * It listens at once and learns from the first task that joins how many
 * parameters there are: a server needs neither the model nor the data.
 *
 * Threads: one. */
#ifndef PL_SYNC_PS_SERVER_H
#define PL_SYNC_PS_SERVER_H

#include "net/endpoint.h"
#include "state/place.h"
#include "sync/ps/core/core.h"

#include <stdatomic.h>

typedef struct pl_ps_server pl_ps_server;

typedef struct pl_ps_server_opts {
    pl_ps_core_opts core; /* without memory, part of the block, optimizer,
                             schedule, length and callbacks */
    pl_optim_opts optim;
    pl_schedule schedule;
    const char *address; /* to listen on */
    pl_place place;      /* of checkpoints: nothing else is read or written */
    const pl_transport *transport;   /* as pl_endpoint_opts.transport */
    const pl_job_keys *keys;         /* NULL: anybody may come */
    const atomic_bool *interrupt;    /* end the job; or NULL */
    pl_trace *trace;                 /* one lane, or NULL */
    int64_t trace_first, trace_last; /* steps; a first of 0: the `last` from
                                        where it begins */
    /* All optional.  Is the chief's run folder, which is elsewhere than
     * `place`, that of this job, written by this user?  Default: no. */
    bool (*shares)(void *context, uint64_t job, const char *run);
    void (*lost)(void *context, bool is_server, int32_t index);
    void (*step)(void *context, int64_t step); /* now and then; -1 as long as
                                                  no worker has joined */
    void *context;
} pl_ps_server_opts;

pl_status pl_ps_server_new(pl_ps_server **out,
                           const pl_ps_server_opts *opts) PL_MUST_CHECK;
void pl_ps_server_free(pl_ps_server *server); /* NULL is fine */
const char *pl_ps_server_address(const pl_ps_server *server);

/* Serve until the job is over.  `coordinator` is server 0's address, for the
 * others. */
pl_status pl_ps_server_run(pl_ps_server *server,
                           const char *coordinator) PL_MUST_CHECK;

typedef struct pl_ps_server_view {
    bool initialized; /* these as pl_ps_core_view has them */
    int64_t step, updates, accepted, behind, dropped;
    double waited_s; /* for messages, in all */
    pl_endpoint_counts net;
    pl_skew skew;    /* of server 0's clock */
    const char *run; /* the chief's run folder; until the next message */
    uint64_t run_job;
} pl_ps_server_view;
pl_ps_server_view pl_ps_server_look(const pl_ps_server *server);
/* This worker, once it is lost, does not come back; from `step` only. */
void pl_ps_server_gone(pl_ps_server *server, int32_t worker);

#endif

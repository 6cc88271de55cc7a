/* server.h - a parameter server process: connects the core to the network.
 *
 * It listens immediately and learns the number of parameters from the first
 * worker that joins: a server needs neither the model nor the data.
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
    pl_ps_core_opts core; /* without memory, partition, optimizer, schedule,
                             length and callbacks */
    pl_optim_opts optim;
    pl_schedule schedule;
    const char *address; /* to listen on */
    pl_place place;      /* of checkpoints: the only files read or written */
    const pl_transport *transport;   /* as pl_endpoint_opts.transport */
    const pl_job_keys *keys;         /* NULL: no authentication */
    const atomic_bool *interrupt;    /* end the job; or NULL */
    pl_trace *trace;                 /* one lane, or NULL */
    int64_t trace_first, trace_last; /* steps; a first of 0: the first `last`
                                        steps of this run */
    /* All optional.  Whether the chief's run folder, which differs from
     * `place`, belongs to this job and user.  Default: no. */
    bool (*shares)(void *context, uint64_t job, const char *run);
    void (*lost)(void *context, bool is_server, int32_t index);
    void (*step)(void *context, int64_t step); /* periodically; -1 until a
                                                  worker has joined */
    void *context;
} pl_ps_server_opts;

pl_status pl_ps_server_new(pl_ps_server **out,
                           const pl_ps_server_opts *opts) PL_MUST_CHECK;
void pl_ps_server_free(pl_ps_server *server); /* may be NULL */
const char *pl_ps_server_address(const pl_ps_server *server);

/* Serve until the job is over.  `coordinator` is server 0's address, for the
 * others. */
pl_status pl_ps_server_run(pl_ps_server *server,
                           const char *coordinator) PL_MUST_CHECK;

typedef struct pl_ps_server_view {
    bool initialized; /* as in pl_ps_core_view */
    int64_t step, updates, accepted, behind, dropped;
    double waited_s; /* for messages, in total */
    pl_endpoint_counts net;
    pl_skew skew;    /* of server 0's clock */
    const char *run; /* the chief's run folder; until the next message */
    uint64_t run_job;
} pl_ps_server_view;
pl_ps_server_view pl_ps_server_look(const pl_ps_server *server);
/* This worker will not rejoin once it is lost; to be called from `step`
 * only. */
void pl_ps_server_gone(pl_ps_server *server, int32_t worker);

#endif

/* engine.h - the engine `ring`: workers around a ring, over src/net.
 *
 * For workers that people start by hand, in any order, on one host or many.
 * Payloads stay in the memory of the sums where it is shared (one host) and
 * take TCP elsewhere; with keys everyone proves who it is, and beyond loopback
 * all is encrypted.
 *
 * Design.  The core (core.h) is driven by one of two threads at a time:
 * by the caller while it waits, and by the engine's own thread while the
 * caller computes.  That one sleeps on the network while sums are under way,
 * and otherwise looks after heartbeats ten times a second, so that a caller
 * with a small model never waits for it.  Who wants to drive takes `lock`, asks
 * (`wanted`, `wake`) and waits until the other has let go; `lock` is never
 * held while messages are handled.
 *
 * Threads: as pl_collective; it has one of its own. */
#ifndef PL_SYNC_ALLREDUCE_RING_ENGINE_H
#define PL_SYNC_ALLREDUCE_RING_ENGINE_H

#include "job/cluster/cluster.h"
#include "net/endpoint.h"
#include "sync/allreduce/collective.h"
#include "sync/codec.h"
#include "sync/ps/server.h"

typedef struct pl_ring_engine_opts {
    const pl_cluster *cluster; /* with the workers' addresses; all is borrowed
                                  and outlives the engine */
    int32_t worker;
    pl_endpoint *listen;           /* where the others find this worker */
    const pl_job_keys *keys;       /* NULL: no authentication */
    int64_t floats, extra;         /* as in core.h */
    const pl_codec *codec;         /* of gradients; default plain */
    const pl_transport *transport; /* as pl_endpoint_opts.transport */
    bool encrypt;                  /* on loopback, too */
    pl_on_loss on_loss;
    int64_t heartbeat_ms, join_ms, rejoin_ms; /* as in core.h */
    const pl_kernels *kernels;
    const atomic_bool *interrupt; /* while waiting to join; or NULL */
    /* Optional: a worker is silent.  From any thread. */
    void (*lost)(void *context, int32_t worker);
    void *context;
} pl_ring_engine_opts;

/* The most that pl_ranks.grain is, of two ranks and more. */
int64_t pl_ring_engine_grain(int64_t floats);

pl_status pl_ring_engine_new(pl_collective **out,
                             const pl_ring_engine_opts *opts) PL_MUST_CHECK;

#endif

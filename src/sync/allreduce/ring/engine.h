/* engine.h - the engine `ring`: workers around a ring, over src/net.
 *
 * For workers that are started by hand, in any order, on one host or many.  On
 * one host payloads stay in the shared memory of the sums; between hosts they
 * travel by TCP.  With keys every worker authenticates, and beyond loopback all
 * traffic is encrypted.
 *
 * Design.  The core (core.h) is driven by one of two threads at a time: by the
 * caller while it waits, and by the engine's own thread while the caller
 * computes.  The latter sleeps on the network while sums are under way, and
 * otherwise handles heartbeats ten times a second, so that a caller with a
 * small model never waits for it.  The caller takes over by taking `lock`,
 * setting `wanted`, signalling `wake` and waiting until the other thread has
 * let go; `lock` is never held while messages are handled.
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
    const pl_cluster *cluster; /* with the workers' addresses; all pointers are
                                  borrowed and outlive the engine */
    int32_t worker;
    pl_endpoint *listen;           /* where this worker listens */
    const pl_job_keys *keys;       /* NULL: no authentication */
    int64_t floats, extra;         /* as in core.h */
    const pl_codec *codec;         /* of gradients; default plain */
    const pl_transport *transport; /* as pl_endpoint_opts.transport */
    bool encrypt;                  /* also on loopback */
    pl_on_loss on_loss;
    int64_t heartbeat_ms, join_ms, rejoin_ms; /* as in core.h */
    const pl_kernels *kernels;
    const atomic_bool *interrupt; /* while waiting to join; or NULL */
    /* Optional: a worker is silent.  From any thread. */
    void (*lost)(void *context, int32_t worker);
    void *context;
} pl_ring_engine_opts;

/* The largest possible pl_ranks.grain for two or more ranks. */
int64_t pl_ring_engine_grain(int64_t floats);

pl_status pl_ring_engine_new(pl_collective **out,
                             const pl_ring_engine_opts *opts) PL_MUST_CHECK;

#endif

/* core.h - the ring of workers without input or output: messages and
 * clock ticks in, messages out.
 *
 * Two networks connect the same workers.  The hub: every worker has a
 * connection to the chief, which decides which workers take part (a
 * generation), combines their statuses and detects losses.  The ring: each
 * worker sends pieces of sums to the next one of the generation's roster.
 * docs/formats/wire.md describes the protocol.
 *
 * A sum.  The memory is cut into stripes; stripe s starts at rank s % ranks;
 * each rank that receives it adds its own numbers (reduce-scatter); it is
 * complete at the last rank and travels round once more to be copied
 * (all-gather): 2 (ranks - 1) hops.  All stripes are under way at once, each
 * link carries 2 (ranks - 1) / ranks of the bytes, and the order of addition
 * depends only on the stripe's place.  A piece is sent when the next rank has
 * started the sum (READY), so no rank has to buffer pieces that it cannot use
 * yet.
 *
 * All stripes of a sum in the order of ranks start at rank 0: a pipeline
 * instead of a ring, in which a link carries up to twice the bytes.  A
 * broadcast is the second half of a sum, from the rank that has the numbers:
 * ranks - 1 hops.
 *
 * The time of a small block is that of its messages, not of its bytes: over TCP
 * pieces are sent immediately and buffered by ranks that have not started, and
 * two ranks send each other everything instead of halves to add and sums to
 * copy.  The bits are the same.
 *
 * Sums of gradients go through a codec (sync/codec.h): each rank encodes a
 * piece once, when it has added its own; a complete sum travels round as it was
 * encoded, and the rank that completed it continues with the decoded numbers
 * like the others, so that all have the same bits.
 *
 * Threads: one at a time. */
#ifndef PL_SYNC_ALLREDUCE_RING_CORE_H
#define PL_SYNC_ALLREDUCE_RING_CORE_H

#include "base/host/skew.h"
#include "job/member/liveness.h"
#include "kernels/backend.h"
#include "net/endpoint.h"
#include "sync/allreduce/collective.h"
#include "sync/codec.h"

typedef struct pl_ring_core pl_ring_core;

/* The destination or source of a message: one of these, or a peer of the own
 * listening endpoint. */
#define PL_RING_HUB  (-1) /* the chief */
#define PL_RING_NEXT (-2)

typedef struct pl_ring_core_ops {
    /* `lasting`: the payload lies in the memory of the sums and does not change
     * until the receiver has used it. */
    void (*send)(void *context, int32_t to, const pl_frame *frame,
                 const void *payload, bool lasting);
    /* Connect to this worker, which is now PL_RING_NEXT. */
    void (*follow)(void *context, int32_t worker);
    /* Shared memory, as in net/endpoint.h. */
    void (*offer)(void *context, int32_t to, char offer[PL_OFFER_BYTES]);
    void (*accept)(void *context, pl_peer peer, const char *offer,
                   char answer[PL_OFFER_BYTES]);
    void (*complete)(void *context, int32_t to, const char *answer);
    void (*drop)(void *context, pl_peer peer);
    /* This worker is silent. */
    void (*lost)(void *context, int32_t worker);
} pl_ring_core_ops;

typedef struct pl_ring_core_opts {
    int32_t worker, workers;
    char *const *address;  /* [workers], for messages; borrowed like all
                              pointers */
    int64_t floats;        /* of a gradient: determines the stripes */
    int64_t extra;         /* more floats after these, for other ranges */
    float *memory;         /* [floats + extra] */
    const pl_codec *codec; /* of gradients; default plain */
    float *encoded;        /* [floats] for encoded pieces, if the codec does not
                              send the memory itself; lives as long as the
                              memory */
    uint32_t incarnation;  /* of this process: random, not 0 */
    pl_on_loss on_loss;    /* the chief's value applies */
    int64_t heartbeat_ms;  /* silence that means lost; default 5000 */
    int64_t join_ms;       /* for all to join; default 600000 */
    int64_t rejoin_ms;     /* for a lost worker; default 60000 */
    const pl_kernels *kernels;
    const pl_ring_core_ops *ops;
    void *context;
} pl_ring_core_opts;

/* Floats of a stripe of a gradient of `floats` floats: the more ranks, the
 * fewer. */
int64_t pl_ring_stripe(int64_t floats, int32_t ranks);

/* PL_UNSUPPORTED for more floats than a ring can sum. */
pl_status pl_ring_core_new(pl_ring_core **out,
                           const pl_ring_core_opts *opts) PL_MUST_CHECK;
void pl_ring_core_free(pl_ring_core *core); /* may be NULL */

/* Begin a rendezvous; the ring is formed when it is complete. */
void pl_ring_core_join(pl_ring_core *core, int64_t now_ns);
bool pl_ring_core_formed(const pl_ring_core *core);
pl_ranks pl_ring_core_ranks(const pl_ring_core *core);
/* A worker that the rendezvous waits for; -1: none. */
int32_t pl_ring_core_absent(const pl_ring_core *core);

/* As the ops of pl_collective, but non-blocking. */
int32_t pl_ring_core_start(pl_ring_core *core, const pl_sum_range *range);
bool pl_ring_core_summed(const pl_ring_core *core, int32_t ticket);
bool pl_ring_core_is_quiet(const pl_ring_core *core);
void pl_ring_core_quiet(pl_ring_core *core); /* when it is */
float *pl_ring_core_slot(const pl_ring_core *core, int i);
void pl_ring_core_keep(pl_ring_core *core);
void pl_ring_core_offer(pl_ring_core *core, const void *status, size_t bytes,
                        pl_combine *combine);
bool pl_ring_core_exchanged(const pl_ring_core *core);
void pl_ring_core_exchange(pl_ring_core *core, void *out); /* when it is */
void pl_ring_core_abort(pl_ring_core *core, const char *why);

/* Whether the working thread waits for others; heartbeats carry it. */
void pl_ring_core_waiting(pl_ring_core *core, bool waiting);
/* The worker made progress, or a step, as in pl_collective_ops.  From any
 * thread. */
void pl_ring_core_progress(pl_ring_core *core);
void pl_ring_core_step(pl_ring_core *core);

/* Handle a message; invalid messages are dropped. */
void pl_ring_core_receive(pl_ring_core *core, int32_t from,
                          const pl_message *message, int64_t now_ns);
void pl_ring_core_tick(pl_ring_core *core, int64_t now_ns);

/* PL_OK, or why this generation (PL_ROLLED) or the job ended. */
pl_status pl_ring_core_outcome(const pl_ring_core *core) PL_MUST_CHECK;

/* How far the chief's clock is ahead of ours. */
pl_skew pl_ring_core_skew(const pl_ring_core *core);
/* New processes of workers, as counted by the chief. */
int32_t pl_ring_core_restarts(const pl_ring_core *core);
/* Seconds spent encoding gradients. */
double pl_ring_core_coding_seconds(const pl_ring_core *core);
/* Invalid messages dropped. */
int64_t pl_ring_core_refused(const pl_ring_core *core);

#endif

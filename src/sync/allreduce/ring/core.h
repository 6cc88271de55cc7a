/* core.h - the ring of workers without input or output: messages and
 * clock ticks in, messages out.
 *
 * Two nets over the same workers.  The hub: everyone talks to the chief, who
 * decides who takes part (a generation), combines their statuses and notices
 * losses.  The ring: each sends pieces of sums to the next worker of the
 * generation's roster.  docs/formats/wire.md has the conversation.
 *
 * A sum.  The memory is cut into stripes; stripe s begins its way at the rank
 * s % ranks, is added to by each rank it comes to (reduce-scatter), is
 * complete at the last, and goes round once more to be copied (all-gather):
 * 2 (ranks - 1) hops.  All stripes are under way at once, each link carries
 * 2 (ranks - 1) / ranks of the bytes, and the order of addition follows from
 * the stripe's place alone.  A piece is sent when the next rank has said that
 * it has started the sum, so no rank keeps what it cannot use yet.
 *
 * Sums in the order of ranks begin their way at rank 0, all stripes of them: a
 * pipeline instead of a ring, in which a link carries up to twice the bytes.  A
 * broadcast is the second half of a sum, from the rank that has the numbers:
 * ranks - 1 hops.
 *
 * A small block takes as long as its messages, not its bytes: over TCP pieces
 * are sent at once and kept by ranks that have not started, and two ranks send
 * each other all instead of halves to add and sums to copy.  The bits are the
 * same.
 *
 * Sums of gradients go through a codec (sync/codec.h): each rank encodes a
 * piece once, when it has added its own; a complete sum goes round as it was
 * encoded, and the rank that completed it continues with what the others
 * decode, so that all have the same bits.
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

/* Whom a message goes to or comes from: one of these, or a peer of the own
 * listening endpoint. */
#define PL_RING_HUB  (-1) /* the chief */
#define PL_RING_NEXT (-2)

typedef struct pl_ring_core_ops {
    /* `lasting`: the payload lies in the memory of the sums and stays as it is
     * until the receiver has used it. */
    void (*send)(void *context, int32_t to, const pl_frame *frame,
                 const void *payload, bool lasting);
    /* From now on PL_RING_NEXT is this worker, by a new connection. */
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
    char *const *address; /* [workers], for messages; borrowed like all */
    int64_t floats; /* of a gradient: how stripes are cut follows from it */
    int64_t extra;  /* more of them behind these, for other ranges */
    float *memory;  /* [floats + extra] */
    const pl_codec *codec; /* of gradients; default plain */
    float *encoded;        /* [floats] for what is sent, where the codec does
                              not send the memory itself; stays as the memory */
    uint32_t incarnation;  /* of this process: random, not 0 */
    pl_on_loss on_loss;    /* the chief's counts */
    int64_t heartbeat_ms;  /* silence that means lost; default 5000 */
    int64_t join_ms;       /* for all to join; default 600000 */
    int64_t rejoin_ms;     /* for a lost worker; default 60000 */
    const pl_kernels *kernels;
    const pl_ring_core_ops *ops;
    void *context;
} pl_ring_core_opts;

/* Floats of a stripe of a gradient of so many: the more ranks, the fewer. */
int64_t pl_ring_stripe(int64_t floats, int32_t ranks);

/* PL_UNSUPPORTED for more floats than a ring can sum. */
pl_status pl_ring_core_new(pl_ring_core **out,
                           const pl_ring_core_opts *opts) PL_MUST_CHECK;
void pl_ring_core_free(pl_ring_core *core); /* NULL is fine */

/* Begin a rendezvous; formed when it is done. */
void pl_ring_core_join(pl_ring_core *core, int64_t now_ns);
bool pl_ring_core_formed(const pl_ring_core *core);
pl_ranks pl_ring_core_ranks(const pl_ring_core *core);
/* A worker that the rendezvous waits for; -1: none. */
int32_t pl_ring_core_absent(const pl_ring_core *core);

/* As the ops of pl_collective; nothing waits. */
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

/* The working thread waits for others, or does not; heartbeats carry it. */
void pl_ring_core_waiting(pl_ring_core *core, bool waiting);
/* It made progress, or a step, as in pl_collective_ops.  From any thread. */
void pl_ring_core_progress(pl_ring_core *core);
void pl_ring_core_step(pl_ring_core *core);

/* A message that came; what is not right is dropped. */
void pl_ring_core_receive(pl_ring_core *core, int32_t from,
                          const pl_message *message, int64_t now_ns);
void pl_ring_core_tick(pl_ring_core *core, int64_t now_ns);

/* PL_OK, or what ended this generation (PL_ROLLED) or the job. */
pl_status pl_ring_core_outcome(const pl_ring_core *core) PL_MUST_CHECK;

/* How far the chief's clock is ahead of ours. */
pl_skew pl_ring_core_skew(const pl_ring_core *core);
/* New processes of workers, as the chief knows. */
int32_t pl_ring_core_restarts(const pl_ring_core *core);
/* Spent encoding gradients. */
double pl_ring_core_coding_seconds(const pl_ring_core *core);
/* Messages dropped because they were wrong. */
int64_t pl_ring_core_refused(const pl_ring_core *core);

#endif

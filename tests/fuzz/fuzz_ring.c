/* fuzz_ring.c - what a ring's worker receives from others.
 *
 * The first byte is the setting.  Then come records: one that begins with
 * 0x80 or more lets time pass or makes the worker do something; the others are
 * a frame of RECORD bytes and its payload.  Most fields are a choice between
 * what would be right here and what is not. */
#include "base/assert.h"
#include "fuzz/fuzz.h"
#include "sync/allreduce/ring/core.h"

#include <stdlib.h>
#include <string.h>

#define FLOATS  96
#define WORKERS 3
#define RECORD  8
#define TICK_NS INT64_C(100000000)

/* The setting. */
#define SET_WORKER   0x03
#define SET_CONTINUE 0x04

typedef struct world {
    pl_ring_core *core;
    float memory[FLOATS];
    int64_t now_ns;
    uint32_t generation;
    int32_t sums;
    bool offered;
} world;

/* Read all of it, as a network would. */
static void sent(void *context, int32_t to, const pl_frame *frame,
                 const void *payload, bool lasting)
{
    (void)to, (void)lasting;
    world *w = context;
    unsigned sum = 0;
    PL_ASSERT(frame->kind > PL_FRAME_NONE && frame->kind < PL_FRAME_KINDS);
    PL_ASSERT(frame->count * sizeof(float) <= frame->payload_bytes);
    for (uint32_t i = 0; i < frame->payload_bytes; i++)
        sum += ((const uint8_t *)payload)[i];
    PL_ASSERT(sum < UINT32_MAX);
    w->generation = frame->generation;
}

static void follow(void *context, int32_t worker)
{
    (void)context;
    PL_ASSERT(worker >= 0 && worker < WORKERS);
}

static void offer(void *context, int32_t to, char text[PL_OFFER_BYTES])
{
    (void)context, (void)to;
    memset(text, 0, PL_OFFER_BYTES);
}

static void accept_offer(void *context, pl_peer peer, const char *text,
                         char answer[PL_OFFER_BYTES])
{
    (void)context;
    PL_ASSERT(peer >= 0 && strlen(text) < PL_OFFER_BYTES);
    memset(answer, 0, PL_OFFER_BYTES);
}

static void complete(void *context, int32_t to, const char *answer)
{
    (void)context, (void)to;
    PL_ASSERT(strlen(answer) < PL_OFFER_BYTES);
}

static void drop(void *context, pl_peer peer)
{
    (void)context;
    PL_ASSERT(peer >= 0);
}

static void lost(void *context, int32_t worker)
{
    (void)context;
    PL_ASSERT(worker >= 0 && worker < WORKERS);
}

static const pl_ring_core_ops ops = {
    .send = sent,
    .follow = follow,
    .offer = offer,
    .accept = accept_offer,
    .complete = complete,
    .drop = drop,
    .lost = lost,
};

static const pl_frame_kind kinds[] = {
    PL_FRAME_JOIN,   PL_FRAME_WELCOME,   PL_FRAME_LINK,
    PL_FRAME_LINKED, PL_FRAME_HEARTBEAT, PL_FRAME_HEARTBEAT_ACK,
    PL_FRAME_ROLL,   PL_FRAME_OVER,      PL_FRAME_STOP,
    PL_FRAME_REFUSE, PL_FRAME_READY,     PL_FRAME_PIECE,
    PL_FRAME_DONE,   PL_FRAME_EXCHANGE,  PL_FRAME_EXCHANGED,
    PL_FRAME_PUSH,
};

/* A frame from a record; the payload is what the rest of the input begins
 * with, cut or filled up to a length that would be right, or another. */
static void feed(world *w, const uint8_t record[RECORD], const uint8_t *rest,
                 size_t left)
{
    static const uint32_t sizes[] = {
        0, 8, 12, PL_OFFER_BYTES, 128, 32, 24, 7
    };
    static const int32_t froms[] = {
        PL_RING_HUB, PL_RING_NEXT, 0, 1, 2, 3, 1, 2
    };
    uint32_t bytes = sizes[record[1] & 7];
    /* Aligned, and of exactly its size; none has no memory. */
    uint8_t *payload = NULL;
    if (bytes > 0) {
        payload = calloc(1, bytes);
        if (payload == NULL)
            abort();
        memcpy(payload, rest, left < bytes ? left : bytes);
    }
    pl_message message = {
        .frame = {
            .kind = kinds[record[0] & 15],
            .flags = record[1] >> 6,
            .generation = w->generation + (record[2] >> 6) % 3,
            .incarnation = record[2] & 3,
            .sequence = record[3],
            .first = (int64_t)(record[4] & 7) * 16 - 16,
            .count = (record[4] & 8) != 0 ? bytes / 4 : 0,
            .value = { (int8_t)record[5], (int8_t)record[6] },
            .payload_bytes = bytes,
        },
        .payload = payload,
    };
    int32_t from = froms[record[7] & 7];
    message.from = from < 0 ? 0 : from;
    if ((record[7] & 8) != 0)
        message.who = (pl_principal) { PL_PRINCIPAL_WORKER, record[7] >> 6 };
    pl_ring_core_receive(w->core, from, &message, w->now_ns);
    free(payload);
}

static void combine(void *total, const void *status)
{
    *(uint8_t *)total ^= *(const uint8_t *)status;
}

/* What the worker itself does; only what may be done now. */
static void act(world *w, uint8_t what)
{
    bool formed = pl_ring_core_formed(w->core);
    uint8_t status[64];
    w->now_ns += (what & 0x0f) * TICK_NS;
    pl_ring_core_tick(w->core, w->now_ns);
    switch (what >> 4 & 7) {
    case 0:
        if (formed)
            break; /* a worker joins again when its ring broke */
        pl_ring_core_join(w->core, w->now_ns);
        w->sums = 0;
        w->offered = false;
        break;
    case 1:
        if (formed && w->sums < 8) {
            pl_ring_core_start(w->core, &(pl_sum_range) { .count = FLOATS });
            w->sums++;
        }
        break;
    case 2:
        if (formed && !w->offered)
            pl_ring_core_offer(w->core, "abcdefgh", 8, combine);
        w->offered = w->offered || formed;
        break;
    case 3:
        if (pl_ring_core_exchanged(w->core)) {
            pl_ring_core_exchange(w->core, status);
            w->offered = false;
        }
        break;
    case 4:
        if (formed && pl_ring_core_is_quiet(w->core)) {
            pl_ring_core_quiet(w->core);
            w->sums = 0;
        }
        break;
    case 5:
        pl_ring_core_waiting(w->core, (what & 1) != 0);
        break;
    default:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char *addresses[WORKERS] = { "a:1", "b:1", "c:1" };
    world w = { .now_ns = TICK_NS };
    if (size == 0)
        return 0;
    uint8_t setting = data[0];
    if (pl_ring_core_new(&w.core,
                         &(pl_ring_core_opts) {
                             .worker = (setting & SET_WORKER) % WORKERS,
                             .workers = WORKERS,
                             .address = addresses,
                             .floats = FLOATS,
                             .memory = w.memory,
                             .incarnation = 7,
                             .on_loss = (setting & SET_CONTINUE) != 0
                                            ? PL_ON_LOSS_CONTINUE
                                            : PL_ON_LOSS_WAIT,
                             .heartbeat_ms = 1000,
                             .kernels = pl_kernels_best(),
                             .ops = &ops,
                             .context = &w,
                         }) != PL_OK)
        return 0;
    pl_ring_core_join(w.core, w.now_ns);
    for (size_t at = 1; at < size;) {
        if (data[at] >= 0x80) {
            act(&w, data[at++] & 0x7f);
            continue;
        }
        if (size - at < RECORD)
            break;
        feed(&w, data + at, data + at + RECORD, size - at - RECORD);
        at += RECORD;
    }
    pl_ring_core_free(w.core);
    return 0;
}

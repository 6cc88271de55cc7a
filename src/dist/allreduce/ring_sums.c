#include "dist/allreduce/ring_priv.h"

#include "base/assert.h"

#include <string.h>

#define STRIPE_MOST ((int64_t)256 << 10) /* floats, unless there are many */
#define PIECES_MOST 256 /* so that no queue of messages overflows */
#define LINE        16  /* floats of a cache line */

/* A stripe for each rank where the block is small; else as large as suits the
 * network.  It depends on the block and the number of ranks alone. */
void pl_ring_reset_sums(pl_ring_core *core)
{
    int64_t floats = core->opts.floats;
    int64_t stripe = (floats + core->count - 1) / core->count;
    int64_t least = (floats + PIECES_MOST - 1) / PIECES_MOST;
    if (stripe > STRIPE_MOST)
        stripe = STRIPE_MOST;
    if (stripe < least)
        stripe = least;
    core->stripe = (stripe + LINE - 1) / LINE * LINE;
    core->started = 0;
    core->base = core->next_ready = core->next_done = 0;
}

static int32_t hop_count(const pl_ring_core *core)
{
    return 2 * (core->count - 1);
}

/* The hop by which a piece first comes here. */
static int32_t first_hop(const pl_ring_core *core, int64_t piece)
{
    int32_t n = core->count;
    return ((core->rank - (int32_t)(piece % n) - 1) % n + n) % n;
}

/* How often it comes here. */
static int32_t visits(const pl_ring_core *core, int64_t piece)
{
    int32_t first = first_hop(core, piece), hops = hop_count(core);
    return (first < hops) + (first + core->count < hops);
}

/* The pieces of a sum are numbers first_piece .. end_piece - 1. */
static int64_t first_piece(const pl_ring_core *core, const pl_ring_sum *sum)
{
    return sum->first / core->stripe;
}

static int64_t end_piece(const pl_ring_core *core, const pl_ring_sum *sum)
{
    return (sum->first + sum->count + core->stripe - 1) / core->stripe;
}

/* Floats of a piece: the last of a sum may be shorter. */
static uint32_t piece_count(const pl_ring_core *core, const pl_ring_sum *sum,
                            int64_t piece)
{
    int64_t left = sum->first + sum->count - piece * core->stripe;
    return (uint32_t)(left < core->stripe ? left : core->stripe);
}

static void send_piece(pl_ring_core *core, int32_t ticket, int64_t piece)
{
    uint32_t count = piece_count(core, &core->sums[ticket], piece);
    pl_frame frame = {
        .kind = PL_FRAME_PIECE,
        .generation = core->generation,
        .sequence = core->base + (uint64_t)ticket,
        .first = piece * core->stripe,
        .count = count,
        .value = { core->pending[piece] },
        .payload_bytes = count * (uint32_t)sizeof(float),
    };
    core->pending[piece] = -1;
    core->opts.ops->send(core->opts.context, PL_RING_NEXT, &frame,
                         core->opts.memory + frame.first, true);
}

/* The next rank can take pieces of this sum. */
static bool may_send(const pl_ring_core *core, int32_t ticket)
{
    return core->base + (uint64_t)ticket < core->next_ready;
}

static void send_pending(pl_ring_core *core, int32_t ticket)
{
    const pl_ring_sum *sum = &core->sums[ticket];
    for (int64_t p = first_piece(core, sum); p < end_piece(core, sum); p++)
        if (core->pending[p] >= 0)
            send_piece(core, ticket, p);
}

/* Tell the rank before this one how far a sum is here. */
static void tell_prev(pl_ring_core *core, pl_frame_kind kind, int32_t ticket)
{
    pl_ring_send(
        core, core->prev,
        (pl_frame) { .kind = kind, .sequence = core->base + (uint64_t)ticket },
        NULL);
}

int32_t pl_ring_core_start(pl_ring_core *core, int64_t first, int64_t count)
{
    int32_t ticket = core->started;
    pl_ring_sum *sum = &core->sums[ticket];
    PL_ASSERT(ticket < PL_COLLECTIVE_SUMS_MOST && first % core->stripe == 0 &&
              count > 0 && first + count <= core->opts.floats);
    *sum = (pl_ring_sum) { .first = first, .count = count };
    core->started++;
    if (core->phase != PL_RING_FORMED || core->count == 1)
        return ticket;
    for (int64_t p = first_piece(core, sum); p < end_piece(core, sum); p++) {
        core->got[p] = 0;
        core->pending[p] = p % core->count == core->rank ? 0 : -1;
        sum->left += visits(core, p);
    }
    tell_prev(core, PL_FRAME_READY, ticket);
    if (may_send(core, ticket))
        send_pending(core, ticket);
    return ticket;
}

bool pl_ring_core_summed(const pl_ring_core *core, int32_t ticket)
{
    PL_ASSERT(ticket >= 0 && ticket < core->started);
    return core->sums[ticket].left == 0;
}

bool pl_ring_core_is_quiet(const pl_ring_core *core)
{
    for (int32_t t = 0; t < core->started; t++)
        if (core->sums[t].left > 0)
            return false;
    return core->count == 1 ||
           core->next_done == core->base + (uint64_t)core->started;
}

void pl_ring_core_quiet(pl_ring_core *core)
{
    PL_ASSERT(pl_ring_core_is_quiet(core));
    core->base += core->count > 1 ? (uint64_t)core->started : 0;
    core->started = 0;
}

/* Add or copy what came, and send it on. */
static void use_piece(pl_ring_core *core, int32_t ticket, const pl_frame *frame,
                      const float *payload)
{
    int64_t piece = frame->first / core->stripe, hop = frame->value[0];
    pl_ring_sum *sum = &core->sums[ticket];
    float *own = core->opts.memory + frame->first;
    if (hop < core->count - 1)
        core->opts.kernels->add(frame->count, own, payload, own);
    else
        memcpy(own, payload, frame->count * sizeof *own);
    core->got[piece]++;
    sum->left--;
    core->progress++;
    if (hop + 1 < hop_count(core)) {
        core->pending[piece] = (int16_t)(hop + 1);
        if (may_send(core, ticket))
            send_piece(core, ticket, piece);
    }
    if (sum->left == 0)
        tell_prev(core, PL_FRAME_DONE, ticket);
}

/* A piece must be one of a sum that was started here, and the one whose turn
 * it is. */
static bool take_piece(pl_ring_core *core, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    uint64_t ticket = frame->sequence - core->base; /* wraps when before */
    if (ticket >= (uint64_t)core->started || core->count == 1 ||
        frame->first < 0 || frame->first % core->stripe != 0)
        return false;
    const pl_ring_sum *sum = &core->sums[ticket];
    int64_t piece = frame->first / core->stripe;
    if (piece < first_piece(core, sum) || piece >= end_piece(core, sum) ||
        frame->count != piece_count(core, sum, piece) ||
        frame->payload_bytes != frame->count * sizeof(float) ||
        core->got[piece] >= visits(core, piece) ||
        frame->value[0] !=
            first_hop(core, piece) + (core->got[piece] > 0 ? core->count : 0))
        return false;
    use_piece(core, (int32_t)ticket, frame, message->payload);
    return true;
}

/* Sums are started in order: who has started one has started those before.
 * One may come ahead of another, through memory that is shared since. */
static bool take_ready(pl_ring_core *core, const pl_frame *frame)
{
    if (frame->sequence - core->base >= 2 * PL_COLLECTIVE_SUMS_MOST)
        return frame->sequence < core->next_ready;
    while (core->next_ready <= frame->sequence) {
        uint64_t ticket = core->next_ready++ - core->base;
        if (ticket < (uint64_t)core->started)
            send_pending(core, (int32_t)ticket);
        core->progress++;
    }
    return true;
}

static bool take_done(pl_ring_core *core, const pl_frame *frame)
{
    uint64_t ticket = frame->sequence - core->base;
    if (ticket >= (uint64_t)core->started ||
        core->next_done >= core->base + (uint64_t)core->started)
        return false;
    core->next_done++;
    core->progress++;
    return true;
}

bool pl_ring_take_piece(pl_ring_core *core, int32_t from,
                        const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    /* The next rank may have formed, and begun, before this one. */
    if (frame->generation != core->generation ||
        (core->phase != PL_RING_FORMED && core->phase != PL_RING_LINKING))
        return true; /* of another time */
    if (frame->kind == PL_FRAME_PIECE)
        return from == core->prev && take_piece(core, message);
    if (from != PL_RING_NEXT)
        return false;
    return frame->kind == PL_FRAME_READY ? take_ready(core, frame)
                                         : take_done(core, frame);
}

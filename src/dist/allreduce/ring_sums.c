#include "dist/allreduce/ring_priv.h"

#include "base/assert.h"

#include <string.h>

#define STRIPE_MOST ((int64_t)256 << 10) /* floats, unless there are many */
#define PIECES_MOST 256 /* so that no queue of messages overflows */
#define LINE        16  /* floats of a cache line */

bool pl_ring_sends_early(const pl_ring_core *core, const char *answer)
{
    return core->early != NULL && answer[0] == '\0';
}

/* Where the block is small two stripes for each rank, so that one is under way
 * while the other is added, but for two ranks one; else as large as suits the
 * network.  It depends on the block and the number of ranks alone. */
void pl_ring_reset_sums(pl_ring_core *core)
{
    int64_t floats = core->opts.floats;
    int32_t parts = core->count > 2 ? 2 * core->count : core->count;
    int64_t stripe = (floats + parts - 1) / parts;
    int64_t least = (floats + PIECES_MOST - 1) / PIECES_MOST;
    if (stripe > STRIPE_MOST)
        stripe = STRIPE_MOST;
    if (stripe < least)
        stripe = least;
    core->stripe = (stripe + LINE - 1) / LINE * LINE;
    core->started = 0;
    core->base = core->next_ready = core->next_done = 0;
    core->early_next = core->early_prev = core->direct = false;
    for (int p = 0; core->early != NULL && p < PIECES_MOST; p++)
        core->early_hop[p] = -1;
}

static int32_t hop_count(const pl_ring_core *core)
{
    return core->direct ? 1 : 2 * (core->count - 1);
}

/* The hop by which a piece first comes here. */
static int32_t first_hop(const pl_ring_core *core, int64_t piece)
{
    int32_t n = core->count;
    if (core->direct)
        return 0;
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
                         core->opts.memory + frame.first, !core->early_next);
}

/* The next rank can take pieces of this sum. */
static bool may_send(const pl_ring_core *core, int32_t ticket)
{
    return core->early_next || core->base + (uint64_t)ticket < core->next_ready;
}

static void send_pending(pl_ring_core *core, int32_t ticket)
{
    const pl_ring_sum *sum = &core->sums[ticket];
    for (int64_t p = first_piece(core, sum); p < end_piece(core, sum); p++)
        if (core->pending[p] >= 0)
            send_piece(core, ticket, p);
}

/* Tell the rank before this one how far a sum is here, if it waits for it. */
static void tell_prev(pl_ring_core *core, pl_frame_kind kind, int32_t ticket)
{
    if (core->early_prev)
        return;
    pl_ring_send(
        core, core->prev,
        (pl_frame) { .kind = kind, .sequence = core->base + (uint64_t)ticket },
        NULL);
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
    return core->count == 1 || core->early_next ||
           core->next_done == core->base + (uint64_t)core->started;
}

void pl_ring_core_quiet(pl_ring_core *core)
{
    PL_ASSERT(pl_ring_core_is_quiet(core));
    core->base += core->count > 1 ? (uint64_t)core->started : 0;
    core->started = 0;
}

/* Add or copy what came, and send it on.  Where both ranks add, they add in
 * the same order: of two numbers that are none, the first is the sum. */
static void use_piece(pl_ring_core *core, int32_t ticket, int64_t piece,
                      int64_t hop, const float *payload)
{
    pl_ring_sum *sum = &core->sums[ticket];
    uint32_t count = piece_count(core, sum, piece);
    float *own = core->opts.memory + piece * core->stripe;
    if (core->direct && core->rank == 1)
        core->opts.kernels->add(count, payload, own, own);
    else if (hop < core->count - 1)
        core->opts.kernels->add(count, own, payload, own);
    else
        memcpy(own, payload, count * sizeof *own);
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

/* Keep a piece of a sum that was not started here.  Its sender has done all
 * sums before, so each place is sent once at most. */
static bool keep_early(pl_ring_core *core, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    int64_t piece = frame->first / core->stripe;
    int64_t left = core->opts.floats - frame->first;
    uint32_t count = (uint32_t)(left < core->stripe ? left : core->stripe);
    if (left <= 0 || core->early_hop[piece] >= 0 || frame->count != count ||
        frame->payload_bytes != count * sizeof(float) || frame->value[0] < 0 ||
        frame->value[0] >= core->count)
        return false;
    core->early_hop[piece] = (int16_t)frame->value[0];
    core->early_sum[piece] = frame->sequence;
    memcpy(core->early + frame->first, message->payload, frame->payload_bytes);
    core->progress++;
    return true;
}

/* A sum was started: what came before counts now. */
static void use_early(pl_ring_core *core, int32_t ticket)
{
    const pl_ring_sum *sum = &core->sums[ticket];
    if (!core->early_prev)
        return;
    for (int64_t p = first_piece(core, sum); p < end_piece(core, sum); p++) {
        if (core->early_hop[p] < 0)
            continue;
        bool due = core->early_sum[p] == core->base + (uint64_t)ticket &&
                   core->early_hop[p] == first_hop(core, p);
        core->refused += !due;
        if (due)
            use_piece(core, ticket, p, core->early_hop[p],
                      core->early + p * core->stripe);
        core->early_hop[p] = -1;
    }
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
        core->pending[p] =
            core->direct || p % core->count == core->rank ? 0 : -1;
        sum->left += visits(core, p);
    }
    tell_prev(core, PL_FRAME_READY, ticket);
    if (may_send(core, ticket))
        send_pending(core, ticket);
    use_early(core, ticket);
    return ticket;
}

/* A piece must be one of a sum that was started here, and the one whose turn
 * it is. */
static bool take_piece(pl_ring_core *core, const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    uint64_t ticket = frame->sequence - core->base; /* wraps when before */
    if (ticket >= 2 * PL_COLLECTIVE_SUMS_MOST || core->count == 1 ||
        frame->first < 0 || frame->first % core->stripe != 0)
        return false;
    if (ticket >= (uint64_t)core->started)
        return core->early_prev && keep_early(core, message);
    const pl_ring_sum *sum = &core->sums[ticket];
    int64_t piece = frame->first / core->stripe;
    if (piece < first_piece(core, sum) || piece >= end_piece(core, sum) ||
        frame->count != piece_count(core, sum, piece) ||
        frame->payload_bytes != frame->count * sizeof(float) ||
        core->got[piece] >= visits(core, piece) ||
        frame->value[0] !=
            first_hop(core, piece) + (core->got[piece] > 0 ? core->count : 0))
        return false;
    use_piece(core, (int32_t)ticket, piece, frame->value[0], message->payload);
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

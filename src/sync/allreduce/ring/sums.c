/* How a stripe travels round the ring: when a piece may be sent, which piece is
 * due, and when a sum is complete here and at the worker that reads from this
 * one.
 *
 * R3  A piece is used once for each visit, in the order of its hops.
 * R4  After a sum all ranks hold the same bits: the order of addition depends
 *     only on the kind of the sum, the stripe's place and the number of ranks.
 * R5  A rank encodes a piece once in a sum; what was sent does not change until
 *     the next rank has used it. */
#include "sync/allreduce/ring/core_priv.h"

#include "base/assert.h"

#include <string.h>

#define STRIPE_MOST ((int64_t)256 << 10) /* floats; more for large blocks */
#define PIECES_MOST 256 /* so that no queue of messages overflows */
#define LINE        16  /* floats of a cache line */

bool pl_ring_sends_early(const pl_ring_core *core, const char *answer)
{
    return core->early != NULL && answer[0] == '\0';
}

/* A small block has two stripes for each rank, so that one travels while the
 * other is added (for two ranks, one); otherwise the size suits the network.
 * It depends only on the block and the number of ranks. */
int64_t pl_ring_stripe(int64_t floats, int32_t ranks)
{
    int32_t parts = ranks > 2 ? 2 * ranks : ranks;
    int64_t stripe = (floats + parts - 1) / parts;
    int64_t least = (floats + PIECES_MOST - 1) / PIECES_MOST;
    if (stripe > STRIPE_MOST)
        stripe = STRIPE_MOST;
    if (stripe < least)
        stripe = least;
    return (stripe + LINE - 1) / LINE * LINE;
}

void pl_ring_reset_sums(pl_ring_core *core)
{
    core->stripe = pl_ring_stripe(core->opts.floats, core->place.count);
    core->started = 0;
    core->base = core->next_ready = core->next_done = 0;
    core->early_next = core->early_prev = core->direct = false;
    for (int64_t p = 0; core->early != NULL && p < core->pieces; p++)
        core->early_hop[p] = -1;
}

static bool is_sum(const pl_ring_sum *sum)
{
    return sum->range.kind != PL_SUM_BROADCAST;
}

/* Both ranks send their numbers, and both add. */
static bool is_direct(const pl_ring_core *core, const pl_ring_sum *sum)
{
    return core->direct && is_sum(sum);
}

static int32_t hop_count(const pl_ring_core *core, const pl_ring_sum *sum)
{
    int32_t once = core->place.count - 1;
    return is_direct(core, sum) || !is_sum(sum) ? once : 2 * once;
}

/* The rank where a piece starts. */
static int32_t origin(const pl_ring_core *core, const pl_ring_sum *sum,
                      int64_t piece)
{
    switch (sum->range.kind) {
    case PL_SUM_RANK_ORDER:
        return 0;
    case PL_SUM_BROADCAST:
        return sum->range.from;
    case PL_SUM_ANY_ORDER:
        break;
    }
    return (int32_t)(piece % core->place.count);
}

/* The hop by which a piece first arrives here. */
static int32_t first_hop(const pl_ring_core *core, const pl_ring_sum *sum,
                         int64_t piece)
{
    int32_t n = core->place.count;
    if (is_direct(core, sum))
        return 0;
    return (core->place.rank - origin(core, sum, piece) - 1 + n) % n;
}

/* How often a piece arrives here. */
static int32_t visits(const pl_ring_core *core, const pl_ring_sum *sum,
                      int64_t piece)
{
    int32_t first = first_hop(core, sum, piece), hops = hop_count(core, sum);
    return (first < hops) + (first + core->place.count < hops);
}

/* Whether this rank sends pieces of the sum: of a broadcast it does not if the
 * next rank is the origin. */
static bool sends(const pl_ring_core *core, const pl_ring_sum *sum)
{
    return is_sum(sum) ||
           (core->place.rank + 1) % core->place.count != sum->range.from;
}

/* The pieces of a sum have the numbers first_piece .. end_piece - 1. */
static int64_t first_piece(const pl_ring_core *core, const pl_ring_sum *sum)
{
    return sum->range.first / core->stripe;
}

static int64_t end_piece(const pl_ring_core *core, const pl_ring_sum *sum)
{
    return (sum->range.first + sum->range.count + core->stripe - 1) /
           core->stripe;
}

/* Floats of a piece: the last of a sum may be shorter. */
static uint32_t piece_count(const pl_ring_core *core, const pl_ring_sum *sum,
                            int64_t piece)
{
    int64_t left = sum->range.first + sum->range.count - piece * core->stripe;
    return (uint32_t)(left < core->stripe ? left : core->stripe);
}

static void send_piece(pl_ring_core *core, int32_t ticket, int64_t piece)
{
    int64_t first = piece * core->stripe;
    pl_frame frame = pl_ring_piece_encode(&(pl_ring_piece) {
        .generation = pl_membership_generation(core->membership),
        .sum = core->base + (uint64_t)ticket,
        .first = first,
        .count = piece_count(core, &core->sums[ticket], piece),
        .hop = core->pending[piece],
        .data = core->wire[piece],
    });
    core->pending[piece] = -1;
    core->opts.ops->send(core->opts.context, PL_RING_NEXT, &frame,
                         core->wire[piece].bytes, !core->early_next);
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

/* Notify the previous rank of the state of a sum, if it waits for that. */
static void tell_prev(pl_ring_core *core, pl_frame_kind kind, int32_t ticket)
{
    if (core->early_prev)
        return;
    pl_frame frame = pl_ring_mark_encode(
        kind, &(pl_ring_mark) {
                  .generation = pl_membership_generation(core->membership),
                  .sum = core->base + (uint64_t)ticket,
              });
    pl_ring_send(core, core->prev, &frame, NULL);
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
    return core->place.count == 1 || core->early_next ||
           core->next_done == core->base + (uint64_t)core->started;
}

void pl_ring_core_quiet(pl_ring_core *core)
{
    PL_ASSERT(pl_ring_core_is_quiet(core));
    core->base += core->place.count > 1 ? (uint64_t)core->started : 0;
    core->started = 0;
}

float *pl_ring_core_slot(const pl_ring_core *core, int i)
{
    return pl_coder_slot(&core->gradients, i);
}

/* A rank that is alone encodes nothing. */
void pl_ring_core_keep(pl_ring_core *core)
{
    if (core->place.count > 1)
        pl_coder_keep(&core->gradients);
}

double pl_ring_core_coding_seconds(const pl_ring_core *core)
{
    return core->gradients.seconds;
}

static pl_coder *coder_of(pl_ring_core *core, const pl_ring_sum *sum)
{
    return sum->range.exact ? &core->exact : &core->gradients;
}

/* Memory for the encoded piece, unless the codec sends the floats in place. */
static float *room_of(const pl_ring_core *core, const pl_coder *coder,
                      int64_t piece)
{
    return coder->codec->in_place ? NULL
                                  : core->opts.encoded + piece * core->stripe;
}

/* Encode a piece with the numbers added here; it waits to be sent by this
 * hop. */
static void encode_piece(pl_ring_core *core, const pl_ring_sum *sum,
                         int64_t piece, int64_t hop)
{
    pl_coder *coder = coder_of(core, sum);
    int64_t first = piece * core->stripe;
    uint32_t count = piece_count(core, sum, piece);
    float *own = core->opts.memory + first;
    core->wire[piece] =
        pl_coder_encode(coder, first, count, own, room_of(core, coder, piece));
    core->pending[piece] = (int16_t)hop;
    /* A complete sum, or a term that both ranks add: all must continue with the
     * same bits. */
    bool same = is_direct(core, sum) || hop == core->place.count - 1;
    if (same && coder->codec->may_change_bits)
        (void)pl_codec_decode(coder->codec, count, core->wire[piece], own);
}

/* A complete sum is forwarded unchanged. */
static void forward_piece(pl_ring_core *core, const pl_ring_sum *sum,
                          int64_t piece, int64_t hop, pl_encoded from)
{
    float *room = room_of(core, coder_of(core, sum), piece);
    core->wire[piece] = (pl_encoded) {
        room != NULL ? room : core->opts.memory + piece * core->stripe,
        from.size,
    };
    core->pending[piece] = (int16_t)hop;
    if (room != NULL)
        memcpy(room, from.bytes, from.size);
}

static bool copy_piece(const pl_codec *codec, uint32_t count, pl_encoded from,
                       float *own)
{
    const float *floats = pl_codec_decode(codec, count, from, own);
    if (floats != NULL && floats != own)
        memcpy(own, floats, count * sizeof *own);
    return floats != NULL;
}

/* Add or copy a received piece and forward it; false: malformed.  If both ranks
 * add, they add in the same order: of two NaNs the sum is the first. */
static bool use_piece(pl_ring_core *core, int32_t ticket, int64_t piece,
                      int64_t hop, pl_encoded from)
{
    pl_ring_sum *sum = &core->sums[ticket];
    const pl_codec *codec = coder_of(core, sum)->codec;
    uint32_t count = piece_count(core, sum, piece);
    float *own = core->opts.memory + piece * core->stripe;
    bool adds = is_sum(sum) && hop < core->place.count - 1;
    bool before = is_direct(core, sum) ? core->place.rank == 1
                                       : sum->range.kind == PL_SUM_RANK_ORDER;
    if (adds ? !pl_codec_combine(codec, core->opts.kernels, count, from, before,
                                 own)
             : !copy_piece(codec, count, from, own))
        return false;
    core->got[piece]++;
    sum->left--;
    core->progress++;
    if (hop + 1 < hop_count(core, sum)) {
        if (adds)
            encode_piece(core, sum, piece, hop + 1);
        else
            forward_piece(core, sum, piece, hop + 1, from);
        if (may_send(core, ticket))
            send_piece(core, ticket, piece);
    }
    if (sum->left == 0)
        tell_prev(core, PL_FRAME_DONE, ticket);
    return true;
}

/* Buffer a piece of a sum that was not started here.  Its sender has completed
 * all earlier sums, so each place is sent at most once. */
static bool keep_early(pl_ring_core *core, const pl_ring_piece *piece)
{
    int64_t p = piece->first / core->stripe;
    int64_t left = core->opts.floats + core->opts.extra - piece->first;
    int64_t most = left < core->stripe ? left : core->stripe;
    if (left <= 0 || core->early_hop[p] >= 0 || piece->count > most ||
        piece->data.size > piece->count * sizeof(float) ||
        piece->hop >= core->place.count)
        return false;
    core->early_hop[p] = (int16_t)piece->hop;
    core->early_sum[p] = piece->sum;
    core->early_size[p] = piece->data.size;
    if (piece->data.size > 0)
        memcpy(core->early + piece->first, piece->data.bytes, piece->data.size);
    core->progress++;
    return true;
}

/* A sum was started: use the pieces buffered for it. */
static void use_early(pl_ring_core *core, int32_t ticket)
{
    const pl_ring_sum *sum = &core->sums[ticket];
    if (!core->early_prev)
        return;
    for (int64_t p = first_piece(core, sum); p < end_piece(core, sum); p++) {
        if (core->early_hop[p] < 0)
            continue;
        bool due = core->early_sum[p] == core->base + (uint64_t)ticket &&
                   core->early_hop[p] == first_hop(core, sum, p);
        pl_encoded kept = { core->early + p * core->stripe,
                            core->early_size[p] };
        if (!due || !use_piece(core, ticket, p, core->early_hop[p], kept))
            core->refused++;
        core->early_hop[p] = -1;
    }
}

int32_t pl_ring_core_start(pl_ring_core *core, const pl_sum_range *range)
{
    int32_t ticket = core->started;
    pl_ring_sum *sum = &core->sums[ticket];
    PL_ASSERT(ticket < PL_COLLECTIVE_SUMS_MOST &&
              range->first % core->stripe == 0 && range->count > 0 &&
              range->first + range->count <=
                  core->opts.floats + core->opts.extra);
    *sum = (pl_ring_sum) { .range = *range };
    core->started++;
    if (core->phase != PL_RING_FORMED) {
        sum->range.count = 0; /* the ring broke: no piece is sent or received */
        return ticket;
    }
    if (core->place.count == 1)
        return ticket;
    for (int64_t p = first_piece(core, sum); p < end_piece(core, sum); p++) {
        core->got[p] = 0;
        core->pending[p] = -1;
        if (is_direct(core, sum) || origin(core, sum, p) == core->place.rank)
            encode_piece(core, sum, p, 0);
        sum->left += visits(core, sum, p);
    }
    tell_prev(core, PL_FRAME_READY, ticket);
    if (may_send(core, ticket))
        send_pending(core, ticket);
    if (!sends(core, sum))
        core->next_done++;
    use_early(core, ticket);
    return ticket;
}

/* A piece must belong to a sum that was started here, and be the one that is
 * due. */
static bool take_piece(pl_ring_core *core, const pl_ring_piece *piece)
{
    uint64_t ticket = piece->sum - core->base; /* wraps for earlier sums */
    if (ticket >= 2 * PL_COLLECTIVE_SUMS_MOST || core->place.count == 1 ||
        piece->first % core->stripe != 0)
        return false;
    if (ticket >= (uint64_t)core->started)
        return core->early_prev && keep_early(core, piece);
    const pl_ring_sum *sum = &core->sums[ticket];
    int64_t p = piece->first / core->stripe;
    if (p < first_piece(core, sum) || p >= end_piece(core, sum) ||
        piece->count != piece_count(core, sum, p) ||
        core->got[p] >= visits(core, sum, p) ||
        piece->hop != first_hop(core, sum, p) +
                          (core->got[p] > 0 ? core->place.count : 0))
        return false;
    return use_piece(core, (int32_t)ticket, p, piece->hop, piece->data);
}

/* Sums are started in order: a rank that has started one has started all
 * earlier ones.  One message may overtake another, through memory that is
 * shared since then. */
static bool take_ready(pl_ring_core *core, uint64_t sum)
{
    if (sum - core->base >= 2 * PL_COLLECTIVE_SUMS_MOST)
        return sum < core->next_ready;
    while (core->next_ready <= sum) {
        uint64_t ticket = core->next_ready++ - core->base;
        if (ticket < (uint64_t)core->started)
            send_pending(core, (int32_t)ticket);
        core->progress++;
    }
    return true;
}

static bool take_done(pl_ring_core *core, uint64_t sum)
{
    uint64_t ticket = sum - core->base;
    if (ticket >= (uint64_t)core->started ||
        core->next_done >= core->base + (uint64_t)core->started)
        return false;
    core->next_done++;
    core->progress++;
    return true;
}

/* The next rank may have formed and started sums before this one: messages of
 * sums are also accepted while linking. */
bool pl_ring_take_piece(pl_ring_core *core, int32_t from,
                        const pl_message *message)
{
    pl_ring_piece piece;
    pl_ring_mark mark;
    if (message->frame.kind == PL_FRAME_PIECE) {
        if (!pl_ring_piece_decode(&piece, message))
            return false;
        return !pl_ring_is_current(core, piece.generation) ||
               (from == core->prev && take_piece(core, &piece));
    }
    if (!pl_ring_mark_decode(&mark, message))
        return false;
    if (!pl_ring_is_current(core, mark.generation))
        return true; /* of another generation */
    if (from != PL_RING_NEXT || core->place.count == 1)
        return false;
    return message->frame.kind == PL_FRAME_READY ? take_ready(core, mark.sum)
                                                 : take_done(core, mark.sum);
}

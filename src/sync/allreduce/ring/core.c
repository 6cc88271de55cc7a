/* The ring's core: its creation, the status exchange, and the dispatch of
 * messages to the parts of the core.
 *
 * The exchange: each worker sends its status to the chief (EXCHANGE); when all
 * have arrived, the chief combines them and sends the result to each
 * (EXCHANGED), so an exchange of N workers takes 2 (N - 1) messages of one
 * status.
 *
 * E1  Exchanges are numbered within a generation, and one is under way at a
 *     time: a status counts once, in the exchange with its number.
 * E2  All ranks get the same bits: the chief combines in the order of ranks,
 *     whatever the order of arrival. */
#include "sync/allreduce/ring/core_priv.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

#define EARLY_FLOATS ((int64_t)128 << 10) /* of a small block */
/* A piece is one message. */
#define FLOATS_MOST ((int64_t)PL_FRAME_PAYLOAD_MAX / 4 * 256)

static pl_status allocate(pl_ring_core *core)
{
    size_t workers = (size_t)core->opts.workers;
    int64_t floats = core->opts.floats + core->opts.extra;
    /* More ranks never make longer stripes. */
    core->pieces =
        floats / pl_ring_stripe(core->opts.floats, core->opts.workers) + 2;
    size_t pieces = (size_t)core->pieces;
    if (core->chief) {
        PL_TRY(PL_NEW(core->roster, workers));
        PL_TRY(PL_NEW(core->seats, workers));
    }
    PL_TRY(PL_NEW(core->got, pieces));
    PL_TRY(PL_NEW(core->pending, pieces));
    PL_TRY(PL_NEW(core->wire, pieces));
    PL_TRY(pl_coder_init(&core->exact, &pl_codec_plain, floats));
    PL_TRY(
        pl_coder_init(&core->gradients, core->opts.codec, core->opts.floats));
    PL_ASSERT(core->gradients.codec->in_place || core->opts.encoded != NULL);
    if (core->opts.floats <= EARLY_FLOATS) {
        PL_TRY(PL_NEW_ALIGNED(core->early, (size_t)floats));
        PL_TRY(PL_NEW(core->early_size, pieces));
        PL_TRY(PL_NEW(core->early_hop, pieces));
        PL_TRY(PL_NEW(core->early_sum, pieces));
    }
    PL_TRY(PL_NEW(core->total, PL_COLLECTIVE_BYTES_MOST));
    if (core->chief)
        PL_TRY(PL_NEW(core->statuses, 2 * workers * PL_COLLECTIVE_BYTES_MOST));
    return pl_ring_members_init(core);
}

pl_status pl_ring_core_new(pl_ring_core **out, const pl_ring_core_opts *opts)
{
    pl_ring_core *core;
    PL_ASSERT(opts->worker >= 0 && opts->worker < opts->workers &&
              opts->incarnation != 0 && opts->floats > 0);
    if (opts->floats > FLOATS_MOST)
        return PL_FAIL(PL_UNSUPPORTED,
                       "a ring sums at most %lld parameters, the model has "
                       "%lld",
                       (long long)FLOATS_MOST, (long long)opts->floats);
    PL_TRY(PL_NEW(core, 1));
    core->opts = *opts;
    core->chief = opts->worker == 0;
    if (opts->heartbeat_ms <= 0)
        core->opts.heartbeat_ms = 5000;
    if (opts->join_ms <= 0)
        core->opts.join_ms = 600000;
    if (opts->rejoin_ms <= 0)
        core->opts.rejoin_ms = 60000;
    pl_status status = allocate(core);
    if (status != PL_OK) {
        pl_ring_core_free(core);
        return status;
    }
    *out = core;
    return PL_OK;
}

void pl_ring_core_free(pl_ring_core *core)
{
    if (core == NULL)
        return;
    pl_mem_free(core->roster);
    pl_mem_free(core->seats);
    pl_membership_free(core->membership);
    pl_mem_free(core->got);
    pl_mem_free(core->pending);
    pl_mem_free(core->wire);
    pl_coder_close(&core->exact);
    pl_coder_close(&core->gradients);
    pl_mem_free(core->early);
    pl_mem_free(core->early_size);
    pl_mem_free(core->early_hop);
    pl_mem_free(core->early_sum);
    pl_mem_free(core->total);
    pl_mem_free(core->statuses);
    pl_mem_free(core);
}

void pl_ring_send(pl_ring_core *core, int32_t to, const pl_frame *frame,
                  const void *payload)
{
    core->opts.ops->send(core->opts.context, to, frame, payload, false);
}

pl_ranks pl_ring_core_ranks(const pl_ring_core *core)
{
    return (pl_ranks) { core->place.rank, core->place.count, core->stripe };
}

bool pl_ring_core_formed(const pl_ring_core *core)
{
    return core->phase == PL_RING_FORMED;
}

pl_status pl_ring_core_outcome(const pl_ring_core *core)
{
    return pl_membership_outcome(core->membership);
}

int32_t pl_ring_core_restarts(const pl_ring_core *core)
{
    return pl_membership_restarts(core->membership);
}

int64_t pl_ring_core_refused(const pl_ring_core *core)
{
    return core->refused;
}

void pl_ring_core_waiting(pl_ring_core *core, bool waiting)
{
    pl_membership_phase(core->membership,
                        waiting ? PL_PHASE_WAITING : PL_PHASE_COMPUTING);
}

void pl_ring_core_progress(pl_ring_core *core)
{
    pl_membership_progress(core->membership);
}

void pl_ring_core_step(pl_ring_core *core)
{
    pl_membership_step(core->membership);
}

pl_skew pl_ring_core_skew(const pl_ring_core *core)
{
    return pl_membership_skew(core->membership);
}

/* --- the status exchange ---------------------------------------------- */

void pl_ring_reset_exchange(pl_ring_core *core)
{
    core->exchanges = 0;
    core->told = core->exchanged = false;
    core->told_count = 0;
    for (int32_t w = 0; core->chief && w < core->opts.workers; w++)
        core->seats[w].told = false;
}

/* Two banks: statuses of the next exchange may arrive before the chief's caller
 * has read those of the last one. */
static uint8_t *status_of(pl_ring_core *core, uint64_t number, int32_t worker)
{
    size_t bank = (size_t)(number % 2) * (size_t)core->opts.workers;
    return core->statuses + (bank + (size_t)worker) * PL_COLLECTIVE_BYTES_MOST;
}

/* The chief: all statuses have arrived, and have the same size. */
static bool is_complete(pl_ring_core *core)
{
    if (!core->told || core->told_count < core->place.count - 1)
        return false;
    for (int32_t r = 1; r < core->place.count; r++) {
        const pl_ring_seat *seat = &core->seats[core->roster[r]];
        if (seat->status_bytes == core->status_bytes)
            continue;
        pl_membership_over(core->membership, PL_PEER,
                           "the status of worker %d has %zu bytes and the "
                           "chief's %zu: the programs differ",
                           core->roster[r], seat->status_bytes,
                           core->status_bytes);
        return false;
    }
    return true;
}

static void end_exchange(pl_ring_core *core)
{
    core->told = false;
    core->exchanged = true;
    core->exchanges++;
    core->progress++;
}

static void try_combine(pl_ring_core *core)
{
    if (!is_complete(core))
        return;
    memcpy(core->total, status_of(core, core->exchanges, 0),
           core->status_bytes);
    for (int32_t r = 1; core->combine != NULL && r < core->place.count; r++)
        core->combine(core->total,
                      status_of(core, core->exchanges, core->roster[r]));
    pl_frame frame = pl_ring_status_encode(
        PL_FRAME_EXCHANGED,
        &(pl_ring_status) {
            .generation = pl_membership_generation(core->membership),
            .number = core->exchanges,
            .size = (uint32_t)core->status_bytes,
        });
    for (int32_t r = 1; r < core->place.count; r++) {
        int32_t w = core->roster[r];
        core->seats[w].told = false;
        core->told_count--;
        pl_ring_send(core, pl_membership_peer(core->membership, w), &frame,
                     core->total);
    }
    end_exchange(core);
}

void pl_ring_core_offer(pl_ring_core *core, const void *status, size_t bytes,
                        pl_combine *combine)
{
    PL_ASSERT(bytes > 0 && bytes <= PL_COLLECTIVE_BYTES_MOST && !core->told);
    if (core->phase != PL_RING_FORMED)
        return;
    core->status_bytes = bytes;
    core->combine = combine;
    core->told = true;
    core->exchanged = false;
    if (core->chief) {
        memcpy(status_of(core, core->exchanges, 0), status, bytes);
        try_combine(core);
        return;
    }
    pl_frame frame = pl_ring_status_encode(
        PL_FRAME_EXCHANGE,
        &(pl_ring_status) {
            .generation = pl_membership_generation(core->membership),
            .worker = core->opts.worker,
            .number = core->exchanges,
            .size = (uint32_t)bytes,
        });
    pl_ring_send(core, PL_RING_HUB, &frame, status);
}

bool pl_ring_core_exchanged(const pl_ring_core *core)
{
    return core->exchanged;
}

void pl_ring_core_exchange(pl_ring_core *core, void *out)
{
    size_t bytes = core->status_bytes;
    PL_ASSERT(core->exchanged);
    core->exchanged = false;
    if (core->combine != NULL || !core->chief) {
        memcpy(out, core->total, bytes);
        return;
    }
    for (int32_t r = 0; r < core->place.count; r++)
        memcpy((uint8_t *)out + (size_t)r * bytes,
               status_of(core, core->exchanges - 1, core->roster[r]), bytes);
}

static bool take_status(pl_ring_core *core, int32_t from,
                        const pl_message *message)
{
    pl_ring_status status;
    if (!pl_ring_status_decode(&status, message))
        return false;
    if (!pl_ring_is_current(core, status.generation))
        return true;
    if (!pl_ring_is_member(core, from, status.worker) ||
        core->seats[status.worker].told || status.number != core->exchanges ||
        status.size > PL_COLLECTIVE_BYTES_MOST)
        return false;
    core->seats[status.worker].told = true;
    core->told_count++;
    core->seats[status.worker].status_bytes = status.size;
    memcpy(status_of(core, core->exchanges, status.worker), status.bytes,
           status.size);
    core->progress++;
    try_combine(core);
    return true;
}

static bool take_total(pl_ring_core *core, int32_t from,
                       const pl_message *message)
{
    pl_ring_status status;
    if (!pl_ring_status_decode(&status, message))
        return false;
    if (!pl_ring_is_current(core, status.generation) ||
        core->phase != PL_RING_FORMED)
        return true;
    if (from != PL_RING_HUB || !core->told ||
        status.number != core->exchanges || status.size != core->status_bytes)
        return false;
    memcpy(core->total, status.bytes, status.size);
    end_exchange(core);
    return true;
}

/* --- messages --------------------------------------------------------- */

void pl_ring_core_receive(pl_ring_core *core, int32_t from,
                          const pl_message *message, int64_t now_ns)
{
    bool right;
    core->now_ns = now_ns;
    switch (message->frame.kind) {
    case PL_FRAME_PIECE:
    case PL_FRAME_READY:
    case PL_FRAME_DONE:
        right = pl_ring_take_piece(core, from, message);
        break;
    case PL_FRAME_EXCHANGE:
        right = take_status(core, from, message);
        break;
    case PL_FRAME_EXCHANGED:
        right = take_total(core, from, message);
        break;
    default:
        right = pl_ring_take_member(core, from, message);
        break;
    }
    core->refused += !right;
}

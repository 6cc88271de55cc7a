#include "dist/allreduce/ring_priv.h"

#include "base/assert.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PIECES_ROOM  512                  /* more than any block is cut into */
#define EARLY_FLOATS ((int64_t)128 << 10) /* of a small block */
/* A piece is one message. */
#define FLOATS_MOST ((int64_t)PL_FRAME_PAYLOAD_MAX / 4 * 256)

static pl_status allocate(pl_ring_core *core)
{
    size_t workers = (size_t)core->opts.workers;
    size_t words = workers * PL_COLLECTIVE_BYTES_MOST;
    PL_TRY(PL_NEW(core->roster, workers));
    PL_TRY(PL_NEW(core->members, workers));
    PL_TRY(PL_NEW(core->got, PIECES_ROOM));
    PL_TRY(PL_NEW(core->pending, PIECES_ROOM));
    if (core->opts.floats <= EARLY_FLOATS) {
        PL_TRY(PL_NEW_ALIGNED(core->early, (size_t)core->opts.floats));
        PL_TRY(PL_NEW(core->early_hop, PIECES_ROOM));
        PL_TRY(PL_NEW(core->early_sum, PIECES_ROOM));
    }
    PL_TRY(PL_NEW(core->all, words));
    PL_TRY(PL_NEW(core->words, core->chief ? words : 0));
    for (size_t w = 0; w < workers; w++)
        core->members[w].peer = -1;
    return PL_OK;
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
    core->prev = -1;
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
    pl_mem_free(core->members);
    pl_mem_free(core->got);
    pl_mem_free(core->pending);
    pl_mem_free(core->early);
    pl_mem_free(core->early_hop);
    pl_mem_free(core->early_sum);
    pl_mem_free(core->all);
    pl_mem_free(core->words);
    pl_mem_free(core);
}

void pl_ring_send(pl_ring_core *core, int32_t to, pl_frame frame,
                  const void *payload)
{
    frame.generation = core->generation;
    frame.incarnation = core->opts.incarnation;
    core->opts.ops->send(core->opts.context, to, &frame, payload, false);
}

void pl_ring_send_text(pl_ring_core *core, int32_t to, pl_frame frame,
                       const char *text)
{
    frame.payload_bytes = (uint32_t)strlen(text);
    pl_ring_send(core, to, frame, text);
}

void pl_ring_end(pl_ring_core *core, pl_status how, const char *format, ...)
{
    va_list args;
    if (core->phase == PL_RING_ENDED && core->how != PL_ROLLED)
        return; /* the first reason counts */
    va_start(args, format);
    vsnprintf(core->why, sizeof core->why, format, args);
    va_end(args);
    core->phase = PL_RING_ENDED;
    core->how = how;
}

pl_ranks pl_ring_core_ranks(const pl_ring_core *core)
{
    return (pl_ranks) { core->rank, core->count, core->stripe };
}

bool pl_ring_core_formed(const pl_ring_core *core)
{
    return core->phase == PL_RING_FORMED;
}

pl_status pl_ring_core_outcome(const pl_ring_core *core)
{
    if (core->phase != PL_RING_ENDED)
        return PL_OK;
    return PL_FAIL(core->how, "%s", core->why);
}

int32_t pl_ring_core_restarts(const pl_ring_core *core)
{
    return core->restarts;
}

int64_t pl_ring_core_refused(const pl_ring_core *core)
{
    return core->refused;
}

void pl_ring_core_waiting(pl_ring_core *core, bool waiting)
{
    core->waiting = waiting;
}

void pl_ring_core_beat(pl_ring_core *core)
{
    atomic_fetch_add_explicit(&core->beats, 1, memory_order_relaxed);
}

pl_skew pl_ring_core_skew(const pl_ring_core *core)
{
    return core->skew;
}

/* --- words ------------------------------------------------------------ */

void pl_ring_reset_words(pl_ring_core *core)
{
    core->gathers = 0;
    core->told = core->gathered = false;
    for (int32_t w = 0; w < core->opts.workers; w++)
        core->members[w].told = false;
}

static uint8_t *word_of(pl_ring_core *core, int32_t worker)
{
    return core->words + (size_t)worker * PL_COLLECTIVE_BYTES_MOST;
}

/* The chief: when all have told, tell all. */
static void spread_words(pl_ring_core *core)
{
    size_t bytes = core->told_bytes;
    if (!core->told)
        return;
    for (int32_t r = 1; r < core->count; r++) {
        const pl_ring_member *m = &core->members[core->roster[r]];
        if (!m->told)
            return;
        if (m->word_bytes != bytes) {
            pl_ring_over(core, PL_PEER,
                         "worker %d told %zu bytes and the chief %zu: the "
                         "programs differ",
                         core->roster[r], m->word_bytes, bytes);
            return;
        }
    }
    for (int32_t r = 0; r < core->count; r++)
        memcpy(core->all + (size_t)r * bytes, word_of(core, core->roster[r]),
               bytes);
    pl_frame frame = {
        .kind = PL_FRAME_WORDS,
        .sequence = core->gathers,
        .payload_bytes = (uint32_t)(bytes * (size_t)core->count),
    };
    for (int32_t r = 1; r < core->count; r++) {
        core->members[core->roster[r]].told = false;
        pl_ring_send(core, core->members[core->roster[r]].peer, frame,
                     core->all);
    }
    core->told = false;
    core->gathered = true;
    core->gathers++;
    core->progress++;
}

void pl_ring_core_tell(pl_ring_core *core, const void *word, size_t bytes)
{
    PL_ASSERT(bytes > 0 && bytes <= PL_COLLECTIVE_BYTES_MOST && !core->told);
    if (core->phase != PL_RING_FORMED)
        return;
    core->told_bytes = bytes;
    core->told = true;
    core->gathered = false;
    if (core->chief) {
        memcpy(word_of(core, 0), word, bytes);
        spread_words(core);
        return;
    }
    pl_ring_send(core, PL_RING_HUB,
                 (pl_frame) { .kind = PL_FRAME_WORD,
                              .sequence = core->gathers,
                              .payload_bytes = (uint32_t)bytes },
                 word);
}

bool pl_ring_core_gathered(const pl_ring_core *core)
{
    return core->gathered;
}

void pl_ring_core_hear(pl_ring_core *core, void *all)
{
    PL_ASSERT(core->gathered);
    memcpy(all, core->all, core->told_bytes * (size_t)core->count);
    core->gathered = false;
}

static bool take_word(pl_ring_core *core, int32_t from,
                      const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    pl_ring_member *m = pl_ring_member_of(core, from);
    if (frame->generation != core->generation ||
        core->phase < PL_RING_LINKING || core->phase > PL_RING_FORMED)
        return true;
    if (m == NULL || !m->member || m->told ||
        frame->sequence != core->gathers || frame->payload_bytes == 0 ||
        frame->payload_bytes > PL_COLLECTIVE_BYTES_MOST)
        return false;
    m->told = true;
    m->word_bytes = frame->payload_bytes;
    memcpy(word_of(core, (int32_t)(m - core->members)), message->payload,
           m->word_bytes);
    core->progress++;
    spread_words(core);
    return true;
}

static bool take_words(pl_ring_core *core, int32_t from,
                       const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    if (frame->generation != core->generation || core->phase != PL_RING_FORMED)
        return true;
    if (from != PL_RING_HUB || !core->told ||
        frame->sequence != core->gathers ||
        frame->payload_bytes != core->told_bytes * (size_t)core->count)
        return false;
    memcpy(core->all, message->payload, frame->payload_bytes);
    core->told = false;
    core->gathered = true;
    core->gathers++;
    core->progress++;
    return true;
}

/* --- messages --------------------------------------------------------- */

void pl_ring_core_receive(pl_ring_core *core, int32_t from,
                          const pl_message *message, int64_t now_ns)
{
    bool right;
    switch (message->frame.kind) {
    case PL_FRAME_PIECE:
    case PL_FRAME_READY:
    case PL_FRAME_DONE:
        right = pl_ring_take_piece(core, from, message);
        break;
    case PL_FRAME_WORD:
        right = take_word(core, from, message);
        break;
    case PL_FRAME_WORDS:
        right = take_words(core, from, message);
        break;
    default:
        right = pl_ring_take_member(core, from, message, now_ns);
        break;
    }
    core->refused += !right;
    if (from == PL_RING_HUB) {
        core->heard_ns = now_ns;
        core->heard = true;
    }
}

/* Dense parameters: gradients and parameters travel whole, in pieces.  Decides
 * where a gradient is stored (in its sender's memory if that is leased,
 * otherwise in a copy), when it is complete, and which pieces of an answer are
 * sent.
 *
 *   D1  A gradient is read only in memory that does not change while it is
 *       fresh or held.
 *   D2  In lock step the pieces of one answer belong to one step.
 *   D3  A piece of the parameters is encoded once for each version of them, so
 *       that data passed to the network does not change. */
#include "sync/ps/store/store.h"

#include "base/mem.h"
#include "sync/ps/modes/mode.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* End a push after which no further gradient is accepted. */
static void send_end(pl_ps_core *core, const pl_member *member)
{
    pl_ps_params params = {
        .answer = member->answer,
        .step = core->step,
        .made = member->made,
        .own = member->own,
    };
    pl_core_reply(core, member, pl_ps_params_encode(&params), NULL, false);
}

/* The codec encodes parameters if there is memory for it. */
static pl_status open_store(pl_ps_core *core)
{
    const pl_ps_core_opts *opts = &core->opts;
    size_t pieces = (size_t)pl_pieces_total(&core->members[0].out.acked);
    return opts->codec->for_parameters && opts->encoded != NULL
               ? PL_NEW(core->encoded_at, pieces)
               : PL_OK;
}

static void close_store(pl_ps_core *core)
{
    pl_mem_free(core->encoded_at);
}

/* The payload with a piece of the parameters for an answer. */
static pl_encoded param_piece(pl_ps_core *core, const pl_member *member,
                              int32_t index, const pl_piece_range *piece)
{
    const pl_ps_core_opts *opts = &core->opts;
    int64_t offset = piece->first - opts->first;
    bool exact = member->request.kind == PL_REQUEST_PULL &&
                 (member->request.pull.flags & PL_PULL_EXACT) != 0;
    pl_codec_span floats = {
        piece->count, opts->params + offset, { NULL }, { NULL }
    };
    if (core->encoded_at == NULL || exact)
        return (pl_encoded) { floats.floats, piece->count * sizeof(float) };
    if (core->encoded_at[index] != core->version)
        (void)opts->codec->encode(opts->codec, &floats, opts->encoded + offset);
    core->encoded_at[index] = core->version;
    return (
        pl_encoded) { opts->encoded + offset,
                      opts->codec->encoded_most(opts->codec, piece->count) };
}

/* Send as many pieces of the answer as the window allows.  Parameters that
 * changed meanwhile are sent again: in sync a worker uses those of one step. */
static void pump(pl_ps_core *core, pl_member *member)
{
    pl_stream *out = &member->out;
    bool changed = core->mode->lock_step && member->answer_step != core->step &&
                   !pl_pieces_complete(&out->acked);
    if (changed) {
        pl_stream_start(out, 1, false);
        member->answer_step = core->step;
        member->answer |= (uint8_t)pl_core_stop_flag(core);
        if (!pl_core_has_params(member)) {
            send_end(core, member);
            return;
        }
    }
    bool still =
        core->mode->lock_step && core->opts.replicas == core->opts.workers;
    for (int32_t i = pl_stream_next(out); i >= 0; i = pl_stream_next(out)) {
        pl_piece_range piece = pl_pieces_range(&out->acked, i);
        pl_encoded data = param_piece(core, member, i, &piece);
        pl_ps_params params = {
            .answer = member->answer,
            .step = core->step,
            .first = piece.first,
            .count = piece.count,
            .made = member->made,
            .own = member->own,
            .bytes = (uint32_t)data.size,
        };
        pl_core_reply(core, member, pl_ps_params_encode(&params), data.bytes,
                      still);
    }
}

static void deliver(pl_ps_core *core, pl_member *member)
{
    if (pl_core_has_params(member))
        pump(core, member);
    else
        send_end(core, member);
}

static void answer(pl_ps_core *core, pl_member *member)
{
    pl_stream_start(&member->out, 1, false);
    deliver(core, member);
}

static void answer_again(pl_ps_core *core, pl_member *member)
{
    pl_stream_retry(&member->out);
    deliver(core, member);
}

static void acked(pl_ps_core *core, pl_member *member, const pl_ps_ack *ack)
{
    if (core->mode->lock_step && ack->step != member->answer_step)
        return; /* acknowledges parameters that changed since */
    int32_t index =
        pl_pieces_find(&member->out.acked, 0, ack->first, ack->count);
    if (index < 0)
        return;
    pl_stream_ack(&member->out, index);
    pump(core, member);
}

static pl_status keep(pl_ps_core *core, pl_member *member)
{
    size_t count = (size_t)core->opts.count;
    if (member->gradient == NULL || member->gradient == member->staging)
        return PL_OK;
    if (member->staging == NULL)
        PL_TRY(PL_NEW_ALIGNED(member->staging, count));
    memcpy(member->staging, member->gradient, count * sizeof(float));
    member->gradient = member->staging;
    return PL_OK;
}

/* Whether the lease covers the whole gradient.  The sender chooses where its
 * pieces are: the place of pieces that have not arrived is not trusted. */
static bool stays(const pl_ps_core *core, const pl_message *message,
                  const float *base)
{
    return pl_lease_covers(message->lease, base,
                           (size_t)core->opts.count * sizeof *base);
}

static void point_at(pl_member *member, const float *base, pl_lease *lease)
{
    pl_lease *before = member->lease;
    member->lease = pl_lease_hold(lease);
    member->gradient = base;
    pl_lease_release(before);
}

/* Collect the gradient in our own memory. */
static pl_status collect(pl_ps_core *core, pl_member *member)
{
    if (member->gradient == NULL && member->staging == NULL)
        PL_TRY(PL_NEW_ALIGNED(member->staging, (size_t)core->opts.count));
    if (member->gradient == NULL)
        member->gradient = member->staging;
    return keep(core, member);
}

/* Unencoded floats: read in place if the memory is leased, otherwise copied. */
static pl_status store_floats(pl_ps_core *core, pl_member *member,
                              const pl_ps_push *push, const pl_message *message,
                              const float *from)
{
    int64_t offset = push->first - core->opts.first;
    bool whole = push->count == core->opts.count;
    bool at_once = whole && !core->mode->lock_step && core->opts.ps == 1;
    const float *base = from - offset;
    if ((at_once || stays(core, message, base)) &&
        (member->gradient == NULL || member->gradient == base)) {
        point_at(member, base, message->lease);
        return PL_OK;
    }
    PL_TRY(collect(core, member));
    memcpy(member->staging + offset, from, push->count * sizeof(float));
    return PL_OK;
}

/* Take a piece of a gradient; PL_FORMAT: malformed. */
static pl_status store_gradient(pl_ps_core *core, pl_member *member,
                                const pl_ps_push *push,
                                const pl_message *message)
{
    const pl_codec *codec = core->opts.codec;
    pl_encoded piece = { message->payload, message->frame.payload_bytes };
    float *room = NULL;
    if (!codec->in_place) {
        PL_TRY(collect(core, member));
        room = member->staging + (push->first - core->opts.first);
    }
    const float *floats = pl_codec_decode(codec, push->count, piece, room);
    if (floats == NULL)
        return PL_FAIL(PL_FORMAT,
                       "push of %u floats at %lld: %zu bytes are not a %s "
                       "piece of a gradient",
                       push->count, (long long)push->first, piece.size,
                       codec->name);
    return floats != room ? store_floats(core, member, push, message, floats)
                          : PL_OK;
}

static void store_init(pl_ps_core *core, const pl_ps_init *init,
                       const void *floats)
{
    memcpy(core->opts.params + init->first - core->opts.first, floats,
           init->count * sizeof(float));
}

/* One piece of a push or of the first parameters. */
static void take_piece(pl_ps_core *core, pl_member *member,
                       const pl_ps_request *request, const pl_message *message)
{
    bool init = request->kind == PL_REQUEST_INIT;
    int64_t first = init ? request->init.first : request->push.first;
    uint32_t count = init ? request->init.count : request->push.count;
    int32_t index = pl_pieces_find(&member->in, 0, first, count);
    if (index < 0 || (!init && request->push.key_count != 0)) {
        char why[160];
        int64_t end = core->opts.first + core->opts.count;
        snprintf(why, sizeof why,
                 "%s of %u floats at %lld: not a piece of the parameters "
                 "%lld to %lld here",
                 pl_ps_request_text(request->kind), count, (long long)first,
                 (long long)core->opts.first, (long long)end);
        pl_core_refuse(core, member, why);
        return;
    }
    /* A save that was given up may still be reading: the chief resends the
     * piece. */
    if (init && !pl_core_may_change(core, NULL))
        return;
    if (!pl_pieces_mark(&member->in, index)) {
        core->counts.duplicates++;
    } else if (init) {
        store_init(core, &request->init, message->payload);
    } else {
        pl_status status =
            store_gradient(core, member, &request->push, message);
        if (status == PL_FORMAT) {
            pl_core_turn_down(core, member, pl_error_message());
            return;
        }
        if (status != PL_OK)
            pl_core_end(core, true, "%s", pl_error_message());
    }
    if (pl_pieces_windowed(&member->in)) {
        pl_ps_ack got = { .first = first, .count = count };
        pl_core_reply(core, member, pl_ps_ack_encode(&got), NULL, false);
    }
    if (pl_pieces_complete(&member->in) && !core->failed)
        pl_core_complete(core, member);
}

/* The pieces of the current request begin to arrive. */
static void begin(pl_ps_core *core, pl_member *member,
                  const pl_message *message)
{
    pl_pieces_reset(&member->in, 1);
    if (pl_ps_request_has_data(&member->request))
        take_piece(core, member, &member->request, message);
    else
        pl_core_ack(core, member, PL_ACKED_NEED);
}

static void begin_push(pl_ps_core *core, pl_member *member,
                       const pl_message *message)
{
    if (pl_core_settle_early(core, member))
        return;
    if (!member->fresh)
        member->gradient = NULL;
    begin(core, member, message);
}

static bool is_finite(const pl_ps_core *core, const pl_member *member)
{
    return isfinite(
        core->opts.kernels->sum(core->opts.count, member->gradient));
}

static bool touch(const pl_ps_core *core, const pl_member *member)
{
    (void)member;
    return core->opts.ops->touch(core->opts.context, 0, core->opts.count);
}

/* Combine gradients and apply the result range by range, so that a sum is
 * still in the cache when it is applied. */
static void update_several(pl_ps_core *core, int32_t count)
{
    const pl_ps_core_opts *opts = &core->opts;
    const float **gradients = core->gradients;
    const float *terms[PL_CLUSTER_WORKERS_MAX];
    for (int64_t first = 0; first < opts->count; first += PL_UPDATE_FLOATS) {
        int64_t n = opts->count - first;
        n = n < PL_UPDATE_FLOATS ? n : PL_UPDATE_FLOATS;
        for (int32_t i = 0; i < count; i++)
            terms[i] = gradients[i] + first;
        opts->kernels->sum_parts(n, count, terms, core->sum);
        if (opts->sum)
            pl_optim_mean(opts->optim, first, n, count, core->sum);
        else
            opts->kernels->scale(n, 1.0f / (float)count, core->sum, core->sum);
        pl_optim_update(opts->optim, first, n, core->sum, opts->params);
    }
}

static pl_status update(pl_ps_core *core, const int32_t *workers, int32_t count)
{
    const pl_ps_core_opts *opts = &core->opts;
    uint64_t begin = pl_trace_mark(opts->trace);
    for (int32_t i = 0; i < count; i++)
        core->gradients[i] = core->members[workers[i]].gradient;
    if (count > 1)
        update_several(core, count);
    else
        pl_optim_update(opts->optim, 0, opts->count, core->gradients[0],
                        opts->params);
    pl_core_traced(core, count == 1 ? "apply" : "aggregate, apply", begin, 0);
    return PL_OK;
}

const pl_ps_store_ops pl_ps_store_dense = {
    .name = "dense",
    .open = open_store,
    .close = close_store,
    .begin_init = begin,
    .begin_push = begin_push,
    .take = take_piece,
    .answer = answer,
    .answer_again = answer_again,
    .acked = acked,
    .keep = keep,
    .is_finite = is_finite,
    .touch = touch,
    .update = update,
};

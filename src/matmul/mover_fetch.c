/* Pieces of blocks: requests, answers, and storing received ones. */
#include "base/clock.h"
#include "matmul/messages.h"
#include "matmul/mover_priv.h"

#include <string.h>

#define PIECE     ((int64_t)512 * 1024) /* floats: 2 MiB */
#define RESEND_NS ((int64_t)5000 * 1000 * 1000)

static const pl_matmul_step *step_at(const pl_mover *m, int32_t step)
{
    return &m->opts.plan->steps[step];
}

/* Assign a slot to the next step; false: none is free, or no step is left. */
static bool open_slot(pl_mover *m)
{
    pl_slot *slot = &m->slots[m->step % PL_MATMUL_SLOTS];
    pl_mutex_lock(&m->lock);
    bool may = m->step < m->opts.plan->step_count &&
               m->step < m->released + PL_MATMUL_SLOTS;
    if (may && slot->step != m->step) {
        slot->step = m->step;
        slot->left = step_at(m, m->step)->floats;
        m->want = step_at(m, m->step)->want;
        m->first = 0;
        if (slot->left == 0)
            pl_cond_broadcast(&m->moved);
    }
    pl_mutex_unlock(&m->lock);
    return may;
}

static pl_status send_ask(pl_mover *m, pl_ask *ask)
{
    const pl_want *want = ask->want;
    pl_frame frame = pl_block_pull_encode(&(pl_block_pull) {
        .sequence = ask->sequence,
        .matrix = want->matrix,
        .i = want->i,
        .j = want->j,
        .first = ask->first,
        .count = ask->count,
    });
    ask->sent_ns = pl_clock_now_ns(pl_clock_real());
    return m->net->send(m->others[ask->owner].end, 0, &frame, NULL, false);
}

/* Fill a free request with the next piece; false: none now. */
static bool next_piece(pl_mover *m, pl_ask *ask)
{
    while (open_slot(m)) {
        const pl_matmul_step *step = step_at(m, m->step);
        if (m->want == step->last) {
            m->step++;
            continue;
        }
        const pl_want *want = &m->opts.plan->wants[m->want];
        int64_t left = want->floats - m->first;
        *ask = (pl_ask) {
            .sequence = ++m->sequence,
            .step = m->step,
            .owner = want->owner,
            .want = want,
            .first = m->first,
            .count = left < PIECE ? left : PIECE,
        };
        m->first += ask->count;
        if (m->first == want->floats) {
            m->want++;
            m->first = 0;
        }
        return true;
    }
    return false;
}

pl_status pl_mover_ask(pl_mover *m)
{
    int64_t now_ns = pl_clock_now_ns(pl_clock_real());
    for (int i = 0; i < PL_MOVER_ASKS; i++) {
        pl_ask *ask = &m->asks[i];
        if (ask->sequence == 0 && next_piece(m, ask)) {
            PL_TRY(send_ask(m, ask));
        } else if (ask->sequence != 0 && now_ns - ask->sent_ns > RESEND_NS &&
                   now_ns - m->others[ask->owner].heard_ns > RESEND_NS / 2) {
            PL_TRY(send_ask(m, ask)); /* the connection broke meanwhile */
        }
    }
    return PL_OK;
}

pl_status pl_mover_take_piece(pl_mover *m, int32_t from,
                              const pl_message *message)
{
    pl_block_piece piece;
    if (!pl_block_piece_decode(&piece, message))
        return PL_OK; /* not one of ours */
    for (int i = 0; i < PL_MOVER_ASKS; i++) {
        pl_ask *ask = &m->asks[i];
        if (ask->sequence == 0 || ask->sequence != piece.sequence ||
            ask->owner != from)
            continue;
        if (piece.first != ask->first || piece.count != ask->count)
            return PL_FAIL(PL_PEER,
                           "worker %d at %s sent %u floats from %lld on, "
                           "expected %lld from %lld",
                           from, m->others[from].address, piece.count,
                           (long long)piece.first, (long long)ask->count,
                           (long long)ask->first);
        size_t bytes = (size_t)ask->count * sizeof(float);
        pl_slot *slot = &m->slots[ask->step % PL_MATMUL_SLOTS];
        memcpy(slot->memory + ask->want->at + ask->first, piece.floats, bytes);
        ask->sequence = 0;
        pl_mutex_lock(&m->lock);
        m->counts.fetched_bytes += (int64_t)bytes;
        slot->left -= (int64_t)(bytes / sizeof(float));
        if (slot->left == 0)
            pl_cond_broadcast(&m->moved);
        pl_mutex_unlock(&m->lock);
        return PL_OK;
    }
    return PL_OK; /* the answer to a repeated request */
}

pl_status pl_mover_serve(pl_mover *m, const pl_message *message)
{
    pl_block_pull pull;
    int32_t blocks = m->opts.placement->job.blocks;
    const float *block = NULL;
    pl_block_pull_decode(&pull, message);
    int32_t i = (int32_t)pull.i, j = (int32_t)pull.j;
    if (pull.matrix >= 0 && pull.matrix < PL_MATRICES && pull.i >= 0 &&
        pull.i < blocks && pull.j < blocks)
        block = pl_store_block(m->opts.store, (int)pull.matrix, i, j);
    int64_t floats =
        block == NULL ? 0 : pl_placement_floats(m->opts.placement, i, j);
    if (block == NULL || pull.count < 1 || pull.count > PIECE ||
        pull.first < 0 || pull.first > floats - pull.count)
        return PL_OK; /* no worker of this job sends this */
    pl_frame answer = pl_block_piece_encode(&(pl_block_piece) {
        .sequence = pull.sequence,
        .first = pull.first,
        .count = (uint32_t)pull.count,
    });
    PL_TRY(m->net->send(m->server, message->from, &answer, block + pull.first,
                        true));
    pl_mutex_lock(&m->lock);
    m->counts.served_bytes += (int64_t)answer.payload_bytes;
    pl_mutex_unlock(&m->lock);
    return PL_OK;
}

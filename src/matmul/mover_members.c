/* What a matrix product adds to membership (job/member): links to the workers
 * whose blocks are needed, and when a worker is ready.
 *
 * A worker joins when it starts and is ready when its own blocks are filled and
 * all its links are answered; then the only generation of the product forms.
 * The blocks of a lost worker are lost with it, so the job ends (on_loss is
 * abort).  Membership collects the reports. */
#include "base/clock.h"
#include "base/mem.h"
#include "job/member/incarnation.h"
#include "matmul/messages.h"
#include "matmul/mover_priv.h"

#include <stdio.h>
#include <string.h>

#define AGAIN_NS ((int64_t)100 * 1000 * 1000) /* between two LINKs */

static int64_t now_ns(void)
{
    return pl_clock_now_ns(pl_clock_real());
}

/* --- links ------------------------------------------------------------ */

static pl_status send_link(pl_mover *m, pl_endpoint *end, pl_peer to,
                           pl_frame_kind kind, const pl_block_link *link)
{
    pl_frame frame = pl_block_link_encode(kind, link);
    return m->net->send(end, to, &frame, link->offer, false);
}

static pl_status ask_link(pl_mover *m, pl_colleague *other)
{
    pl_block_link link = { .worker = m->opts.worker };
    PL_TRY(m->net->offer(other->end, link.offer));
    return send_link(m, other->end, 0, PL_FRAME_LINK, &link);
}

static pl_status take_link(pl_mover *m, const pl_message *message)
{
    pl_block_link link, answer = { .worker = m->opts.worker };
    if (!pl_block_link_decode(&link, message) ||
        link.worker >= m->opts.placement->job.workers ||
        !pl_principal_permits(
            message->who, (pl_principal) { PL_PRINCIPAL_WORKER, link.worker }))
        return PL_OK; /* not one of ours */
    PL_TRY(m->net->accept(m->server, message->from, link.offer, answer.offer));
    return send_link(m, m->server, message->from, PL_FRAME_LINKED, &answer);
}

static pl_status take_linked(const pl_mover *m, pl_colleague *other,
                             const pl_message *message)
{
    pl_block_link link;
    if (other->linked || !pl_block_link_decode(&link, message))
        return PL_OK;
    if (link.offer[0] != '\0')
        PL_TRY(m->net->complete(other->end, link.offer));
    other->linked = true;
    return PL_OK;
}

static bool all_linked(const pl_mover *m)
{
    for (int32_t w = 0; w < m->opts.placement->job.workers; w++)
        if (m->others[w].end != NULL && !m->others[w].linked)
            return false;
    return true;
}

/* --- callbacks of membership ------------------------------------------ */

static void member_send(void *context, int32_t to, const pl_frame *frame,
                        const void *payload)
{
    pl_mover *m = context;
    bool up = to == PL_TO_COORDINATOR;
    pl_status status = m->net->send(up ? m->others[0].end : m->server,
                                    up ? 0 : to, frame, payload, false);
    if (status != PL_OK && m->broken.status == PL_OK)
        pl_error_save(&m->broken, status);
}

static void member_drop(void *context, pl_peer peer)
{
    (void)context, (void)peer; /* its endpoint forgets lost peers */
}

static void member_name(void *context, int32_t member,
                        char text[PL_MEMBER_NAME])
{
    const pl_mover *m = context;
    const char *address =
        member == m->opts.worker ? m->opts.address : m->others[member].address;
    snprintf(text, PL_MEMBER_NAME, "worker %d (%s)", member, address);
}

/* A worker of another job ends both jobs: without it this one can never
 * begin. */
static pl_status member_admit(void *context, const pl_join_message *join)
{
    pl_mover *m = context;
    const char *job = m->opts.job;
    if (join->fact_bytes == strlen(job) &&
        memcmp(join->facts, job, join->fact_bytes) == 0)
        return PL_OK;
    pl_status status =
        PL_FAIL(PL_USAGE,
                "worker 0 was started for another job: %s; worker %d for: "
                "%.*s; start all with the same flags",
                job, join->member, (int)join->fact_bytes,
                join->fact_bytes > 0 ? join->facts : "");
    if (m->broken.status == PL_OK)
        pl_error_save(&m->broken, status);
    return status;
}

/* Pass the job's phase to the computing thread. */
static void member_event(void *context, const pl_member_event *event)
{
    pl_mover *m = context;
    pl_matmul_phase phase =
        event->kind == PL_MEMBER_EVENT_FORMED ? PL_MATMUL_RUNS
        : pl_membership_done(m->membership)   ? PL_MATMUL_OVER
                                              : PL_MATMUL_WAITS;
    pl_mutex_lock(&m->lock);
    if (phase > m->job) {
        m->job = phase;
        pl_cond_broadcast(&m->moved);
    }
    pl_mutex_unlock(&m->lock);
}

pl_status pl_mover_members_init(pl_mover *m)
{
    static const pl_membership_ops ops = {
        .send = member_send,
        .drop = member_drop,
        .name = member_name,
        .admit = member_admit,
        .event = member_event,
    };
    return pl_membership_new(&m->membership,
                             &(pl_membership_opts) {
                                 .self = m->opts.worker,
                                 .members = m->opts.placement->job.workers,
                                 .incarnation = pl_incarnation_draw(),
                                 .on_loss = PL_ON_LOSS_ABORT,
                                 .heartbeat_ms = m->opts.silence_ms,
                                 .join_ms = m->opts.join_ms,
                                 .facts = m->opts.job,
                                 .next = "the product is lost with it",
                                 .ops = &ops,
                                 .context = m,
                             });
}

void pl_mover_join(pl_mover *m)
{
    pl_membership_join(m->membership, false, now_ns());
}

/* --- messages and the clock ------------------------------------------- */

pl_status pl_mover_take_request(pl_mover *m, const pl_message *message)
{
    switch (message->frame.kind) {
    case PL_FRAME_LINK:
        return take_link(m, message);
    case PL_FRAME_PULL:
        return pl_mover_serve(m, message);
    default:
        if (pl_member_message(message->frame.kind))
            (void)pl_membership_receive(m->membership, message->from, message,
                                        now_ns());
        return PL_OK;
    }
}

pl_status pl_mover_take_answer(pl_mover *m, int32_t from,
                               const pl_message *message)
{
    m->others[from].heard_ns = now_ns();
    switch (message->frame.kind) {
    case PL_FRAME_LINKED:
        return take_linked(m, &m->others[from], message);
    case PL_FRAME_PARAMS:
        return pl_mover_take_piece(m, from, message);
    default:
        if (from == 0 && pl_member_message(message->frame.kind))
            (void)pl_membership_receive(m->membership, PL_TO_COORDINATOR,
                                        message, now_ns());
        return PL_OK;
    }
}

/* Report the progress of the computing thread. */
static pl_status tell_progress(pl_mover *m, int64_t now)
{
    pl_mutex_lock(&m->lock);
    pl_worker_phase phase = m->phase;
    const char *report = m->report; /* does not change once submitted */
    pl_mutex_unlock(&m->lock);
    if (phase >= PL_WORKER_PHASE_READY && !m->ready && all_linked(m)) {
        m->ready = true;
        pl_membership_ready(m->membership, now);
    }
    if (report == NULL || m->finished)
        return PL_OK;
    m->finished = true;
    return pl_membership_finish(m->membership, report);
}

pl_status pl_mover_tend(pl_mover *m)
{
    int64_t now = now_ns();
    for (int32_t w = 0; w < m->opts.placement->job.workers; w++) {
        pl_colleague *other = &m->others[w];
        if (other->end == NULL || other->linked ||
            now - other->asked_ns < AGAIN_NS)
            continue;
        other->asked_ns = now;
        PL_TRY(ask_link(m, other));
    }
    PL_TRY(tell_progress(m, now));
    pl_membership_tick(m->membership, now);
    if (m->broken.status != PL_OK)
        return pl_error_raise(&m->broken);
    return pl_membership_outcome(m->membership);
}

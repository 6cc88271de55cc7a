/* The membership machine: the common part of coordinator and members.
 *
 *   IDLE -> JOINING -> FORMED -> ROLLED -> JOINING ...
 *                any state ------------> OVER
 *
 * JOINING: this task wants to be in the next generation.  FORMED: it is in one.
 * ROLLED: that generation is over, and the strategy has not rejoined yet.  OVER
 * is final.
 *
 * Invariants, which the tests and the simulator name:
 * M1  OVER is final, and its first reason is kept.
 * M2  A generation has the same number at all members, and numbers only rise,
 *     also across processes of the coordinator.
 * M3  A generation forms only when every member is ready, or is lost under
 *     `continue`; the coordinator is in all of them.
 * M4  A message of another generation, attempt or process changes nothing.
 * M5  A process that was replaced is never admitted again; it is refused.
 * M6  Losses are detected in every state, so any number of members may be lost
 *     at once or during a rendezvous; every wait has a deadline, and no
 *     decision of the coordinator depends on a message that is sent only once.
 * M7  A member is lost by silence, by being stuck, or by joining too late, and
 *     in no other way (liveness.h: I1-I4).
 * M8  The job succeeds only when the coordinator has the report of every member
 *     of the generation. */
#include "job/member/member.h"

#include "base/assert.h"
#include "base/mem.h"
#include "job/member/member_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void resolve(pl_membership_opts *opts)
{
    PL_ASSERT(opts->self >= 0 && opts->self < opts->members &&
              opts->incarnation != 0);
    if (opts->heartbeat_ms <= 0)
        opts->heartbeat_ms = 5000;
    if (opts->join_ms <= 0)
        opts->join_ms = 600000;
    if (opts->rejoin_ms <= 0)
        opts->rejoin_ms = 60000;
}

pl_status pl_membership_new(pl_membership **out, const pl_membership_opts *opts)
{
    pl_membership *m;
    PL_TRY(PL_NEW(m, 1));
    m->opts = *opts;
    resolve(&m->opts);
    if (opts->self == 0) {
        pl_status status = PL_NEW(m->seats, (size_t)opts->members);
        if (status != PL_OK) {
            pl_membership_free(m);
            return status;
        }
        for (int32_t i = 0; i < opts->members; i++)
            m->seats[i].peer = -1;
    }
    *out = m;
    return PL_OK;
}

void pl_membership_free(pl_membership *m)
{
    if (m == NULL)
        return;
    for (int32_t i = 0; m->seats != NULL && i < m->opts.members; i++)
        pl_mem_free(m->seats[i].report);
    pl_mem_free(m->seats);
    pl_mem_free(m->report);
    pl_mem_free(m);
}

void pl_membership_name(const pl_membership *m, int32_t member,
                        char text[PL_MEMBER_NAME])
{
    m->opts.ops->name(m->opts.context, member, text);
}

void pl_membership_send(pl_membership *m, int32_t to, const pl_frame *frame,
                        const void *payload)
{
    m->opts.ops->send(m->opts.context, to, frame, payload);
}

void pl_membership_note(pl_membership *m, int32_t to, pl_frame_kind kind,
                        pl_status how, const char *text)
{
    pl_frame frame = pl_note_encode(&(pl_note_message) {
        .kind = kind,
        .member = m->opts.self,
        .incarnation = m->opts.incarnation,
        .generation = m->generation,
        .failed = how != PL_OK,
        .usage = how == PL_USAGE,
        .text_bytes = (uint32_t)strlen(text),
    });
    pl_membership_send(m, to, &frame, text);
}

bool pl_membership_end(pl_membership *m, pl_membership_state state,
                       pl_status how, const char *why)
{
    if (m->state == PL_MEMBERSHIP_OVER)
        return false;
    if (why != m->why)
        snprintf(m->why, sizeof m->why, "%s", why);
    m->state = state;
    m->how = how;
    m->opts.ops->event(m->opts.context,
                       &(pl_member_event) {
                           .kind = state == PL_MEMBERSHIP_OVER
                                       ? PL_MEMBER_EVENT_OVER
                                       : PL_MEMBER_EVENT_ROLLED,
                           .text = m->why,
                       });
    return true;
}

int64_t pl_membership_limit_ms(const pl_membership *m)
{
    return m->formed_once ? m->opts.rejoin_ms : m->opts.join_ms;
}

const char *pl_membership_next(const pl_membership *m)
{
    return m->opts.next != NULL ? m->opts.next : pl_loss_next(m->opts.on_loss);
}

void pl_membership_join(pl_membership *m, bool ready, int64_t now_ns)
{
    if (m->state == PL_MEMBERSHIP_OVER)
        return;
    m->state = PL_MEMBERSHIP_JOINING;
    m->since_ns = now_ns;
    m->phase = PL_PHASE_JOINING;
    m->ready = ready;
    if (pl_membership_leads(m))
        pl_coordinator_try_form(m, now_ns);
    else
        pl_participant_join(m, now_ns);
}

void pl_membership_ready(pl_membership *m, int64_t now_ns)
{
    if (m->state != PL_MEMBERSHIP_JOINING)
        return;
    m->ready = true;
    if (pl_membership_leads(m))
        pl_coordinator_try_form(m, now_ns);
    else
        m->next_ns = now_ns; /* send the next JOIN at once */
}

bool pl_membership_formed(const pl_membership *m)
{
    return m->state == PL_MEMBERSHIP_FORMED;
}

int32_t pl_membership_absent(const pl_membership *m)
{
    if (m->state != PL_MEMBERSHIP_JOINING)
        return -1;
    if (pl_membership_leads(m))
        return pl_coordinator_absent(m);
    return m->heard ? -1 : 0;
}

bool pl_membership_receive(pl_membership *m, int32_t from,
                           const pl_message *message, int64_t now_ns)
{
    if (pl_membership_leads(m))
        return from >= 0 && pl_coordinator_receive(m, from, message, now_ns);
    return from == PL_TO_COORDINATOR &&
           pl_participant_receive(m, message, now_ns);
}

void pl_membership_tick(pl_membership *m, int64_t now_ns)
{
    if (pl_membership_leads(m))
        pl_coordinator_tick(m, now_ns);
    else
        pl_participant_tick(m, now_ns);
}

void pl_membership_phase(pl_membership *m, pl_phase phase)
{
    m->phase = phase;
}

void pl_membership_transfers(pl_membership *m, int64_t transfers)
{
    m->transfers = transfers;
}

void pl_membership_progress(pl_membership *m)
{
    atomic_fetch_add_explicit(&m->progress, 1, memory_order_relaxed);
}

void pl_membership_step(pl_membership *m)
{
    atomic_fetch_add_explicit(&m->step, 1, memory_order_relaxed);
}

void pl_membership_roll(pl_membership *m, const char *format, ...)
{
    char why[PL_LOSS_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    PL_ASSERT(pl_membership_leads(m));
    pl_coordinator_roll(m, why);
}

void pl_membership_over(pl_membership *m, pl_status how, const char *format,
                        ...)
{
    char why[PL_LOSS_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    if (pl_membership_leads(m))
        pl_coordinator_over(m, how, why);
    else
        pl_membership_end(m, PL_MEMBERSHIP_OVER, how, why);
}

void pl_membership_abort(pl_membership *m, const char *why)
{
    char name[PL_MEMBER_NAME], text[PL_LOSS_TEXT];
    if (m->state == PL_MEMBERSHIP_OVER)
        return; /* the others were notified */
    pl_membership_name(m, m->opts.self, name);
    snprintf(text, sizeof text, "%.100s failed: %.380s", name, why);
    if (pl_membership_leads(m))
        pl_coordinator_over(m, PL_CLOSED, text);
    else if (m->heard)
        pl_membership_note(m, PL_TO_COORDINATOR, PL_FRAME_STOP, PL_CLOSED,
                           text);
}

pl_status pl_membership_finish(pl_membership *m, const char *report)
{
    PL_ASSERT(m->report == NULL);
    PL_TRY(pl_mem_copy_text(&m->report, report));
    if (pl_membership_leads(m))
        pl_coordinator_try_finish(m);
    else
        pl_participant_report(m);
    return PL_OK;
}

bool pl_membership_done(const pl_membership *m)
{
    return m->state == PL_MEMBERSHIP_OVER && m->how == PL_OK;
}

const char *pl_membership_report(const pl_membership *m, int32_t member)
{
    return member == 0 ? m->report : m->seats[member].report;
}

pl_status pl_membership_outcome(const pl_membership *m)
{
    if ((m->state != PL_MEMBERSHIP_ROLLED && m->state != PL_MEMBERSHIP_OVER) ||
        m->how == PL_OK)
        return PL_OK;
    return PL_FAIL(m->how, "%s", m->why);
}

uint32_t pl_membership_generation(const pl_membership *m)
{
    return m->generation;
}

bool pl_membership_has(const pl_membership *m, int32_t member)
{
    return m->seats[member].in;
}

pl_peer pl_membership_peer(const pl_membership *m, int32_t member)
{
    return m->seats[member].peer;
}

int32_t pl_membership_restarts(const pl_membership *m)
{
    return m->restarts;
}

pl_skew pl_membership_skew(const pl_membership *m)
{
    return m->skew;
}

bool pl_membership_all_told(const pl_membership *m)
{
    for (int32_t i = 1; pl_membership_leads(m) && i < m->opts.members; i++)
        if (m->seats[i].peer >= 0 && !m->seats[i].told && !m->seats[i].lost)
            return false;
    return true;
}

/* A member other than the coordinator: sends JOIN until it gets a WELCOME, then
 * heartbeats, and decides when the coordinator is lost or was restarted.
 *
 * The coordinator has the deadline for the other members; this side has one
 * only for the coordinator, which must answer while this task joins (M6). */
#include "job/member/member_priv.h"

#include <stdio.h>
#include <string.h>

#define JOIN_NS INT64_C(200000000)

static void send_join(pl_membership *m, int64_t now_ns)
{
    const char *facts = m->opts.facts;
    pl_frame frame = pl_join_encode(&(pl_join_message) {
        .member = m->opts.self,
        .incarnation = m->opts.incarnation,
        .generation = m->generation,
        .attempt = m->attempt,
        .ready = m->ready,
        .fact_bytes = facts != NULL ? (uint32_t)strlen(facts) : 0,
    });
    m->next_ns = now_ns + JOIN_NS;
    pl_membership_send(m, PL_TO_COORDINATOR, &frame, facts);
}

static void send_heartbeat(pl_membership *m, int64_t now_ns)
{
    pl_vital vital = {
        .step = atomic_load_explicit(&m->step, memory_order_relaxed),
        .phase = m->phase,
        .progress = atomic_load_explicit(&m->progress, memory_order_relaxed),
    };
    pl_frame frame = pl_heartbeat_encode(&(pl_heartbeat_message) {
        .member = m->opts.self,
        .incarnation = m->opts.incarnation,
        .generation = m->generation,
        .number = ++m->number,
        .vital = vital,
        .transfers = m->transfers,
    });
    m->sent_ns = now_ns;
    m->next_ns =
        now_ns + pl_membership_timeout_ns(m) / PL_HEARTBEATS_PER_TIMEOUT;
    pl_membership_send(m, PL_TO_COORDINATOR, &frame, NULL);
    pl_participant_report(m); /* resend it, as it may be lost */
}

void pl_participant_report(pl_membership *m)
{
    if (m->report != NULL && !m->delivered && m->state == PL_MEMBERSHIP_FORMED)
        pl_membership_note(m, PL_TO_COORDINATOR, PL_FRAME_BYE, PL_OK,
                           m->report);
}

void pl_participant_join(pl_membership *m, int64_t now_ns)
{
    m->attempt++;
    m->heard = false;
    pl_liveness_reset(&m->coordinator, now_ns);
    send_join(m, now_ns);
}

static bool take_welcome(pl_membership *m, const pl_message *message,
                         int64_t now_ns)
{
    pl_welcome_message welcome;
    if (!pl_welcome_decode(&welcome, message))
        return false;
    if (m->state != PL_MEMBERSHIP_JOINING || welcome.attempt != m->attempt)
        return true; /* a duplicate */
    if (welcome.generation <= m->generation ||
        (m->opts.ops->welcomed != NULL &&
         !m->opts.ops->welcomed(m->opts.context, welcome.facts,
                                welcome.fact_bytes)))
        return false;
    m->generation = welcome.generation;
    m->coordinator_incarnation = welcome.incarnation;
    m->state = PL_MEMBERSHIP_FORMED;
    m->formed_once = true;
    m->coordinator.heard_ns = now_ns;
    send_heartbeat(m, now_ns); /* to compare clocks immediately */
    m->opts.ops->event(m->opts.context, &(pl_member_event) {
                                            .kind = PL_MEMBER_EVENT_FORMED,
                                            .facts = welcome.facts,
                                            .fact_bytes = welcome.fact_bytes,
                                        });
    return true;
}

/* A new process of the coordinator does not know this generation. */
static bool take_ack(pl_membership *m, const pl_message *message,
                     int64_t now_ns)
{
    pl_ack_message ack;
    char name[PL_MEMBER_NAME], why[PL_LOSS_TEXT];
    if (!pl_ack_decode(&ack, message))
        return false;
    if (ack.number != 0 && ack.number == m->number)
        pl_skew_hear(&m->skew, m->sent_ns, now_ns, ack.clock_ns);
    if (m->state != PL_MEMBERSHIP_FORMED)
        return true;
    m->delivered = m->delivered || ack.reported;
    if (ack.incarnation == m->coordinator_incarnation)
        return true;
    pl_membership_name(m, 0, name);
    snprintf(why, sizeof why,
             "%s was restarted: the job continues from its last checkpoint",
             name);
    pl_membership_end(m, PL_MEMBERSHIP_ROLLED, PL_ROLLED, why);
    return true;
}

/* The end, with the coordinator's message. */
static bool take_note(pl_membership *m, const pl_message *message)
{
    pl_note_message note;
    char why[PL_LOSS_TEXT];
    if (!pl_note_decode(&note, message))
        return false;
    snprintf(why, sizeof why, "%.*s", (int)note.text_bytes,
             note.text_bytes > 0 ? note.text : "");
    if (note.kind == PL_FRAME_ROLL) {
        if (note.generation == m->generation &&
            m->state == PL_MEMBERSHIP_FORMED)
            pl_membership_end(m, PL_MEMBERSHIP_ROLLED, PL_ROLLED, why);
        return true;
    }
    if (note.kind == PL_FRAME_OVER)
        pl_membership_note(m, PL_TO_COORDINATOR, PL_FRAME_OVER, PL_OK, "");
    pl_membership_end(m, PL_MEMBERSHIP_OVER,
                      note.usage    ? PL_USAGE
                      : note.failed ? PL_CLOSED
                                    : PL_OK,
                      why);
    return true;
}

static bool take(pl_membership *m, const pl_message *message, int64_t now_ns)
{
    switch (message->frame.kind) {
    case PL_FRAME_WELCOME:
        return take_welcome(m, message, now_ns);
    case PL_FRAME_HEARTBEAT_ACK:
        return take_ack(m, message, now_ns);
    case PL_FRAME_ROLL:
    case PL_FRAME_OVER:
    case PL_FRAME_REFUSE:
        return take_note(m, message);
    default:
        return false;
    }
}

bool pl_participant_receive(pl_membership *m, const pl_message *message,
                            int64_t now_ns)
{
    bool right = take(m, message, now_ns);
    if (right) {
        m->coordinator.heard_ns = now_ns;
        m->heard = true;
    }
    return right;
}

static void lose_coordinator(pl_membership *m, int64_t now_ns)
{
    char name[PL_MEMBER_NAME], why[PL_LOSS_TEXT];
    bool abort = m->opts.on_loss == PL_ON_LOSS_ABORT && m->opts.next != NULL;
    pl_membership_name(m, 0, name);
    pl_loss_text(
        why, &(pl_loss) {
                 .task = name,
                 .life = &m->coordinator,
                 .state = PL_SILENT,
                 .next = abort ? m->opts.next : pl_loss_next(PL_ON_LOSS_WAIT),
                 .now_ns = now_ns,
             });
    m->opts.ops->event(m->opts.context,
                       &(pl_member_event) { .kind = PL_MEMBER_EVENT_LOST,
                                            .awaited = !abort,
                                            .text = why });
    pl_membership_end(m, abort ? PL_MEMBERSHIP_OVER : PL_MEMBERSHIP_ROLLED,
                      abort ? PL_PEER : PL_ROLLED, why);
}

/* If the coordinator was connected and is gone again, the time to join
 * restarts. */
static void check_joining(pl_membership *m, bool silent, int64_t now_ns)
{
    char name[PL_MEMBER_NAME], text[PL_LOSS_TEXT];
    if (m->heard && silent) {
        m->heard = false;
        m->since_ns = now_ns;
    }
    int64_t limit = pl_membership_limit_ms(m);
    if (m->heard || now_ns - m->since_ns <= limit * 1000000)
        return;
    pl_membership_name(m, 0, name);
    pl_absence_text(text, name, m->formed_once, limit);
    pl_membership_over(m, m->formed_once ? PL_CLOSED : PL_TIMEOUT,
                       "%s: is it running, and is that its address?", text);
}

void pl_participant_tick(pl_membership *m, int64_t now_ns)
{
    int64_t gap = pl_liveness_gap(&m->tick_ns, m->opts.heartbeat_ms, now_ns);
    pl_liveness_forgive(&m->coordinator, gap);
    bool silent = pl_liveness_judge(&m->coordinator, m->opts.heartbeat_ms,
                                    now_ns) != PL_ALIVE;
    if (m->state == PL_MEMBERSHIP_JOINING)
        check_joining(m, silent, now_ns);
    else if (m->state == PL_MEMBERSHIP_FORMED && silent)
        lose_coordinator(m, now_ns);
    if (now_ns < m->next_ns || m->state == PL_MEMBERSHIP_IDLE ||
        m->state == PL_MEMBERSHIP_OVER)
        return;
    if (m->state == PL_MEMBERSHIP_JOINING)
        send_join(m, now_ns);
    else
        send_heartbeat(m, now_ns);
}

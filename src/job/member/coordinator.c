/* Member 0: decides which members are in the next generation and when it forms,
 * which are lost, when all must rejoin, and when the job is over.
 *
 * A rendezvous: members send JOIN repeatedly.  Each JOIN is answered with an
 * ACK; when no expected member is missing, each gets a WELCOME with the facts
 * of the strategy.  The coordinator is never judged by its own progress: it
 * evaluates and saves, which may take any time. */
#include "job/member/member_priv.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

#define MILLISECOND INT64_C(1000000)

static void tell(pl_membership *m, pl_member_event event)
{
    m->opts.ops->event(m->opts.context, &event);
}

static void send_ack(pl_membership *m, pl_peer peer, uint64_t number,
                     bool reported, int64_t now_ns)
{
    pl_frame frame = pl_ack_encode(&(pl_ack_message) {
        .incarnation = m->opts.incarnation,
        .generation = m->generation,
        .number = number,
        .clock_ns = now_ns,
        .reported = reported,
    });
    pl_membership_send(m, peer, &frame, NULL);
}

/* --- the end of a generation, or of the job --------------------------- */

static void tell_all(pl_membership *m, pl_frame_kind kind, pl_status how)
{
    for (int32_t i = 1; i < m->opts.members; i++)
        if (m->seats[i].peer >= 0)
            pl_membership_note(m, m->seats[i].peer, kind, how, m->why);
}

/* A usage error of this task is not reported to the others as theirs. */
static pl_status ending(const pl_membership *m)
{
    return m->how == PL_OK ? PL_OK : PL_CLOSED;
}

void pl_coordinator_over(pl_membership *m, pl_status how, const char *why)
{
    if (pl_membership_end(m, PL_MEMBERSHIP_OVER, how, why))
        tell_all(m, PL_FRAME_OVER, ending(m));
}

static void end_generation(pl_membership *m, const char *why)
{
    if (!pl_membership_end(m, PL_MEMBERSHIP_ROLLED, PL_ROLLED, why))
        return;
    tell_all(m, PL_FRAME_ROLL, PL_OK);
    for (int32_t i = 0; i < m->opts.members; i++) {
        pl_seat *seat = &m->seats[i];
        seat->ready = seat->in = seat->left = false;
        /* A member whose WELCOME was lost continues with the same attempt. */
        seat->spent = seat->confirmed;
    }
    m->settled = 1;
}

void pl_coordinator_roll(pl_membership *m, const char *why)
{
    char text[PL_LOSS_TEXT];
    if (m->opts.on_loss != PL_ON_LOSS_ABORT) {
        end_generation(m, why);
        return;
    }
    snprintf(text, sizeof text, "%.400s; %.100s", why, pl_membership_next(m));
    pl_coordinator_over(m, PL_CLOSED, text);
}

void pl_coordinator_try_finish(pl_membership *m)
{
    if (m->state != PL_MEMBERSHIP_FORMED || m->report == NULL)
        return;
    for (int32_t i = 1; i < m->opts.members; i++)
        if (m->seats[i].in && !m->seats[i].left)
            return;
    pl_coordinator_over(m, PL_OK, "");
}

/* --- rendezvous ------------------------------------------------------- */

static bool is_awaited(const pl_membership *m, const pl_seat *seat)
{
    return !seat->ready &&
           !(seat->lost && m->opts.on_loss == PL_ON_LOSS_CONTINUE);
}

/* This member may be awaited now. */
static void unsettle(pl_membership *m, int32_t member)
{
    if (member < m->settled && is_awaited(m, &m->seats[member]))
        m->settled = member;
}

/* Whether no member is awaited; for N messages of a rendezvous it checks N
 * seats in total, since those before `settled` need no second check. */
static bool all_settled(pl_membership *m)
{
    if (m->settled < 1)
        m->settled = 1;
    while (m->settled < m->opts.members &&
           !is_awaited(m, &m->seats[m->settled]))
        m->settled++;
    return m->settled >= m->opts.members;
}

/* It has joined, ready or not. */
static bool is_announced(const pl_seat *seat)
{
    return seat->attempt > 0 && !seat->spent && !seat->lost;
}

int32_t pl_coordinator_absent(const pl_membership *m)
{
    for (int32_t i = 1; i < m->opts.members; i++)
        if (is_awaited(m, &m->seats[i]) && !is_announced(&m->seats[i]))
            return i;
    return -1;
}

static void send_welcome(pl_membership *m, int32_t member)
{
    uint8_t facts[PL_MEMBER_FACTS];
    size_t bytes = 0;
    if (m->opts.ops->welcome != NULL)
        bytes = m->opts.ops->welcome(m->opts.context, member, facts);
    pl_frame frame = pl_welcome_encode(&(pl_welcome_message) {
        .incarnation = m->opts.incarnation,
        .generation = m->generation,
        .attempt = m->seats[member].attempt,
        .fact_bytes = (uint32_t)bytes,
    });
    pl_membership_send(m, m->seats[member].peer, &frame, facts);
}

void pl_coordinator_try_form(pl_membership *m, int64_t now_ns)
{
    if (m->state != PL_MEMBERSHIP_JOINING || !m->ready || !all_settled(m))
        return;
    m->generation =
        (m->highest > m->generation ? m->highest : m->generation) + 1;
    for (int32_t i = 0; i < m->opts.members; i++) {
        pl_seat *seat = &m->seats[i];
        seat->in = i == 0 || seat->ready;
        seat->ready = false;
        seat->spent = true;
        seat->confirmed = false;
        pl_liveness_restart(&seat->life, now_ns);
    }
    m->settled = 1;
    m->state = PL_MEMBERSHIP_FORMED;
    m->formed_once = true;
    m->moved_ns = now_ns;
    tell(m, (pl_member_event) { .kind = PL_MEMBER_EVENT_FORMED });
    for (int32_t i = 1; i < m->opts.members; i++)
        if (m->seats[i].in)
            send_welcome(m, i);
}

/* Whether the keys of the sender permit the member that the message names. */
static bool is_from(const pl_membership *m, const pl_message *message,
                    int32_t member)
{
    return member > 0 && member < m->opts.members &&
           pl_principal_permits(message->who,
                                (pl_principal) { PL_PRINCIPAL_WORKER, member });
}

static void refuse_replaced(pl_membership *m, pl_peer peer)
{
    pl_membership_note(m, peer, PL_FRAME_REFUSE, PL_CLOSED, PL_REPLACED);
}

/* Register a new process of a member. */
static void take_process(pl_membership *m, pl_seat *seat,
                         const pl_join_message *join, int64_t now_ns)
{
    bool again = seat->incarnation != 0;
    if (again) {
        seat->before = seat->incarnation;
        m->restarts++;
    } else if (join->generation > 0 && !m->follows) {
        m->follows = true; /* it knew an earlier coordinator */
        m->restarts++;
    }
    seat->incarnation = join->incarnation;
    seat->attempt = 0;
    pl_liveness_reset(&seat->life, now_ns);
    tell(m, (pl_member_event) {
                .kind = again ? PL_MEMBER_EVENT_BACK : PL_MEMBER_EVENT_JOINED,
                .member = join->member,
            });
}

static void take_peer(pl_membership *m, pl_seat *seat, pl_peer from)
{
    if (seat->peer >= 0 && seat->peer != from)
        m->opts.ops->drop(m->opts.context, seat->peer);
    seat->peer = from;
}

/* Admit a JOIN. */
static void take_attempt(pl_membership *m, pl_seat *seat,
                         const pl_join_message *join, int64_t now_ns)
{
    char name[PL_MEMBER_NAME];
    if (join->attempt != seat->attempt) {
        if (m->state == PL_MEMBERSHIP_FORMED) {
            pl_membership_name(m, join->member, name);
            pl_membership_roll(m, "%.300s joins again", name);
        }
        seat->spent = false;
    } else if (seat->in && m->state == PL_MEMBERSHIP_FORMED) {
        send_welcome(m, join->member);
    }
    seat->attempt = join->attempt;
    seat->ready = join->ready && !seat->spent;
    seat->lost = false;
    unsettle(m, join->member);
    seat->life.heard_ns = seat->life.progress_ns = now_ns;
}

static bool take_join(pl_membership *m, pl_peer from, const pl_message *message,
                      int64_t now_ns)
{
    pl_join_message join;
    if (!pl_join_decode(&join, message) || !is_from(m, message, join.member))
        return false;
    pl_seat *seat = &m->seats[join.member];
    if (join.incarnation == seat->before) {
        refuse_replaced(m, from);
        return true;
    }
    pl_status admitted = m->opts.ops->admit == NULL
                             ? PL_OK
                             : m->opts.ops->admit(m->opts.context, &join);
    if (admitted != PL_OK) {
        pl_membership_note(m, from, PL_FRAME_REFUSE, admitted,
                           pl_error_message());
        return true;
    }
    take_peer(m, seat, from);
    if (m->state == PL_MEMBERSHIP_OVER) {
        pl_membership_note(m, from, PL_FRAME_OVER, ending(m), m->why);
        return true;
    }
    if (join.incarnation != seat->incarnation)
        take_process(m, seat, &join, now_ns);
    if (join.generation > m->highest)
        m->highest = join.generation;
    take_attempt(m, seat, &join, now_ns);
    if (m->state == PL_MEMBERSHIP_OVER)
        return true;
    send_ack(m, from, 0, false, now_ns);
    pl_coordinator_try_form(m, now_ns);
    return true;
}

/* --- members in a generation ------------------------------------------ */

/* The seat of the sender, by the connection of its JOIN; NULL: none. */
static pl_seat *seat_of(pl_membership *m, pl_peer from, int32_t member,
                        uint32_t incarnation)
{
    if (member <= 0 || member >= m->opts.members)
        return NULL;
    pl_seat *seat = &m->seats[member];
    return seat->peer == from && seat->incarnation == incarnation ? seat : NULL;
}

/* A member that is still in a generation that is over missed its ROLL, which
 * may be lost with a connection, or with the shared memory of the previous
 * generation. */
static void repeat_roll(pl_membership *m, pl_peer peer, uint32_t generation)
{
    bool over =
        generation < m->generation ||
        (generation == m->generation && m->state != PL_MEMBERSHIP_FORMED);
    if (!over || generation == 0)
        return;
    pl_frame frame = pl_note_encode(&(pl_note_message) {
        .kind = PL_FRAME_ROLL,
        .incarnation = m->opts.incarnation,
        .generation = generation,
        .text_bytes = (uint32_t)strlen(m->why),
    });
    pl_membership_send(m, peer, &frame, m->why);
}

static bool take_heartbeat(pl_membership *m, pl_peer from,
                           const pl_message *message, int64_t now_ns)
{
    pl_heartbeat_message heartbeat;
    if (!pl_heartbeat_decode(&heartbeat, message) ||
        !is_from(m, message, heartbeat.member))
        return false;
    pl_seat *seat = &m->seats[heartbeat.member];
    if (heartbeat.incarnation != 0 && heartbeat.incarnation == seat->before) {
        refuse_replaced(m, from);
        return true;
    }
    if (m->state == PL_MEMBERSHIP_OVER) {
        pl_membership_note(m, from, PL_FRAME_OVER, ending(m), m->why);
        return true;
    }
    if (heartbeat.incarnation == seat->incarnation) {
        seat->confirmed =
            seat->confirmed || heartbeat.generation == m->generation;
        pl_liveness_hear(&seat->life, &heartbeat.vital, now_ns);
        if (heartbeat.vital.phase != PL_PHASE_WAITING ||
            heartbeat.transfers != seat->last.transfers)
            m->moved_ns = now_ns;
        seat->last = heartbeat;
        repeat_roll(m, from, heartbeat.generation);
    }
    send_ack(m, from, heartbeat.number, seat->left, now_ns);
    return true;
}

static bool take_report(pl_membership *m, const pl_note_message *note,
                        pl_peer from, int64_t now_ns)
{
    pl_seat *seat = seat_of(m, from, note->member, note->incarnation);
    if (seat == NULL)
        return false;
    if (m->state != PL_MEMBERSHIP_FORMED || !seat->in ||
        note->generation != m->generation)
        return true;
    if (seat->report == NULL) {
        if (PL_NEW(seat->report, (size_t)note->text_bytes + 1) != PL_OK)
            return true; /* it is sent again */
        if (note->text_bytes > 0)
            memcpy(seat->report, note->text, note->text_bytes);
    }
    seat->left = true;
    seat->life.heard_ns = now_ns;
    send_ack(m, from, 0, true, now_ns);
    pl_coordinator_try_finish(m);
    return true;
}

static bool take_note(pl_membership *m, pl_peer from, const pl_message *message,
                      int64_t now_ns)
{
    pl_note_message note;
    char why[PL_LOSS_TEXT];
    if (!pl_note_decode(&note, message))
        return false;
    if (note.kind == PL_FRAME_BYE)
        return take_report(m, &note, from, now_ns);
    pl_seat *seat = seat_of(m, from, note.member, note.incarnation);
    if (seat == NULL)
        return false;
    if (note.kind == PL_FRAME_OVER) {
        seat->told = m->state == PL_MEMBERSHIP_OVER;
        return seat->told;
    }
    snprintf(why, sizeof why, "%.*s", (int)note.text_bytes,
             note.text_bytes > 0 ? note.text : "");
    pl_coordinator_over(m, PL_CLOSED, why);
    return true;
}

bool pl_coordinator_receive(pl_membership *m, pl_peer from,
                            const pl_message *message, int64_t now_ns)
{
    switch (message->frame.kind) {
    case PL_FRAME_JOIN:
        return take_join(m, from, message, now_ns);
    case PL_FRAME_HEARTBEAT:
        return take_heartbeat(m, from, message, now_ns);
    case PL_FRAME_BYE:
    case PL_FRAME_STOP:
    case PL_FRAME_OVER:
        return take_note(m, from, message, now_ns);
    default:
        return false;
    }
}

/* --- the clock -------------------------------------------------------- */

static void forgive(pl_membership *m, int64_t now_ns)
{
    int64_t gap = pl_liveness_gap(&m->tick_ns, m->opts.heartbeat_ms, now_ns);
    m->moved_ns += gap;
    for (int32_t i = 1; gap > 0 && i < m->opts.members; i++)
        pl_liveness_forgive(&m->seats[i].life, gap);
}

static void lose(pl_membership *m, int32_t member, const char *text)
{
    pl_seat *seat = &m->seats[member];
    bool running = m->state == PL_MEMBERSHIP_FORMED;
    seat->lost = true;
    seat->ready = false;
    unsettle(m, member);
    tell(m, (pl_member_event) {
                .kind = PL_MEMBER_EVENT_LOST,
                .member = member,
                .awaited = m->opts.on_loss != PL_ON_LOSS_ABORT,
                .text = text,
            });
    if (running && m->opts.on_loss == PL_ON_LOSS_ABORT)
        pl_coordinator_over(m, PL_CLOSED, text);
    else if (running)
        end_generation(m, text);
}

/* A member that this coordinator knows sends heartbeats until it joins, and
 * JOINs until it gets a WELCOME.  One that only an earlier process of the
 * coordinator knew must send a message within the timeout. */
static void look_for_loss(pl_membership *m, int32_t member, int64_t now_ns)
{
    const pl_seat *seat = &m->seats[member];
    bool running = m->state == PL_MEMBERSHIP_FORMED;
    bool known = seat->incarnation != 0 || (m->follows && !running);
    char name[PL_MEMBER_NAME], text[PL_LOSS_TEXT];
    pl_liveness life = seat->life;
    if (seat->lost || seat->left || !known || (running && !seat->in))
        return;
    if (seat->incarnation == 0)
        pl_liveness_reset(&life, m->since_ns);
    pl_life_state state =
        pl_liveness_judge(&life, m->opts.heartbeat_ms, now_ns);
    if (state == PL_ALIVE || (state == PL_STUCK && seat->ready))
        return;
    pl_membership_name(m, member, name);
    pl_loss_text(text, &(pl_loss) { .task = name,
                                    .life = &life,
                                    .state = state,
                                    .next = pl_membership_next(m),
                                    .now_ns = now_ns });
    lose(m, member, text);
}

/* Detect that all members wait for each other and nothing is in flight. */
static void look_for_stall(pl_membership *m, int64_t now_ns)
{
    bool all_wait = m->phase == PL_PHASE_WAITING;
    for (int32_t i = 1; all_wait && i < m->opts.members; i++)
        all_wait =
            !m->seats[i].in || m->seats[i].life.last.phase == PL_PHASE_WAITING;
    if (!all_wait || m->transfers != m->transfers_seen)
        m->moved_ns = now_ns;
    m->transfers_seen = m->transfers;
    if (now_ns - m->moved_ns > pl_membership_timeout_ns(m))
        pl_membership_roll(m,
                           "all workers are waiting and no message has "
                           "arrived for %.1f s: a message was lost, all tasks "
                           "rejoin",
                           (double)(now_ns - m->moved_ns) * 1e-9);
}

/* Limit the time to wait for a member. */
static void look_for_absence(pl_membership *m, int64_t now_ns)
{
    char name[PL_MEMBER_NAME], text[PL_LOSS_TEXT];
    int64_t limit = pl_membership_limit_ms(m);
    int32_t absent = pl_coordinator_absent(m);
    if (absent < 0 || now_ns - m->since_ns <= limit * MILLISECOND)
        return;
    pl_membership_name(m, absent, name);
    pl_absence_text(text, name, m->formed_once, limit);
    if (m->formed_once && m->opts.on_loss == PL_ON_LOSS_CONTINUE)
        lose(m, absent, text);
    else
        pl_membership_over(m, m->formed_once ? PL_CLOSED : PL_TIMEOUT,
                           "%s: is it running, and is that its address?", text);
}

void pl_coordinator_tick(pl_membership *m, int64_t now_ns)
{
    forgive(m, now_ns);
    if (m->state == PL_MEMBERSHIP_IDLE || m->state == PL_MEMBERSHIP_OVER)
        return;
    for (int32_t i = 1; i < m->opts.members; i++)
        look_for_loss(m, i, now_ns);
    if (m->state == PL_MEMBERSHIP_FORMED)
        look_for_stall(m, now_ns);
    else if (m->state == PL_MEMBERSHIP_JOINING)
        look_for_absence(m, now_ns);
    pl_coordinator_try_form(m, now_ns);
}

/* Design.  Followers ask the chief (JOIN, again and again) to be in the next
 * generation; the chief answers that it is there (BEAT), and when all are,
 * sends the roster (WELCOME).  Then each links to the next on the roster and
 * to the hub (LINK, LINKED), which is also where memory is shared.
 *
 * Hearts go to the chief, beats come back.  Whoever is silent is lost: the
 * chief tells all others (ROLL) that this generation is over, and they meet
 * again.  Losses are looked for all the time, also while a generation has
 * ended and the next one is not formed yet: any number of workers can be lost
 * at once, and the rendezvous waits for none of them under `continue`.  A JOIN
 * of a new process, or of one that wants to meet again, says the same.  A chief
 * that is new is recognised by the incarnation in its beats.  When all wait and
 * nothing moves, a message was lost: that is a ROLL, too.  And a worker that
 * computes, but got nothing done for much longer than ever before, is stuck,
 * and as good as lost.  Not so the chief: it tests and saves, which takes as
 * long as it takes. */
#include "dist/allreduce/ring_priv.h"

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define JOIN_NS     INT64_C(200000000)
#define LINK_NS     INT64_C(50000000)
#define HEARTS      5 /* in the time after which silence means lost */
#define MILLISECOND INT64_C(1000000)
#define STUCK_BY    10 /* times the longest so far without a beat */

static int64_t silence_ns(const pl_ring_core *core)
{
    return core->opts.heartbeat_ms * MILLISECOND;
}

static bool runs(const pl_ring_core *core)
{
    return core->phase == PL_RING_LINKING || core->phase == PL_RING_FORMED;
}

pl_ring_member *pl_ring_member_of(pl_ring_core *core, pl_peer peer)
{
    for (int32_t w = 1; peer >= 0 && w < core->opts.workers; w++)
        if (core->members[w].peer == peer)
            return &core->members[w];
    return NULL;
}

/* Tell every worker that has a connection to the hub. */
static void tell_all(pl_ring_core *core, pl_frame_kind kind)
{
    for (int32_t w = 1; core->chief && w < core->opts.workers; w++)
        if (core->members[w].peer >= 0)
            pl_ring_send_text(core, core->members[w].peer,
                              (pl_frame) { .kind = kind }, core->why);
}

void pl_ring_roll(pl_ring_core *core, const char *format, ...)
{
    char why[PL_RING_WHY];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    if (core->opts.on_loss == PL_ON_LOSS_ABORT) {
        pl_ring_over(core, PL_CLOSED, "%s (--on-worker-loss abort)", why);
        return;
    }
    pl_ring_end(core, PL_ROLLED, "%s", why);
    tell_all(core, PL_FRAME_ROLL);
    for (int32_t w = 0; w < core->opts.workers; w++)
        core->members[w].joined = core->members[w].member = false;
}

void pl_ring_over(pl_ring_core *core, pl_status how, const char *format, ...)
{
    char why[PL_RING_WHY];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    pl_ring_end(core, how, "%s", why);
    tell_all(core, PL_FRAME_OVER);
}

void pl_ring_core_abort(pl_ring_core *core, const char *why)
{
    char text[PL_RING_WHY];
    snprintf(text, sizeof text, "worker %d failed: %.400s", core->opts.worker,
             why);
    if (core->phase == PL_RING_ENDED && core->how != PL_ROLLED)
        return; /* the others know */
    if (core->chief)
        pl_ring_over(core, PL_CLOSED, "%s", text);
    else if (core->heard)
        pl_ring_send_text(core, PL_RING_HUB,
                          (pl_frame) { .kind = PL_FRAME_STOP }, text);
}

/* --- meeting ---------------------------------------------------------- */

static void send_link(pl_ring_core *core, int32_t to)
{
    bool ring = to == PL_RING_NEXT;
    pl_ring_send(core, to,
                 (pl_frame) { .kind = PL_FRAME_LINK,
                              .flags = ring ? PL_LINK_RING : PL_LINK_HUB,
                              .value = { core->opts.worker },
                              .payload_bytes = PL_OFFER_BYTES },
                 core->offer[ring ? 0 : 1]);
}

static void send_links(pl_ring_core *core)
{
    if (!core->linked_next)
        send_link(core, PL_RING_NEXT);
    if (!core->linked_hub)
        send_link(core, PL_RING_HUB);
}

static void look_formed(pl_ring_core *core)
{
    if (core->phase != PL_RING_LINKING || !core->linked_next ||
        !core->linked_hub || (core->count > 1 && core->prev < 0))
        return;
    core->phase = PL_RING_FORMED;
    core->formed_once = true;
    core->direct = core->count == 2 && core->early_next && core->early_prev;
}

static void send_join(pl_ring_core *core)
{
    pl_ring_send(core, PL_RING_HUB,
                 (pl_frame) { .kind = PL_FRAME_JOIN,
                              .value = { core->opts.worker, core->meeting } },
                 NULL);
}

static void send_heart(pl_ring_core *core, int64_t now_ns)
{
    bool meets = core->phase == PL_RING_MEETING;
    core->next_heart_ns =
        now_ns + (meets ? JOIN_NS : silence_ns(core) / HEARTS);
    if (meets) {
        send_join(core);
        return;
    }
    core->heart_ns = now_ns;
    pl_ring_send(core, PL_RING_HUB,
                 (pl_frame) { .kind = PL_FRAME_HEART,
                              .sequence = ++core->hearts,
                              .step = atomic_load_explicit(
                                  &core->beats, memory_order_relaxed),
                              .value = { core->waiting, core->progress } },
                 NULL);
}

/* The roster is known: find the own place and connect. */
static void begin_generation(pl_ring_core *core, int64_t now_ns)
{
    void *context = core->opts.context;
    for (int32_t r = 0; r < core->count; r++)
        if (core->roster[r] == core->opts.worker)
            core->rank = r;
    pl_ring_reset_sums(core);
    pl_ring_reset_words(core);
    core->phase = PL_RING_LINKING;
    if (core->prev >= 0)
        core->opts.ops->drop(context, core->prev);
    core->prev = -1;
    core->linked_hub = core->chief;
    core->linked_next = core->count == 1;
    core->changed_ns = core->heard_ns = now_ns;
    core->meet_ns = now_ns; /* linking has the whole limit to itself */
    memset(core->offer, 0, sizeof core->offer);
    if (!core->linked_next) {
        int32_t next = core->roster[(core->rank + 1) % core->count];
        core->opts.ops->follow(context, next);
        core->opts.ops->offer(context, PL_RING_NEXT, core->offer[0]);
    }
    if (!core->chief) {
        core->opts.ops->offer(context, PL_RING_HUB, core->offer[1]);
        send_heart(core, now_ns); /* to compare clocks at once */
    }
    send_links(core);
    core->next_link_ns = now_ns + LINK_NS;
    look_formed(core);
}

/* Roster and all: to one who may not have got it. */
static void send_welcome(pl_ring_core *core, const pl_ring_member *m)
{
    pl_ring_send(core, m->peer,
                 (pl_frame) { .kind = PL_FRAME_WELCOME,
                              .value = { core->count, m->meeting },
                              .payload_bytes = (uint32_t)core->count *
                                               (uint32_t)sizeof *core->roster },
                 core->roster);
}

int32_t pl_ring_core_absent(const pl_ring_core *core)
{
    if (core->phase != PL_RING_MEETING)
        return -1;
    if (!core->chief)
        return core->heard ? -1 : 0;
    for (int32_t w = 1; w < core->opts.workers; w++) {
        const pl_ring_member *m = &core->members[w];
        bool without = core->opts.on_loss == PL_ON_LOSS_CONTINUE && m->lost;
        if (!m->joined && !without)
            return w;
    }
    return -1;
}

/* The chief: all are there. */
static void try_form(pl_ring_core *core, int64_t now_ns)
{
    if (core->phase != PL_RING_MEETING || pl_ring_core_absent(core) >= 0)
        return;
    if (core->highest > core->generation)
        core->generation = core->highest;
    core->generation++;
    core->count = 0;
    for (int32_t w = 0; w < core->opts.workers; w++) {
        pl_ring_member *m = &core->members[w];
        m->member = w == 0 || m->joined;
        m->joined = m->waiting = m->answered = false;
        m->beats = 0;
        m->beat_ns = now_ns;
        if (m->member)
            core->roster[core->count++] = w;
    }
    for (int32_t r = 1; r < core->count; r++)
        send_welcome(core, &core->members[core->roster[r]]);
    begin_generation(core, now_ns);
}

void pl_ring_core_meet(pl_ring_core *core, int64_t now_ns)
{
    if (core->phase == PL_RING_ENDED && core->how != PL_ROLLED)
        return;
    core->phase = PL_RING_MEETING;
    core->meeting++;
    core->meet_ns = core->heard_ns = now_ns;
    core->heard = false;
    core->next_heart_ns = now_ns + JOIN_NS;
    if (core->chief)
        try_form(core, now_ns);
    else
        send_join(core);
}

/* --- what comes ------------------------------------------------------- */

/* The worker a message says it is from must be who it was proved to be. */
static bool claims(const pl_ring_core *core, const pl_message *message)
{
    int64_t worker = message->frame.value[0];
    return worker >= 0 && worker < core->opts.workers &&
           worker != core->opts.worker &&
           (message->who.role == PL_PRINCIPAL_NONE ||
            (message->who.role == PL_PRINCIPAL_WORKER &&
             message->who.index == worker));
}

/* A process that was not known. */
static void meet_process(pl_ring_core *core, pl_ring_member *m,
                         const pl_frame *frame)
{
    if (m->incarnation != 0) {
        m->before = m->incarnation;
        core->restarts++;
    } else if (frame->generation > 0 && !core->follows) {
        core->follows = true; /* it knew another life of this chief */
        core->restarts++;
    }
    m->incarnation = frame->incarnation;
    m->meeting = 0;
}

/* With the time, so that clocks can be compared. */
static void answer_beat(pl_ring_core *core, pl_peer peer, uint64_t heart,
                        int64_t now_ns)
{
    pl_ring_send(core, peer,
                 (pl_frame) { .kind = PL_FRAME_BEAT,
                              .sequence = heart,
                              .value = { now_ns } },
                 NULL);
}

static void refuse_old(pl_ring_core *core, pl_peer peer)
{
    pl_ring_send_text(core, peer, (pl_frame) { .kind = PL_FRAME_REFUSE },
                      "another process took the place of this one");
}

static bool take_join(pl_ring_core *core, pl_peer from,
                      const pl_message *message, int64_t now_ns)
{
    const pl_frame *frame = &message->frame;
    if (!core->chief || from < 0 || !claims(core, message) ||
        frame->incarnation == 0 || frame->value[1] <= 0)
        return false;
    int32_t worker = (int32_t)frame->value[0];
    pl_ring_member *m = &core->members[worker];
    if (core->phase == PL_RING_ENDED && core->how != PL_ROLLED) {
        pl_ring_send_text(core, from, (pl_frame) { .kind = PL_FRAME_OVER },
                          core->why);
        return true;
    }
    if (frame->incarnation == m->before) {
        refuse_old(core, from);
        return true;
    }
    if (frame->incarnation != m->incarnation)
        meet_process(core, m, frame);
    if (m->peer >= 0 && m->peer != from)
        core->opts.ops->drop(core->opts.context, m->peer);
    m->peer = from;
    m->heard_ns = now_ns;
    if (frame->generation > core->highest)
        core->highest = frame->generation;
    bool anew = frame->value[1] != m->meeting;
    if (anew && runs(core))
        pl_ring_roll(core, "worker %d (%s) begins anew: all meet again", worker,
                     core->opts.address[worker]);
    else if (!anew && runs(core) && m->member)
        send_welcome(core, m);
    if (anew)
        m->joined = true;
    m->meeting = frame->value[1];
    m->lost = false;
    answer_beat(core, from, 0, now_ns);
    try_form(core, now_ns);
    return true;
}

static bool take_welcome(pl_ring_core *core, int32_t from,
                         const pl_message *message, int64_t now_ns)
{
    const pl_frame *frame = &message->frame;
    int64_t count = frame->value[0];
    if (core->chief || from != PL_RING_HUB || count < 2 ||
        count > core->opts.workers ||
        frame->payload_bytes != (size_t)count * sizeof *core->roster)
        return false;
    if (core->phase != PL_RING_MEETING || frame->value[1] != core->meeting)
        return true; /* sent twice */
    int32_t last = -1;
    bool in = false;
    memcpy(core->roster, message->payload, frame->payload_bytes);
    for (int64_t r = 0; r < count; r++) {
        if (core->roster[r] <= last || core->roster[r] >= core->opts.workers)
            return false;
        last = core->roster[r];
        in = in || last == core->opts.worker;
    }
    if (!in || core->roster[0] != 0)
        return false;
    core->count = (int32_t)count;
    core->generation = frame->generation;
    core->chief_incarnation = frame->incarnation;
    begin_generation(core, now_ns);
    return true;
}

/* An offer and its answer are texts with an end. */
static bool is_text(const pl_message *message)
{
    return message->frame.payload_bytes == PL_OFFER_BYTES &&
           memchr(message->payload, '\0', PL_OFFER_BYTES) != NULL;
}

static bool take_link(pl_ring_core *core, pl_peer from,
                      const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    if (from < 0 || !claims(core, message) || !is_text(message))
        return false;
    if (frame->generation != core->generation || !runs(core))
        return true; /* it comes again */
    char *answer;
    if (frame->flags == PL_LINK_HUB) {
        pl_ring_member *m = pl_ring_member_of(core, from);
        if (m == NULL || m - core->members != frame->value[0])
            return false;
        answer = m->answer;
        if (!m->answered)
            core->opts.ops->accept(core->opts.context, from, message->payload,
                                   answer);
        m->answered = true;
    } else {
        int32_t prev = (core->rank + core->count - 1) % core->count;
        if (frame->value[0] != core->roster[prev])
            return false;
        answer = core->prev_answer;
        if (core->prev != from)
            core->opts.ops->accept(core->opts.context, from, message->payload,
                                   answer);
        core->prev = from;
        core->early_prev = pl_ring_sends_early(core, answer);
    }
    pl_ring_send(
        core, from,
        (pl_frame) { .kind = PL_FRAME_LINKED, .payload_bytes = PL_OFFER_BYTES },
        answer);
    look_formed(core);
    return true;
}

static bool take_linked(pl_ring_core *core, int32_t from,
                        const pl_message *message)
{
    if (from >= 0 || !is_text(message))
        return false;
    if (message->frame.generation != core->generation ||
        core->phase != PL_RING_LINKING)
        return true;
    bool *linked =
        from == PL_RING_NEXT ? &core->linked_next : &core->linked_hub;
    if (!*linked)
        core->opts.ops->complete(core->opts.context, from, message->payload);
    *linked = true;
    if (from == PL_RING_NEXT)
        core->early_next = pl_ring_sends_early(core, message->payload);
    look_formed(core);
    return true;
}

/* A worker says how often its working thread got something done.  How long
 * that takes is learned from the first time on. */
static void take_pace(pl_ring_member *m, const pl_frame *frame, int64_t now_ns)
{
    bool moved = frame->step != m->beats;
    if (moved && now_ns - m->beat_ns > m->longest_ns)
        m->longest_ns = now_ns - m->beat_ns;
    if (moved || m->waiting)
        m->beat_ns = now_ns;
    m->beats = frame->step;
}

static bool take_heart(pl_ring_core *core, pl_peer from,
                       const pl_message *message, int64_t now_ns)
{
    const pl_frame *frame = &message->frame;
    pl_ring_member *m = pl_ring_member_of(core, from);
    if (!core->chief || from < 0)
        return false;
    if (m != NULL && m->before != 0 && frame->incarnation == m->before) {
        refuse_old(core, from);
        return true;
    }
    if (m != NULL && frame->incarnation == m->incarnation) {
        m->heard_ns = now_ns;
        m->waiting = frame->value[0] != 0;
        take_pace(m, frame, now_ns);
        if (!m->waiting || frame->value[1] != m->progress)
            core->changed_ns = now_ns;
        m->progress = frame->value[1];
    }
    answer_beat(core, from, frame->sequence, now_ns);
    return true;
}

/* Why it ends, in the chief's words. */
static bool take_end(pl_ring_core *core, int32_t from,
                     const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    if (from != PL_RING_HUB)
        return false;
    if (frame->kind == PL_FRAME_ROLL &&
        (frame->generation != core->generation || !runs(core)))
        return true;
    int length = frame->payload_bytes < PL_RING_WHY ? (int)frame->payload_bytes
                                                    : PL_RING_WHY - 1;
    pl_ring_end(core, frame->kind == PL_FRAME_ROLL ? PL_ROLLED : PL_CLOSED,
                "%.*s", length, (const char *)message->payload);
    return true;
}

static bool take_stop(pl_ring_core *core, pl_peer from,
                      const pl_message *message)
{
    const pl_frame *frame = &message->frame;
    if (!core->chief || pl_ring_member_of(core, from) == NULL)
        return false;
    int length = frame->payload_bytes < PL_RING_WHY ? (int)frame->payload_bytes
                                                    : PL_RING_WHY - 1;
    pl_ring_over(core, PL_CLOSED, "%.*s", length,
                 (const char *)message->payload);
    return true;
}

/* A chief that is new knows nothing of this generation. */
static bool take_beat(pl_ring_core *core, int32_t from, const pl_frame *frame,
                      int64_t now_ns)
{
    if (from != PL_RING_HUB)
        return false;
    if (frame->sequence != 0 && frame->sequence == core->hearts)
        pl_skew_hear(&core->skew, core->heart_ns, now_ns, frame->value[0]);
    if (runs(core) && frame->incarnation != core->chief_incarnation)
        pl_ring_end(core, PL_ROLLED,
                    "worker 0 (%s) was started again: the job goes on from "
                    "its last checkpoint",
                    core->opts.address[0]);
    return true;
}

bool pl_ring_take_member(pl_ring_core *core, int32_t from,
                         const pl_message *message, int64_t now_ns)
{
    switch (message->frame.kind) {
    case PL_FRAME_JOIN:
        return take_join(core, from, message, now_ns);
    case PL_FRAME_WELCOME:
        return take_welcome(core, from, message, now_ns);
    case PL_FRAME_LINK:
        return take_link(core, from, message);
    case PL_FRAME_LINKED:
        return take_linked(core, from, message);
    case PL_FRAME_HEART:
        return take_heart(core, from, message, now_ns);
    case PL_FRAME_BEAT:
        return take_beat(core, from, &message->frame, now_ns);
    case PL_FRAME_ROLL:
    case PL_FRAME_OVER:
    case PL_FRAME_REFUSE:
        return take_end(core, from, message);
    case PL_FRAME_STOP:
        return take_stop(core, from, message);
    default:
        return false;
    }
}

/* --- the clock -------------------------------------------------------- */

/* Time that this process itself did not run is nobody's silence.  Ticks come
 * every 100 ms or so: a limit near that, as a fifth of a short heartbeat
 * timeout is, would forgive all silence. */
static void forgive(pl_ring_core *core, int64_t now_ns)
{
    int64_t gap = core->tick_ns > 0 ? now_ns - core->tick_ns : 0;
    core->tick_ns = now_ns;
    if (gap < silence_ns(core) / 2)
        return;
    core->heard_ns += gap;
    core->changed_ns += gap;
    for (int32_t w = 0; w < core->opts.workers; w++) {
        core->members[w].heard_ns += gap;
        core->members[w].beat_ns += gap;
    }
}

static void lose(pl_ring_core *core, int32_t worker, const char *how,
                 int64_t since_ns)
{
    static const char *const next[] = {
        [PL_ON_LOSS_WAIT] = "waiting for it to come back",
        [PL_ON_LOSS_CONTINUE] = "going on without it",
        [PL_ON_LOSS_ABORT] = "the job ends",
    };
    if (core->opts.on_loss != PL_ON_LOSS_ABORT)
        core->opts.ops->lost(core->opts.context, worker);
    core->members[worker].lost = true;
    pl_ring_roll(core, "worker %d (%s) is lost: %s for %.1f s; %s", worker,
                 core->opts.address[worker], how, (double)since_ns * 1e-9,
                 next[core->opts.on_loss]);
}

/* It lives, but nothing comes of it.  Before it has got anything done nobody
 * knows how long that takes. */
static bool is_stuck(const pl_ring_core *core, const pl_ring_member *m,
                     int64_t now_ns)
{
    int64_t patience = STUCK_BY * m->longest_ns;
    if (patience < silence_ns(core))
        patience = silence_ns(core);
    return core->phase != PL_RING_LINKING && !m->waiting && m->beats != 0 &&
           now_ns - m->beat_ns > patience;
}

/* True: one was lost. */
static bool look_lost(pl_ring_core *core, int32_t worker, int64_t now_ns)
{
    pl_ring_member *m = &core->members[worker];
    if (!runs(core) || !m->member)
        return false;
    if (now_ns - m->heard_ns > silence_ns(core))
        lose(core, worker, "nothing was heard of it", now_ns - m->heard_ns);
    else if (is_stuck(core, m, now_ns))
        lose(core, worker, "it lives, but has got nothing done",
             now_ns - m->beat_ns);
    else
        return false;
    return true;
}

/* Between two generations there is nothing to roll: the worker is marked, and
 * under `continue` the rendezvous does without it. */
static void lose_between(pl_ring_core *core, int32_t worker, const char *how)
{
    pl_ring_member *m = &core->members[worker];
    m->joined = false;
    m->lost = true;
    if (m->incarnation != 0)
        core->opts.ops->lost(core->opts.context, worker);
    pl_log(PL_LOG_WARN, "worker %d (%s) is lost as well: %s; %s", worker,
           core->opts.address[worker], how,
           core->opts.on_loss == PL_ON_LOSS_CONTINUE
               ? "going on without it"
               : "waiting for it to come back");
}

/* A worker that this chief knows, or knew in an earlier life, sends hearts
 * until it joins and joins until it is welcome. */
static void look_lost_between(pl_ring_core *core, int64_t now_ns)
{
    for (int32_t w = 1; w < core->opts.workers; w++) {
        pl_ring_member *m = &core->members[w];
        bool known = m->incarnation != 0 || core->follows;
        int64_t heard_ns = m->incarnation != 0 ? m->heard_ns : core->meet_ns;
        if (m->lost || !known)
            continue;
        if (now_ns - heard_ns > silence_ns(core))
            lose_between(core, w, "nothing is heard of it");
        else if (!m->joined && is_stuck(core, m, now_ns))
            lose_between(core, w, "it lives, but gets nothing done");
    }
    try_form(core, now_ns);
}

static void check_members(pl_ring_core *core, int64_t now_ns)
{
    bool all_wait = core->waiting && core->phase == PL_RING_FORMED;
    if (core->phase == PL_RING_ENDED && core->how != PL_ROLLED)
        return;
    for (int32_t w = 1; w < core->opts.workers; w++) {
        pl_ring_member *m = &core->members[w];
        if (look_lost(core, w, now_ns))
            break;
        all_wait = all_wait && (!m->member || m->waiting);
    }
    if (!runs(core)) {
        look_lost_between(core, now_ns);
        return;
    }
    if (core->progress != core->progress_seen || !all_wait)
        core->changed_ns = now_ns;
    core->progress_seen = core->progress;
    if (all_wait && now_ns - core->changed_ns > silence_ns(core))
        pl_ring_roll(core,
                     "all workers wait and nothing has come for %.1f s: a "
                     "message was lost, all meet again",
                     (double)(now_ns - core->changed_ns) * 1e-9);
}

static int64_t meet_limit_ms(const pl_ring_core *core)
{
    return core->formed_once ? core->opts.rejoin_ms : core->opts.join_ms;
}

/* Nobody is waited for without end. */
static void check_meeting(pl_ring_core *core, int64_t now_ns)
{
    int64_t limit = meet_limit_ms(core);
    int32_t absent = pl_ring_core_absent(core);
    bool late = now_ns - core->meet_ns > limit * MILLISECOND;
    if (core->phase == PL_RING_MEETING && !core->chief && core->heard &&
        now_ns - core->heard_ns > silence_ns(core)) {
        core->heard = false; /* it was there, and is gone again */
        core->meet_ns = now_ns;
        return;
    }
    bool linking = core->phase == PL_RING_LINKING && late;
    if (!linking && (absent < 0 || !late))
        return;
    if (absent > 0 && core->formed_once &&
        core->opts.on_loss == PL_ON_LOSS_CONTINUE) {
        lose_between(core, absent, "it did not join again in time");
        try_form(core, now_ns);
        return;
    }
    if (linking)
        absent = core->roster[(core->rank + 1) % core->count];
    pl_ring_over(core, core->formed_once ? PL_CLOSED : PL_TIMEOUT,
                 "worker %d at %s did not %s within %lld s (--%sjoin-timeout): "
                 "is it running, and is that its address?",
                 absent, core->opts.address[absent],
                 core->formed_once ? "come back" : "come",
                 (long long)limit / 1000, core->formed_once ? "re" : "");
}

static void check_chief(pl_ring_core *core, int64_t now_ns)
{
    if (!runs(core) || now_ns - core->heard_ns <= silence_ns(core))
        return;
    core->opts.ops->lost(core->opts.context, 0);
    pl_ring_end(core, PL_ROLLED,
                "worker 0 (%s) is lost: nothing was heard of it for %.1f s; "
                "waiting for it to come back",
                core->opts.address[0],
                (double)(now_ns - core->heard_ns) * 1e-9);
}

void pl_ring_core_tick(pl_ring_core *core, int64_t now_ns)
{
    forgive(core, now_ns);
    if (core->phase == PL_RING_IDLE)
        return;
    if (core->chief)
        check_members(core, now_ns);
    else
        check_chief(core, now_ns);
    check_meeting(core, now_ns);
    if (!core->chief && now_ns >= core->next_heart_ns &&
        (core->phase != PL_RING_ENDED || core->how == PL_ROLLED))
        send_heart(core, now_ns);
    if (core->phase == PL_RING_LINKING && now_ns >= core->next_link_ns) {
        core->next_link_ns = now_ns + LINK_NS;
        send_links(core);
    }
}

/* What a ring adds to membership (job/member): a worker's place in the ring,
 * and the links of a generation.
 *
 *   APART -> LINKING -> FORMED -> APART ...
 *
 * When a generation forms, the chief sends each worker its place: rank, number
 * of ranks, the workers before and after it.  Each worker then links to the
 * next one and to the chief (LINK, LINKED, sent again until answered), which
 * is also how shared memory is agreed on.  A ring is formed at a worker when
 * its links to next and chief are answered and the previous worker has linked.
 *
 * R1  A worker takes messages of sums only from its generation, and pieces
 *     only from the connection by which the previous worker linked.
 * R2  Linking has a deadline of its own: the job ends with an error that names
 *     the worker that does not answer. */
#include "sync/allreduce/ring/core_priv.h"

#include "base/assert.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

#define LINK_NS     INT64_C(50000000)
#define MILLISECOND INT64_C(1000000)

bool pl_ring_is_member(const pl_ring_core *core, pl_peer from, int32_t worker)
{
    return core->chief && from >= 0 && worker > 0 &&
           worker < core->opts.workers &&
           pl_membership_has(core->membership, worker) &&
           pl_membership_peer(core->membership, worker) == from;
}

/* --- links ------------------------------------------------------------ */

static void send_link(pl_ring_core *core, int32_t to)
{
    bool hub = to == PL_RING_HUB;
    pl_frame frame = pl_ring_link_encode(&(pl_ring_link) {
        .generation = pl_membership_generation(core->membership),
        .worker = core->opts.worker,
        .hub = hub,
    });
    pl_ring_send(core, to, &frame, core->offer[hub]);
}

static void send_links(pl_ring_core *core, int64_t now_ns)
{
    core->next_link_ns = now_ns + LINK_NS;
    if (!core->linked_next)
        send_link(core, PL_RING_NEXT);
    if (!core->linked_hub)
        send_link(core, PL_RING_HUB);
}

static void look_formed(pl_ring_core *core)
{
    if (core->phase != PL_RING_LINKING || !core->linked_next ||
        !core->linked_hub || (core->place.count > 1 && core->prev < 0))
        return;
    core->phase = PL_RING_FORMED;
    core->formed_once = true;
    pl_membership_phase(core->membership, PL_PHASE_COMPUTING);
    core->direct =
        core->place.count == 2 && core->early_next && core->early_prev;
}

/* The worker has its place: connect. */
static void begin_generation(pl_ring_core *core)
{
    void *context = core->opts.context;
    pl_ring_reset_sums(core);
    pl_ring_reset_exchange(core);
    core->phase = PL_RING_LINKING;
    if (core->prev >= 0)
        core->opts.ops->drop(context, core->prev);
    core->prev = -1;
    core->linked_hub = core->chief;
    core->linked_next = core->place.count == 1;
    core->link_ns = core->now_ns;
    memset(core->offer, 0, sizeof core->offer);
    if (!core->linked_next) {
        core->opts.ops->follow(context, core->place.next);
        core->opts.ops->offer(context, PL_RING_NEXT, core->offer[0]);
    }
    if (!core->chief)
        core->opts.ops->offer(context, PL_RING_HUB, core->offer[1]);
    send_links(core, core->now_ns);
    look_formed(core);
}

static char *take_hub_link(pl_ring_core *core, pl_peer from,
                           const pl_ring_link *link)
{
    if (!pl_ring_is_member(core, from, link->worker))
        return NULL;
    pl_ring_seat *seat = &core->seats[link->worker];
    if (!seat->answered)
        core->opts.ops->accept(core->opts.context, from, link->offer,
                               seat->answer);
    seat->answered = true;
    return seat->answer;
}

static char *take_ring_link(pl_ring_core *core, pl_peer from,
                            const pl_ring_link *link, pl_principal who)
{
    if (link->worker != core->place.prev ||
        !pl_principal_permits(
            who, (pl_principal) { PL_PRINCIPAL_WORKER, link->worker }))
        return NULL;
    if (core->prev != from)
        core->opts.ops->accept(core->opts.context, from, link->offer,
                               core->prev_answer);
    core->prev = from;
    core->early_prev = pl_ring_sends_early(core, core->prev_answer);
    return core->prev_answer;
}

static bool take_link(pl_ring_core *core, pl_peer from,
                      const pl_message *message)
{
    pl_ring_link link;
    if (from < 0 || !pl_ring_link_decode(&link, message))
        return false;
    if (!pl_ring_is_current(core, link.generation))
        return true; /* it is sent again */
    char *answer = link.hub ? take_hub_link(core, from, &link)
                            : take_ring_link(core, from, &link, message->who);
    if (answer == NULL)
        return false;
    pl_frame frame = pl_ring_linked_encode(
        &(pl_ring_link) { .generation = link.generation, .hub = link.hub });
    pl_ring_send(core, from, &frame, answer);
    look_formed(core);
    return true;
}

static bool take_linked(pl_ring_core *core, int32_t from,
                        const pl_message *message)
{
    pl_ring_link link;
    if (from >= 0 || !pl_ring_link_decode(&link, message))
        return false;
    if (!pl_ring_is_current(core, link.generation) ||
        core->phase != PL_RING_LINKING)
        return true;
    bool *linked =
        from == PL_RING_NEXT ? &core->linked_next : &core->linked_hub;
    if (!*linked)
        core->opts.ops->complete(core->opts.context, from, link.offer);
    *linked = true;
    if (from == PL_RING_NEXT)
        core->early_next = pl_ring_sends_early(core, link.offer);
    look_formed(core);
    return true;
}

/* --- callbacks of membership ------------------------------------------ */

static void member_send(void *context, int32_t to, const pl_frame *frame,
                        const void *payload)
{
    pl_ring_core *core = context;
    pl_ring_send(core, to == PL_TO_COORDINATOR ? PL_RING_HUB : to, frame,
                 payload);
}

static void member_drop(void *context, pl_peer peer)
{
    pl_ring_core *core = context;
    core->opts.ops->drop(core->opts.context, peer);
}

static void member_name(void *context, int32_t member,
                        char text[PL_MEMBER_NAME])
{
    const pl_ring_core *core = context;
    snprintf(text, PL_MEMBER_NAME, "worker %d (%s)", member,
             core->opts.address[member]);
}

/* The roster is in the order of workers; the chief is rank 0. */
static void make_roster(pl_ring_core *core)
{
    core->place.count = 0;
    for (int32_t w = 0; w < core->opts.workers; w++) {
        pl_ring_seat *seat = &core->seats[w];
        seat->answered = false;
        if (!pl_membership_has(core->membership, w))
            continue;
        seat->rank = core->place.count;
        core->roster[core->place.count++] = w;
    }
}

static pl_ring_place place_of(const pl_ring_core *core, int32_t worker)
{
    int32_t rank = core->seats[worker].rank, count = core->place.count;
    PL_ASSERT(count > 0);
    return (pl_ring_place) {
        .rank = rank,
        .count = count,
        .prev = core->roster[(rank + count - 1) % count],
        .next = core->roster[(rank + 1) % count],
    };
}

static size_t member_welcome(void *context, int32_t member,
                             uint8_t facts[PL_MEMBER_FACTS])
{
    pl_ring_place place = place_of(context, member);
    pl_ring_place_encode(&place, facts);
    return PL_RING_PLACE_BYTES;
}

static bool member_welcomed(void *context, const void *facts, size_t bytes)
{
    pl_ring_core *core = context;
    pl_ring_place place;
    if (!pl_ring_place_decode(&place, facts, bytes, core->opts.workers))
        return false;
    core->place = place;
    return true;
}

static void member_event(void *context, const pl_member_event *event)
{
    pl_ring_core *core = context;
    switch (event->kind) {
    case PL_MEMBER_EVENT_FORMED:
        if (core->chief) {
            make_roster(core);
            core->place = place_of(core, 0);
        }
        begin_generation(core);
        break;
    case PL_MEMBER_EVENT_LOST:
        if (event->awaited)
            core->opts.ops->lost(core->opts.context, event->member);
        if (!pl_membership_formed(core->membership)) /* else all are notified */
            pl_log(PL_LOG_WARN, "%s", event->text);
        break;
    case PL_MEMBER_EVENT_ROLLED:
    case PL_MEMBER_EVENT_OVER:
        core->phase = PL_RING_APART;
        break;
    case PL_MEMBER_EVENT_JOINED:
    case PL_MEMBER_EVENT_BACK:
        break;
    }
}

pl_status pl_ring_members_init(pl_ring_core *core)
{
    static const pl_membership_ops ops = {
        .send = member_send,
        .drop = member_drop,
        .name = member_name,
        .welcome = member_welcome,
        .welcomed = member_welcomed,
        .event = member_event,
    };
    const pl_ring_core_opts *opts = &core->opts;
    core->prev = -1;
    return pl_membership_new(&core->membership,
                             &(pl_membership_opts) {
                                 .self = opts->worker,
                                 .members = opts->workers,
                                 .incarnation = opts->incarnation,
                                 .on_loss = opts->on_loss,
                                 .heartbeat_ms = opts->heartbeat_ms,
                                 .join_ms = opts->join_ms,
                                 .rejoin_ms = opts->rejoin_ms,
                                 .ops = &ops,
                                 .context = core,
                             });
}

/* --- the calls -------------------------------------------------------- */

void pl_ring_core_join(pl_ring_core *core, int64_t now_ns)
{
    core->now_ns = now_ns;
    pl_membership_join(core->membership, true, now_ns);
}

int32_t pl_ring_core_absent(const pl_ring_core *core)
{
    return pl_membership_absent(core->membership);
}

void pl_ring_core_abort(pl_ring_core *core, const char *why)
{
    pl_membership_abort(core->membership, why);
}

bool pl_ring_take_member(pl_ring_core *core, int32_t from,
                         const pl_message *message)
{
    if (message->frame.kind == PL_FRAME_LINK)
        return take_link(core, from, message);
    if (message->frame.kind == PL_FRAME_LINKED)
        return take_linked(core, from, message);
    return pl_member_message(message->frame.kind) && from != PL_RING_NEXT &&
           pl_membership_receive(core->membership,
                                 from == PL_RING_HUB ? PL_TO_COORDINATOR : from,
                                 message, core->now_ns);
}

static void check_links(pl_ring_core *core)
{
    char name[PL_MEMBER_NAME];
    int64_t limit =
        core->formed_once ? core->opts.rejoin_ms : core->opts.join_ms;
    if (core->now_ns - core->link_ns > limit * MILLISECOND) {
        member_name(core, core->place.next, name);
        pl_membership_over(core->membership, PL_CLOSED,
                           "%s did not link to its neighbours within %lld s "
                           "(--%sjoin-timeout)",
                           name, (long long)limit / 1000,
                           core->formed_once ? "re" : "");
    } else if (core->now_ns >= core->next_link_ns) {
        send_links(core, core->now_ns);
    }
}

void pl_ring_core_tick(pl_ring_core *core, int64_t now_ns)
{
    core->now_ns = now_ns;
    pl_membership_transfers(core->membership, core->progress);
    pl_membership_tick(core->membership, now_ns);
    if (core->phase == PL_RING_LINKING)
        check_links(core);
}

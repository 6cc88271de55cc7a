/* The clock, the network and the faults of a simulated ring.
 *
 * A connection is made by its client and numbered; messages keep their order on
 * it.  A message names the process it was sent by and to: a message that
 * outlives either is lost, as a connection is.  (A process that ends by itself
 * lets its last messages leave.) */
#include "sim/sim_ring_priv.h"

#include "base/mem.h"
#include "base/rng.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TICK_NS (100 * RING_MS)
#define END_NS  (120 * 1000 * RING_MS)
#define FAULTS  5

typedef enum event_kind {
    EVENT_TICK,
    EVENT_MESSAGE,
    EVENT_WAKE,
    EVENT_KILL,
    EVENT_FREEZE,
    EVENT_CUT,
} event_kind;

typedef struct ring_event {
    int64_t at_ns;
    uint64_t order;
    event_kind kind;
    int32_t node; /* the receiver */
    int process;  /* ... of a message */
    int32_t from; /* as the receiver knows the sender */
    int32_t sender;
    int64_t long_ns;
    pl_frame frame;
    const void *lasting;
    uint8_t *text;
} ring_event;

/* A peer of a listening worker: the kind of connection (0 hub, or its number
 * from 1), the client and the client's process. */
#define PEER(link, process, worker)                                            \
    (((link)*64 + (process) % 64) * RING_WORKERS + (worker))

uint32_t ring_draw(ring_sim *sim, uint32_t bound)
{
    return pl_rng_below(sim->key, sim->draws++, bound);
}

bool ring_broken(ring_sim *sim, const char *format, ...)
{
    va_list args;
    if (!sim->result->good)
        return true; /* the first counts */
    sim->result->good = false;
    va_start(args, format);
    vsnprintf(sim->result->why, sizeof sim->result->why, format, args);
    va_end(args);
    return true;
}

int64_t ring_time(const ring_node *n)
{
    int64_t now = n->sim->now_ns;
    return n->offset_ns + now + now / 1000 * n->drift +
           (now >= n->jump_at_ns ? n->jump_ns : 0);
}

/* --- events ----------------------------------------------------------- */

static bool is_before(const ring_event *a, const ring_event *b)
{
    return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->order < b->order);
}

static void push(ring_sim *sim, ring_event event)
{
    if (sim->count == sim->room) {
        sim->room = sim->room * 2 + 64;
        sim->events =
            realloc(sim->events, (size_t)sim->room * sizeof *sim->events);
        if (sim->events == NULL)
            abort();
    }
    event.order = sim->order++;
    int at = sim->count++;
    for (; at > 0 && is_before(&event, &sim->events[(at - 1) / 2]);
         at = (at - 1) / 2)
        sim->events[at] = sim->events[(at - 1) / 2];
    sim->events[at] = event;
}

static ring_event pop(ring_sim *sim)
{
    ring_event first = sim->events[0], last = sim->events[--sim->count];
    int at = 0;
    for (int child; (child = 2 * at + 1) < sim->count; at = child) {
        if (child + 1 < sim->count &&
            is_before(&sim->events[child + 1], &sim->events[child]))
            child++;
        if (!is_before(&sim->events[child], &last))
            break;
        sim->events[at] = sim->events[child];
    }
    if (sim->count > 0)
        sim->events[at] = last;
    return first;
}

/* --- the network ------------------------------------------------------ */

static bool is_cut(const ring_sim *sim, int32_t from, int32_t to)
{
    return sim->cut[from].until_ns > sim->now_ns ||
           (sim->cut[to].until_ns > sim->now_ns && !sim->cut[to].one_way);
}

static void net_send(void *context, int32_t to, const pl_frame *frame,
                     const void *payload, bool lasting)
{
    ring_node *n = context;
    ring_sim *sim = n->sim;
    bool up = to == PL_RING_HUB || to == PL_RING_NEXT;
    ring_event event = { .kind = EVENT_MESSAGE,
                         .sender = n->worker,
                         .frame = *frame };
    if (up) {
        int link = to == PL_RING_HUB ? 0 : n->link;
        event.node = to == PL_RING_HUB ? 0 : n->next;
        event.process = sim->node[event.node].process;
        event.from = PEER(link, n->process, n->worker);
    } else {
        int link = to / RING_WORKERS / 64;
        event.node = to % RING_WORKERS;
        event.process = sim->node[event.node].process;
        event.from = link == 0 ? PL_RING_HUB : PL_RING_NEXT;
        if (to / RING_WORKERS % 64 != event.process % 64 ||
            (link != 0 && link != sim->node[event.node].link))
            return; /* that connection is gone */
    }
    if (is_cut(sim, n->worker, event.node))
        return;
    if (lasting) {
        event.lasting = payload;
    } else {
        event.text = malloc(frame->payload_bytes + 1);
        if (event.text == NULL)
            abort();
        if (frame->payload_bytes > 0)
            memcpy(event.text, payload, frame->payload_bytes);
    }
    /* One delay for each pair of workers: connections keep their order. */
    event.at_ns =
        sim->now_ns + (1 + (n->worker * 7 + event.node * 3) % 5) * RING_MS;
    push(sim, event);
}

static void net_follow(void *context, int32_t worker)
{
    ring_node *n = context;
    n->next = worker;
    n->link = ++n->sim->links;
}

static void net_offer(void *context, int32_t to, char text[PL_OFFER_BYTES])
{
    (void)context, (void)to;
    memset(text, 0, PL_OFFER_BYTES);
}

static void net_accept(void *context, pl_peer peer, const char *text,
                       char answer[PL_OFFER_BYTES])
{
    (void)peer, (void)text;
    memset(answer, 0, PL_OFFER_BYTES);
    if (((const ring_node *)context)->sim->shared)
        answer[0] = 's';
}

static void net_complete(void *context, int32_t to, const char *answer)
{
    (void)context, (void)to, (void)answer;
}

static void net_drop(void *context, pl_peer peer)
{
    (void)context, (void)peer;
}

/* A supervisor kills and restarts a worker that was declared lost. */
static void net_lost(void *context, int32_t worker)
{
    ring_sim *sim = ((ring_node *)context)->sim;
    sim->result->lost++;
    if (sim->supervised)
        push(sim, (ring_event) { .kind = EVENT_KILL,
                                 .node = worker,
                                 .process = sim->node[worker].process,
                                 .at_ns = sim->now_ns + 10 * RING_MS,
                                 .long_ns = 200 * RING_MS });
}

const pl_ring_core_ops ring_net_ops = {
    .send = net_send,
    .follow = net_follow,
    .offer = net_offer,
    .accept = net_accept,
    .complete = net_complete,
    .drop = net_drop,
    .lost = net_lost,
};

/* The payload ends where its memory ends. */
static void deliver(ring_sim *sim, ring_event *event)
{
    ring_node *n = &sim->node[event->node];
    const ring_node *sender = &sim->node[event->sender];
    if (!n->runs || n->process != event->process ||
        (event->lasting != NULL && sender->memory == NULL))
        return;
    if (n->frozen_ns > sim->now_ns) {
        ring_event later = *event;
        later.at_ns = n->frozen_ns;
        event->text = NULL;
        push(sim, later);
        return;
    }
    uint32_t bytes = event->frame.payload_bytes;
    void *copy = aligned_alloc(64, (bytes / 64 + 1) * 64);
    if (copy == NULL)
        abort();
    if (bytes > 0)
        memcpy(copy, event->lasting != NULL ? event->lasting : event->text,
               bytes);
    pl_message message = { .from = event->from < 0 ? 0 : event->from,
                           .frame = event->frame,
                           .payload = copy };
    pl_ring_core_receive(n->core, event->from, &message, ring_time(n));
    sim->result->events++;
    free(copy);
}

/* --- faults ----------------------------------------------------------- */

static void forget_lasting(ring_sim *sim, int32_t sender)
{
    for (int i = 0; i < sim->count; i++)
        if (sim->events[i].sender == sender && sim->events[i].lasting != NULL)
            sim->events[i].process = -1; /* its memory is gone */
}

static void kill_node(ring_sim *sim, const ring_event *event)
{
    ring_node *n = &sim->node[event->node];
    if (!n->runs || (event->process != 0 && event->process != n->process))
        return;
    forget_lasting(sim, n->worker);
    ring_node_kill(n);
    sim->result->kills++;
    if (event->long_ns > 0) {
        n->restart_ns = sim->now_ns + event->long_ns;
        push(sim, (ring_event) { .kind = EVENT_TICK,
                                 .node = n->worker,
                                 .at_ns = n->restart_ns });
    }
}

/* Kills come alone, all at once, or just when the loss of the first is
 * noticed and all join again. */
static void plan_kills(ring_sim *sim, int64_t at_ns)
{
    int32_t count = 1 + (int32_t)ring_draw(sim, (uint32_t)sim->workers);
    bool together = ring_draw(sim, 2) == 0;
    bool restart = ring_draw(sim, 3) > 0;
    for (int32_t i = 0; i < count && i < 3; i++) {
        push(sim,
             (ring_event) {
                 .kind = EVENT_KILL,
                 .node = (int32_t)ring_draw(sim, (uint32_t)sim->workers),
                 .at_ns = at_ns,
                 .long_ns = restart ? (1 + ring_draw(sim, 30)) * TICK_NS : 0 });
        if (!together)
            at_ns += 1000 * RING_MS + ring_draw(sim, 300) * RING_MS;
    }
}

static void plan_faults(ring_sim *sim)
{
    sim->faults = (int)ring_draw(sim, FAULTS);
    for (int i = 0; i < sim->faults; i++) {
        int64_t at_ns = ring_draw(sim, 4000) * RING_MS;
        int32_t node = (int32_t)ring_draw(sim, (uint32_t)sim->workers);
        int64_t long_ns = (200 + ring_draw(sim, 8000)) * RING_MS;
        switch (ring_draw(sim, 3)) {
        case 0:
            plan_kills(sim, at_ns);
            break;
        case 1:
            push(sim, (ring_event) { .kind = EVENT_FREEZE,
                                     .node = node,
                                     .at_ns = at_ns,
                                     .long_ns = long_ns });
            break;
        default:
            push(sim, (ring_event) { .kind = EVENT_CUT,
                                     .node = node,
                                     .at_ns = at_ns,
                                     .long_ns = long_ns });
            break;
        }
    }
}

/* --- the run ---------------------------------------------------------- */

static pl_status tick(ring_sim *sim, ring_node *n)
{
    if (!n->runs && n->restart_ns > 0 && sim->now_ns >= n->restart_ns)
        PL_TRY(ring_node_start(n));
    if (n->runs && n->frozen_ns <= sim->now_ns)
        pl_ring_core_tick(n->core, ring_time(n));
    return PL_OK;
}

static void say(const ring_sim *sim, const ring_event *event)
{
    static const char *const texts[] = { "tick", "message", "wake",
                                         "kill", "freeze",  "cut" };
    if (sim->verbose && event->kind >= EVENT_MESSAGE &&
        event->kind != EVENT_WAKE)
        printf("%8.3f worker %d: %s %s from %d, %.1f s\n",
               (double)sim->now_ns * 1e-9, event->node, texts[event->kind],
               event->kind == EVENT_MESSAGE
                   ? pl_frame_kind_text(event->frame.kind)
                   : "",
               event->from, (double)event->long_ns * 1e-9);
}

static pl_status take(ring_sim *sim, ring_event *event)
{
    ring_node *n = &sim->node[event->node];
    say(sim, event);
    switch (event->kind) {
    case EVENT_TICK:
        return tick(sim, n);
    case EVENT_MESSAGE:
        deliver(sim, event);
        break;
    case EVENT_KILL:
        kill_node(sim, event);
        break;
    case EVENT_FREEZE:
        n->frozen_ns = sim->now_ns + event->long_ns;
        sim->result->freezes++;
        break;
    case EVENT_CUT:
        sim->cut[n->worker].until_ns = sim->now_ns + event->long_ns;
        sim->cut[n->worker].one_way = ring_draw(sim, 2) == 0;
        sim->result->cuts++;
        break;
    case EVENT_WAKE:
        break;
    }
    return PL_OK;
}

static bool is_over(const ring_sim *sim)
{
    for (int32_t w = 0; w < sim->workers; w++)
        if (sim->node[w].runs || sim->node[w].restart_ns > sim->now_ns)
            return false;
    return true;
}

static void choose(ring_sim *sim)
{
    static const int64_t sizes[] = { 1, 40, RING_FLOATS };
    sim->workers = 2 + (int32_t)ring_draw(sim, RING_WORKERS - 1);
    sim->floats = sizes[ring_draw(sim, 3)];
    sim->shared = ring_draw(sim, 2) == 0;
    sim->supervised = ring_draw(sim, 2) == 0;
    sim->on_loss =
        ring_draw(sim, 2) == 0 ? PL_ON_LOSS_WAIT : PL_ON_LOSS_CONTINUE;
    plan_faults(sim);
    snprintf(
        sim->result->setting, sizeof sim->result->setting,
        "ring of %d, %lld floats, %s, %s, on loss %s, %d faults", sim->workers,
        (long long)sim->floats, sim->shared ? "shared memory" : "TCP",
        sim->supervised ? "supervised" : "by hand",
        sim->on_loss == PL_ON_LOSS_WAIT ? "wait" : "continue", sim->faults);
}

/* Hosts were booted at different times; now and then a clock jumps, as that
 * of a host that slept, or back. */
static void choose_clock(ring_node *n)
{
    ring_sim *sim = n->sim;
    n->offset_ns = ring_draw(sim, 1000000) * RING_MS;
    n->drift = (int64_t)ring_draw(sim, 41) - 20;
    if (sim->faults == 0 || ring_draw(sim, 12) != 0)
        return;
    n->jump_at_ns = ring_draw(sim, 4000) * RING_MS;
    n->jump_ns = ((int64_t)ring_draw(sim, 18000) - 6000) * RING_MS;
}

static pl_status start_all(ring_sim *sim)
{
    sim->steps[0].known = true;
    for (int32_t w = 0; w < sim->workers; w++) {
        ring_node *n = &sim->node[w];
        snprintf(sim->addresses[w], sizeof sim->addresses[w], "w%d:1", w);
        sim->address[w] = sim->addresses[w];
        *n = (ring_node) { .sim = sim, .worker = w, .next = w };
        choose_clock(n);
        n->compute_ns = (1 + ring_draw(sim, 60)) * 10 * RING_MS;
        if (ring_draw(sim, 8) == 0) /* slow, but not stuck */
            n->compute_ns += 900 * RING_MS;
    }
    for (int32_t w = 0; w < sim->workers; w++)
        PL_TRY(ring_node_start(&sim->node[w]));
    return PL_OK;
}

/* S4 */
static void check_end(ring_sim *sim)
{
    pl_sim_result *result = sim->result;
    result->ended_well = sim->node[0].ended && sim->node[0].status == PL_OK;
    for (int32_t w = 0; w < sim->workers; w++) {
        const ring_node *n = &sim->node[w];
        if (n->ended && n->status == PL_OK && !sim->steps[RING_STEPS].known)
            ring_broken(sim, "S4: worker %d ended before the last step", w);
        if (sim->faults == 0 && n->status != PL_OK)
            ring_broken(sim, "S4: worker %d failed undisturbed: %s", w, n->why);
        if (result->good && !result->ended_well && n->why[0] != '\0')
            snprintf(result->why, sizeof result->why, "worker %d: %s", w,
                     n->why);
    }
}

static pl_status run(ring_sim *sim)
{
    PL_TRY(start_all(sim));
    int64_t tick_ns = TICK_NS;
    while (!is_over(sim) && sim->result->good) {
        ring_event event = { .kind = EVENT_WAKE };
        int64_t next = tick_ns;
        for (int32_t w = 0; w < sim->workers; w++) {
            const ring_node *n = &sim->node[w];
            if (n->runs && n->wake_ns > sim->now_ns && n->wake_ns < next)
                next = n->wake_ns;
        }
        if (sim->count > 0 && sim->events[0].at_ns <= next) {
            event = pop(sim);
            next = event.at_ns > sim->now_ns ? event.at_ns : sim->now_ns;
        }
        sim->now_ns = next;
        pl_status status = take(sim, &event);
        free(event.text);
        PL_TRY(status);
        for (int32_t w = 0; sim->now_ns >= tick_ns && w < sim->workers; w++)
            PL_TRY(tick(sim, &sim->node[w]));
        if (sim->now_ns >= tick_ns)
            tick_ns += TICK_NS;
        for (int32_t w = 0; w < sim->workers; w++)
            ring_node_resume(&sim->node[w]);
        if (sim->now_ns > END_NS)
            ring_broken(sim, "S4: the job does not end");
    }
    check_end(sim);
    return PL_OK;
}

pl_status pl_sim_ring_run(const pl_sim_opts *opts, pl_sim_result *result)
{
    ring_sim *sim;
    pl_status status;
    PL_TRY(PL_NEW(sim, 1));
    memset(result, 0, sizeof *result);
    result->good = true;
    sim->result = result;
    sim->verbose = opts->verbose;
    sim->key = pl_rng_key_text(opts->seed, "ring");
    sim->schedule = (pl_schedule) { .lr = 1 };
    PL_TRY_OUT(status, pl_pool_new(&sim->pool, 1));
    choose(sim);
    status = run(sim);
    result->seconds = (double)sim->now_ns * 1e-9;
out:
    for (int32_t w = 0; w < sim->workers; w++)
        ring_node_kill(&sim->node[w]);
    for (int i = 0; i < sim->count; i++)
        free(sim->events[i].text);
    free(sim->events);
    pl_pool_free(sim->pool);
    pl_mem_free(sim);
    return status;
}

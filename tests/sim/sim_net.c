#include "base/mem.h"
#include "sim/sim_priv.h"

#include <stdlib.h>
#include <string.h>

static bool before(const sim_event *a, const sim_event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void swap(sim_event *a, sim_event *b)
{
    sim_event t = *a;
    *a = *b;
    *b = t;
}

void sim_at(sim *s, int64_t after_ns, sim_event event)
{
    if (s->queued == s->room) {
        size_t room = s->room > 0 ? 2 * s->room : 256;
        sim_event *queue = realloc(s->queue, room * sizeof *queue);
        if (queue == NULL) {
            s->status = PL_FAIL(PL_NOMEM, "%zu events", room);
            free(event.payload);
            return;
        }
        s->queue = queue;
        s->room = room;
    }
    event.at_ns = s->now_ns + after_ns;
    event.order = s->order++;
    size_t at = s->queued++;
    s->queue[at] = event;
    for (; at > 0 && before(&s->queue[at], &s->queue[(at - 1) / 2]);
         at = (at - 1) / 2)
        swap(&s->queue[at], &s->queue[(at - 1) / 2]);
}

bool sim_next(sim *s, sim_event *out)
{
    if (s->queued == 0)
        return false;
    *out = s->queue[0];
    s->queue[0] = s->queue[--s->queued];
    for (size_t at = 0;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2; child++)
            if (child < s->queued && before(&s->queue[child], &s->queue[least]))
                least = child;
        if (least == at)
            break;
        swap(&s->queue[at], &s->queue[least]);
        at = least;
    }
    s->now_ns = out->at_ns;
    return true;
}

void sim_net_close(sim *s)
{
    for (size_t i = 0; i < s->queued; i++)
        free(s->queue[i].payload);
    free(s->queue);
}

/* Is the link of these two cut at the moment? */
static bool cut(const sim *s, const sim_event *event)
{
    int32_t from = sim_node(s, event->from_ps, event->from);
    int32_t to = sim_node(s, event->to_ps, event->node);
    for (int32_t i = 0; i < s->cuts; i++) {
        const sim_cut *c = &s->cut[i];
        if (s->now_ns >= c->from_ns && s->now_ns < c->to_ns &&
            (c->group >> from & 1) != (c->group >> to & 1) &&
            (!c->one_way || (c->group >> from & 1) != 0))
            return true;
    }
    return false;
}

static void deliver_once(sim *s, sim_event event, const void *payload)
{
    if (event.frame.payload_bytes > 0) {
        event.payload = malloc(event.frame.payload_bytes);
        if (event.payload == NULL) {
            s->status = PL_FAIL(PL_NOMEM, "a message");
            return;
        }
        memcpy(event.payload, payload, event.frame.payload_bytes);
    }
    int64_t delay = 10000 + (int64_t)sim_draw(s, 1000) * s->delay_ns / 1000;
    delay *= s->clock[sim_node(s, event.to_ps, event.node)].slow;
    sim_at(s, delay, event);
}

void sim_send(sim *s, sim_event event, const pl_frame *frame,
              const void *payload)
{
    event.kind = SIM_DELIVER;
    event.frame = *frame;
    event.payload = NULL;
    if (cut(s, &event) || sim_draw(s, 1000) < s->loss) {
        s->result->lost++;
        return;
    }
    deliver_once(s, event, payload);
    if (sim_draw(s, 1000) < s->doubling) {
        s->result->doubled++;
        deliver_once(s, event, payload);
    }
}

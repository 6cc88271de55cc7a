/* members.h - a job's membership machines in one process, with a clock and a
 * network that keeps the order of each connection. */
#ifndef PL_TESTS_MEMBERS_H
#define PL_TESTS_MEMBERS_H

#include "job/member/member.h"
#include "support/unit.h"

#include <stdlib.h>

#define MEMBERS_MOST   5
#define MEMBERS_QUEUED 4096

typedef struct members_net members_net;

typedef struct members_node {
    members_net *net;
    int32_t member;
    pl_membership *machine; /* NULL: not running */
    bool frozen;            /* neither ticks nor reads */
    int events[PL_MEMBER_EVENT_OVER + 1];
    int32_t lost;  /* the last; -1: none */
    char why[256]; /* of the last event with a text */
} members_node;

typedef struct members_letter {
    int32_t to, from;
    pl_frame frame;
    uint8_t payload[512];
} members_letter;

struct members_net {
    int32_t members;
    int64_t now_ns;
    uint32_t lives;
    pl_on_loss on_loss;
    pl_status admit; /* PL_OK: all */
    members_node node[MEMBERS_MOST];
    members_letter queue[MEMBERS_QUEUED];
    int queued;
};

static inline void members_send(void *context, int32_t to,
                                const pl_frame *frame, const void *payload)
{
    members_node *n = context;
    members_net *net = n->net;
    members_letter letter = { .frame = *frame };
    bool up = to == PL_TO_COORDINATOR;
    letter.to = up ? 0 : to % 10;
    letter.from = up ? 10 + n->member : PL_TO_COORDINATOR;
    assert_true(frame->payload_bytes <= sizeof letter.payload);
    if (frame->payload_bytes > 0)
        memcpy(letter.payload, payload, frame->payload_bytes);
    assert_true(net->queued < MEMBERS_QUEUED);
    net->queue[net->queued++] = letter;
}

static inline void members_drop(void *context, pl_peer peer)
{
    (void)context, (void)peer;
}

static inline void members_name(void *context, int32_t member,
                                char text[PL_MEMBER_NAME])
{
    (void)context;
    snprintf(text, PL_MEMBER_NAME, "worker %d", member);
}

static inline pl_status members_admit(void *context,
                                      const pl_join_message *join)
{
    const members_node *n = context;
    (void)join;
    return n->net->admit == PL_OK ? PL_OK
                                  : PL_FAIL(n->net->admit, "not this one");
}

static inline void members_event(void *context, const pl_member_event *event)
{
    members_node *n = context;
    n->events[event->kind]++;
    if (event->kind == PL_MEMBER_EVENT_LOST)
        n->lost = event->member;
    if (event->text != NULL)
        snprintf(n->why, sizeof n->why, "%s", event->text);
}

static inline void members_start(members_net *net, int32_t member)
{
    static const pl_membership_ops ops = {
        .send = members_send,
        .drop = members_drop,
        .name = members_name,
        .admit = members_admit,
        .event = members_event,
    };
    members_node *n = &net->node[member];
    *n = (members_node) { .net = net, .member = member, .lost = -1 };
    assert_ok(pl_membership_new(&n->machine, &(pl_membership_opts) {
                                                 .self = member,
                                                 .members = net->members,
                                                 .incarnation = ++net->lives,
                                                 .on_loss = net->on_loss,
                                                 .heartbeat_ms = 1000,
                                                 .join_ms = 8000,
                                                 .rejoin_ms = 4000,
                                                 .ops = &ops,
                                                 .context = n,
                                             }));
    pl_membership_join(n->machine, true, net->now_ns);
}

static inline void members_stop(members_net *net, int32_t member)
{
    pl_membership_free(net->node[member].machine);
    net->node[member].machine = NULL;
}

static inline void members_settle(members_net *net)
{
    for (int i = 0; i < net->queued; i++) {
        members_letter letter = net->queue[i];
        members_node *n = &net->node[letter.to];
        pl_message message = { .frame = letter.frame,
                               .payload = letter.payload };
        if (n->machine != NULL && !n->frozen)
            (void)pl_membership_receive(n->machine, letter.from, &message,
                                        net->now_ns);
    }
    net->queued = 0;
}

/* Time passes; a machine that was rolled joins again, as its strategy does. */
static inline void members_pass(members_net *net, int64_t ms)
{
    for (; ms > 0; ms -= 100) {
        net->now_ns += 100000000;
        for (int32_t i = 0; i < net->members; i++) {
            members_node *n = &net->node[i];
            if (n->machine == NULL || n->frozen)
                continue;
            pl_membership_tick(n->machine, net->now_ns);
            if (pl_membership_outcome(n->machine) == PL_ROLLED)
                pl_membership_join(n->machine, true, net->now_ns);
        }
        members_settle(net);
    }
}

static inline members_net *members_new(int32_t members, pl_on_loss on_loss)
{
    members_net *net = calloc(1, sizeof *net);
    net->members = members;
    net->on_loss = on_loss;
    net->now_ns = 1000000000;
    for (int32_t i = 0; i < members; i++)
        members_start(net, i);
    members_pass(net, 300);
    for (int32_t i = 0; i < members; i++)
        assert_true(pl_membership_formed(net->node[i].machine));
    return net;
}

static inline void members_free(members_net *net)
{
    for (int32_t i = 0; i < net->members; i++)
        members_stop(net, i);
    free(net);
}

#endif

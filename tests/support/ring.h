/* ring.h - workers of a ring in one process, with a network of queues.
 *
 * Messages keep their order on each connection; which connection moves next is
 * drawn by a seed.  Payloads are copied when they are delivered, as shared
 * memory would show them: a change of what was sent is detected. */
#ifndef PL_TESTS_RING_H
#define PL_TESTS_RING_H

#include "support/unit.h"
#include "sync/allreduce/ring/core.h"

#define RING_FEW    5
#define RING_MOST   128
#define RING_QUEUED 4096

/* How a receiver knows its senders: by these numbers plus the worker. */
#define RING_HUB_PEER  1000 /* at the chief */
#define RING_PREV_PEER 2000 /* the previous worker of the ring */

typedef struct ring_letter {
    int32_t to, from; /* worker; as the receiver knows the sender */
    int32_t line;     /* letters of one line keep their order */
    pl_frame frame;
    const void *lasting; /* or `text` */
    uint8_t *text;
} ring_letter;

typedef struct ring_net ring_net;

typedef struct ring_node {
    ring_net *net;
    int32_t worker;
    pl_ring_core *core; /* NULL: not running */
    float *memory, *encoded;
    int32_t next;
    int32_t lost; /* the worker it declared lost; -1: none */
} ring_node;

struct ring_net {
    int32_t workers;
    int64_t floats, now_ns;
    uint64_t seed;
    ring_node node[RING_MOST];
    ring_letter queue[RING_QUEUED];
    int queued;
    pl_frame_kind swallow; /* the next letter of this kind is lost... */
    bool swallows_all;     /* ... or all of them */
    bool shared;           /* links report that they share memory */
    const pl_codec *codec; /* NULL: plain */
    int64_t piece_bytes;   /* of pieces that were sent... */
    int64_t piece_floats;  /* ... and what they stand for */
    int64_t hub_bytes; /* sent to the chief and by it, except for the ring */
    uint32_t lives;
};

static inline void ring_send(void *context, int32_t to, const pl_frame *frame,
                             const void *payload, bool lasting)
{
    ring_node *n = context;
    ring_net *net = n->net;
    ring_letter letter = { .frame = *frame };
    if (net->swallow == frame->kind) {
        if (!net->swallows_all)
            net->swallow = PL_FRAME_NONE;
        return;
    }
    if (to == PL_RING_HUB) {
        letter.to = 0;
        letter.from = RING_HUB_PEER + n->worker;
    } else if (to == PL_RING_NEXT) {
        letter.to = n->next;
        letter.from = RING_PREV_PEER + n->worker;
    } else {
        letter.to = to % 1000;
        letter.from = to < RING_PREV_PEER ? PL_RING_HUB : PL_RING_NEXT;
    }
    if (frame->kind == PL_FRAME_PIECE) {
        net->piece_bytes += frame->payload_bytes;
        net->piece_floats += frame->count;
    }
    bool hub = letter.from == PL_RING_HUB || letter.from / 1000 == 1;
    letter.line = (n->worker * RING_MOST + letter.to) * 2 + hub;
    if (hub)
        net->hub_bytes += PL_FRAME_BYTES + frame->payload_bytes;
    if (lasting) {
        letter.lasting = payload;
    } else {
        assert_ok(PL_NEW(letter.text, frame->payload_bytes + 1));
        memcpy(letter.text, payload != NULL ? payload : "",
               frame->payload_bytes);
    }
    assert_true(net->queued < RING_QUEUED);
    net->queue[net->queued++] = letter;
}

static inline void ring_follow(void *context, int32_t worker)
{
    ((ring_node *)context)->next = worker;
}

static inline void ring_offer(void *context, int32_t to,
                              char offer[PL_OFFER_BYTES])
{
    (void)context, (void)to;
    memset(offer, 0, PL_OFFER_BYTES);
}

static inline void ring_accept(void *context, pl_peer peer, const char *offer,
                               char answer[PL_OFFER_BYTES])
{
    (void)peer, (void)offer;
    memset(answer, 0, PL_OFFER_BYTES);
    if (((const ring_node *)context)->net->shared)
        answer[0] = 's';
}

static inline void ring_complete(void *context, int32_t to, const char *answer)
{
    (void)context, (void)to, (void)answer;
}

static inline void ring_drop(void *context, pl_peer peer)
{
    (void)context, (void)peer;
}

static inline void ring_lost(void *context, int32_t worker)
{
    ((ring_node *)context)->lost = worker;
}

static const pl_ring_core_ops ring_ops = {
    .send = ring_send,
    .follow = ring_follow,
    .offer = ring_offer,
    .accept = ring_accept,
    .complete = ring_complete,
    .drop = ring_drop,
    .lost = ring_lost,
};

/* Of a large ring most workers have no name. */
static char *ring_addresses[RING_MOST] = { "a:1", "b:1", "c:1", "d:1", "e:1" };

static inline pl_ring_core_opts ring_opts(ring_node *n)
{
    return (pl_ring_core_opts) {
        .worker = n->worker,
        .workers = n->net->workers,
        .address = ring_addresses,
        .floats = n->net->floats,
        .memory = n->memory,
        .codec = n->net->codec,
        .encoded = n->encoded,
        .incarnation = ++n->net->lives,
        .heartbeat_ms = 1000,
        .join_ms = 8000,
        .rejoin_ms = 4000,
        .kernels = pl_kernels_best(),
        .ops = &ring_ops,
        .context = n,
    };
}

static inline void ring_start_node(ring_net *net, int32_t worker,
                                   pl_on_loss on_loss)
{
    ring_node *n = &net->node[worker];
    pl_ring_core_opts opts = ring_opts(n);
    opts.on_loss = on_loss;
    n->lost = -1;
    assert_ok(pl_ring_core_new(&n->core, &opts));
    pl_ring_core_join(n->core, net->now_ns);
}

static inline void ring_stop_node(ring_net *net, int32_t worker)
{
    pl_ring_core_free(net->node[worker].core);
    net->node[worker].core = NULL;
}

static inline void ring_init(ring_net *net, int32_t workers, int64_t floats,
                             uint64_t seed)
{
    memset(net, 0, sizeof *net);
    net->workers = workers;
    net->floats = floats;
    net->seed = seed * 2654435761u + 1;
    net->now_ns = 1000000000;
    for (int32_t w = 0; w < workers; w++) {
        net->node[w] = (ring_node) { .net = net, .worker = w, .lost = -1 };
        assert_ok(PL_NEW_ALIGNED(net->node[w].memory, (size_t)floats));
        assert_ok(PL_NEW_ALIGNED(net->node[w].encoded, (size_t)floats));
    }
}

static inline void ring_close(ring_net *net)
{
    for (int32_t w = 0; w < net->workers; w++) {
        ring_stop_node(net, w);
        pl_mem_free(net->node[w].memory);
        pl_mem_free(net->node[w].encoded);
    }
    for (int i = 0; i < net->queued; i++)
        pl_mem_free(net->queue[i].text);
}

static inline uint32_t ring_draw(ring_net *net)
{
    net->seed = net->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(net->seed >> 33);
}

/* Take the letter at `i` out and deliver it. */
static inline void ring_deliver(ring_net *net, int i)
{
    ring_letter letter = net->queue[i];
    memmove(&net->queue[i], &net->queue[i + 1],
            (size_t)(--net->queued - i) * sizeof *net->queue);
    ring_node *n = &net->node[letter.to];
    if (n->core != NULL) {
        uint8_t *copy;
        uint32_t bytes = letter.frame.payload_bytes;
        assert_ok(PL_NEW_ALIGNED(copy, bytes + 1));
        memcpy(copy, letter.text != NULL ? letter.text : letter.lasting, bytes);
        pl_message message = { .from = letter.from < 0 ? 0 : letter.from,
                               .frame = letter.frame,
                               .payload = copy };
        pl_ring_core_receive(n->core, letter.from, &message, net->now_ns);
        pl_mem_free(copy);
    }
    pl_mem_free(letter.text);
}

/* Deliver the first letter of a line that is drawn. */
static inline void ring_deliver_any(ring_net *net)
{
    int pick = (int)(ring_draw(net) % (uint32_t)net->queued);
    int first = 0;
    while (net->queue[first].line != net->queue[pick].line)
        first++;
    ring_deliver(net, first);
}

/* Deliver all messages, and those that follow from them. */
static inline void ring_settle(ring_net *net)
{
    while (net->queued > 0)
        ring_deliver_any(net);
}

static inline void ring_tick(ring_net *net, int64_t ms)
{
    net->now_ns += ms * 1000000;
    for (int32_t w = 0; w < net->workers; w++)
        if (net->node[w].core != NULL)
            pl_ring_core_tick(net->node[w].core, net->now_ns);
}

/* Let time pass, a tenth of a second at a time. */
static inline void ring_pass(ring_net *net, int64_t ms)
{
    for (; ms > 0; ms -= 100) {
        ring_tick(net, 100);
        ring_settle(net);
    }
}

static inline void ring_form(ring_net *net)
{
    for (int32_t w = 0; w < net->workers; w++)
        ring_start_node(net, w, PL_ON_LOSS_WAIT);
    ring_settle(net);
    ring_pass(net, 300);
    for (int32_t w = 0; w < net->workers; w++)
        assert_true(pl_ring_core_formed(net->node[w].core));
}

#endif

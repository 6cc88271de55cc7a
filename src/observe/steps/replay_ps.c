/* replay_ps.c - one step of synchronous training with parameter servers.
 *
 * Time 0 is the moment when the servers begin to send new parameters. Each
 * server holds a contiguous range of the parameter block and sends it to all
 * workers in pieces, in order; a layer waits for the pieces that contain it.
 * The workers compute, and push the pieces of gradients in the opposite order;
 * the update waits for the last piece at the last server.  A range of few
 * pieces is pushed when all gradients are done.  A link carries its bytes one
 * after another; transfers to different servers share a worker's link, so only
 * the sum of their bytes counts there.
 *
 * Identical workers do the same at the same time, so that the cost of a replay
 * does not depend on their number.  If a reply is a single message, a server's
 * replies end one after another, and so the workers begin one after another:
 * the first and the last of them are replayed. */
#include "observe/steps/steps_priv.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

/* Reading the next batch overlaps the exchange, depending on the previous step;
 * after this many steps the duration converges. */
#define ROUNDS 3

/* A message: a piece of the range of one server, with (parts of) these
 * layers. */
typedef struct segment {
    size_t first, last;
    int32_t server;
    double push, pull; /* bytes */
} segment;

/* Workers that do the same at the same time. */
typedef enum group {
    LAST,  /* to get a reply; or all identical */
    FIRST, /* to get a single message */
    SLOW,  /* the straggler */
    GROUPS,
} group;

/* A segment begins to arrive. */
typedef struct arrival {
    const segment *of;
    double start, end; /* end: when the sender's link has sent it */
    double copies;     /* sent over the server's link */
} arrival;

typedef struct rig {
    const pl_step_case *c;
    segment *segments;
    size_t segment_count;
    arrival *answers;       /* [segment_count] */
    arrival *pushes;        /* [GROUPS segment_count] */
    double *free_s;         /* [servers]: when its link is free */
    double *arrive, *ready; /* [layers] */
    double done[GROUPS];    /* when the last gradient was computed */
    double copies[GROUPS];  /* of gradients, received over a server's link */
    bool windowed;          /* pieces are pushed while others are computed */
} rig;

/* Gradient bytes per message; messages of parameters have the maximum size. */
static double piece_bytes(const pl_step_case *c)
{
    return c->pull > 0 && c->push > 0 ? PL_STEP_PIECE * c->push / c->pull
                                      : PL_STEP_PIECE;
}

/* Cut the servers' ranges into pieces.  *left bytes of layer `*layer` are not
 * yet assigned. */
static void take_piece(rig *r, int32_t server, double bytes, size_t *layer,
                       double *left)
{
    const pl_step_work *work = r->c->work;
    segment *s = &r->segments[r->segment_count++];
    *s = (segment) { .first = *layer, .last = *layer, .server = server };
    while (bytes > 0 && *layer < work->layer_count) {
        const pl_step_layer *l = &work->layers[*layer];
        double taken = fmin(bytes, *left);
        s->last = *layer;
        s->push += taken;
        if (l->push_bytes > 0)
            s->pull += taken / l->push_bytes * l->pull_bytes;
        bytes -= taken;
        *left -= taken;
        if (*left <= 1e-9 * l->push_bytes && ++*layer < work->layer_count)
            *left = work->layers[*layer].push_bytes;
    }
}

static void cut(rig *r)
{
    const pl_step_case *c = r->c;
    double range = c->push / c->job.servers, piece = piece_bytes(c);
    int64_t pieces = (int64_t)ceil(range / piece - 1e-9);
    size_t layer = 0;
    double left = c->work->layer_count > 0 ? c->work->layers[0].push_bytes : 0;
    r->windowed = pieces > PL_STEP_WINDOW && !c->work->whole;
    for (int32_t server = 0; c->push > 0 && server < c->job.servers; server++)
        for (int64_t i = 0; i < pieces; i++)
            take_piece(r, server, fmin(piece, range - (double)i * piece),
                       &layer, &left);
    double own = c->differs ? 1 : 0;
    r->copies[LAST] = fmax(c->far - own, 0);
    r->copies[SLOW] = own;
    if (pieces <= 1 && r->copies[LAST] > 1) {
        r->copies[FIRST] = r->copies[LAST] - 1;
        r->copies[LAST] = 1;
    }
}

static int by_start(const void *a, const void *b)
{
    const arrival *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->of < y->of ? -1 : x->of > y->of;
}

static double messages(double bytes)
{
    return ceil(bytes / PL_STEP_PIECE);
}

static void reset_links(rig *r)
{
    for (int32_t j = 0; j < r->c->job.servers; j++)
        r->free_s[j] = 0;
}

/* All servers send their replies at once. */
static void answer(rig *r)
{
    const pl_step_case *c = r->c;
    reset_links(r);
    for (size_t i = 0; i < r->segment_count; i++) {
        const segment *s = &r->segments[i];
        double start = r->free_s[s->server];
        r->free_s[s->server] +=
            c->far * c->host_servers *
            (s->pull * c->server_link_s + messages(s->pull) * c->message_s);
        r->answers[i] = (arrival) { s, start, r->free_s[s->server], 0 };
    }
    qsort(r->answers, r->segment_count, sizeof *r->answers, by_start);
}

/* The share of a server's time for its replies until a worker has its own.
 * Replies of a single message are neither fully sequential nor fully
 * interleaved: the first arrives after the mean of both. */
static double answer_share(const rig *r, group who)
{
    double n = r->c->far;
    return who == FIRST ? (n + 1) / 2 / n : 1;
}

/* The replies arrive at a worker: when are its layers complete? */
static void take_answers(rig *r, group who, double link_s)
{
    const pl_step_case *c = r->c;
    double part = answer_share(r, who);
    double share = c->host_workers * (1 - c->near) * link_s, free_s = 0;
    for (size_t i = 0; i < c->work->layer_count; i++)
        r->arrive[i] = 0;
    for (size_t i = 0; i < r->segment_count; i++) {
        const arrival *a = &r->answers[i];
        double end = a->start + part * (a->end - a->start);
        free_s = fmax(free_s, a->start) + a->of->pull * share +
                 messages(a->of->pull) * c->worker_message_s;
        for (size_t l = a->of->first; l <= a->of->last; l++)
            r->arrive[l] = fmax(r->arrive[l], fmax(free_s, end) + c->latency_s);
    }
}

/* The gradients of a worker, or of several identical ones, are sent. */
static size_t push(rig *r, group who, double link_s, arrival *out)
{
    const pl_step_case *c = r->c;
    double share = c->host_workers * (1 - c->near) * link_s, free_s = 0;
    size_t count = 0;
    for (size_t i = r->segment_count; i-- > 0;) {
        const segment *s = &r->segments[i];
        double start = r->windowed ? r->ready[s->first] : r->done[who];
        free_s = fmax(free_s, start) + s->push * share +
                 messages(s->push) * c->worker_message_s;
        out[count++] = (arrival) { s, start, free_s, r->copies[who] };
    }
    return count;
}

/* The gradients arrive at the servers: when is the last one complete?  A server
 * receives them after it has sent its replies. */
static double take_pushes(rig *r, size_t count)
{
    const pl_step_case *c = r->c;
    double last = 0;
    qsort(r->pushes, count, sizeof *r->pushes, by_start);
    for (size_t i = 0; i < count; i++) {
        const arrival *a = &r->pushes[i];
        double *free_s = &r->free_s[a->of->server];
        *free_s = fmax(*free_s, a->start) +
                  a->copies * c->host_servers *
                      (a->of->push * c->server_link_s +
                       messages(a->of->push) * c->message_s);
        last = fmax(last, fmax(*free_s, a->end) + c->latency_s);
    }
    return last;
}

/* When a worker starts to compute.  It reads its batch while it waits for the
 * parameters of the first layer, or after all have arrived. */
static double begin(const rig *r, double since)
{
    double last = since;
    for (size_t i = 0; r->c->work->whole && i < r->c->work->layer_count; i++)
        last = fmax(last, r->arrive[i]);
    return last + r->c->input_s;
}

/* One step; the previous gradient of a worker was handed over at
 * since[group]. */
static double step(rig *r, const double since[GROUPS])
{
    const pl_step_case *c = r->c;
    double last = 0;
    size_t pushed = 0;
    answer(r);
    for (group who = 0; who < GROUPS; who++) {
        bool slow = who == SLOW;
        double link_s = slow ? c->slow_link_s : c->link_s;
        if (who != LAST && !(r->copies[who] > 0))
            continue;
        take_answers(r, who, link_s);
        r->done[who] =
            pl_step_compute(c, slow ? PL_STEP_SLOW : PL_STEP_OTHERS,
                            begin(r, since[who]), r->arrive, r->ready);
        last = fmax(last, r->done[who]);
        pushed += push(r, who, link_s, r->pushes + pushed);
    }
    last = fmax(last, take_pushes(r, pushed));
    /* Servers agree on the gradients of the step (HAVE, APPLY). */
    double agree = c->job.servers > 1 ? 2 * c->latency_s : 0;
    return last + agree + c->server_s + c->server_add_s * (c->job.workers - 1);
}

static pl_status open_rig(rig *r)
{
    size_t layers = r->c->work->layer_count;
    size_t servers = (size_t)r->c->job.servers;
    size_t most = (size_t)ceil(r->c->push / piece_bytes(r->c)) + 2 * servers;
    PL_TRY(PL_NEW(r->segments, most));
    PL_TRY(PL_NEW(r->answers, most));
    PL_TRY(PL_NEW(r->pushes, GROUPS * most));
    PL_TRY(PL_NEW(r->free_s, servers));
    PL_TRY(PL_NEW(r->arrive, layers + 1));
    return PL_NEW(r->ready, layers + 1);
}

static void close_rig(rig *r)
{
    pl_mem_free(r->segments);
    pl_mem_free(r->answers);
    pl_mem_free(r->pushes);
    pl_mem_free(r->free_s);
    pl_mem_free(r->arrive);
    pl_mem_free(r->ready);
}

pl_status pl_step_ps(const pl_step_case *c, double *step_s)
{
    rig r = { .c = c };
    double since[GROUPS] = { 0 };
    pl_status status;
    PL_TRY_OUT(status, open_rig(&r));
    cut(&r);
    for (int round = 0; round < ROUNDS; round++) {
        *step_s = step(&r, since);
        for (int who = 0; who < GROUPS; who++)
            since[who] = r.done[who] - *step_s;
    }
out:
    close_rig(&r);
    return status;
}

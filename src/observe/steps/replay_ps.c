/* replay_ps.c - one step of synchronous training with parameter servers.
 *
 * Time 0 is the moment when the servers begin to answer with new parameters.
 * Each server holds a contiguous range of the parameter block and sends it to
 * all workers, in the order of the layers; the workers compute, and push
 * gradients in the opposite order; the update waits for the last piece at the
 * last server.  A link carries its bytes one after another; transfers to
 * different servers share a worker's link, so only the sum of their bytes
 * counts there.  Equal workers do the same at the same time: the cost of a
 * replay does not depend on their number. */
#include "observe/steps/steps_priv.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

/* Reading the next batch overlaps the exchange, which the step before decides
 * about; after so many steps its length no longer changes. */
#define ROUNDS 3

/* The part of a layer that one server holds. */
typedef struct segment {
    size_t layer;
    int32_t server;
    double push, pull; /* bytes */
} segment;

/* A segment begins to arrive. */
typedef struct arrival {
    const segment *of;
    double start, end; /* end: when the sender's link has carried it */
    double copies;     /* that the server's link carries */
} arrival;

typedef struct rig {
    const pl_step_case *c;
    segment *segments;
    size_t segment_count;
    arrival *answers;         /* [segment_count] */
    arrival *pushes;          /* [2 segment_count] */
    double *free_s;           /* [servers]: when its link is */
    double *arrive, *ready;   /* [layers] */
    double done[PL_STEP_WHO]; /* when the last gradient was computed */
} rig;

/* Cut the layers at the borders of the servers' ranges. */
static void cut(rig *r)
{
    const pl_step_case *c = r->c;
    double range = c->push / c->job.servers, at = 0;
    int32_t server = 0, last = c->job.servers - 1;
    for (size_t i = 0; i < c->work->layer_count; i++) {
        const pl_step_layer *layer = &c->work->layers[i];
        double left = layer->push_bytes;
        while (left > 0) {
            double room = range * (server + 1) - at;
            double bytes = server < last && room < left ? room : left;
            r->segments[r->segment_count++] = (segment) {
                .layer = i,
                .server = server,
                .push = bytes,
                .pull = bytes / layer->push_bytes * layer->pull_bytes,
            };
            at += bytes;
            left -= bytes;
            server += server < last && bytes >= room;
        }
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

/* The answers leave all servers at once. */
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

/* ... and arrive at a worker: when are its layers complete? */
static void take_answers(rig *r, double link_s)
{
    const pl_step_case *c = r->c;
    double share = c->host_workers * (1 - c->near) * link_s, free_s = 0;
    for (size_t i = 0; i < c->work->layer_count; i++)
        r->arrive[i] = 0;
    for (size_t i = 0; i < r->segment_count; i++) {
        const arrival *a = &r->answers[i];
        double *at = &r->arrive[a->of->layer];
        free_s = fmax(free_s, a->start) + a->of->pull * share +
                 messages(a->of->pull) * c->worker_message_s;
        *at = fmax(*at, fmax(free_s, a->end) + c->latency_s);
    }
}

/* The gradients of a worker, or of several alike, leave. */
static size_t push(rig *r, double link_s, double copies, arrival *out)
{
    const pl_step_case *c = r->c;
    double share = c->host_workers * (1 - c->near) * link_s, free_s = 0;
    size_t count = 0;
    for (size_t i = r->segment_count; i-- > 0;) {
        const segment *s = &r->segments[i];
        double start = r->ready[s->layer];
        free_s = fmax(free_s, start) + s->push * share +
                 messages(s->push) * c->worker_message_s;
        out[count++] = (arrival) { s, start, free_s, copies };
    }
    return count;
}

/* ... and arrive at the servers: when is the last one complete? */
static double take_pushes(rig *r, size_t count)
{
    const pl_step_case *c = r->c;
    double last = 0;
    reset_links(r);
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

/* When a worker starts to compute.  Its batch is read while it waits for the
 * parameters of the first layer, or after all have come. */
static double begin(const rig *r, double since)
{
    double last = since;
    for (size_t i = 0; r->c->work->whole && i < r->c->work->layer_count; i++)
        last = fmax(last, r->arrive[i]);
    return last + r->c->input_s;
}

/* One step; a worker had handed over its last gradient at since[who]. */
static double step(rig *r, const double since[PL_STEP_WHO])
{
    const pl_step_case *c = r->c;
    const double links[] = { c->link_s, c->slow_link_s };
    const double copies[] = { fmax(c->far - (c->differs ? 1 : 0), 0), 1 };
    double last = 0;
    size_t pushed = 0;
    answer(r);
    for (int who = 0; who <= (c->differs ? PL_STEP_SLOW : 0); who++) {
        take_answers(r, links[who]);
        r->done[who] = pl_step_compute(
            c, (pl_step_who)who, begin(r, since[who]), r->arrive, r->ready);
        last = fmax(last, r->done[who]);
        pushed += push(r, links[who], copies[who], r->pushes + pushed);
    }
    last = fmax(last, take_pushes(r, pushed));
    /* Servers agree on the gradients of the step (HAVE, APPLY). */
    double agree = c->job.servers > 1 ? 2 * c->latency_s : 0;
    return last + agree + c->server_s + c->server_add_s * (c->job.workers - 1);
}

static pl_status open_rig(rig *r)
{
    size_t layers = r->c->work->layer_count;
    size_t servers = (size_t)r->c->job.servers, most = layers + servers;
    PL_TRY(PL_NEW(r->segments, most));
    PL_TRY(PL_NEW(r->answers, most));
    PL_TRY(PL_NEW(r->pushes, 2 * most));
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
    double since[PL_STEP_WHO] = { 0 };
    pl_status status;
    PL_TRY_OUT(status, open_rig(&r));
    cut(&r);
    for (int round = 0; round < ROUNDS; round++) {
        *step_s = step(&r, since);
        for (int who = 0; who < PL_STEP_WHO; who++)
            since[who] = r.done[who] - *step_s;
    }
out:
    close_rig(&r);
    return status;
}

/* All-reduce of two processes, over each transport of the ring, against a plain
 * TCP connection that moves as many bytes: a gradient in each direction.
 *
 * For each transport a process is the second worker: the first sends it what to
 * sum and how often.  The transports alternate within every round. */
#include "sync/allreduce/ring/engine.h"

#include "base/mem.h"
#include "bench.h"
#include "net/transport.h"
#include "raw_tcp.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALEXNET_FLOATS ((int64_t)61100840)
#define LENET_FLOATS   ((int64_t)61706)
#define BUCKET_FLOATS  ((int64_t)1 << 20) /* of one sum */
#define RAW_PIECE      ((size_t)1 << 20)
#define ROUNDS         5
#define ADDRESS        64

enum {
    RAW,
    TCP,
    ENCRYPTED,
    SHM,
    WAYS
};
static const char *const way_names[WAYS] = { "raw TCP", "ring, TCP",
                                             "ring, encrypted TCP",
                                             "ring, shared memory" };

/* Any secret will do. */
static const pl_job_keys keys = { .workers = 2 };

/* One of the two workers of a transport. */
typedef struct rank {
    pl_cluster cluster;
    char *address[2];
    char text[2][ADDRESS];
    pl_endpoint *listen;
    pl_collective *ring;
    pl_ranks ranks;
} rank;

/* What the first worker sends to the second. */
typedef struct order {
    int64_t floats, times; /* 0: end */
} order;

static pl_deadline patience(void)
{
    return pl_deadline_in_ms(pl_clock_real(), 60000);
}

static pl_status open_listen(rank *r, int32_t worker, int way)
{
    PL_TRY(pl_endpoint_listen(
        &r->listen, &(pl_endpoint_opts) {
                        .address = "127.0.0.1:0",
                        .name = "bench",
                        .transport = way == SHM ? NULL : &pl_transport_tcp,
                        .keys = way == ENCRYPTED ? &keys : NULL,
                        .self = { PL_PRINCIPAL_WORKER, worker },
                        .encrypt = way == ENCRYPTED,
                    }));
    snprintf(r->text[worker], ADDRESS, "%s", pl_endpoint_address(r->listen));
    return PL_OK;
}

static pl_status open_ring(rank *r, int32_t worker, int way, int64_t floats)
{
    r->address[0] = r->text[0];
    r->address[1] = r->text[1];
    r->cluster = (pl_cluster) { .workers = 2, .worker_address = r->address };
    PL_TRY(pl_ring_engine_new(
        &r->ring,
        &(pl_ring_engine_opts) {
            .cluster = &r->cluster,
            .worker = worker,
            .listen = r->listen,
            .keys = way == ENCRYPTED ? &keys : NULL,
            .floats = floats,
            .transport = way == SHM ? &pl_transport_shm : &pl_transport_tcp,
            .encrypt = way == ENCRYPTED,
            .join_ms = 20000,
            .kernels = pl_kernels_best(),
        }));
    return r->ring->ops->join(r->ring, &r->ranks);
}

static void close_rank(rank *r)
{
    if (r->ring != NULL)
        r->ring->ops->free(r->ring);
    pl_endpoint_free(r->listen, 1000);
}

/* The sums of one gradient, in buckets. */
static pl_status sum(const rank *r, int64_t floats)
{
    const pl_collective_ops *ops = r->ring->ops;
    int64_t size =
        (BUCKET_FLOATS + r->ranks.grain - 1) / r->ranks.grain * r->ranks.grain;
    int32_t ticket = 0;
    for (int64_t first = 0; first < floats; first += size) {
        int64_t left = floats - first;
        pl_sum_range range = { .first = first,
                               .count = left < size ? left : size };
        PL_TRY(ops->start(r->ring, &range, &ticket));
    }
    for (int32_t t = 0; t <= ticket; t++)
        PL_TRY(ops->wait(r->ring, t, patience()));
    return ops->quiet(r->ring, patience());
}

/* Both workers: agree on the order, then execute it. */
static pl_status obey(const rank *r, order *o)
{
    order all[2];
    PL_TRY(r->ring->ops->offer(r->ring, o, sizeof *o, NULL));
    PL_TRY(r->ring->ops->exchange(r->ring, all, patience()));
    *o = all[0];
    for (int64_t i = 0; i < o->times; i++)
        PL_TRY(sum(r, o->floats));
    return PL_OK;
}

static pl_status second(int way, int64_t floats, int to, int from)
{
    rank r = { 0 };
    order o = { .times = 1 };
    pl_status status;
    PL_TRY_OUT(status, open_listen(&r, 1, way));
    if (write(to, r.text[1], ADDRESS) != ADDRESS ||
        read(from, r.text[0], ADDRESS) != ADDRESS) {
        status = PL_FAIL(PL_IO, "no address of the first worker");
        goto out;
    }
    PL_TRY_OUT(status, open_ring(&r, 1, way, floats));
    while (status == PL_OK && o.times > 0)
        status = obey(&r, &o);
out:
    close_rank(&r);
    return status;
}

static pl_status open_way(rank *r, int way, int64_t floats, pid_t *child)
{
    int up[2], down[2];
    PL_TRY(open_listen(r, 0, way));
    if (pipe(up) != 0 || pipe(down) != 0)
        return PL_FAIL(PL_IO, "pipe");
    *child = fork();
    if (*child == 0)
        _exit(second(way, floats, up[1], down[0]) == PL_OK ? 0 : 1);
    close(up[1]);
    close(down[0]);
    bool told = *child > 0 && write(down[1], r->text[0], ADDRESS) == ADDRESS &&
                read(up[0], r->text[1], ADDRESS) == ADDRESS;
    close(up[0]);
    close(down[1]);
    if (!told)
        return PL_FAIL(PL_IO, "the bench's second worker is not there");
    return open_ring(r, 0, way, floats);
}

typedef struct ways {
    rank ranks[WAYS]; /* not RAW */
    pid_t children[WAYS];
    raw_tcp raw;
} ways;

static pl_status open_ways(ways *w, int64_t floats)
{
    PL_TRY(raw_tcp_open(&w->raw, &w->children[RAW]));
    for (int way = TCP; way < WAYS; way++)
        PL_TRY(open_way(&w->ranks[way], way, floats, &w->children[way]));
    return PL_OK;
}

static void close_ways(ways *w)
{
    raw_tcp_close(&w->raw);
    for (int way = WAYS - 1; way >= RAW; way--) { /* inherits RAW's socket */
        order end = { 0 };
        bool ended = way == RAW || (w->ranks[way].ring != NULL &&
                                    obey(&w->ranks[way], &end) == PL_OK);
        if (way != RAW)
            close_rank(&w->ranks[way]);
        if (w->children[way] <= 0)
            continue;
        if (!ended)
            kill(w->children[way], SIGKILL);
        waitpid(w->children[way], NULL, 0);
    }
}

static pl_status time_way(ways *w, int way, const order *o, double *seconds)
{
    int64_t begin = pl_clock_now_ns(pl_clock_real());
    if (way == RAW) {
        size_t bytes = (size_t)o->floats * sizeof(float);
        size_t piece = bytes < RAW_PIECE ? bytes : RAW_PIECE;
        int64_t count = o->times * (int64_t)(bytes / piece);
        PL_TRY(raw_tcp_exchange(&w->raw, count, piece, piece));
    } else {
        order same = *o;
        PL_TRY(obey(&w->ranks[way], &same));
    }
    *seconds = (double)(pl_clock_now_ns(pl_clock_real()) - begin) * 1e-9 /
               (double)o->times;
    return PL_OK;
}

static pl_status bench_sum(bench *b, ways *w, int64_t floats)
{
    double each[WAYS][ROUNDS], ratio[WAYS][ROUNDS], warm;
    double bytes = (double)floats * sizeof(float);
    for (int round = -1; round < ROUNDS; round++) /* -1 is the warm-up */
        for (int way = 0; way < WAYS; way++) {
            order o = { floats, floats < (1 << 20) ? 200 : 1 };
            double *to = round < 0 ? &warm : &each[way][round];
            PL_TRY(time_way(w, way, &o, to));
            if (round >= 0)
                ratio[way][round] = each[way][round] / each[RAW][round];
        }
    for (int way = 0; way < WAYS; way++) {
        measurement s = measure_summary(each[way], ROUNDS);
        table_text(&b->table, "way", way_names[way]);
        table_count(&b->table, "bytes", (int64_t)bytes);
        table_measured(
            &b->table, "us",
            (measurement) { s.median * 1e6, s.least * 1e6, s.most * 1e6 });
        table_measured(&b->table, "GB/s", measure_inverse(s, bytes * 1e-9));
        table_measured(&b->table, "x raw", measure_summary(ratio[way], ROUNDS));
        table_row_end(&b->table);
    }
    return PL_OK;
}

static pl_status bench_model(bench *b, int64_t floats)
{
    ways *w;
    PL_TRY(PL_NEW(w, 1));
    pl_status status = open_ways(w, floats);
    if (status == PL_OK)
        status = bench_sum(b, w, floats);
    close_ways(w);
    pl_mem_free(w);
    return status;
}

pl_status bench_allreduce(bench *b)
{
    table_begin(&b->table, "allreduce", "All-reduce of two processes",
                "The gradients of lenet and alexnet, summed in place. Raw TCP "
                "sends as many bytes there\nand back. The goals: lenet over "
                "TCP at most 3 x raw, alexnet in shared memory 1.7 x\ngloo.");
    PL_TRY(bench_model(b, LENET_FLOATS));
    PL_TRY(bench_model(b, ALEXNET_FLOATS));
    table_end(&b->table);
    return PL_OK;
}

/* The transports against a plain TCP connection in the same run.
 *
 * For each transport a process answers requests, which state the size of the
 * answer, so one loop serves round trips, pushes and pulls.  The transports
 * alternate within every round, and a ratio compares figures of one round: the
 * speed of the machine drifts, and so does its other load. */
#include "net/endpoint.h"

#include "bench.h"
#include "net/transport.h"
#include "raw_tcp.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define GRADIENT_BYTES 31400               /* softmax on 784 x 10 */
#define STREAM_BYTES   ((size_t)244 << 20) /* about alexnet */
#define CREDITS        8                   /* pieces in flight */
#define SMALL_CREDITS  64
#define ROUNDS         5

enum {
    RAW,
    TCP,
    ENCRYPTED_TCP,
    SHM,
    WAYS
};
static const char *const way_names[WAYS] = { "raw TCP", "our TCP",
                                             "encrypted TCP", "shared memory" };

/* Any secret will do. */
static const pl_job_keys keys = { .workers = 1, .ps = 1 };

/* Our end of each transport. */
typedef struct ways {
    pid_t servers[WAYS];
    raw_tcp raw;
    pl_endpoint *clients[WAYS]; /* not RAW */
    pl_area *area;
    pl_status status; /* the first failure; the rest is then meaningless */
} ways;

static pl_deadline patience(void)
{
    return pl_deadline_in_ms(pl_clock_real(), 20000);
}

/* The answering process: value[0] is the size of the answer, from `first`. */
static pl_status answer(pl_endpoint *server, const pl_area *area)
{
    const uint8_t *data = pl_area_data(area);
    for (;;) {
        pl_message message;
        PL_TRY(pl_endpoint_receive(server, &message, patience()));
        pl_frame reply = message.frame;
        const void *payload = data + message.frame.first;
        char text[PL_OFFER_BYTES];
        bool lasting = true;
        reply.kind = PL_FRAME_ACK;
        reply.payload_bytes = (uint32_t)message.frame.value[0];
        if (message.frame.kind == PL_FRAME_JOIN) {
            PL_TRY(pl_endpoint_accept(server, message.from, message.payload,
                                      text));
            reply.payload_bytes = (uint32_t)strlen(text) + 1;
            payload = text;
            lasting = false;
        }
        PL_TRY(
            pl_endpoint_send(server, message.from, &reply, payload, lasting));
        if (message.frame.kind == PL_FRAME_STOP)
            return PL_OK;
    }
}

static pl_status serve(int report, bool encrypt)
{
    pl_area *area = NULL;
    pl_endpoint *server = NULL;
    PL_TRY(pl_area_new(&area, STREAM_BYTES));
    memset(pl_area_data(area), 1, STREAM_BYTES);
    PL_TRY(pl_endpoint_listen(&server, &(pl_endpoint_opts) {
                                           .address = "127.0.0.1:0",
                                           .name = "bench server",
                                           .area = area,
                                           .keys = encrypt ? &keys : NULL,
                                           .self = { PL_PRINCIPAL_PS, 0 },
                                           .encrypt = encrypt,
                                       }));
    const char *address = pl_endpoint_address(server);
    if (write(report, address, strlen(address) + 1) < 0)
        return PL_FAIL(PL_IO, "cannot report the port");
    pl_status status = answer(server, area);
    pl_endpoint_free(server, 1000);
    pl_area_free(area);
    return status;
}

/* Start a server process; its address goes to `address`. */
static pl_status start_server(pid_t *child, char address[64], bool encrypt)
{
    int ends[2];
    if (pipe(ends) != 0)
        return PL_FAIL(PL_IO, "pipe");
    *child = fork();
    if (*child == 0)
        _exit(serve(ends[1], encrypt) == PL_OK ? 0 : 1);
    close(ends[1]);
    ssize_t got = *child < 0 ? -1 : read(ends[0], address, 64);
    close(ends[0]);
    return got > 0 ? PL_OK : PL_FAIL(PL_IO, "the bench's server is not there");
}

static pl_status connect_to(pl_endpoint **out, const char *address,
                            pl_area *area, bool shm, bool encrypt)
{
    return pl_endpoint_connect(out,
                               &(pl_endpoint_opts) {
                                   .address = address,
                                   .name = "bench",
                                   .area = area,
                                   .transport = shm ? NULL : &pl_transport_tcp,
                                   .keys = encrypt ? &keys : NULL,
                                   .self = { PL_PRINCIPAL_WORKER, 0 },
                                   .encrypt = encrypt,
                               });
}

static pl_status connect_way(ways *w, int way)
{
    char address[64], offer[PL_OFFER_BYTES];
    pl_message message;
    PL_TRY(start_server(&w->servers[way], address, way == ENCRYPTED_TCP));
    PL_TRY(connect_to(&w->clients[way], address, w->area, way == SHM,
                      way == ENCRYPTED_TCP));
    pl_endpoint *client = w->clients[way];
    PL_TRY(pl_endpoint_offer(client, offer));
    pl_frame join = { .kind = PL_FRAME_JOIN,
                      .payload_bytes = (uint32_t)strlen(offer) + 1 };
    PL_TRY(pl_endpoint_send(client, 0, &join, offer, false));
    PL_TRY(pl_endpoint_receive(client, &message, patience()));
    PL_TRY(pl_endpoint_complete(client, message.payload));
    if (pl_endpoint_shared(client, 0) != (way == SHM))
        return PL_FAIL(PL_UNSUPPORTED, "this host does not share memory");
    return PL_OK;
}

/* `count` requests of `out` bytes that are answered by `in` bytes, with
 * `credits` in flight. */
static pl_status exchange(ways *w, int way, int64_t count, size_t out,
                          size_t in, int64_t credits)
{
    if (way == RAW)
        return raw_tcp_exchange(&w->raw, count, out, in);
    pl_endpoint *client = w->clients[way];
    const uint8_t *data = pl_area_data(w->area);
    size_t larger = out > in ? out : in;
    int64_t places = (int64_t)(STREAM_BYTES / (larger == 0 ? 1 : larger));
    for (int64_t i = 0; i < count + credits; i++) {
        pl_message message;
        if (i >= credits)
            PL_TRY(pl_endpoint_receive(client, &message, patience()));
        if (i >= count)
            continue;
        int64_t first = i % places * (int64_t)larger / 64 * 64;
        pl_frame frame = { .kind = PL_FRAME_PUSH,
                           .sequence = (uint64_t)i,
                           .first = first,
                           .value = { (int64_t)in },
                           .payload_bytes = (uint32_t)out };
        PL_TRY(pl_endpoint_send(client, 0, &frame, data + first, true));
    }
    return PL_OK;
}

typedef struct job {
    int64_t count;
    size_t out, in;
    int64_t credits;
} job;

/* Time the job over each transport in turn; ns per message, and raw over
 * each. */
static void time_job(ways *w, const job *j, measurement ns[WAYS],
                     measurement ratio[WAYS])
{
    double each[WAYS][ROUNDS], over[WAYS][ROUNDS];
    for (int round = -1; round < ROUNDS; round++) /* -1 is the warm-up */
        for (int way = 0; way < WAYS && w->status == PL_OK; way++) {
            int64_t begin = pl_clock_now_ns(pl_clock_real());
            w->status = exchange(w, way, j->count, j->out, j->in, j->credits);
            int64_t end = pl_clock_now_ns(pl_clock_real());
            if (round < 0)
                continue;
            each[way][round] = (double)(end - begin) / (double)j->count;
            over[way][round] = each[RAW][round] / each[way][round];
        }
    for (int way = 0; way < WAYS && w->status == PL_OK; way++) {
        ns[way] = measure_summary(each[way], ROUNDS);
        ratio[way] = measure_summary(over[way], ROUNDS);
    }
}

static void bench_trips(bench *b, ways *w)
{
    static const size_t sizes[] = { 0, GRADIENT_BYTES, 1 << 20 };
    table_begin(&b->table, "net_trip", "Round trips",
                "A request and an answer of this size, one at a time. "
                "The goal for 31 KB over our TCP\nis at most 5 x raw.");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        measurement ns[WAYS], ratio[WAYS];
        int64_t count = (int64_t)(b->window_s * 1e9 / 100000) + 1;
        job j = { sizes[i] > 100000 ? count / 8 + 1 : count, sizes[i], sizes[i],
                  1 };
        time_job(w, &j, ns, ratio);
        for (int way = 0; way < WAYS && w->status == PL_OK; way++) {
            measurement times = measure_inverse(ratio[way], 1);
            table_text(&b->table, "way", way_names[way]);
            table_count(&b->table, "bytes", (int64_t)sizes[i]);
            table_measured(&b->table, "us",
                           (measurement) { ns[way].median / 1e3,
                                           ns[way].least / 1e3,
                                           ns[way].most / 1e3 });
            table_measured(&b->table, "x raw", times);
            table_row_end(&b->table);
        }
    }
    table_end(&b->table);
}

static void bench_streams(bench *b, ways *w)
{
    static const size_t pieces[] = { 1 << 18, 1 << 20, 2 << 20, 4 << 20 };
    table_begin(&b->table, "net_stream", "Streams",
                "244 MiB in pieces, 8 under way at once, each answered. Shared "
                "memory moves nothing:\nits figure is what the messages cost. "
                "The goal over our TCP is half of raw.");
    for (int pull = 0; pull < 2; pull++)
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
            measurement ns[WAYS], ratio[WAYS];
            size_t piece = pieces[i];
            job j = { (int64_t)(STREAM_BYTES / piece), pull ? 0 : piece,
                      pull ? piece : 0, CREDITS };
            time_job(w, &j, ns, ratio);
            for (int way = 0; way < WAYS && w->status == PL_OK; way++) {
                table_text(&b->table, "way", way_names[way]);
                table_text(&b->table, "to", pull ? "client" : "server");
                table_count(&b->table, "KiB a piece", (int64_t)(piece >> 10));
                table_measured(&b->table, "GB/s",
                               measure_inverse(ns[way], (double)piece));
                table_measured(&b->table, "of raw", ratio[way]);
                table_row_end(&b->table);
            }
        }
    table_end(&b->table);
}

static void bench_messages(bench *b, ways *w)
{
    measurement ns[WAYS], ratio[WAYS];
    job j = { (int64_t)(b->window_s * 1e9 / 4000) + 1, 0, 0, SMALL_CREDITS };
    table_begin(&b->table, "net_rate", "Messages a second",
                "Headers alone, 64 under way at once (raw: one at a time), "
                "each answered.");
    time_job(w, &j, ns, ratio);
    for (int way = 0; way < WAYS && w->status == PL_OK; way++) {
        table_text(&b->table, "way", way_names[way]);
        table_measured(&b->table, "requests per s",
                       measure_inverse(ns[way], 1e9));
        table_row_end(&b->table);
    }
    table_end(&b->table);
}

/* --- the cost of encryption, and whether threads share it --------------- */

enum {
    PLAIN,
    ENCRYPTED,
    CASES
};
static const struct {
    const char *name;
    bool encrypt;
} cases[CASES] = {
    [PLAIN] = { "plain", false },
    [ENCRYPTED] = { "encrypted", true },
};

/* Two connections to one server. */
typedef struct spread {
    pid_t server;
    pl_endpoint *clients[2];
} spread;

/* Push a piece and pull one, over both connections, until 2 x `count` went in
 * each direction. */
static pl_status push_and_pull(const spread *s, const uint8_t *data,
                               int64_t count, size_t piece)
{
    for (int64_t i = 0; i < count + CREDITS; i++)
        for (int c = 0; c < 2; c++) {
            pl_message message;
            if (i >= CREDITS)
                PL_TRY(
                    pl_endpoint_receive(s->clients[c], &message, patience()));
            if (i >= count)
                continue;
            pl_frame frame = { .kind = PL_FRAME_PUSH,
                               .sequence = (uint64_t)i,
                               .value = { (int64_t)piece },
                               .payload_bytes = (uint32_t)piece };
            PL_TRY(pl_endpoint_send(s->clients[c], 0, &frame, data, true));
        }
    return PL_OK;
}

static pl_status time_spread(const ways *w, const spread s[CASES], size_t piece,
                             measurement ns[CASES], measurement ratio[CASES])
{
    double each[CASES][ROUNDS], over[CASES][ROUNDS];
    int64_t count = (int64_t)(STREAM_BYTES / 4 / piece);
    for (int round = -1; round < ROUNDS; round++) /* -1 is the warm-up */
        for (int i = 0; i < CASES; i++) {
            int64_t begin = pl_clock_now_ns(pl_clock_real());
            PL_TRY(push_and_pull(&s[i], pl_area_data(w->area), count, piece));
            int64_t end = pl_clock_now_ns(pl_clock_real());
            if (round < 0)
                continue;
            each[i][round] = (double)(end - begin) / (double)(4 * count);
            over[i][round] = each[i][round] / each[PLAIN][round];
        }
    for (int i = 0; i < CASES; i++) {
        ns[i] = measure_summary(each[i], ROUNDS);
        ratio[i] = measure_summary(over[i], ROUNDS);
    }
    return PL_OK;
}

static void bench_spread(bench *b, ways *w, const spread s[CASES])
{
    static const size_t pieces[] = { 1 << 18, 1 << 20, 4 << 20 };
    table_begin(&b->table, "net_curve", "Encryption",
                "Dense pushes answered by pulls of the same size, two "
                "connections to one server; GB/s both\nways "
                "together, and the time beside that of plain.");
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        measurement ns[CASES], ratio[CASES];
        w->status = time_spread(w, s, pieces[p], ns, ratio);
        for (int i = 0; i < CASES && w->status == PL_OK; i++) {
            table_text(&b->table, "way", cases[i].name);
            table_count(&b->table, "KiB a piece", (int64_t)(pieces[p] >> 10));
            table_measured(&b->table, "GB/s",
                           measure_inverse(ns[i], (double)pieces[p]));
            table_measured(&b->table, "x plain", ratio[i]);
            table_row_end(&b->table);
        }
    }
    table_end(&b->table);
}

static pl_status open_spread(spread s[CASES], pl_area *area)
{
    for (int i = 0; i < CASES; i++) {
        char address[64];
        PL_TRY(start_server(&s[i].server, address, cases[i].encrypt));
        for (int c = 0; c < 2; c++)
            PL_TRY(connect_to(&s[i].clients[c], address, area, false,
                              cases[i].encrypt));
    }
    return PL_OK;
}

static void end_server(pid_t server)
{
    if (server > 0) {
        kill(server, SIGKILL);
        waitpid(server, NULL, 0);
    }
}

static void bench_encryption(bench *b, ways *w)
{
    spread s[CASES] = { 0 };
    w->status = open_spread(s, w->area);
    if (w->status == PL_OK)
        bench_spread(b, w, s);
    for (int i = 0; i < CASES; i++) {
        pl_endpoint_free(s[i].clients[0], 0);
        pl_endpoint_free(s[i].clients[1], 0);
        end_server(s[i].server);
    }
}

static pl_status open_ways(ways *w)
{
    PL_TRY(raw_tcp_open(&w->raw, &w->servers[RAW]));
    PL_TRY(pl_area_new(&w->area, STREAM_BYTES));
    memset(pl_area_data(w->area), 1, STREAM_BYTES);
    for (int way = TCP; way < WAYS; way++)
        PL_TRY(connect_way(w, way));
    return PL_OK;
}

static void close_ways(ways *w)
{
    raw_tcp_close(&w->raw);
    for (int way = 0; way < WAYS; way++) {
        pl_endpoint_free(w->clients[way], 0);
        end_server(w->servers[way]);
    }
    pl_area_free(w->area);
}

pl_status bench_net(bench *b)
{
    ways w = { .status = PL_OK };
    w.status = open_ways(&w);
    if (w.status == PL_OK)
        bench_trips(b, &w);
    if (w.status == PL_OK)
        bench_messages(b, &w);
    if (w.status == PL_OK)
        bench_streams(b, &w);
    if (w.status == PL_OK)
        bench_encryption(b, &w);
    close_ways(&w);
    return w.status;
}

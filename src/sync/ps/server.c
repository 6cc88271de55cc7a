/* Runs the core of a parameter server: its memory, its optimizer, the network,
 * the disk and the clock.  Decides when to create the core: with the first
 * worker that may join, whose JOIN has the number of parameters. */
#include "sync/ps/server.h"

#include "base/clock.h"
#include "base/host/awake.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/burst.h"
#include "sync/ps/messages/messages.h"
#include "sync/ps/messages/pieces.h"
#include "sync/ps/save/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define LINGER_MS 2000
#define SAY_NS    INT64_C(5000000000)
/* How long waiting messages may delay a tick that is due. */
#define READ_NS INT64_C(500000000)
/* Sparse parameters: floats of shared memory for answers to each task. */
#define ANSWER_FLOATS ((int64_t)1 << 19)
/* Messages handled between two checks of the clock. */
#define BURST 64
/* Interval between checks of the disk operation. */
#define STORE_NS INT64_C(2000000)

struct pl_ps_server {
    pl_ps_server_opts opts;
    char name[32];
    pl_endpoint *endpoint;
    pl_endpoint *up; /* to server 0; NULL there */
    pl_area *area;
    pl_params *shape;
    pl_optim *optim;
    pl_ps_store *store;
    int64_t trained; /* of the job's floats, before running averages */
    double average_rate;
    bool placed;      /* learn_place was called */
    pl_ps_core *core; /* NULL until the size is known */
    int64_t begin_ns, said_ns;
    pl_burst refusals;   /* in the log, before there is a core */
    int64_t trace_first; /* where a trace without a first step begins; -1:
                            unknown */
    pl_awake awake;
    uint64_t waited; /* ticks, for messages */
};

static int64_t now_ns(void)
{
    return pl_clock_now_ns(pl_clock_real());
}

/* The core's clock.  It excludes time in which this process was stopped:
 * messages that arrived then have not been read, so their senders must not
 * count as silent. */
static int64_t core_ns(pl_ps_server *server)
{
    int64_t now = now_ns();
    return pl_awake_ns(
        &server->awake, now,
        pl_awake_asks(&server->awake, now) ? pl_clock_processor_ns() : 0);
}

/* End the trace span that began at `begin`. */
static void traced(pl_ps_server *server, const char *name, uint64_t begin)
{
    if (pl_trace_on(server->opts.trace))
        pl_trace_span(server->opts.trace, 0, name,
                      pl_ps_core_look(server->core, 0).step + 1, begin,
                      pl_ticks_now());
}

/* Switch tracing on for the requested steps only. */
static void switch_trace(pl_ps_server *server)
{
    if (server->opts.trace == NULL || server->core == NULL)
        return;
    pl_ps_core_view view = pl_ps_core_look(server->core, 0);
    if (server->trace_first < 0 && view.initialized)
        server->trace_first = view.step;
    int64_t first = server->opts.trace_first;
    int64_t last = server->opts.trace_last;
    int64_t before = first == 0 ? server->trace_first : 0;
    int64_t step = view.step + 1 - before;
    pl_trace_switch(server->opts.trace,
                    before >= 0 && step >= first && step <= last);
}

static void send_out(void *context, pl_peer to, const pl_frame *frame,
                     const void *payload, bool lasting)
{
    pl_ps_server *server = context;
    pl_endpoint *endpoint = server->endpoint;
    uint64_t begin = pl_ticks_now();
    pl_status status;
    if (to == PL_PEER_COORDINATOR) {
        status = pl_endpoint_send(server->up, 0, frame, payload, false);
    } else {
        /* With shared memory, tasks read parameters in place. */
        const char *area = pl_area_data(server->area);
        bool inside =
            payload != NULL && (const char *)payload >= area &&
            (const char *)payload < area + pl_area_bytes(server->area);
        bool shared = inside && pl_endpoint_shared(endpoint, to);
        status =
            pl_endpoint_send(endpoint, to, frame, payload, lasting || shared);
        if (frame->kind == PL_FRAME_WELCOME ||
            frame->kind == PL_FRAME_HEARTBEAT_ACK)
            pl_endpoint_keep(endpoint, to); /* a task of the job */
    }
    if (status != PL_OK)
        pl_log(PL_LOG_WARN, "%s: %s", server->name, pl_error_message());
    traced(server, "send", begin);
}

static void lost_task(void *context, bool is_server, int32_t index)
{
    pl_ps_server *server = context;
    if (server->opts.lost != NULL)
        server->opts.lost(server->opts.context, is_server, index);
}

static void tell_usage(void *context, pl_task_report *out)
{
    const pl_ps_server *server = context;
    pl_endpoint_counts counts = pl_endpoint_count(server->endpoint);
    pl_task_report_read(out);
    out->usage.bytes_sent = counts.sent_bytes;
    out->usage.bytes_received = counts.received_bytes;
    out->usage.messages_sent = counts.sent_messages;
    out->usage.messages_received = counts.received_messages;
}

static void accept_offer(void *context, pl_peer from, const char *offer,
                         char answer[PL_OFFER_BYTES])
{
    pl_ps_server *server = context;
    if (pl_endpoint_accept(server->endpoint, from, offer, answer) != PL_OK)
        pl_log(PL_LOG_WARN, "%s: %s", server->name, pl_error_message());
}

/* Before the first save or load: if the chief's run folder is verified to be
 * the job's, keep checkpoints there. */
static void learn_place(pl_ps_server *server)
{
    pl_ps_core_view view = pl_ps_core_look(server->core, 0);
    bool asked = server->placed || server->opts.place.run != NULL;
    server->placed = true;
    if (asked || server->opts.shares == NULL || view.run == NULL ||
        !server->opts.shares(server->opts.context, view.run_job, view.run))
        return;
    if (pl_ps_store_place(server->store, view.run) != PL_OK)
        pl_log(PL_LOG_WARN, "%s", pl_error_message());
}

static bool save_part(void *context, const char *plan, size_t bytes)
{
    learn_place(context);
    return pl_ps_store_save(((pl_ps_server *)context)->store, plan, bytes);
}

static bool commit_parts(void *context, const pl_ps_part *parts)
{
    return pl_ps_store_commit(((pl_ps_server *)context)->store, parts);
}

static bool load_part(void *context, const char *plan, size_t bytes)
{
    learn_place(context);
    return pl_ps_store_load(((pl_ps_server *)context)->store, plan, bytes);
}

static void cancel_store(void *context)
{
    pl_ps_store_cancel(((pl_ps_server *)context)->store);
}

static bool touch(void *context, int64_t first, int64_t count)
{
    return pl_ps_store_touch(((pl_ps_server *)context)->store, first, count);
}

static const pl_ps_core_ops core_ops = {
    .send = send_out,
    .lost = lost_task,
    .usage = tell_usage,
    .accept = accept_offer,
    .save = save_part,
    .commit = commit_parts,
    .load = load_part,
    .cancel = cancel_store,
    .touch = touch,
};

pl_status pl_ps_server_new(pl_ps_server **out, const pl_ps_server_opts *opts)
{
    pl_ps_server *server;
    PL_TRY(PL_NEW(server, 1));
    server->opts = *opts;
    server->trace_first = -1;
    snprintf(server->name, sizeof server->name, "ps %d", opts->core.index);
    pl_status status = pl_endpoint_listen(
        &server->endpoint,
        &(pl_endpoint_opts) {
            .address = opts->address,
            .name = server->name,
            .transport = opts->transport,
            .peers_max = 8 * (opts->core.workers + 8) + 2 * opts->core.ps,
            .keys = opts->keys,
            .self = { PL_PRINCIPAL_PS, opts->core.index },
        });
    if (status != PL_OK) {
        pl_ps_server_free(server);
        return status;
    }
    *out = server;
    return PL_OK;
}

void pl_ps_server_free(pl_ps_server *server)
{
    if (server == NULL)
        return;
    pl_endpoint_free(server->endpoint, LINGER_MS);
    pl_endpoint_free(server->up, LINGER_MS);
    pl_ps_core_free(server->core);
    pl_ps_store_free(server->store);
    pl_optim_free(server->optim);
    pl_params_free(server->shape);
    pl_area_free(server->area);
    pl_mem_free(server);
}

const char *pl_ps_server_address(const pl_ps_server *server)
{
    return pl_endpoint_address(server->endpoint);
}

/* The memory that tasks on this host read in place: dense parameters, and their
 * encoded form; for sparse ones, the answers. */
static pl_status open_memory(pl_ps_server *server, pl_ps_core_opts *core)
{
    int64_t floats = core->count;
    bool encodes = core->codec != NULL && core->codec->for_parameters;
    if (core->table_count > 0)
        floats = (core->workers + 1) * ANSWER_FLOATS;
    else if (encodes)
        floats += core->count;
    PL_TRY(pl_area_new(&server->area, (size_t)floats * sizeof(float)));
    PL_TRY(pl_params_new(&server->shape));
    PL_TRY(pl_params_add(server->shape, "part", PL_SHAPE(core->count)));
    if (core->table_count > 0) {
        PL_TRY(pl_params_seal(server->shape));
        core->answers = pl_area_data(server->area);
        core->answer_floats = ANSWER_FLOATS;
    } else {
        PL_TRY(pl_params_seal_in(server->shape, pl_area_data(server->area)));
        if (encodes)
            core->encoded = (float *)pl_area_data(server->area) + core->count;
    }
    core->params = pl_params_block(server->shape);
    return PL_OK;
}

/* Create memory, optimizer and core for this server's partition of `floats`. */
static pl_status open_core(pl_ps_server *server, int64_t floats)
{
    pl_ps_core_opts core = server->opts.core;
    uint32_t life = 0;
    core.floats = floats;
    pl_pieces_shard(floats, core.ps, core.index, &core.first, &core.count);
    if (core.count < 1)
        return PL_FAIL(PL_USAGE,
                       "%lld parameters are too few for %d parameter servers",
                       (long long)floats, core.ps);
    PL_TRY(open_memory(server, &core));
    PL_TRY(pl_optim_new(&server->optim, &server->opts.optim, server->shape,
                        core.kernels));
    pl_optim_average(server->optim, server->trained - core.first,
                     server->average_rate);
    PL_TRY(pl_ps_store_new(&server->store, &(pl_partition_opts) {
                                               .index = core.index,
                                               .of = core.ps,
                                               .first = core.first,
                                               .count = core.count,
                                               .planes = pl_optim_planes(
                                                   server->optim, core.params),
                                               .place = server->opts.place,
                                           }));
    if (core.index == 0 && getrandom(&life, sizeof life, 0) != sizeof life)
        return PL_FAIL(PL_IO, "getrandom");
    core.life = life;
    core.process = getpid();
    core.started_ms = pl_clock_boot_ns() / 1000000;
    pl_clock_boot_id(core.boot);
    core.schedule = &server->opts.schedule;
    core.optim = server->optim;
    core.ops = &core_ops;
    core.context = server;
    core.trace = server->opts.trace;
    pl_endpoint_share(server->endpoint, server->area);
    return pl_ps_core_new(&server->core, &core, core_ns(server));
}

static void tell_step(const pl_ps_server *server)
{
    if (server->opts.step != NULL)
        server->opts.step(
            server->opts.context,
            server->core != NULL ? pl_ps_core_look(server->core, 0).step : -1);
}

/* Server 0 has admitted a task that does not match this server, so this server
 * is wrong: query server 0 without joining.  It answers if it refuses. */
static pl_status ask_leader(pl_ps_server *server)
{
    const pl_ps_core_opts *core = &server->opts.core;
    pl_ps_join_text join = {
        .role = "ps",
        .index = core->index,
        .job = "",
        .ask = true,
        .settings = core->settings,
    };
    char *text;
    PL_TRY(pl_fields_text(&pl_ps_join_fields, &join, 0, &text));
    pl_frame frame = pl_ps_join_encode(&(pl_ps_join) { 0 });
    frame.payload_bytes = (uint32_t)strlen(text);
    pl_status status = pl_endpoint_send(server->up, 0, &frame, text, false);
    pl_mem_free(text);
    return status;
}

/* A refused task changes nothing, with or without a core. */
static pl_status refuse_join(pl_ps_server *server, const pl_message *message)
{
    char why[400];
    if (server->up != NULL && message->frame.incarnation != 0)
        return ask_leader(server);
    snprintf(why, sizeof why, "%s", pl_error_message());
    if (pl_burst_shows(&server->refusals, now_ns()))
        pl_log(PL_LOG_WARN, "a task that wants to join was refused: %s", why);
    pl_frame frame = pl_ps_refuse_encode(false, 0);
    frame.incarnation = message->frame.incarnation;
    frame.payload_bytes = (uint32_t)strlen(why);
    return pl_endpoint_send(server->endpoint, message->from, &frame, why,
                            false);
}

static pl_status check_averages(const pl_ps_join_text *join)
{
    if (join->trained < 0 || join->trained > join->floats)
        return PL_FAIL(PL_FORMAT,
                       "join: trained: found %lld, expected at most the %lld "
                       "floats of the model",
                       (long long)join->trained, (long long)join->floats);
    if (!(join->average_rate >= 0 && join->average_rate <= 1))
        return PL_FAIL(PL_FORMAT,
                       "join: average_rate: found %g, expected 0 to 1",
                       join->average_rate);
    return PL_OK;
}

/* The first worker that may join has the number of parameters. */
static pl_status learn_size(pl_ps_server *server, const pl_message *message)
{
    pl_ps_core_opts *core = &server->opts.core;
    pl_ps_join_text join;
    pl_json *json = NULL;
    int32_t member = 0;
    pl_status status = pl_ps_join_parse(&join, &json, message);
    if (status == PL_OK)
        status = pl_ps_join_check(core, &join, message->who, &member);
    bool worker = member < core->workers;
    if (status == PL_OK && worker && join.floats < 1)
        status = PL_FAIL(PL_FORMAT, "join: floats: missing");
    if (status == PL_OK && worker)
        status = check_averages(&join);
    pl_json_free(json); /* the sizes are copies */
    if (status != PL_OK)
        return refuse_join(server, message);
    if (!worker)
        return PL_OK; /* it repeats its JOIN */
    server->trained = join.trained > 0 ? join.trained : join.floats;
    server->average_rate = join.average_rate;
    core->table_first = join.table_first;
    core->table_count = join.table_count;
    core->end_step = join.end_step;
    server->opts.schedule.run_steps = join.run_steps;
    PL_TRY(open_core(server, join.floats));
    tell_step(server);
    return PL_OK;
}

/* The sender knew an earlier process of this server. */
static pl_status say_new(pl_ps_server *server, const pl_message *message)
{
    pl_frame frame = pl_ps_refuse_encode(true, message->frame.sequence);
    frame.generation = message->frame.generation;
    frame.incarnation = message->frame.incarnation;
    return pl_endpoint_send(server->endpoint, message->from, &frame, NULL,
                            false);
}

/* The span has the name of the message: "push". */
static void receive(pl_ps_server *server, const pl_message *message)
{
    uint64_t begin = pl_ticks_now();
    pl_ps_core_receive(server->core, message, core_ns(server));
    traced(server, pl_frame_kind_text(message->frame.kind), begin);
}

static pl_status handle(pl_ps_server *server, const pl_message *message)
{
    if (server->core == NULL && message->frame.kind == PL_FRAME_JOIN)
        PL_TRY(learn_size(server, message));
    if (server->core != NULL)
        receive(server, message);
    else if (message->frame.kind != PL_FRAME_JOIN)
        return say_new(server, message);
    return PL_OK;
}

/* Handle waiting messages, up to a burst; *more: there may be more. */
static pl_status take_messages(pl_ps_server *server, bool *more)
{
    pl_message message;
    *more = true;
    for (int i = 0; i < BURST; i++) {
        pl_status status = pl_endpoint_poll(server->endpoint, &message);
        *more = status != PL_AGAIN;
        if (!*more)
            break;
        PL_TRY(status);
        PL_TRY(handle(server, &message));
    }
    for (int i = 0; server->up != NULL && i < BURST; i++) {
        pl_status status = pl_endpoint_poll(server->up, &message);
        if (status == PL_AGAIN)
            break;
        PL_TRY(status);
        message.from = PL_PEER_COORDINATOR;
        if (server->core != NULL)
            receive(server, &message);
        else if (message.frame.kind == PL_FRAME_REFUSE)
            return PL_FAIL(PL_CLOSED, "ps 0 refused this server: %.*s",
                           (int)message.frame.payload_bytes,
                           (const char *)message.payload);
    }
    return PL_OK;
}

/* Before any worker has joined. */
static pl_status wait_for_first(pl_ps_server *server)
{
    int64_t now = now_ns();
    int64_t limit = server->opts.core.join_ms * 1000000;
    if (now - server->begin_ns > limit)
        return PL_FAIL(PL_TIMEOUT,
                       "no worker joined %s at %s within %lld s "
                       "(--join-timeout)",
                       server->name, pl_ps_server_address(server),
                       (long long)(limit / 1000000000));
    if (now - server->said_ns > SAY_NS) {
        server->said_ns = now;
        pl_log(PL_LOG_INFO, "%s at %s waits for workers (%lld s)", server->name,
               pl_ps_server_address(server),
               (long long)((now - server->begin_ns) / 1000000000));
    }
    return PL_OK;
}

static pl_status tick(pl_ps_server *server)
{
    pl_awake_mark(&server->awake, pl_clock_processor_ns());
    if (server->core == NULL) {
        tell_step(server);
        return wait_for_first(server);
    }
    if (server->opts.interrupt != NULL &&
        atomic_load_explicit(server->opts.interrupt, memory_order_relaxed))
        pl_ps_core_stop(server->core, false, PL_STOP_INTERRUPT);
    pl_ps_core_tick(server->core, core_ns(server));
    tell_step(server);
    return PL_OK;
}

/* Handle a finished disk operation and retry what waited for it; true: an
 * operation is under way. */
static bool look_at_store(pl_ps_server *server)
{
    pl_ps_stored stored;
    if (server->store == NULL || server->core == NULL)
        return false;
    if (pl_ps_store_poll(server->store, &stored))
        pl_ps_core_stored(server->core, &stored, core_ns(server));
    if (pl_ps_core_held(server->core))
        pl_ps_core_retry(server->core, core_ns(server));
    return pl_ps_store_busy(server->store);
}

static bool interrupted_early(const pl_ps_server *server)
{
    return server->core == NULL && server->opts.interrupt != NULL &&
           atomic_load_explicit(server->opts.interrupt, memory_order_relaxed);
}

static bool finished(const pl_ps_server *server)
{
    return server->core != NULL && pl_ps_core_finished(server->core);
}

/* The endpoint had no messages when last polled: sleep without polling
 * again. */
static void wait_messages(pl_ps_server *server, int64_t until_ns)
{
    pl_endpoint *ends[] = { server->endpoint, server->up };
    uint64_t begin = pl_ticks_now();
    pl_endpoint_wait(ends, server->up != NULL ? 2 : 1,
                     (pl_deadline) { pl_clock_real(), until_ns });
    server->waited += pl_ticks_now() - begin;
    traced(server, "wait", begin);
}

static pl_status serve(pl_ps_server *server)
{
    int64_t next_tick = 0, reading = 0;
    while (!finished(server)) {
        bool more;
        PL_TRY(take_messages(server, &more));
        int64_t now = now_ns();
        /* After a long update heartbeats may be waiting: read them before a
         * task is judged silent. */
        if (!more || now < next_tick)
            reading = now;
        if (now >= next_tick && (!more || now - reading > READ_NS)) {
            reading = now;
            next_tick = now + PL_TICK_MS * INT64_C(1000000);
            PL_TRY(tick(server));
        }
        if (interrupted_early(server))
            return PL_FAIL(PL_INTERRUPTED, "interrupted before any worker "
                                           "joined");
        int64_t until = next_tick;
        if (look_at_store(server) && now + STORE_NS < until)
            until = now + STORE_NS;
        if (!more && !finished(server))
            wait_messages(server, until);
        switch_trace(server);
    }
    return pl_ps_core_outcome(server->core);
}

pl_status pl_ps_server_run(pl_ps_server *server, const char *coordinator)
{
    server->begin_ns = server->said_ns = now_ns();
    pl_awake_init(&server->awake, now_ns(), pl_clock_processor_ns());
    server->opts.core.address = pl_ps_server_address(server);
    server->opts.core.coordinator = coordinator;
    if (server->opts.core.index > 0)
        PL_TRY(pl_endpoint_connect(
            &server->up,
            &(pl_endpoint_opts) {
                .address = coordinator,
                .name = server->name,
                .keys = server->opts.keys,
                .self = { PL_PRINCIPAL_PS, server->opts.core.index },
                .beside = server->endpoint,
            }));
    return serve(server);
}

pl_ps_server_view pl_ps_server_look(const pl_ps_server *server)
{
    pl_ps_server_view view = {
        .waited_s = (double)server->waited * pl_ticks_ns() * 1e-9,
        .net = pl_endpoint_count(server->endpoint),
    };
    if (server->core != NULL) {
        pl_ps_core_view core = pl_ps_core_look(server->core, 0);
        view.step = core.step;
        view.initialized = core.initialized;
        view.updates = core.updates;
        view.accepted = core.accepted;
        view.behind = core.behind;
        view.dropped = core.dropped;
        view.run = core.run;
        view.run_job = core.run_job;
        view.skew = core.skew;
    }
    return view;
}

void pl_ps_server_gone(pl_ps_server *server, int32_t worker)
{
    if (server->core != NULL && worker > 0 &&
        worker < server->opts.core.workers)
        pl_ps_core_gone(server->core, worker);
}

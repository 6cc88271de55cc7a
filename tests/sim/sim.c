/* A simulated job: its servers, and the loop over events. */
#include "sim/sim.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "sim/sim_priv.h"
#include "sync/ps/messages/pieces.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Only a job without progress takes longer.  With a slow server, a tenth of
 * all messages lost and a rollback, jobs took 598 s and did something all the
 * time. */
#define LIMIT_NS INT64_C(1200000000000)
/* No wait is longer: for all to join, then for a task to come back... */
#define STILL_NS INT64_C(130000000000)
/* ... but for one that is stuck, ten times its longest time without progress
 * (watch.c): one that was frozen, then cut off, while the clock jumped. */
#define STUCK_NS INT64_C(350000000000)

uint64_t sim_draw(sim *s, uint32_t bound)
{
    return pl_rng_below(s->key, s->draws++, bound);
}

void sim_broken(sim *s, const char *format, ...)
{
    if (!s->result->good)
        return;
    s->result->good = false;
    va_list args;
    va_start(args, format);
    vsnprintf(s->result->why, sizeof s->result->why, format, args);
    va_end(args);
}

void sim_trace(const sim *s, const char *format, ...)
{
    if (!s->verbose)
        return;
    printf("%9.3f ", (double)s->now_ns * 1e-9);
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

/* Peers of a server: one for each life of a worker, a second one for its
 * heartbeats; then the other servers. */
static pl_peer peer_of(const sim_event *event)
{
    if (event->from_ps)
        return event->from == 0
                   ? PL_PEER_COORDINATOR
                   : 1000000 + event->from_life * SIM_SERVERS + event->from;
    return (event->from_life * SIM_TASKS + event->from) * 2 + event->heart;
}

static void send_from_ps(void *context, pl_peer to, const pl_frame *frame,
                         const void *payload, bool lasting)
{
    (void)lasting;
    sim_server *server = context;
    if (to == SIM_INTRUDER) {
        if (frame->kind != PL_FRAME_REFUSE)
            sim_broken(server->sim,
                       "members J3: an intruder was answered by %s",
                       pl_frame_kind_text(frame->kind));
        return;
    }
    sim_event event = {
        .from_ps = true,
        .from = server->index,
        .from_life = server->life,
    };
    if (to == PL_PEER_COORDINATOR) {
        event.to_ps = true;
        event.node = 0;
        event.to_life = server->sim->server[0].life;
    } else if (to >= 1000000) {
        event.to_ps = true;
        event.node = (to - 1000000) % SIM_SERVERS;
        event.to_life = (to - 1000000) / SIM_SERVERS;
    } else if (to >= 0) {
        event.node = to / 2 % SIM_TASKS;
        event.life = to / 2 / SIM_TASKS;
        event.heart = to % 2 != 0;
    } else {
        return;
    }
    sim_send(server->sim, event, frame, payload);
}

/* The supervisor kills a worker that is declared lost and restarts it. */
static void on_lost(void *context, bool is_server, int32_t index)
{
    sim_server *server = context;
    if (is_server)
        return; /* it comes back by itself */
    sim_worker *w = &server->sim->worker[index];
    w->was_lost = true;
    if (w->alive && (!server->sim->by_hand || w->stuck))
        sim_worker_end(w, "declared lost");
}

static const pl_ps_core_ops core_ops = {
    .send = send_from_ps,
    .lost = on_lost,
    .save = sim_disk_save,
    .commit = sim_disk_commit,
    .load = sim_disk_load,
    .cancel = sim_disk_cancel,
    .touch = sim_disk_touch,
};

/* Only a worker knows how many parameters there are. */
static pl_status open_core(sim *s, int32_t index)
{
    sim_server *server = &s->server[index];
    PL_TRY(pl_params_new(&server->shape));
    PL_TRY(pl_params_add(server->shape, "shard", PL_SHAPE(server->count)));
    PL_TRY(pl_params_seal(server->shape));
    PL_TRY(sim_optim(s, &server->optim, server->shape));
    return pl_ps_core_new(&server->core,
                          &(pl_ps_core_opts) {
                              .index = index,
                              .ps = s->servers,
                              .workers = s->workers,
                              .mode = s->mode,
                              .replicas = s->replicas,
                              .staleness = s->staleness,
                              .sum = s->sum,
                              .end_step = s->by_steps ? s->end_step : 0,
                              .evaluator = s->evaluator,
                              .on_loss = s->on_loss,
                              .supervised = !s->by_hand,
                              .join_ms = SIM_JOIN_MS,
                              .first = server->first,
                              .count = server->count,
                              .piece = s->piece,
                              .floats = s->floats,
                              .table_count = s->keyed ? s->floats - 1 : 0,
                              .params = server->params,
                              .optim = server->optim,
                              .schedule = &s->schedule,
                              .kernels = pl_kernels_best(),
                              .life = (uint32_t)server->life,
                              .address = "ps",
                              .started_ms = 1 + s->now_ns / MS_NS,
                              .boot = "boot",
                              .ops = &core_ops,
                              .context = server,
                          },
                          sim_time(s, true, index));
}

static void stop_server(sim_server *server)
{
    if (server->core != NULL)
        sim_disk_die(server);
    pl_ps_core_free(server->core);
    pl_optim_free(server->optim);
    pl_params_free(server->shape);
    server->core = NULL;
    server->optim = NULL;
    server->shape = NULL;
    server->up = false;
    server->life++;
}

bool sim_server_runs(const sim_server *server)
{
    return server->up &&
           (server->core == NULL || !pl_ps_core_finished(server->core));
}

/* A server dies with its memory; a supervisor restarts it. */
static void kill_server(sim *s, int32_t index)
{
    sim_server *server = &s->server[index];
    if (s->worker[0].ended || /* the job is over, nothing is restarted */
        !sim_server_runs(server) ||
        (server->core != NULL && pl_ps_core_outcome(server->core) != PL_OK))
        return;
    s->result->server_kills++;
    sim_trace(s, "ps %d is killed", index);
    stop_server(server);
    sim_at(s, (int64_t)(100 + sim_draw(s, 2000)) * MS_NS,
           (sim_event) { .kind = SIM_START_PS, .node = index });
}

static pl_status start(sim *s)
{
    s->schedule = (pl_schedule) { .lr = 1.0 };
    sim_choose(s);
    for (int32_t j = 0; j < s->servers; j++)
        pl_pieces_shard(s->floats, s->servers, j, &s->server[j].first,
                        &s->server[j].count);
    PL_TRY(sim_truth(s));
    for (int32_t j = 0; j < s->servers; j++)
        sim_at(s, 0, (sim_event) { .kind = SIM_START_PS, .node = j });
    for (int32_t w = 0; w < s->workers; w++)
        sim_at(s, (int64_t)sim_draw(s, 2000) * MS_NS,
               (sim_event) { .kind = SIM_START, .node = w });
    if (s->evaluator)
        sim_at(s, (int64_t)sim_draw(s, 2000) * MS_NS,
               (sim_event) { .kind = SIM_START, .node = SIM_EVALUATOR });
    sim_plan_faults(s);
    return PL_OK;
}

static pl_principal who_is(const sim_event *event)
{
    if (event->from_ps)
        return (pl_principal) { PL_PRINCIPAL_PS, event->from };
    if (event->from == SIM_EVALUATOR)
        return (pl_principal) { PL_PRINCIPAL_EVALUATOR, 0 };
    return (pl_principal) { PL_PRINCIPAL_WORKER, event->from };
}

/* As server.c does: before there is a core, a worker's JOIN makes it, another
 * task repeats its request, and a task that knew an earlier process is notified
 * of the new one. */
static void hand_over(sim *s, sim_server *server, const sim_event *event)
{
    pl_message message = {
        .from = peer_of(event),
        .who = who_is(event),
        .frame = event->frame,
        .payload = event->payload,
    };
    bool joins = event->frame.kind == PL_FRAME_JOIN;
    if (server->core == NULL && joins && !event->from_ps &&
        event->from < s->workers)
        s->status = open_core(s, server->index);
    if (server->core != NULL && s->status == PL_OK) {
        pl_ps_core_receive(server->core, &message,
                           sim_time(s, true, server->index));
        sim_note(s, server);
    } else if (!joins && message.from != PL_PEER_COORDINATOR) {
        pl_frame frame = pl_ps_refuse_encode(true, message.frame.sequence);
        frame.generation = message.frame.generation;
        frame.incarnation = message.frame.incarnation;
        send_from_ps(server, message.from, &frame, NULL, false);
    }
}

/* True: the message keeps waiting, with its payload. */
static bool deliver(sim *s, const sim_event *event)
{
    sim_trace(s,
              "  %s %d -> %s %d: %s, generation %u, incarnation %u, "
              "sequence %llu, step %lld, flags %u",
              event->from_ps ? "ps" : "worker", event->from,
              event->to_ps ? "ps" : "worker", event->node,
              pl_frame_kind_text(event->frame.kind), event->frame.generation,
              event->frame.incarnation,
              (unsigned long long)event->frame.sequence,
              (long long)event->frame.step, event->frame.flags);
    if (event->to_ps) {
        sim_server *server = &s->server[event->node];
        if (server->frozen && event->to_life == server->life) {
            sim_at(s, 100 * MS_NS, *event); /* it waits in the socket */
            return true;
        }
        if (event->to_life == server->life && sim_server_runs(server))
            hand_over(s, server, event);
        return false;
    }
    sim_worker *w = &s->worker[event->node];
    if (!w->alive || w->life != event->life)
        return false;
    if (w->frozen) {
        sim_at(s, 100 * MS_NS, *event); /* it waits in the socket */
        return true;
    }
    sim_worker_receive(w, event);
    return false;
}

/* No worker came, though one that can work is there. */
static bool is_forgotten(const sim *s, const sim_server *server)
{
    const pl_ps_core *first = s->server[0].core;
    if (s->interrupted || s->worker[0].ended)
        return false;
    if (server->index > 0)
        return first != NULL && !pl_ps_core_finished(first) &&
               pl_ps_core_outcome(first) == PL_OK;
    for (int32_t w = 0; w < s->workers; w++)
        if (!s->worker[w].stuck && !s->worker[w].gone)
            return true;
    return false;
}

/* A server waits for the first JOIN as long as --join-timeout. */
static void watch_first(sim *s, sim_server *server)
{
    if (s->now_ns - server->began_ns <= SIM_JOIN_MS * MS_NS &&
        !server->interrupted && !s->worker[0].ended)
        return;
    if (is_forgotten(s, server))
        sim_broken(s, "no worker joined ps %d", server->index);
    sim_trace(s, "ps %d ends: no worker joined", server->index);
    server->gave_up = true;
    stop_server(server);
}

static void tick_ps(sim *s, int32_t index, int32_t life)
{
    sim_server *server = &s->server[index];
    if (server->life != life || !sim_server_runs(server))
        return; /* of an earlier process */
    sim_event next = { .kind = SIM_TICK_PS, .node = index, .life = life };
    if (server->frozen) {
        sim_at(s, 100 * MS_NS, next);
        return;
    }
    if (server->core == NULL) {
        watch_first(s, server);
    } else {
        if (server->interrupted)
            pl_ps_core_stop(server->core, false, PL_STOP_INTERRUPT);
        pl_ps_core_tick(server->core, sim_time(s, true, index));
        sim_note(s, server);
    }
    sim_at(s, PL_TICK_MS * MS_NS, next);
}

static void begin_server(sim *s, int32_t index)
{
    sim_server *server = &s->server[index];
    if (s->worker[0].ended)
        return; /* the job is over */
    server->sim = s;
    server->index = index;
    server->life++;
    server->up = true;
    server->began_ns = s->now_ns;
    server->frozen = server->based = server->loaded = false;
    memset(server->params, 0, sizeof server->params);
    sim_trace(s, "ps %d starts", index);
    sim_at(s, 0,
           (sim_event) {
               .kind = SIM_TICK_PS, .node = index, .life = server->life });
}

static void handle_worker(sim *s, const sim_event *event)
{
    sim_worker *w = &s->worker[event->node];
    if (event->kind == SIM_START) {
        bool wanted =
            !w->alive && !w->gone && !w->ended && w->life == event->life;
        if (wanted && !s->interrupted)
            sim_worker_start(s, event->node);
        s->worker_left = s->worker_left || (wanted && s->interrupted);
    } else if (event->kind == SIM_KILL) {
        if (w->alive && !w->ended) {
            s->result->kills++;
            sim_worker_end(w, "killed");
        }
    } else if (event->kind == SIM_FREEZE) {
        sim_freeze(s, event->node);
    } else if (event->kind == SIM_STICK) {
        sim_stick(s, event->node);
    } else if (!w->alive || w->life != event->life) {
        return; /* of a process that has ended */
    } else if (event->kind == SIM_THAW) {
        sim_trace(s, "worker %d thaws", w->index);
        w->frozen = false;
    } else if (w->frozen) {
        sim_at(s, 100 * MS_NS, *event);
    } else if (event->kind == SIM_COMPUTED) {
        if (event->from == w->turn && !w->stuck) /* not rolled back meanwhile */
            sim_worker_computed(w);
    } else {
        sim_worker_tick(w);
        if (w->alive && w->life == event->life)
            sim_at(s, PL_TICK_MS * MS_NS, *event);
    }
}

static bool all_over(const sim *s)
{
    for (int32_t j = 0; j < s->servers; j++)
        if (s->server[j].core == NULL
                ? !s->worker[0].ended && !s->server[j].gave_up
                : !pl_ps_core_finished(s->server[j].core))
            return false;
    for (int32_t w = 0; w < SIM_TASKS; w++)
        if (s->worker[w].alive)
            return false;
    return true;
}

/* Every wait ends, and some task does something else then. */
static void watch_progress(sim *s)
{
    uint64_t state = 0;
    int64_t most_ns = STILL_NS;
    for (int32_t i = 0; i < s->workers; i++) {
        const sim_worker *w = &s->worker[i];
        if (w->alive && w->stuck)
            most_ns = STUCK_NS;
        state = state * 1000003 + (uint64_t)w->act * 10007 +
                (uint64_t)w->doing * 1009 + (uint64_t)w->course.step * 7 +
                (uint64_t)w->life * 101 + (uint64_t)w->turn;
    }
    if (state != s->state) {
        s->state = state;
        s->moved_ns = s->now_ns;
    } else if (s->now_ns - s->moved_ns > most_ns) {
        sim_broken(s, "watch L3: no task did anything for %lld s",
                   (long long)(most_ns / 1000000000));
    }
}

static void run_events(sim *s)
{
    sim_event event;
    while (s->status == PL_OK && s->result->good && !all_over(s) &&
           sim_next(s, &event)) {
        bool kept = false;
        s->result->events++;
        watch_progress(s);
        if (s->now_ns > LIMIT_NS)
            sim_broken(
                s, "watch L3, L5: the job neither ended nor failed in %lld s",
                (long long)(LIMIT_NS / 1000000000));
        else if (event.kind == SIM_DELIVER)
            kept = deliver(s, &event);
        else if (event.kind == SIM_TICK_PS)
            tick_ps(s, event.node, event.life);
        else if (event.kind == SIM_KILL_PS)
            kill_server(s, event.node);
        else if (event.kind == SIM_START_PS)
            begin_server(s, event.node);
        else if (event.kind == SIM_FREEZE_PS)
            sim_freeze_server(s, event.node);
        else if (event.kind == SIM_THAW_PS)
            sim_thaw_server(s, event.node, event.life);
        else if (event.kind == SIM_INTERRUPT)
            sim_interrupt(s, event.node);
        else if (event.kind == SIM_INTRUDE)
            sim_intrude(s, event.node);
        else if (event.kind == SIM_STORED)
            sim_disk_done(s, event.node, event.life);
        else
            handle_worker(s, &event);
        if (!kept)
            free(event.payload);
    }
}

pl_status pl_sim_run(const pl_sim_opts *opts, pl_sim_result *result)
{
    sim *s;
    *result = (pl_sim_result) { .good = true };
    PL_TRY(PL_NEW(s, 1));
    s->key = pl_rng_key_text(opts->seed, "simulation");
    s->result = result;
    s->verbose = opts->verbose;
    s->by_hand = opts->by_hand;
    s->status = start(s);
    if (s->status == PL_OK) {
        sim_trace(s, "%s", result->setting);
        run_events(s);
    }
    if (s->status == PL_OK)
        sim_check_end(s);
    for (int32_t w = 0; w < SIM_TASKS; w++)
        pl_ps_worker_free(s->worker[w].machine);
    for (int32_t j = 0; j < SIM_SERVERS; j++)
        stop_server(&s->server[j]);
    sim_net_close(s);
    pl_status status = s->status;
    pl_mem_free(s);
    return status;
}

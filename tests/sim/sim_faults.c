/* What the seed chose, and what goes wrong when. */
#include "sim/sim_priv.h"

#include <stdio.h>
#include <string.h>

static int32_t nodes(const sim *s)
{
    return s->servers + s->workers;
}

int32_t sim_node(const sim *s, bool is_ps, int32_t index)
{
    return is_ps ? index : s->servers + index;
}

/* Single workers are cut off, and groups of nodes from each other. */
static void choose_cuts(sim *s)
{
    for (int32_t w = 0; w < s->workers; w++)
        if (sim_draw(s, 5) == 0) {
            sim_cut *cut = &s->cut[s->cuts++];
            cut->group = UINT32_C(1) << sim_node(s, false, w);
        }
    if (sim_draw(s, 6) == 0)
        s->cut[s->cuts++].group =
            (uint32_t)sim_draw(s, UINT32_C(1) << nodes(s));
    for (int32_t i = 0; i < s->cuts; i++) {
        s->cut[i].one_way = sim_draw(s, 2) == 0;
        s->cut[i].from_ns = (int64_t)sim_draw(s, 3000) * MS_NS;
        s->cut[i].to_ns =
            s->cut[i].from_ns + (int64_t)sim_draw(s, 9000) * MS_NS;
    }
    s->result->cuts = s->cuts;
}

/* Every node has its own time; now and then it jumps, as that of a machine
 * that slept, or back.  Some nodes are slow in all they do. */
static void choose_clocks(sim *s)
{
    for (int32_t i = 0; i < SIM_NODES; i++) {
        s->clock[i] = (sim_clock) {
            .offset_ns = (int64_t)sim_draw(s, 1000000) * MS_NS,
            .drift = (int32_t)sim_draw(s, 41) - 20,
            .slow = sim_draw(s, 8) == 0 ? 10 : 1,
        };
        if (sim_draw(s, 12) != 0)
            continue;
        s->clock[i].jump_at_ns = (int64_t)sim_draw(s, 4000) * MS_NS;
        s->clock[i].jump_ns = ((int64_t)sim_draw(s, 18000) - 6000) * MS_NS;
    }
}

int64_t sim_time(const sim *s, bool is_ps, int32_t index)
{
    const sim_clock *clock = &s->clock[sim_node(s, is_ps, index)];
    int64_t now = s->now_ns + s->now_ns / 1000 * clock->drift;
    if (s->now_ns >= clock->jump_at_ns)
        now += clock->jump_ns;
    if (is_ps) /* what it slept is not the others' silence (awake.h) */
        now -= s->server[index].slept_ns;
    return now + clock->offset_ns;
}

void sim_choose(sim *s)
{
    static const char *const modes[] = { "sync", "async", "ssp" };
    static const char *const losses[] = { "wait", "continue", "abort" };
    s->workers = 1 + (int32_t)sim_draw(s, SIM_WORKERS);
    s->servers = 1 + (int32_t)sim_draw(s, SIM_SERVERS);
    s->mode = (pl_ps_mode)sim_draw(s, 3);
    s->replicas = s->workers;
    if (s->mode == PL_PS_SYNC && sim_draw(s, 3) == 0)
        s->replicas = 1 + (int32_t)sim_draw(s, (uint32_t)s->workers);
    s->staleness = (int32_t)sim_draw(s, 4);
    s->on_loss = s->mode == PL_PS_SYNC && sim_draw(s, 3) > 0
                     ? PL_ON_LOSS_WAIT
                     : PL_ON_LOSS_CONTINUE;
    if (sim_draw(s, 12) == 0)
        s->on_loss = PL_ON_LOSS_ABORT;
    s->sum = sim_draw(s, 2) == 0;
    s->by_steps = s->mode == PL_PS_SYNC || sim_draw(s, 2) == 0;
    s->end_step = 5 + (int64_t)sim_draw(s, SIM_STEPS - 5);
    int64_t epochs = 1 + (int64_t)sim_draw(s, 2);
    s->per_epoch = 3 + (int64_t)sim_draw(s, epochs == 1 ? 20 : 10);
    s->own_steps = epochs * s->per_epoch;
    s->keyed = sim_draw(s, 3) == 0;
    s->stops_early = sim_draw(s, 6) == 0;
    s->piece = sim_draw(s, 2) == 0 ? 8 : 64;
    s->floats = 20 + (int64_t)sim_draw(s, SIM_FLOATS - 20);
    if (s->floats < 16 * s->servers)
        s->floats = 16 * s->servers;
    static const uint32_t chances[] = { 0, 0, 10, 100 };
    s->loss = chances[sim_draw(s, 4)];
    s->doubling = chances[sim_draw(s, 4)];
    s->delay_ns = (int64_t)(1 + sim_draw(s, 50)) * MS_NS;
    s->evaluator = sim_draw(s, 4) == 0;
    /* A gradient of 0 changes neither what adagrad nor what ftrl keeps, so a
     * step of one process is the same without keys. */
    static const char *const keyed[] = { "adagrad", "ftrl" };
    s->optim = !sim_exact(s) || sim_draw(s, 3) != 0 ? "sgd"
               : s->keyed                           ? keyed[sim_draw(s, 2)]
                                                    : "adam";
    choose_cuts(s);
    choose_clocks(s);
    s->disk.slow_ms = sim_draw(s, 3) == 0 ? 3000 : 20;
    s->disk.small_pool = sim_draw(s, 2) == 0;
    s->disk.failing = chances[sim_draw(s, 4)];
    snprintf(s->result->setting, sizeof s->result->setting,
             "%s%s, %d workers, %d ps%s, %s, replicas %d, staleness %d, %s, on "
             "loss %s, %lld %s, piece %lld of %lld, loss %u, doubling %u, "
             "delay %lld ms%s",
             modes[s->mode], s->keyed ? ", keyed" : "", s->workers, s->servers,
             s->evaluator ? ", evaluator" : "", s->optim, s->replicas,
             s->staleness, s->sum ? "sum" : "mean", losses[s->on_loss],
             (long long)(s->by_steps ? s->end_step : s->own_steps),
             s->by_steps ? "steps" : "steps each", (long long)s->piece,
             (long long)s->floats, s->loss, s->doubling,
             (long long)(s->delay_ns / MS_NS),
             s->stops_early ? ", stops early" : "");
}

/* No task waits in vain for a worker that does not come back. */
static bool can_do_without(const sim *s)
{
    return !s->by_hand || s->on_loss == PL_ON_LOSS_CONTINUE;
}

/* Lose the chief or a server while a checkpoint is written. */
void sim_plan_save_fault(sim *s)
{
    if (sim_draw(s, 12) != 0)
        return;
    int32_t who = (int32_t)sim_draw(s, (uint32_t)s->servers + 1);
    sim_event event = {
        .kind = who < s->servers ? SIM_KILL_PS : SIM_KILL,
        .node = who < s->servers ? who : 0,
    };
    sim_at(s, (int64_t)sim_draw(s, 1 + s->disk.slow_ms) * MS_NS, event);
}

/* Lose a worker in the middle of a push. */
void sim_plan_push_fault(sim *s, int32_t worker)
{
    if (sim_draw(s, 100) == 0)
        sim_at(s, (int64_t)sim_draw(s, 2000) * s->delay_ns / 1000,
               (sim_event) { .kind = SIM_KILL, .node = worker });
}

void sim_plan_faults(sim *s)
{
    if (sim_draw(s, 6) == 0)
        sim_at(s, (int64_t)sim_draw(s, 4000) * MS_NS,
               (sim_event) {
                   .kind = SIM_FREEZE_PS,
                   .node = (int32_t)sim_draw(s, (uint32_t)s->servers),
               });
    if (sim_draw(s, 8) == 0 && can_do_without(s))
        sim_at(s, (int64_t)sim_draw(s, 3000) * MS_NS,
               (sim_event) {
                   .kind = SIM_STICK,
                   .node = (int32_t)sim_draw(s, (uint32_t)s->workers),
               });
    if (s->evaluator && sim_draw(s, 2) == 0)
        sim_at(s, (int64_t)sim_draw(s, 4000) * MS_NS,
               (sim_event) {
                   .kind = sim_draw(s, 2) == 0 ? SIM_KILL : SIM_FREEZE,
                   .node = SIM_EVALUATOR,
               });
    if (sim_draw(s, 3) == 0)
        sim_at(s, (int64_t)sim_draw(s, 4000) * MS_NS,
               (sim_event) {
                   .kind = SIM_KILL_PS,
                   .node = (int32_t)sim_draw(s, (uint32_t)s->servers),
               });
    uint32_t count = (uint32_t)sim_draw(s, 4);
    for (uint32_t i = 0; i < count; i++) {
        sim_event event = {
            .kind = sim_draw(s, 2) == 0 ? SIM_KILL : SIM_FREEZE,
            .node = (int32_t)sim_draw(s, (uint32_t)s->workers),
        };
        sim_at(s, (int64_t)sim_draw(s, 4000) * MS_NS, event);
    }
    for (uint32_t i = (uint32_t)sim_draw(s, 3); i > 0; i--)
        sim_at(s, (int64_t)sim_draw(s, 6000) * MS_NS,
               (sim_event) {
                   .kind = SIM_INTRUDE,
                   .node = (int32_t)sim_draw(s, (uint32_t)s->servers),
               });
    if (sim_draw(s, 8) != 0)
        return;
    /* Ctrl-C reaches the servers in turn, or only one. */
    int64_t at = (int64_t)sim_draw(s, 4000) * MS_NS;
    int32_t only = (int32_t)sim_draw(s, 2 * (uint32_t)s->servers);
    for (int32_t j = 0; j < s->servers; j++)
        if (only >= s->servers || only == j)
            sim_at(s, at + (int64_t)sim_draw(s, 300) * MS_NS,
                   (sim_event) { .kind = SIM_INTERRUPT, .node = j });
}

void sim_freeze(sim *s, int32_t worker)
{
    sim_worker *w = &s->worker[worker];
    if (!w->alive || w->ended)
        return;
    s->result->freezes++;
    w->frozen = true;
    sim_trace(s, "worker %d is frozen", worker);
    sim_at(s, (int64_t)sim_draw(s, 12000) * MS_NS,
           (sim_event) { .kind = SIM_THAW, .node = worker, .life = w->life });
}

/* A server is stopped: it receives, sends and does nothing for a while. */
void sim_freeze_server(sim *s, int32_t index)
{
    sim_server *server = &s->server[index];
    if (!sim_server_runs(server) || server->frozen || s->worker[0].ended)
        return;
    s->result->freezes++;
    server->frozen = true;
    server->frozen_ns = s->now_ns;
    sim_trace(s, "ps %d is frozen", index);
    sim_at(s, (int64_t)sim_draw(s, 12000) * MS_NS,
           (sim_event) {
               .kind = SIM_THAW_PS, .node = index, .life = server->life });
}

void sim_thaw_server(sim *s, int32_t index, int32_t life)
{
    sim_server *server = &s->server[index];
    if (!server->frozen || server->life != life)
        return;
    sim_trace(s, "ps %d thaws", index);
    server->frozen = false;
    server->slept_ns += s->now_ns - server->frozen_ns;
}

/* A worker computes forever, by its heartbeats: not in its first step, before
 * which they report that it waits.  The chief does not: without it no worker
 * continues. */
void sim_stick(sim *s, int32_t worker)
{
    sim_worker *w = &s->worker[worker];
    if (!w->alive || w->act != PL_ACT_STEP || w->phase != PL_PHASE_COMPUTING ||
        w->doing != SIM_COMPUTING || (w->index == 0 && s->by_hand))
        return;
    sim_trace(s, "worker %d is stuck", worker);
    w->stuck = w->was_stuck = true;
}

void sim_interrupt(sim *s, int32_t server)
{
    if (!sim_server_runs(&s->server[server]))
        return;
    sim_trace(s, "ps %d is interrupted", server);
    s->server[server].interrupted = s->interrupted = true;
}

/* A sender whose key is not that of the task it claims to be is a stranger: it
 * claims a worker's place, its life and its gradients. */
void sim_intrude(sim *s, int32_t index)
{
    static const pl_frame_kind kinds[] = { PL_FRAME_JOIN, PL_FRAME_HEARTBEAT,
                                           PL_FRAME_PUSH, PL_FRAME_BYE,
                                           PL_FRAME_SAVE };
    sim_server *server = &s->server[index];
    int32_t worker = (int32_t)sim_draw(s, (uint32_t)s->workers);
    const sim_worker *victim = &s->worker[worker];
    char text[96];
    if (server->core == NULL || pl_ps_core_finished(server->core) ||
        victim->machine == NULL)
        return;
    pl_ps_client_view view = sim_view(victim);
    snprintf(text, sizeof text,
             "{\"role\": \"worker\", \"index\": %d, \"job\": \"\"}", worker);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        pl_message message = {
            .from = SIM_INTRUDER,
            .who = { PL_PRINCIPAL_WORKER, worker + 1 },
            .frame = {
                .kind = kinds[i],
                .generation = view.generation,
                .incarnation =
                    kinds[i] == PL_FRAME_JOIN ? 0 : view.incarnation,
                .sequence = 1000000,
                .step = view.step,
                .payload_bytes = (uint32_t)strlen(text),
            },
            .payload = text,
        };
        pl_ps_core_receive(server->core, &message, sim_time(s, true, index));
    }
    s->result->intrusions++;
}

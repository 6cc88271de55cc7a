/* A worker of a simulated job: what the training loop does, without computing;
 * and the evaluator. */
#include "base/rng.h"
#include "dist/sim/sim_priv.h"

#include <stdio.h>
#include <string.h>

#define HEART_NS   (1000 * MS_NS)
#define SILENCE_NS (5000 * MS_NS)
#define JOIN_NS    (60000 * MS_NS)

int32_t sim_counter(const sim *s, int64_t element)
{
    for (int32_t j = 0; j < s->servers; j++) {
        int64_t at = element - s->server[j].first;
        if (at >= 0 && at < s->workers)
            return (int32_t)at;
    }
    return -1;
}

/* In sync.  On each server element w counts worker w's gradients (exactly, with
 * a learning rate of 1); the others depend on the parameters and on what the
 * worker reads. */
void sim_gradient(const sim *s, int32_t worker, int64_t index,
                  const float *params, float *grad)
{
    uint64_t key = pl_rng_key(pl_rng_key(s->key, 77), (uint64_t)worker);
    key = pl_rng_key(key, (uint64_t)index);
    for (int64_t i = 0; i < s->floats; i++)
        if (sim_counter(s, i) >= 0)
            grad[i] = sim_counter(s, i) == worker ? -1.0f : 0.0f;
        else
            grad[i] = 0.125f * params[i] +
                      (float)pl_rng_uniform(key, (uint64_t)i) - 0.5f;
}

/* What this worker takes the time to be. */
static int64_t now(const sim_worker *w)
{
    return sim_time(w->sim, false, w->index);
}

static void send_to_ps(void *context, int32_t ps, const pl_frame *frame,
                       const void *payload, bool lasting)
{
    (void)lasting;
    sim_worker *w = context;
    sim_send(w->sim,
             (sim_event) { .node = ps,
                           .to_ps = true,
                           .to_life = w->sim->server[ps].life,
                           .from = w->index,
                           .from_life = w->life },
             frame, payload);
}

static const pl_ps_client_ops client_ops = { .send = send_to_ps };

void sim_worker_start(sim *s, int32_t worker)
{
    sim_worker *w = &s->worker[worker];
    pl_ps_client_free(w->client);
    w->client = NULL;
    w->sim = s;
    w->index = worker;
    w->life++;
    w->alive = true;
    w->frozen = w->stuck = w->half = w->leaving = false;
    w->astray = w->asked = false;
    w->reads = worker;
    w->stage = SIM_JOINING;
    w->heart_ns = 0;
    w->beat_ns = now(w);
    memset(w->params, 0, sizeof w->params);
    bool evaluates = worker == SIM_EVALUATOR;
    pl_ps_client_opts opts = {
        .role = evaluates ? "evaluator" : "worker",
        .index = evaluates ? 0 : worker,
        .host = "node",
        .process = 100 + w->life,
        .started_ms = 1 + (s->now_ns - w->booted_ns) / MS_NS,
        .ps = s->servers,
        .workers = s->workers,
        .mode = s->mode,
        .count = s->floats,
        .piece = s->piece,
        .params = w->params,
        .ops = &client_ops,
        .context = w,
    };
    snprintf(opts.boot, sizeof opts.boot, "boot %d", w->boots);
    pl_status status = pl_ps_client_new(&w->client, &opts, now(w));
    if (status != PL_OK) {
        s->status = status;
        return;
    }
    sim_trace(s, "worker %d starts (life %d)", worker, w->life);
    pl_ps_client_join(w->client);
    sim_at(s, MS_NS,
           (sim_event) {
               .kind = SIM_TICK_WORKER, .node = worker, .life = w->life });
}

/* The process ends; a supervisor starts it anew unless it was done. */
void sim_worker_end(sim_worker *w, const char *why)
{
    sim *s = w->sim;
    if (!w->alive)
        return;
    sim_trace(s, "worker %d ends: %s", w->index, why);
    w->alive = false;
    w->life++;
    /* When the chief has ended well nobody is started again. */
    const pl_ps_core *core = s->server[0].core;
    bool over = s->worker[0].stage == SIM_GONE ||
                (core != NULL && (pl_ps_core_finished(core) ||
                                  pl_ps_core_outcome(core) != PL_OK));
    /* By hand nobody may start it again; its machine may have been booted. */
    w->gone = w->stage != SIM_GONE && s->by_hand && w->index > 0 &&
              s->on_loss == PL_ON_LOSS_CONTINUE && sim_draw(s, 4) == 0;
    if (sim_draw(s, 4) == 0) {
        w->boots++;
        w->booted_ns = s->now_ns;
    }
    s->worker_left =
        s->worker_left || (w->stage != SIM_GONE && !over && s->interrupted);
    if (w->stage != SIM_GONE && !w->gone && !over && !s->interrupted)
        sim_at(s, (int64_t)(200 + sim_draw(s, 1000)) * MS_NS,
               (sim_event) {
                   .kind = SIM_START, .node = w->index, .life = w->life });
}

static void begin_compute(sim_worker *w)
{
    sim *s = w->sim;
    w->stage = SIM_COMPUTING;
    w->half = false;
    sim_check_compute(w);
    sim_check_staleness(w);
    uint32_t slow = s->clock[sim_node(s, false, w->index)].slow;
    sim_at(s, (int64_t)(slow * (1 + sim_draw(s, 40))) * MS_NS,
           (sim_event) { .kind = SIM_COMPUTED,
                         .node = w->index,
                         .life = w->life,
                         .from = w->turn });
}

static void leave(sim_worker *w)
{
    if (w->index == 0) {
        w->stage = SIM_LAST_PULL;
        pl_ps_client_pull(w->client, PL_PULL_FINAL, 0);
    } else {
        w->stage = SIM_LEAVING;
        pl_ps_client_bye(w->client, "{}");
    }
}

/* Has it read what it reads to the end, or does it not know where it is? */
static bool asks_for_a_share(const sim_worker *w)
{
    const sim *s = w->sim;
    if (s->by_steps)
        return false;
    if (w->astray)
        return true;
    if (w->reads != w->index)
        return w->other_own >= s->own_steps;
    return w->own >= s->own_steps && !w->asked;
}

static void ask_for_a_share(sim_worker *w)
{
    w->stage = SIM_SHARING;
    pl_ps_client_share(w->client, w->own,
                       w->index == 0 && w->own >= w->sim->own_steps);
}

static bool done_by_itself(const sim_worker *w)
{
    return !w->sim->by_steps && w->reads == w->index &&
           w->own >= w->sim->own_steps;
}

/* First it is asked what became of the one before. */
static void begin_save(sim_worker *w, sim_saving why)
{
    w->saving = why;
    w->saved_first = true;
    w->stage = SIM_LOOKING;
    pl_ps_client_look_saved(w->client, why != SIM_SAVE_ON);
}

static void goodbye(sim_worker *w)
{
    w->stage = SIM_LEAVING;
    pl_ps_client_bye(w->client, "{}");
}

/* With or without a checkpoint. */
static void after_save(sim_worker *w)
{
    if (w->saving == SIM_SAVE_LAST) {
        goodbye(w);
        return;
    }
    w->stage = SIM_PULLING; /* the job may have gone on before it stopped */
    pl_ps_client_pull(w->client, 0, 0);
}

static void after_look(sim_worker *w, pl_ps_client_view view)
{
    if (view.saved == PL_SAVED_WRITING) {
        after_save(w);
        return;
    }
    w->stage = SIM_FREEZING;
    pl_ps_client_freeze(w->client);
}

/* All wait: the folder is made, and all servers begin. */
static void start_saving(sim_worker *w, pl_ps_client_view view)
{
    sim *s = w->sim;
    int32_t serial =
        sim_disk_begin(s, view.step, pl_ps_client_counts(w->client));
    sim_trace(s, "checkpoint %d of step %lld", serial, (long long)view.step);
    w->stage = SIM_SAVING;
    pl_ps_client_save(w->client, view.step, sim_disk_plan(w->plan, serial));
}

static void after_thaw(sim_worker *w)
{
    if (w->saving == SIM_SAVE_ON) {
        after_save(w);
        return;
    }
    w->stage = SIM_WRITTEN;
    pl_ps_client_look_saved(w->client, true);
}

/* After a step the chief may look at the parameters, and may have seen
 * enough. */
static void after_push(sim_worker *w, pl_ps_client_view view)
{
    bool over = (view.answer & PL_ANSWER_STOP) != 0;
    if (!over && asks_for_a_share(w)) {
        ask_for_a_share(w);
    } else if (over || done_by_itself(w)) {
        leave(w);
    } else if (w->index == 0 && view.step == 0 && !w->saved_first) {
        begin_save(w, SIM_SAVE_FIRST);
    } else if (w->index == 0 && view.step >= w->saved + 7) {
        w->saved = view.step;
        begin_save(w, SIM_SAVE_ON);
    } else if (w->index == 0 && view.step >= w->evaluated + 10) {
        w->evaluated = view.step;
        w->stage = SIM_PAUSING;
        pl_ps_client_pause(w->client);
    } else {
        begin_compute(w);
    }
}

static void after_share(sim_worker *w, pl_ps_client_view view)
{
    bool astray = w->astray, was_out = w->reads != w->index;
    w->reads = view.share;
    w->astray = false;
    if (view.share != w->index) {
        w->other_own = view.share_own;
    } else {
        if (was_out || astray)
            w->own = view.share_own;
        w->asked = !astray;
    }
    after_push(w, view);
}

static void after_pause(sim_worker *w)
{
    w->stage = SIM_EVALUATING;
    pl_ps_client_pull(w->client, 0, 0);
}

static void after_evaluation(sim_worker *w, pl_ps_client_view view)
{
    sim *s = w->sim;
    sim_check_compute(w);
    if ((view.answer & PL_ANSWER_STOP) != 0) {
        leave(w);
    } else if (s->stops_early && view.step >= s->end_step / 2) {
        w->stage = SIM_STOPPING;
        pl_ps_client_stop(w->client, false, "stop_loss");
    } else {
        begin_compute(w);
    }
}

/* A server is gone: start over with those that are there. */
static void rejoin(sim_worker *w, const char *why)
{
    sim_trace(w->sim, "worker %d joins anew: %s", w->index, why);
    w->leaving = w->stage == SIM_LEAVING;
    if (w->index == 0 && !w->leaving)
        w->sim->has_final = false;
    w->stage = SIM_JOINING;
    w->half = w->stuck = w->astray = w->asked = false;
    w->reads = w->index;
    w->turn++;
    w->sim->turns++;
    w->beat_ns = now(w);
    pl_ps_client_join(w->client);
}

/* The chief lets the servers read what they lost, or gives them the first
 * parameters. */
static void restore(sim_worker *w)
{
    sim *s = w->sim;
    const sim_checkpoint *last = sim_disk_newest(s);
    w->stage = SIM_INITIALIZING;
    /* A chief that was started anew goes on from before the end that one
     * before it had got to. */
    if (!w->leaving)
        s->has_final = false;
    if (last == NULL) {
        memcpy(w->params, s->truth[0], sizeof w->params);
        w->saved_first = false;
        w->saved = w->evaluated = 0;
        pl_ps_client_init(w->client, 0);
        return;
    }
    w->saved = w->evaluated = last->step;
    pl_ps_client_load(w->client, last->step, last->counts,
                      sim_disk_plan(w->plan, last->serial));
}

/* The job lets nobody in: who was done, and waited for a goodbye, may go. */
static void give_up(sim_worker *w, const char *why)
{
    if (w->leaving) {
        w->stage = SIM_GONE;
        w->was_lost = true; /* what is made anew is made without it */
    }
    sim_worker_end(w, why);
}

/* What became of the gradient. */
static void note_told(sim_worker *w, pl_ps_client_view view)
{
    bool dropped = (view.answer & PL_ANSWER_DROPPED) != 0;
    if (dropped)
        w->dropped++;
    else
        w->applied++;
    sim_note_told(w, dropped);
    if (dropped)
        w->astray = true;
    else if (w->reads != w->index)
        w->other_own++;
    if (w->reads == w->index)
        w->own = view.own;
}

/* The evaluator pulls, tests, and pulls when the job is further. */
static void advance_evaluator(sim_worker *w, pl_ps_client_view view)
{
    if (w->stage == SIM_LEAVING) {
        w->stage = SIM_GONE;
        sim_worker_end(w, "done");
    } else if (w->stage == SIM_PULLING && (view.answer & PL_ANSWER_STOP) != 0) {
        goodbye(w);
    } else if (w->stage == SIM_PULLING) {
        sim_check_compute(w);
        w->stage = SIM_COMPUTING;
        sim_at(w->sim, (int64_t)sim_draw(w->sim, 300) * MS_NS,
               (sim_event) { .kind = SIM_COMPUTED,
                             .node = w->index,
                             .life = w->life,
                             .from = w->turn });
    } else {
        w->stage = SIM_PULLING;
        pl_ps_client_pull(w->client, 0, 0);
    }
}

static void advance(sim_worker *w)
{
    if (!w->alive)
        return;
    if (pl_ps_client_rolled(w->client)) {
        rejoin(w, "rolled back");
        return;
    }
    if (pl_ps_client_outcome(w->client) != PL_OK) {
        give_up(w, pl_error_message());
        return;
    }
    if (pl_ps_client_busy(w->client) || w->stage == SIM_COMPUTING ||
        w->stage == SIM_GONE)
        return;
    pl_ps_client_view view = pl_ps_client_look(w->client);
    w->progress++;
    if (w->index == SIM_EVALUATOR) {
        advance_evaluator(w, view);
        return;
    }
    switch (w->stage) {
    case SIM_JOINING:
        if (w->index == 0 && !view.initialized) {
            restore(w);
            break;
        }
        w->stage = SIM_PULLING;
        pl_ps_client_pull(w->client, 0, 0);
        break;
    case SIM_INITIALIZING:
        w->stage = SIM_PULLING;
        pl_ps_client_pull(w->client, 0, 0);
        break;
    case SIM_PULLING:
        w->own = view.own;
        after_push(w, view);
        break;
    case SIM_SHARING:
        after_share(w, view);
        break;
    case SIM_PUSHING:
        note_told(w, view);
        after_push(w, view);
        break;
    case SIM_PAUSING:
        after_pause(w);
        break;
    case SIM_EVALUATING:
        after_evaluation(w, view);
        break;
    case SIM_LOOKING:
        after_look(w, view);
        break;
    case SIM_FREEZING:
        start_saving(w, view);
        break;
    case SIM_SAVING:
        w->stage = SIM_THAWING;
        pl_ps_client_thaw(w->client);
        break;
    case SIM_THAWING:
        after_thaw(w);
        break;
    case SIM_WRITTEN:
        after_save(w);
        break;
    case SIM_STOPPING:
        leave(w);
        break;
    case SIM_LAST_PULL:
        w->sim->has_final = true;
        memcpy(w->sim->final, w->params, sizeof w->params);
        begin_save(w, SIM_SAVE_LAST);
        break;
    case SIM_LEAVING:
        w->stage = SIM_GONE;
        sim_worker_end(w, "done");
        break;
    case SIM_COMPUTING:
    case SIM_GONE:
        break;
    }
}

static void make_gradient(sim_worker *w, pl_ps_client_view view)
{
    sim *s = w->sim;
    if (s->mode == PL_PS_SYNC) {
        sim_gradient(s, w->index, view.step, w->params, w->grad);
        return;
    }
    if (w->pushed + 1 == SIM_PUSHES) {
        sim_broken(s, "worker %d makes gradients without end", w->index);
        return;
    }
    bool own = w->reads == w->index;
    w->pushes[++w->pushed] = (sim_push) {
        .share = w->reads,
        .position = own ? w->own : w->other_own,
        .generation = view.generation,
        .life = s->server[0].life,
    };
    sim_stamp(s, w->index, w->pushed, w->grad);
}

void sim_worker_computed(sim_worker *w)
{
    sim *s = w->sim;
    pl_ps_client_view view = pl_ps_client_look(w->client);
    w->progress++;
    if (w->index == SIM_EVALUATOR) {
        w->stage = SIM_PULLING;
        pl_ps_client_pull(w->client, 0, view.step + 3);
        return;
    }
    if (!w->half) {
        make_gradient(w, view);
        pl_ps_client_push(w->client, view.step, w->grad);
        w->half = true;
        sim_plan_push_fault(s, w->index);
        pl_ps_client_ready(w->client, s->floats / 2);
        sim_at(s, (int64_t)sim_draw(s, 10) * MS_NS,
               (sim_event) { .kind = SIM_COMPUTED,
                             .node = w->index,
                             .life = w->life,
                             .from = w->turn });
        return;
    }
    w->stage = SIM_PUSHING;
    pl_ps_client_ready(w->client, 0);
    advance(w);
}

void sim_worker_receive(sim_worker *w, const sim_event *event)
{
    pl_message message = { .frame = event->frame, .payload = event->payload };
    if (w->stuck)
        return;
    if (w->stage != SIM_JOINING || event->frame.kind == PL_FRAME_WELCOME)
        w->beat_ns = now(w);
    if (!event->heart)
        pl_ps_client_receive(w->client, event->from, &message, now(w));
    else if (event->frame.kind == PL_FRAME_REFUSE &&
             (event->frame.flags & PL_REFUSE_UNKNOWN) == 0)
        sim_worker_end(w, "a newer process has taken its place");
    else if (event->frame.kind == PL_FRAME_REFUSE && w->stage != SIM_JOINING)
        rejoin(w, "server 0 is new");
    else if (event->frame.generation >
                 pl_ps_client_look(w->client).generation &&
             w->stage != SIM_JOINING)
        rejoin(w, "a heart heard of a new generation");
    advance(w);
}

static pl_phase phase_of(const sim_worker *w)
{
    return w->stage == SIM_COMPUTING    ? PL_PHASE_COMPUTING
           : w->stage == SIM_EVALUATING ? PL_PHASE_EVALUATING
                                        : PL_PHASE_WAITING;
}

void sim_worker_tick(sim_worker *w)
{
    sim *s = w->sim;
    if (!w->stuck)
        pl_ps_client_tick(w->client, now(w));
    pl_ps_client_view view = pl_ps_client_look(w->client);
    if (w->stage != SIM_JOINING && now(w) - w->heart_ns >= HEART_NS) {
        w->heart_ns = now(w);
        sim_send(s,
                 (sim_event) { .node = 0,
                               .to_ps = true,
                               .heart = true,
                               .to_life = s->server[0].life,
                               .from = w->index,
                               .from_life = w->life },
                 &(pl_frame) { .kind = PL_FRAME_HEART,
                               .incarnation = view.incarnation,
                               .step = view.step,
                               .value = { phase_of(w), w->progress } },
                 NULL);
    }
    if (w->stuck) { /* until somebody puts an end to it */
        const pl_ps_core *first = s->server[0].core;
        if (first != NULL && pl_ps_core_finished(first))
            sim_worker_end(w, "stuck, and the job is over");
        return;
    }
    if (w->stage != SIM_JOINING && now(w) - w->beat_ns > SILENCE_NS)
        rejoin(w, "server 0 was not heard for 5 s");
    else if (w->stage == SIM_JOINING && now(w) - w->beat_ns > JOIN_NS)
        give_up(w, "nobody let it join");
    else
        advance(w);
}

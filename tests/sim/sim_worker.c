/* The tasks of a simulated job: the real worker machine (worker.h), the real
 * course of a training (course.h) and the real heartbeat (pulse.h), fed from
 * the queue of events.  Only their input is made up here: how long computing
 * takes, what a gradient is, what a test finds. */
#include "base/mem.h"
#include "sim/sim_priv.h"

#include <stdio.h>
#include <string.h>

static int64_t now(const sim_worker *w)
{
    return sim_time(w->sim, false, w->index);
}

pl_ps_client_view sim_view(const sim_worker *w)
{
    return pl_ps_worker_look(w->machine).client;
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

static pl_status on_joined(void *context)
{
    sim_worker *w = context;
    pl_ps_client_view view = sim_view(w);
    w->member = true;
    w->told_step = w->progress = 0; /* as a new heartbeat begins */
    w->phase = PL_PHASE_JOINING;
    /* What it ended with is undone, or will be pulled again. */
    if (w->index == 0)
        w->sim->has_final = false;
    pl_pulse_init(&w->pulse,
                  &(pl_pulse_opts) { .address = "ps",
                                     .incarnation = view.incarnation,
                                     .generation = view.generation },
                  now(w));
    return PL_OK;
}

static void on_parted(void *context)
{
    ((sim_worker *)context)->member = false;
}

static void on_tell(void *context, int64_t step, pl_phase phase)
{
    sim_worker *w = context;
    w->told_step = step;
    w->phase = phase;
    w->progress++;
}

static void on_located(void *context, uint64_t job, const char *run)
{
    (void)job;
    sim_worker *w = context;
    if (strcmp(run, "run") != 0)
        sim_broken(w->sim, "worker %d is told of run folder %s", w->index, run);
}

static pl_status find_checkpoint(void *context, pl_ps_checkpoint *out)
{
    sim_worker *w = context;
    char text[SIM_PLAN];
    const sim_checkpoint *last = sim_disk_newest(w->sim);
    if (last == NULL)
        return PL_NOTFOUND;
    out->step = last->step;
    out->counts = last->counts;
    return pl_mem_copy_text(&out->plan, sim_disk_plan(text, last->serial));
}

static pl_status plan_checkpoint(void *context, int64_t step,
                                 const int64_t *counts, char **plan)
{
    sim_worker *w = context;
    char text[SIM_PLAN];
    int32_t serial = sim_disk_begin(w->sim, step, counts);
    sim_trace(w->sim, "checkpoint %d of step %lld", serial, (long long)step);
    return pl_mem_copy_text(plan, sim_disk_plan(text, serial));
}

static pl_status describe_first(void *context, char **text)
{
    const sim_worker *w = context;
    char json[128];
    snprintf(json, sizeof json,
             "{\"seed\": \"1\", \"tensors\": [{\"name\": \"table\", \"first\": "
             "0, \"count\": %lld, \"init\": \"zeros\"}]}",
             (long long)w->sim->floats);
    return pl_mem_copy_text(text, json);
}

static const pl_ps_worker_ops worker_ops = {
    .joined = on_joined,
    .parted = on_parted,
    .tell = on_tell,
    .located = on_located,
    .find = find_checkpoint,
    .plan = plan_checkpoint,
    .describe = describe_first,
};

static bool deals(const sim *s)
{
    return s->mode == PL_PS_SYNC && s->on_loss == PL_ON_LOSS_CONTINUE &&
           s->replicas == s->workers;
}

static pl_status open_machine(sim_worker *w)
{
    sim *s = w->sim;
    bool evaluates = w->index == SIM_EVALUATOR, chief = w->index == 0;
    snprintf(w->name, sizeof w->name, "%s %d",
             evaluates ? "evaluator" : "worker", evaluates ? 0 : w->index);
    pl_ps_worker_opts opts = {
        .client = {
            .role = evaluates ? "evaluator" : "worker",
            .index = evaluates ? 0 : w->index,
            .host = "node",
            .process = 100 + w->life,
            .started_ms = 1 + (s->now_ns - w->booted_ns) / MS_NS,
            .ps = s->servers,
            .workers = s->workers,
            .mode = s->mode,
            .count = s->floats,
            .piece = s->piece,
            .params = s->keyed ? NULL : w->params,
            .table_count = s->keyed ? s->floats - 1 : 0,
            .run = chief ? "run" : NULL,
            .job = chief ? 7 : 0,
            .tests = { chief && s->stops_early ? 10 : 0, 1 },
            .ops = &client_ops,
            .context = w,
        },
        .ops = &worker_ops,
        .name = w->name,
        .chief = chief,
        .saves = chief,
        .locates = true,
        .backup = s->replicas < s->workers,
        .still = s->stops_early,
        .deals = deals(s),
        .join_ms = SIM_JOIN_MS,
        .rejoin_ms = SIM_JOIN_MS,
    };
    snprintf(opts.client.boot, sizeof opts.client.boot, "boot %d", w->boots);
    return pl_ps_worker_new(&w->machine, &opts, now(w));
}

static void open_course(sim_worker *w)
{
    const sim *s = w->sim;
    bool own_pace = s->mode != PL_PS_SYNC, chief = w->index == 0;
    pl_course_init(
        &w->course,
        &(pl_course_opts) {
            .worker = w->index,
            .follower = !chief,
            .own_pace = own_pace,
            .shares = own_pace && s->workers > 1,
            .tests = chief,
            .by_steps = s->by_steps,
            .end_step = own_pace ? INT64_MAX : s->end_step,
            .end_own = s->by_steps ? INT64_MAX : s->own_steps,
            .per_epoch = s->per_epoch,
            .eval_every = { chief ? PL_EVERY_STEPS : PL_EVERY_NEVER, 10 },
            .save_every = { PL_EVERY_STEPS, 7 },
            .histograms_every = { PL_EVERY_NEVER, 0 },
            .targets.stop_loss = s->stops_early ? 0.5 : 0,
        },
        0);
}

void sim_worker_start(sim *s, int32_t worker)
{
    sim_worker *w = &s->worker[worker];
    pl_ps_worker_free(w->machine);
    w->machine = NULL;
    w->sim = s;
    w->index = worker;
    w->life++;
    w->alive = true;
    w->frozen = w->stuck = w->half = w->member = false;
    w->doing = SIM_NOTHING;
    w->known = 0;
    memcpy(w->params, s->truth[0], sizeof w->params);
    pl_status status = open_machine(w);
    if (status != PL_OK) {
        s->status = status;
        return;
    }
    sim_trace(s, "worker %d starts (life %d)", worker, w->life);
    sim_at(s, MS_NS,
           (sim_event) {
               .kind = SIM_TICK_WORKER, .node = worker, .life = w->life });
    w->act = PL_ACT_JOIN;
    if (worker == SIM_EVALUATOR) {
        pl_ps_worker_pull(w->machine, 0);
        return;
    }
    open_course(w);
    w->act = pl_course_next(&w->course, false, 0);
    pl_ps_worker_join(w->machine);
}

/* The process ends; a supervisor restarts it unless it was done. */
void sim_worker_end(sim_worker *w, const char *why)
{
    sim *s = w->sim;
    if (!w->alive)
        return;
    sim_trace(s, "worker %d ends: %s", w->index, why);
    w->alive = false;
    w->life++;
    /* When the chief has ended well no task is restarted. */
    const pl_ps_core *core = s->server[0].core;
    bool over = s->worker[0].ended || s->server[0].gave_up ||
                (core != NULL && (pl_ps_core_finished(core) ||
                                  pl_ps_core_outcome(core) != PL_OK));
    /* Without a supervisor it may not be restarted; its machine may have been
     * booted. */
    w->gone = !w->ended && s->by_hand && w->index > 0 &&
              s->on_loss == PL_ON_LOSS_CONTINUE && sim_draw(s, 4) == 0;
    if (sim_draw(s, 4) == 0) {
        w->boots++;
        w->booted_ns = s->now_ns;
    }
    s->worker_left = s->worker_left || (!w->ended && !over && s->interrupted);
    if (!w->ended && !w->gone && !over && !s->interrupted)
        sim_at(s, (int64_t)(200 + sim_draw(s, 1000)) * MS_NS,
               (sim_event) {
                   .kind = SIM_START, .node = w->index, .life = w->life });
}

static void compute_for(sim_worker *w, uint32_t most_ms)
{
    uint32_t slow = w->sim->clock[sim_node(w->sim, false, w->index)].slow;
    w->doing = SIM_COMPUTING;
    sim_at(w->sim, (int64_t)(slow * (1 + sim_draw(w->sim, most_ms))) * MS_NS,
           (sim_event) { .kind = SIM_COMPUTED,
                         .node = w->index,
                         .life = w->life,
                         .from = w->turn });
}

static void begin_compute(sim_worker *w)
{
    w->half = false;
    sim_check_compute(w);
    compute_for(w, 40);
    sim_check_staleness(w);
}

/* Where the reader of the course stands: the batch that is next. */
static sim_batch next_batch(sim_worker *w)
{
    return (sim_batch) { w->course.reads, w->next_read++ };
}

/* In lock step the batch belongs to the step. */
static bool must_skip(const sim_worker *w)
{
    if (w->asked == w->taken)
        return false;
    return w->sim->mode == PL_PS_SYNC
               ? w->batches[w->taken % SIM_BATCHES].position != w->course.step
               : w->skips;
}

static void ask(sim_worker *w, bool later)
{
    sim *s = w->sim;
    sim_batch batch = next_batch(w);
    w->batches[w->asked++ % SIM_BATCHES] = batch;
    s->status =
        sim_batch_keys(s, w->index, batch, pl_ps_worker_next_batch(w->machine));
    if (s->status == PL_OK)
        pl_ps_worker_ask(w->machine, later);
}

/* Keyed: as train/compute/ahead.c asks.  True: the values are here. */
static bool take_values(sim_worker *w)
{
    if (w->doing == SIM_TAKING) {
        w->taken++;
        return true;
    }
    if (w->doing == SIM_SKIPPING) {
        w->taken++;
        w->doing = SIM_NOTHING;
    }
    while (must_skip(w)) {
        pl_ps_worker_take(w->machine);
        w->doing = SIM_SKIPPING;
        if (pl_ps_worker_busy(w->machine))
            return false;
        w->taken++;
        w->doing = SIM_NOTHING;
    }
    w->skips = false;
    if (w->sim->mode == PL_PS_SYNC && w->asked == w->taken)
        w->next_read = w->course.step;
    while (w->asked - w->taken <= pl_ps_worker_ahead(w->machine)) {
        ask(w, false);
        if (pl_ps_worker_busy(w->machine))
            return false;
    }
    w->doing = SIM_TAKING;
    pl_ps_worker_take(w->machine);
    if (pl_ps_worker_busy(w->machine))
        return false;
    w->taken++;
    return true;
}

static void place_values(sim_worker *w)
{
    const pl_key_batch *batch = pl_ps_worker_taken(w->machine);
    for (int64_t k = 0; k < batch->count; k++)
        w->params[batch->keys[k]] = batch->values[k];
    w->batch = w->batches[(w->taken - 1) % SIM_BATCHES];
}

/* Workers that ask for one step receive the same deal. */
static void check_deal(sim_worker *w, int64_t step)
{
    sim *s = w->sim;
    pl_workers present;
    const pl_deal *deal = pl_ps_worker_dealt(w->machine, &present);
    uint32_t generation = sim_view(w).generation;
    const pl_ps_core *core = s->server[0].core;
    int64_t early = w->sim->keyed ? 1 : 0;
    if (core == NULL || pl_ps_core_look(core, 0).generation != generation ||
        pl_ps_core_look(core, 0).step > step ||
        pl_ps_core_look(core, 0).step < step - early)
        return; /* the job continued without it */
    if (deal->step > step)
        sim_broken(
            s, "deal D4: worker %d is told of a deal of step %lld at step %lld",
            w->index, (long long)deal->step, (long long)step);
    if (s->deals[step].generation == generation &&
        s->deals[step].life == s->server[0].life &&
        (s->deals[step].deal.step != deal->step ||
         !pl_workers_equal(&s->deals[step].deal.workers, &deal->workers)))
        sim_broken(s, "deal D1: worker %d is told of another deal at step %lld",
                   w->index, (long long)step);
    s->deals[step].generation = generation;
    s->deals[step].life = s->server[0].life;
    s->deals[step].deal = *deal;
}

/* Before the batch of `step` is read: who shares the data?  True: it is known;
 * else it is requested, `doing` this. */
static bool hear_deal(sim_worker *w, int64_t step, sim_doing doing)
{
    if (w->doing == doing) {
        w->doing = SIM_NOTHING;
        check_deal(w, step);
    }
    if (w->doing == SIM_SKIPPING || w->doing == SIM_TAKING)
        return true; /* it was, before these were asked for */
    if (!deals(w->sim) || step == 0 || step % w->sim->per_epoch != 0 ||
        w->dealt_step == step)
        return true;
    w->dealt_step = step;
    w->doing = doing;
    pl_ps_worker_deal(w->machine, step, step / w->sim->per_epoch);
    return false;
}

/* Keyed: the gradient, and with it the keys of the next batch. */
static void push_keys(sim_worker *w)
{
    float *to = NULL;
    const pl_key_batch *batch = pl_ps_worker_taken(w->machine);
    if (!hear_deal(w, w->course.step + 1, SIM_DEALING_NEXT))
        return;
    w->sim->status = pl_ps_worker_gradient(w->machine, &to);
    for (int64_t k = 0; w->sim->status == PL_OK && k < batch->count; k++)
        to[k] = w->grad[batch->keys[k]];
    ask(w, true);
    w->doing = SIM_COMMITTING;
    pl_ps_worker_commit(w->machine);
}

/* A step, from its first request to its commit; true: it is made. */
static bool go_on_with_step(sim_worker *w)
{
    sim *s = w->sim;
    if (w->doing == SIM_COMPUTING)
        return false;
    if (w->doing == SIM_COMMITTING) {
        sim_note_commit(w);
        return true;
    }
    if (w->doing == SIM_DEALING_NEXT) {
        push_keys(w);
        return false;
    }
    if (!s->keyed && !hear_deal(w, w->course.step, SIM_DEALING))
        return false;
    for (bool current = false; s->keyed && !current;) {
        if (!hear_deal(w, w->course.step, SIM_DEALING) || !take_values(w))
            return false;
        w->doing = SIM_NOTHING;
        place_values(w);
        /* The job may be further since the batch was chosen. */
        current = s->mode != PL_PS_SYNC || sim_view(w).step == w->course.step;
        pl_course_arrived(&w->course, sim_view(w).step);
        if (pl_course_is_over(&w->course))
            return true;
    }
    if (!s->keyed) {
        if (!pl_ps_worker_have(w->machine, 0, s->floats))
            return false;
        if (s->mode == PL_PS_SYNC)
            w->next_read = w->course.step;
        w->batch = next_batch(w);
    }
    sim_check_told(w);
    begin_compute(w);
    return false;
}

/* The chief reads what the servers end with. */
static bool go_on_with_end(sim_worker *w)
{
    sim *s = w->sim;
    for (; s->keyed && w->known < s->servers; w->known++) {
        const sim_server *server = &s->server[w->known];
        if (w->doing != SIM_READING) {
            w->doing = SIM_READING;
            pl_ps_worker_read(w->machine, server->first, server->count,
                              w->params + server->first);
            if (pl_ps_worker_busy(w->machine))
                return false;
        }
        w->doing = SIM_NOTHING;
    }
    s->has_final = !pl_ps_worker_look(w->machine).gone || s->has_final;
    if (!pl_ps_worker_look(w->machine).gone)
        memcpy(s->final, w->params, sizeof w->params);
    pl_course_arrived(&w->course, sim_view(w).step);
    return true;
}

static bool go_on_with_test(sim_worker *w)
{
    sim *s = w->sim;
    if (s->keyed && w->doing == SIM_NOTHING) {
        w->doing = SIM_READING;
        s->status = sim_batch_keys(s, 0, (sim_batch) { 0, w->course.step },
                                   pl_ps_worker_look_batch(w->machine));
        pl_ps_worker_peek(w->machine);
        if (pl_ps_worker_busy(w->machine))
            return false;
    }
    if (!s->keyed && w->act == PL_ACT_TEST)
        sim_check_compute(w);
    pl_course_tested(&w->course, w->course.step >= s->end_step / 2 ? 0 : 1, 0);
    return true;
}

static void note_joined(sim_worker *w)
{
    pl_ps_worker_view view = pl_ps_worker_look(w->machine);
    pl_standing at = { .step = view.client.step,
                       .own = view.client.own,
                       .over = view.over };
    if (view.gone) {
        at.own = view.left_own;
        w->was_lost = true; /* steps made again are made without it */
    } else if (!w->sim->by_hand) {
        /* From here on it can block the others again.  Not so a chief that had
         * paused: others are ahead of it, and make the gradient they were
         * granted.  By hand others may come back while it pauses, and keep pace
         * with it. */
        w->was_lost = w->was_stuck = false;
    }
    pl_course_joined(&w->course, &at);
    if (view.client.generation != w->generation)
        memset(w->positions, 0, sizeof w->positions);
    w->generation = view.client.generation;
    w->next_read = at.own;
    w->asked = w->taken = 0;
    w->skips = w->unsure = false;
    w->dealt_step = 0;
    w->open_push = 0;
}

static void note_share(sim_worker *w)
{
    pl_ps_worker_view view = pl_ps_worker_look(w->machine);
    int32_t read = w->course.reads;
    int64_t own = w->course.own;
    bool astray = w->course.astray;
    pl_share share = { view.client.share, view.client.share_own };
    w->unsure = true;
    if (view.gone)
        share = (pl_share) { w->index, w->course.own };
    pl_course_shared(&w->course, &share);
    if (w->course.reads != w->index)
        w->next_read = w->course.other_own;
    else if (read != w->index || astray || w->course.own != own)
        w->next_read = w->course.own;
    else
        return;
    w->skips = true;
}

/* The machine has done what was requested: true, when the act is done. */
static bool go_on(sim_worker *w)
{
    pl_ps_worker_view view = pl_ps_worker_look(w->machine);
    switch (w->act) {
    case PL_ACT_JOIN:
        note_joined(w);
        return true;
    case PL_ACT_SHARE:
        note_share(w);
        return true;
    case PL_ACT_STEP:
        return go_on_with_step(w);
    case PL_ACT_PAUSE:
        if (view.paused)
            pl_course_arrived(&w->course, view.client.step);
        return true;
    case PL_ACT_TEST:
    case PL_ACT_TEST_LAST:
        return go_on_with_test(w);
    case PL_ACT_SETTLE:
        return go_on_with_end(w);
    default:
        return true;
    }
}

/* Begin the act: a wish to the machine, or none. */
static void begin_act(sim_worker *w)
{
    pl_ps_worker *m = w->machine;
    w->doing = SIM_NOTHING;
    w->known = 0;
    switch (w->act) {
    case PL_ACT_JOIN:
        w->turn++;
        w->sim->turns++;
        w->stuck = false;
        pl_ps_worker_join(m);
        break;
    case PL_ACT_SHARE:
        pl_ps_worker_share(m, w->course.own, pl_course_waits(&w->course));
        break;
    case PL_ACT_PAUSE:
        w->paused = true;
        pl_ps_worker_pause(m);
        break;
    case PL_ACT_SAVE:
    case PL_ACT_SAVE_LAST:
        pl_ps_worker_save(m, w->act == PL_ACT_SAVE_LAST);
        break;
    case PL_ACT_STOP:
        pl_ps_worker_stop(m, pl_stopped_text(w->course.stopped_by));
        break;
    case PL_ACT_SETTLE:
        pl_ps_worker_settle(m);
        break;
    case PL_ACT_LEAVE:
        pl_ps_worker_leave(m, "{}");
        break;
    default:
        break;
    }
}

/* Acts that fail without the machine being at its end. */
static bool may_fail(pl_act act)
{
    return act == PL_ACT_JOIN || act == PL_ACT_SAVE || act == PL_ACT_SAVE_LAST;
}

/* An act failed: join again, continue, or end as a process that failed. */
static bool survive(sim_worker *w, pl_status status)
{
    if (status == PL_ROLLED && w->index != SIM_EVALUATOR) {
        sim_trace(w->sim, "worker %d joins again: %s", w->index,
                  pl_error_message());
        pl_course_rolled(&w->course);
        return true;
    }
    if (w->act == PL_ACT_SAVE && pl_ps_worker_check(w->machine) == PL_OK)
        return true; /* a checkpoint that failed in mid-run is a warning */
    char why[256];
    snprintf(why, sizeof why, "%.250s", pl_error_message());
    pl_ps_worker_abort(w->machine, why);
    sim_worker_end(w, why);
    return false;
}

/* The evaluator pulls, tests, and pulls when the job is further. */
static void advance_evaluator(sim_worker *w)
{
    if (w->act == PL_ACT_LEAVE) {
        w->ended = true;
        sim_worker_end(w, "done");
        return;
    }
    if (!w->sim->keyed)
        sim_check_compute(w);
    w->act = PL_ACT_TEST;
    compute_for(w, 300);
}

static void advance(sim_worker *w)
{
    if (w->index == SIM_EVALUATOR && w->doing == SIM_COMPUTING)
        return;
    while (w->alive && w->sim->status == PL_OK &&
           !pl_ps_worker_busy(w->machine)) {
        pl_status status = pl_ps_worker_check(w->machine);
        if (status == PL_OK && may_fail(w->act))
            status = pl_ps_worker_outcome(w->machine);
        bool failed = status != PL_OK;
        if (failed && !survive(w, status))
            return;
        if (w->index == SIM_EVALUATOR) {
            advance_evaluator(w);
            return;
        }
        if (!failed && !go_on(w)) {
            if (pl_ps_worker_check(w->machine) == PL_OK)
                return;
            continue;
        }
        w->progress++;
        w->act = pl_course_next(&w->course, false, 0);
        if (w->act == PL_ACT_END) {
            w->ended = true;
            sim_worker_end(w, "done");
            return;
        }
        begin_act(w);
    }
}

static void evaluator_computed(sim_worker *w)
{
    pl_ps_worker_view view = pl_ps_worker_look(w->machine);
    w->doing = SIM_NOTHING;
    w->act = view.over ? PL_ACT_LEAVE : PL_ACT_JOIN;
    if (view.over)
        pl_ps_worker_leave(w->machine, "{}");
    else
        pl_ps_worker_pull(w->machine, view.client.step + 3);
    advance(w);
}

void sim_worker_computed(sim_worker *w)
{
    sim *s = w->sim;
    w->progress++;
    if (w->index == SIM_EVALUATOR) {
        evaluator_computed(w);
        return;
    }
    if (!w->half) {
        sim_make_gradient(w);
        w->half = true;
        sim_plan_push_fault(s, w->index);
        if (!s->keyed) {
            pl_ps_worker_ready(w->machine, w->grad, s->floats / 2);
            sim_at(s, (int64_t)sim_draw(s, 10) * MS_NS,
                   (sim_event) { .kind = SIM_COMPUTED,
                                 .node = w->index,
                                 .life = w->life,
                                 .from = w->turn });
            return;
        }
        push_keys(w);
    } else {
        pl_ps_worker_ready(w->machine, w->grad, 0);
        w->doing = SIM_COMMITTING;
        pl_ps_worker_commit(w->machine);
    }
    advance(w);
}

void sim_worker_receive(sim_worker *w, const sim_event *event)
{
    pl_message message = { .frame = event->frame, .payload = event->payload };
    if (w->stuck)
        return;
    if (event->heart && w->member) {
        pl_pulse_receive(&w->pulse, &message, now(w));
    } else if (!event->heart) {
        if (event->from == 0 && w->member)
            pl_pulse_heard(&w->pulse, now(w));
        pl_ps_worker_receive(w->machine, event->from, &message, now(w));
    }
    advance(w);
}

static void send_heartbeat(sim_worker *w)
{
    sim *s = w->sim;
    pl_vital vital = { w->told_step, w->phase, w->progress };
    pl_frame frame;
    if (!w->member || !pl_pulse_tick(&w->pulse, now(w), &vital, &frame))
        return;
    sim_send(s,
             (sim_event) { .node = 0,
                           .to_ps = true,
                           .heart = true,
                           .to_life = s->server[0].life,
                           .from = w->index,
                           .from_life = w->life },
             &frame, NULL);
}

void sim_worker_tick(sim_worker *w)
{
    send_heartbeat(w);
    if (w->stuck) { /* until it is ended */
        const sim_server *first = &w->sim->server[0];
        if (first->gave_up ||
            (first->core != NULL && pl_ps_core_finished(first->core)))
            sim_worker_end(w, "stuck, and the job is over");
        return;
    }
    pl_ps_worker_tick(w->machine, now(w));
    if (w->member) {
        pl_status status = pl_pulse_check(&w->pulse, now(w));
        if (status != PL_OK)
            pl_ps_worker_lost(w->machine, status);
    }
    advance(w);
}

/* Large jobs: decides when nodes get their messages and the time, when workers
 * die, and measures server 0.  Every gradient is -1 everywhere and the learning
 * rate is 1, so that parameters count updates. */
#include "sim/sim_scale.h"

#include "base/mem.h"
#include "base/rng.h"
#include "sync/ps/core/core.h"
#include "sync/ps/messages/pieces.h"
#include "sync/ps/worker/pulse.h"
#include "sync/ps/worker/worker.h"
#include "train/loop/course.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS_NS        INT64_C(1000000)
#define ROUND_MS     10
#define TICK_ROUNDS  (PL_TICK_MS / ROUND_MS)
#define HEARTBEAT_MS 1000
#define RESTART      30 /* rounds until a lost worker is restarted */
#define ROUNDS_MOST  1000000
#define PER_SERVER   16 /* floats */
#define PER_EPOCH    20
#define KILLS        3 /* times some workers are killed */
#define SERVER_PEERS 1000000000

typedef struct letter {
    int32_t from;
    int32_t life; /* of the worker that it is from or to */
    bool from_ps, heart;
    pl_frame frame;
    void *payload;
} letter;

typedef struct box {
    letter *letters;
    size_t count, room;
} box;

typedef struct server {
    struct scale *scale;
    int32_t index;
    int64_t first, count;
    pl_ps_core *core;
    pl_params *shape;
    pl_optim *optim;
    float params[PER_SERVER];
    box in;
} server;

typedef struct worker {
    struct scale *scale;
    int32_t index, life;
    bool alive, ended, member;
    int64_t starts; /* in this round; 0: never again */
    pl_ps_worker *machine;
    pl_course course;
    pl_act act;
    bool committing;
    pl_pulse pulse;
    pl_vital vital;
    float *params;
    box in;
} worker;

typedef struct scale {
    pl_sim_scale_opts opts;
    pl_sim_scale *out;
    int64_t floats, round, now_ns;
    int32_t kills;
    server *servers;
    worker *workers;
    float *grad;
    pl_schedule schedule;
    pl_status status;
} scale;

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void post(scale *s, box *to, letter l, const void *payload)
{
    if (to->count == to->room) {
        size_t room = to->room > 0 ? 2 * to->room : 16;
        letter *letters = realloc(to->letters, room * sizeof *letters);
        if (letters == NULL) {
            s->status = PL_FAIL(PL_NOMEM, "%zu messages", room);
            return;
        }
        to->letters = letters;
        to->room = room;
    }
    l.payload = NULL;
    if (l.frame.payload_bytes > 0) {
        l.payload = malloc(l.frame.payload_bytes);
        if (l.payload == NULL) {
            s->status = PL_FAIL(PL_NOMEM, "a message");
            return;
        }
        memcpy(l.payload, payload, l.frame.payload_bytes);
    }
    to->letters[to->count++] = l;
}

/* What is in a box, which is empty from here on. */
static box empty(box *in)
{
    box all = *in;
    *in = (box) { 0 };
    return all;
}

static void discard(box *in)
{
    for (size_t i = 0; i < in->count; i++)
        free(in->letters[i].payload);
    free(in->letters);
    *in = (box) { 0 };
}

/* Servers. */

static pl_peer peer_of(const scale *s, const letter *l)
{
    if (l->from_ps)
        return l->from == 0 ? PL_PEER_COORDINATOR : SERVER_PEERS + l->from;
    return (l->life * s->opts.workers + l->from) * 2 + l->heart;
}

static void send_from_ps(void *context, pl_peer to, const pl_frame *frame,
                         const void *payload, bool lasting)
{
    (void)lasting;
    server *from = context;
    scale *s = from->scale;
    letter l = { .from = from->index, .from_ps = true, .frame = *frame };
    s->out->sent += from->index == 0;
    if (to == PL_PEER_COORDINATOR) {
        post(s, &s->servers[0].in, l, payload);
    } else if (to >= SERVER_PEERS) {
        post(s, &s->servers[to - SERVER_PEERS].in, l, payload);
    } else if (to >= 0) {
        l.heart = to % 2 != 0;
        l.life = to / 2 / s->opts.workers;
        post(s, &s->workers[to / 2 % s->opts.workers].in, l, payload);
    }
}

/* The supervisor restarts a lost worker. */
static void on_lost(void *context, bool is_server, int32_t index)
{
    scale *s = ((server *)context)->scale;
    if (is_server)
        return;
    s->out->lost++;
    s->workers[index].starts = s->round + RESTART;
}

static const pl_ps_core_ops core_ops = { .send = send_from_ps,
                                         .lost = on_lost };

static pl_status open_server(scale *s, int32_t index)
{
    server *p = &s->servers[index];
    p->scale = s;
    p->index = index;
    pl_pieces_shard(s->floats, s->opts.servers, index, &p->first, &p->count);
    PL_TRY(pl_params_new(&p->shape));
    PL_TRY(pl_params_add(p->shape, "shard", PL_SHAPE(p->count)));
    PL_TRY(pl_params_seal(p->shape));
    PL_TRY(pl_optim_new(&p->optim, &(pl_optim_opts) { .name = "sgd" }, p->shape,
                        pl_kernels_best()));
    bool sync = s->opts.mode == PL_PS_SYNC;
    return pl_ps_core_new(&p->core,
                          &(pl_ps_core_opts) {
                              .index = index,
                              .ps = s->opts.servers,
                              .workers = s->opts.workers,
                              .mode = s->opts.mode,
                              .staleness = s->opts.staleness,
                              .end_step = sync ? s->opts.steps : 0,
                              .on_loss = PL_ON_LOSS_CONTINUE,
                              .supervised = true,
                              .heartbeat_ms = HEARTBEAT_MS,
                              .first = p->first,
                              .count = p->count,
                              .floats = s->floats,
                              .params = p->params,
                              .optim = p->optim,
                              .schedule = &s->schedule,
                              .kernels = pl_kernels_best(),
                              .life = 1,
                              .address = "ps",
                              .boot = "boot",
                              .ops = &core_ops,
                              .context = p,
                          },
                          s->now_ns);
}

static void deliver_to_server(scale *s, server *p)
{
    box all = empty(&p->in);
    double begin = p->index == 0 ? cpu_s() : 0;
    for (size_t i = 0; i < all.count && !pl_ps_core_finished(p->core); i++) {
        const letter *l = &all.letters[i];
        pl_message message = { .from = peer_of(s, l),
                               .frame = l->frame,
                               .payload = l->payload };
        pl_ps_core_receive(p->core, &message, s->now_ns);
    }
    if (p->index == 0) {
        s->out->message_s += cpu_s() - begin;
        s->out->messages += (int64_t)all.count;
    }
    discard(&all);
}

static void tick_server(scale *s, server *p)
{
    if (pl_ps_core_finished(p->core))
        return;
    double begin = cpu_s();
    pl_ps_core_tick(p->core, s->now_ns);
    if (p->index == 0)
        s->out->tick_s += cpu_s() - begin;
}

/* Workers. */

static void send_to_ps(void *context, int32_t ps, const pl_frame *frame,
                       const void *payload, bool lasting)
{
    (void)lasting;
    const worker *w = context;
    post(w->scale, &w->scale->servers[ps].in,
         (letter) { .from = w->index, .life = w->life, .frame = *frame },
         payload);
}

static const pl_ps_client_ops client_ops = { .send = send_to_ps };

static pl_status on_joined(void *context)
{
    worker *w = context;
    pl_ps_client_view view = pl_ps_worker_look(w->machine).client;
    w->member = true;
    pl_pulse_init(&w->pulse,
                  &(pl_pulse_opts) { .address = "ps",
                                     .incarnation = view.incarnation,
                                     .generation = view.generation,
                                     .timeout_ms = HEARTBEAT_MS },
                  w->scale->now_ns);
    return PL_OK;
}

static void on_parted(void *context)
{
    ((worker *)context)->member = false;
}

static void on_tell(void *context, int64_t step, pl_phase phase)
{
    worker *w = context;
    w->vital = (pl_vital) { step, phase, w->vital.progress + 1 };
}

static const pl_ps_worker_ops worker_ops = { .joined = on_joined,
                                             .parted = on_parted,
                                             .tell = on_tell };

static void start_worker(scale *s, worker *w)
{
    bool sync = s->opts.mode == PL_PS_SYNC, chief = w->index == 0;
    pl_every never = { PL_EVERY_NEVER, 0 };
    w->alive = true;
    w->starts = 0;
    s->status = pl_ps_worker_new(
        &w->machine,
        &(pl_ps_worker_opts) {
            .client = {
                .role = "worker",
                .index = w->index,
                .host = "node",
                .process = 100 + w->life,
                .started_ms = 1 + w->life,
                .boot = "boot",
                .ps = s->opts.servers,
                .workers = s->opts.workers,
                .mode = s->opts.mode,
                .count = s->floats,
                .params = w->params,
                .job = chief ? 7 : 0,
                .ops = &client_ops,
                .context = w,
            },
            .ops = &worker_ops,
            .name = "worker",
            .chief = chief,
        },
        s->now_ns);
    if (s->status != PL_OK)
        return;
    pl_course_init(&w->course,
                   &(pl_course_opts) {
                       .worker = w->index,
                       .follower = !chief,
                       .own_pace = !sync,
                       .shares = !sync,
                       .by_steps = sync,
                       .end_step = sync ? s->opts.steps : INT64_MAX,
                       .end_own = sync ? INT64_MAX : s->opts.steps,
                       .per_epoch = PER_EPOCH,
                       .eval_every = never,
                       .save_every = never,
                       .histograms_every = never,
                   },
                   0);
    w->act = pl_course_next(&w->course, false, 0);
    pl_ps_worker_join(w->machine);
}

static void end_worker(worker *w)
{
    pl_ps_worker_free(w->machine);
    w->machine = NULL;
    w->alive = w->member = false;
    w->life++;
}

/* True: the step is made. */
static bool go_on_with_step(worker *w)
{
    pl_ps_worker_view view = pl_ps_worker_look(w->machine);
    if (w->committing) {
        w->committing = false;
        pl_course_stepped(&w->course, &(pl_commit) { .step = view.client.step,
                                                     .dropped = view.dropped,
                                                     .stop = view.stop,
                                                     .unsent = view.unsent });
        return true;
    }
    if (!pl_ps_worker_have(w->machine, 0, w->scale->floats))
        return false;
    w->committing = true;
    pl_ps_worker_ready(w->machine, w->scale->grad, 0);
    pl_ps_worker_commit(w->machine);
    return !pl_ps_worker_busy(w->machine) && go_on_with_step(w);
}

/* The act's wish is done: is the act? */
static bool go_on(worker *w)
{
    pl_ps_worker_view view = pl_ps_worker_look(w->machine);
    if (w->act == PL_ACT_STEP)
        return go_on_with_step(w);
    if (w->act == PL_ACT_JOIN)
        pl_course_joined(&w->course, &(pl_standing) { .step = view.client.step,
                                                      .own = view.client.own,
                                                      .over = view.over });
    if (w->act == PL_ACT_SHARE)
        pl_course_shared(&w->course, &(pl_share) { view.client.share,
                                                   view.client.share_own });
    if (w->act == PL_ACT_SETTLE)
        pl_course_arrived(&w->course, view.client.step);
    return true;
}

static void begin_act(worker *w)
{
    if (w->act == PL_ACT_SHARE)
        pl_ps_worker_share(w->machine, w->course.own,
                           pl_course_waits(&w->course));
    else if (w->act == PL_ACT_SETTLE)
        pl_ps_worker_settle(w->machine);
    else if (w->act == PL_ACT_LEAVE)
        pl_ps_worker_leave(w->machine, "{}");
}

/* A restarted one is refused: the job is over. */
static bool came_late(worker *w)
{
    scale *s = w->scale;
    if (s->status != PL_CLOSED || w->act != PL_ACT_JOIN ||
        !pl_ps_core_look(s->servers[0].core, 0).stopping)
        return false;
    s->status = PL_OK;
    w->ended = true;
    end_worker(w);
    return true;
}

static void advance(worker *w)
{
    scale *s = w->scale;
    while (w->alive && s->status == PL_OK && !pl_ps_worker_busy(w->machine)) {
        s->status = pl_ps_worker_check(w->machine);
        if (came_late(w))
            return;
        if (s->status != PL_OK || !go_on(w))
            return;
        w->act = pl_course_next(&w->course, false, 0);
        if (w->act == PL_ACT_END) {
            w->ended = true;
            end_worker(w);
            return;
        }
        begin_act(w);
    }
}

static void deliver_to_worker(scale *s, worker *w)
{
    box all = empty(&w->in);
    for (size_t i = 0; i < all.count; i++) {
        const letter *l = &all.letters[i];
        pl_message message = { .frame = l->frame, .payload = l->payload };
        if (!w->alive || l->life != w->life)
            continue;
        if (!l->heart)
            pl_ps_worker_receive(w->machine, l->from, &message, s->now_ns);
        else if (w->member)
            pl_pulse_receive(&w->pulse, &message, s->now_ns);
        advance(w);
    }
    discard(&all);
}

static void tick_worker(scale *s, worker *w)
{
    pl_frame frame;
    if (!w->alive)
        return;
    if (w->member && pl_pulse_tick(&w->pulse, s->now_ns, &w->vital, &frame))
        post(s, &s->servers[0].in,
             (letter) { .from = w->index,
                        .life = w->life,
                        .heart = true,
                        .frame = frame },
             NULL);
    pl_ps_worker_tick(w->machine, s->now_ns);
    advance(w);
}

/* A third of those that are to die: never the chief. */
static void kill_some(scale *s)
{
    int64_t last =
        s->opts.steps * (s->opts.mode == PL_PS_SYNC ? 1 : s->opts.workers);
    if (s->kills == KILLS || pl_ps_core_look(s->servers[0].core, 0).step <
                                 (s->kills + 1) * last / (KILLS + 1))
        return;
    int32_t count = s->opts.workers / 50 / KILLS + 1;
    uint64_t key = pl_rng_key_text((uint64_t)s->kills++, "scale");
    for (int32_t i = 0; i < count; i++) {
        uint32_t others = (uint32_t)s->opts.workers - 1;
        worker *w = &s->workers[1 + pl_rng_below(key, (uint64_t)i, others)];
        if (w->alive && w->member)
            end_worker(w);
    }
}

static void run_round(scale *s)
{
    bool ticks = s->round % TICK_ROUNDS == 0;
    for (int32_t j = 0; j < s->opts.servers; j++) {
        deliver_to_server(s, &s->servers[j]);
        if (ticks)
            tick_server(s, &s->servers[j]);
    }
    for (int32_t i = 0; i < s->opts.workers; i++) {
        worker *w = &s->workers[i];
        if (w->starts > 0 && s->round >= w->starts && !w->alive)
            start_worker(s, w);
        deliver_to_worker(s, w);
        if (ticks)
            tick_worker(s, w);
    }
    kill_some(s);
    s->round++;
    s->now_ns += ROUND_MS * MS_NS;
}

static bool is_over(const scale *s)
{
    for (int32_t j = 0; j < s->opts.servers; j++)
        if (!pl_ps_core_finished(s->servers[j].core))
            return false;
    return true;
}

static pl_status check_end(const scale *s)
{
    for (int32_t j = 0; j < s->opts.servers; j++) {
        const server *p = &s->servers[j];
        PL_TRY(pl_ps_core_outcome(p->core));
        for (int64_t i = 0; i < p->count; i++)
            if (p->params[i] != (float)s->out->updates)
                return PL_FAIL(
                    PL_CLOSED, "ps %d ends with %g after %lld updates", j,
                    (double)p->params[i], (long long)s->out->updates);
    }
    return PL_OK;
}

static pl_status run(scale *s)
{
    size_t workers = (size_t)s->opts.workers;
    s->floats = (int64_t)PER_SERVER * s->opts.servers;
    s->schedule = (pl_schedule) { .lr = 1.0 };
    s->now_ns = MS_NS;
    PL_TRY(PL_NEW(s->servers, (size_t)s->opts.servers));
    PL_TRY(PL_NEW(s->workers, workers));
    PL_TRY(PL_NEW(s->grad, (size_t)s->floats));
    for (int64_t i = 0; i < s->floats; i++)
        s->grad[i] = -1.0f;
    for (int32_t j = 0; j < s->opts.servers; j++)
        PL_TRY(open_server(s, j));
    for (int32_t i = 0; i < s->opts.workers; i++) {
        worker *w = &s->workers[i];
        PL_TRY(PL_NEW(w->params, (size_t)s->floats));
        w->scale = s;
        w->index = i;
        w->starts = 1;
    }
    while (s->status == PL_OK && !is_over(s) && s->round < ROUNDS_MOST)
        run_round(s);
    PL_TRY(s->status);
    if (!is_over(s))
        return PL_FAIL(PL_CLOSED, "the job does not end");
    s->out->updates = pl_ps_core_look(s->servers[0].core, 0).step;
    return check_end(s);
}

static void close_all(scale *s)
{
    for (int32_t j = 0; s->servers != NULL && j < s->opts.servers; j++) {
        server *p = &s->servers[j];
        pl_ps_core_free(p->core);
        pl_optim_free(p->optim);
        pl_params_free(p->shape);
        discard(&p->in);
    }
    for (int32_t i = 0; s->workers != NULL && i < s->opts.workers; i++) {
        pl_ps_worker_free(s->workers[i].machine);
        pl_mem_free(s->workers[i].params);
        discard(&s->workers[i].in);
    }
    pl_mem_free(s->servers);
    pl_mem_free(s->workers);
    pl_mem_free(s->grad);
}

pl_status pl_sim_scale_run(const pl_sim_scale_opts *opts, pl_sim_scale *out)
{
    scale s = { .opts = *opts, .out = out };
    *out = (pl_sim_scale) { 0 };
    pl_status status = run(&s);
    close_all(&s);
    return status;
}

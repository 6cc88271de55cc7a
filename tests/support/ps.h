/* ps.h - one parameter server's core for tests: frames in, frames out, and a
 * clock that moves only when advanced.
 *
 * Peers: worker w sends as PS_WORKER + w (its process of life l as
 * PS_WORKER + w + PS_LIFE * l), heartbeats come from PS_HEARTS + w. */
#ifndef PL_TESTS_PS_H
#define PL_TESTS_PS_H

#include "base/log.h"
#include "support/unit.h"
#include "sync/ps/core/core.h"
#include "sync/ps/messages/pieces.h"

#include <stdlib.h>

#define PS_FLOATS    48
#define PS_MEMBERS   8
#define PS_SENT      256
#define PS_BYTES     512
#define PS_WORKER    10
#define PS_EVALUATOR 50
#define PS_SERVER    60
#define PS_HEARTS    100
#define PS_LIFE      1000
#define PS_MS        INT64_C(1000000)

typedef struct ps_sent {
    pl_peer to;
    pl_frame frame;
    const void *payload; /* as it was given, only to compare pointers */
    char bytes[PS_BYTES + 1];
} ps_sent;

typedef struct ps_rig {
    pl_ps_core *core;
    pl_params *shape;
    pl_optim *optim;
    pl_schedule schedule;
    float params[PS_FLOATS];
    int64_t count;
    int32_t workers;
    bool leads;          /* it is server 0 */
    uint32_t generation; /* that frames carry */
    int64_t now_ns;
    ps_sent sent[PS_SENT]; /* [taken, made) were not looked at */
    int made, taken;
    uint32_t incarnation[PS_MEMBERS]; /* of worker w, or 0 */
    uint64_t sequence[PS_MEMBERS];
    int32_t peer[PS_MEMBERS];
    int lost[PS_MEMBERS]; /* times the core called it lost */
    int64_t peak_mb;      /* of memory, as this server reports it */
    int test_every;       /* steps; the chief's tests decide, as it joins */
} ps_rig;

static inline void ps_no_log(void *context, pl_log_level level,
                             const char *line)
{
    (void)context, (void)level, (void)line;
}

static inline void ps_on_send(void *context, pl_peer to, const pl_frame *frame,
                              const void *payload, bool lasting)
{
    (void)lasting;
    ps_rig *rig = context;
    assert_true(rig->made < PS_SENT && frame->payload_bytes <= PS_BYTES);
    ps_sent *sent = &rig->sent[rig->made++];
    *sent = (ps_sent) { .to = to, .frame = *frame, .payload = payload };
    if (frame->payload_bytes > 0)
        memcpy(sent->bytes, payload, frame->payload_bytes);
}

static inline void ps_on_lost(void *context, bool server, int32_t index)
{
    if (!server)
        ((ps_rig *)context)->lost[index]++;
}

static inline void ps_on_usage(void *context, pl_task_report *out)
{
    out->usage.peak_rss_mb = ((const ps_rig *)context)->peak_mb;
}

static const pl_ps_core_ops ps_ops = { .send = ps_on_send,
                                       .lost = ps_on_lost,
                                       .usage = ps_on_usage };

/* What is 0 in `opts`: 2 workers, 1 server, 4 floats. */
static inline ps_rig *ps_open(pl_ps_core_opts opts, const char *optim)
{
    ps_rig *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    pl_log_set(ps_no_log, NULL, PL_LOG_ERROR);
    opts.ps = opts.ps > 0 ? opts.ps : 1;
    opts.workers = opts.workers > 0 ? opts.workers : 2;
    opts.count = opts.count > 0 ? opts.count : 4;
    assert_true(opts.count <= PS_FLOATS && opts.workers <= PS_MEMBERS);
    rig->schedule = (pl_schedule) { .lr = 1.0 };
    rig->count = opts.count;
    rig->workers = opts.workers;
    rig->leads = opts.index == 0;
    rig->generation = 1;
    rig->now_ns = PS_MS;
    assert_ok(pl_params_new(&rig->shape));
    assert_ok(pl_params_add(rig->shape, "part", PL_SHAPE(opts.count)));
    assert_ok(pl_params_seal(rig->shape));
    assert_ok(pl_optim_new(&rig->optim, &(pl_optim_opts) { .name = optim },
                           rig->shape, pl_kernels_best()));
    opts.params = rig->params;
    opts.optim = rig->optim;
    opts.schedule = &rig->schedule;
    opts.kernels = pl_kernels_best();
    opts.ops = opts.ops != NULL ? opts.ops : &ps_ops;
    opts.context = rig;
    assert_ok(pl_ps_core_new(&rig->core, &opts, rig->now_ns));
    return rig;
}

static inline void ps_close(ps_rig *rig)
{
    pl_ps_core_free(rig->core);
    pl_optim_free(rig->optim);
    pl_params_free(rig->shape);
    free(rig);
    assert_int_equal(0, pl_mem_live());
}

/* The payload lies in memory of exactly its size.  A task that joins server 0
 * knows of no generation yet, all others know the present one. */
static inline void ps_say(ps_rig *rig, pl_peer from, pl_frame frame,
                          const void *payload)
{
    bool learns = frame.kind == PL_FRAME_JOIN && rig->leads;
    if (frame.generation == 0 && !learns)
        frame.generation = rig->generation;
    void *exact = malloc(frame.payload_bytes > 0 ? frame.payload_bytes : 1);
    assert_non_null(exact);
    if (payload != NULL)
        memcpy(exact, payload, frame.payload_bytes);
    pl_message message = { .from = from, .frame = frame, .payload = exact };
    pl_ps_core_receive(rig->core, &message, rig->now_ns);
    free(exact);
}

static inline void ps_say_text(ps_rig *rig, pl_peer from, pl_frame frame,
                               const char *text)
{
    frame.payload_bytes = (uint32_t)strlen(text);
    ps_say(rig, from, frame, text);
}

static inline const ps_sent *ps_expect(ps_rig *rig, pl_peer to,
                                       pl_frame_kind kind)
{
    if (rig->taken == rig->made)
        fail_msg("nothing was sent, expected %s", pl_frame_kind_text(kind));
    const ps_sent *sent = &rig->sent[rig->taken++];
    if (sent->to != to || sent->frame.kind != kind)
        fail_msg("%s to %d was sent, expected %s to %d: %s",
                 pl_frame_kind_text(sent->frame.kind), sent->to,
                 pl_frame_kind_text(kind), to, sent->bytes);
    return sent;
}

static inline void ps_expect_text(ps_rig *rig, pl_peer to, pl_frame_kind kind,
                                  const char *part)
{
    const ps_sent *sent = ps_expect(rig, to, kind);
    if (strstr(sent->bytes, part) == NULL)
        fail_msg("\"%s\" is not in: %s", part, sent->bytes);
}

static inline void ps_quiet(const ps_rig *rig)
{
    if (rig->taken != rig->made)
        fail_msg("%s to %d was sent: %s",
                 pl_frame_kind_text(rig->sent[rig->taken].frame.kind),
                 rig->sent[rig->taken].to, rig->sent[rig->taken].bytes);
}

static inline void ps_forget(ps_rig *rig) /* what was sent so far */
{
    rig->taken = rig->made = 0;
}

static inline void ps_tick(ps_rig *rig, int64_t ms)
{
    rig->now_ns += ms * PS_MS;
    pl_ps_core_tick(rig->core, rig->now_ns);
}

/* A JOIN of a worker's process `life`, as a client writes it. */
static inline void ps_join(ps_rig *rig, int32_t worker, int32_t life)
{
    char text[256], tests[64] = "";
    if (worker == 0 && rig->test_every > 0)
        snprintf(tests, sizeof tests, ", \"test_count\": %d, \"test_each\": 1",
                 rig->test_every);
    snprintf(text, sizeof text,
             "{\"role\": \"worker\", \"index\": %d, \"job\": \"\", \"shm\": "
             "\"\", \"host\": \"node%d\", \"process\": %d%s}",
             worker, worker, 100 + life, tests);
    rig->peer[worker] = PS_WORKER + worker + PS_LIFE * life;
    rig->sequence[worker] = 0;
    ps_say_text(rig, rig->peer[worker], (pl_frame) { .kind = PL_FRAME_JOIN },
                text);
    const ps_sent *sent = ps_expect(rig, rig->peer[worker], PL_FRAME_WELCOME);
    rig->incarnation[worker] = sent->frame.incarnation;
}

/* A frame of a worker about its next request. */
static inline pl_frame ps_request(ps_rig *rig, int32_t worker,
                                  pl_frame_kind kind)
{
    return (pl_frame) { .kind = kind,
                        .incarnation = rig->incarnation[worker],
                        .sequence = ++rig->sequence[worker] };
}

/* The same request once more, without data: is it done? */
static inline void ps_probe(ps_rig *rig, int32_t worker, pl_frame_kind kind,
                            int64_t step)
{
    ps_say(rig, rig->peer[worker],
           (pl_frame) { .kind = kind,
                        .incarnation = rig->incarnation[worker],
                        .sequence = rig->sequence[worker],
                        .step = step },
           NULL);
}

/* `count` floats of the current request. */
static inline void ps_piece(ps_rig *rig, int32_t worker, pl_frame frame,
                            int64_t first, uint32_t count, const float *from)
{
    frame.first = first;
    frame.count = count;
    frame.payload_bytes = count * (uint32_t)sizeof(float);
    ps_say(rig, rig->peer[worker], frame, from);
}

static inline void ps_done(ps_rig *rig, int32_t worker)
{
    const ps_sent *sent = ps_expect(rig, rig->peer[worker], PL_FRAME_ACK);
    assert_int_equal(PL_ACK_DONE, sent->frame.flags);
}

/* The chief continues: all servers have parameters. */
static inline void ps_go(ps_rig *rig)
{
    pl_frame frame = ps_request(rig, 0, PL_FRAME_SAVE);
    frame.flags = PL_SAVE_LOOK;
    ps_say(rig, rig->peer[0], frame, NULL);
    ps_done(rig, 0);
}

/* The chief's first parameters, in one piece, here and everywhere. */
static inline void ps_init(ps_rig *rig, int64_t step, const float *params)
{
    pl_frame frame = ps_request(rig, 0, PL_FRAME_INIT);
    frame.step = step;
    ps_piece(rig, 0, frame, 0, (uint32_t)rig->count, params);
    ps_done(rig, 0);
    if (rig->leads)
        ps_go(rig);
}

/* A gradient in one piece, all of it `value`. */
static inline pl_frame ps_push(ps_rig *rig, int32_t worker, int64_t step,
                               float value)
{
    float grad[PS_FLOATS];
    for (int i = 0; i < PS_FLOATS; i++)
        grad[i] = value;
    pl_frame frame = ps_request(rig, worker, PL_FRAME_PUSH);
    frame.step = step;
    ps_piece(rig, worker, frame, 0, (uint32_t)rig->count, grad);
    return frame;
}

static inline void ps_pull(ps_rig *rig, int32_t worker, unsigned flags,
                           int64_t step)
{
    pl_frame frame = ps_request(rig, worker, PL_FRAME_PULL);
    frame.flags = (uint8_t)flags;
    frame.value[0] = step;
    ps_say(rig, rig->peer[worker], frame, NULL);
}

/* The answer to a push or pull, with one piece of parameters or none. */
static inline const ps_sent *ps_answer(ps_rig *rig, int32_t worker,
                                       unsigned flags, int64_t step)
{
    const ps_sent *sent = ps_expect(rig, rig->peer[worker], PL_FRAME_PARAMS);
    assert_int_equal(flags, sent->frame.flags);
    assert_int_equal(step, sent->frame.step);
    assert_int_equal(rig->sequence[worker], sent->frame.sequence);
    return sent;
}

/* All floats of an answer are `value`. */
static inline void ps_answer_of(ps_rig *rig, int32_t worker, unsigned flags,
                                int64_t step, float value)
{
    const ps_sent *sent = ps_answer(rig, worker, flags, step);
    float got;
    assert_int_equal(rig->count, sent->frame.count);
    for (int64_t i = 0; i < rig->count; i++) {
        memcpy(&got, sent->bytes + i * (int64_t)sizeof got, sizeof got);
        assert_true(got == value);
    }
}

/* The chief has got all reports. */
static inline void ps_heard(ps_rig *rig)
{
    ps_say(rig, rig->peer[0],
           (pl_frame) { .kind = PL_FRAME_ACK,
                        .incarnation = rig->incarnation[0],
                        .sequence = rig->sequence[0] },
           NULL);
}

static inline void ps_heart(ps_rig *rig, int32_t worker, int64_t step,
                            pl_phase phase, int64_t progress)
{
    ps_say(rig, PS_HEARTS + worker,
           (pl_frame) { .kind = PL_FRAME_HEARTBEAT,
                        .incarnation = rig->incarnation[worker],
                        .sequence = 1,
                        .step = step,
                        .value = { phase, progress } },
           NULL);
    ps_expect(rig, PS_HEARTS + worker, PL_FRAME_HEARTBEAT_ACK);
}

/* `ms` pass; the workers of the mask send heartbeats, waiting, and the
 * heartbeat acks are discarded. */
static inline void ps_pass(ps_rig *rig, int64_t ms, unsigned alive)
{
    for (int64_t at = 0; at < ms; at += 500) {
        for (int32_t w = 0; w < rig->workers; w++)
            if ((alive & 1u << w) != 0)
                ps_say(rig, PS_HEARTS + w,
                       (pl_frame) { .kind = PL_FRAME_HEARTBEAT,
                                    .incarnation = rig->incarnation[w],
                                    .value = { PL_PHASE_WAITING, 1 } },
                       NULL);
        ps_tick(rig, 500);
    }
    int kept = rig->taken;
    for (int i = rig->taken; i < rig->made; i++)
        if (rig->sent[i].frame.kind != PL_FRAME_HEARTBEAT_ACK)
            rig->sent[kept++] = rig->sent[i];
    rig->made = kept;
}

/* All workers joined and the parameters are 0, at `step`. */
static inline ps_rig *ps_start(pl_ps_core_opts opts, int64_t step)
{
    ps_rig *rig = ps_open(opts, "sgd");
    float zero[PS_FLOATS] = { 0 };
    for (int32_t w = 0; w < rig->workers; w++)
        ps_join(rig, w, 0);
    ps_init(rig, step, zero);
    ps_quiet(rig);
    return rig;
}

static inline pl_ps_core_view ps_look(const ps_rig *rig, int32_t worker)
{
    return pl_ps_core_look(rig->core, worker);
}

#endif

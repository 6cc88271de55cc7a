/* fuzz_ps_sparse.c - conversations with a server of sparse parameters.
 *
 * The first byte is the setting.  Then come records: a byte of 0x80 or more
 * lets time pass; others are RECORD bytes and a payload.  Every sender has
 * joined, and its generation, incarnation and sequence are right, so that the
 * keys and lists are looked at. */
#include "base/assert.h"
#include "base/log.h"
#include "fuzz/fuzz.h"
#include "sync/ps/core/core.h"

#include <stdlib.h>
#include <string.h>

#define FLOATS  2000
#define TABLE   1900
#define BEFORE  64 /* floats of the server before it */
#define PEERS   3  /* two workers and the evaluator */
#define RECORD  8
#define ANSWER  256
#define TICK_NS INT64_C(100000000)
#define TEXT                                                                   \
    "{\"seed\": \"1\", \"tensors\": [{\"name\": \"w\", \"first\": 0, "         \
    "\"count\": 1900, \"init\": \"ones\"}]}"

typedef struct world {
    pl_ps_core *core;
    pl_params *shape;
    pl_optim *optim;
    pl_schedule schedule;
    float answers[PEERS * ANSWER];
    uint32_t generation, incarnation[PEERS];
    uint64_t sequence[PEERS];
    int64_t now_ns;
} world;

static void no_log(void *context, pl_log_level level, const char *line)
{
    (void)context, (void)level, (void)line;
}

static void core_sent(void *context, pl_peer to, const pl_frame *frame,
                      const void *payload, bool lasting)
{
    (void)lasting;
    world *w = context;
    unsigned sum = 0;
    PL_ASSERT(frame->count * sizeof(float) <= frame->payload_bytes);
    for (uint32_t i = 0; i < frame->payload_bytes; i++)
        sum += ((const uint8_t *)payload)[i];
    PL_ASSERT(sum < UINT32_MAX);
    w->generation = frame->generation;
    if (to >= 0 && to < PEERS && frame->kind == PL_FRAME_WELCOME) {
        w->incarnation[to] = frame->incarnation;
        w->sequence[to] = 0;
    }
}

static const pl_ps_core_ops core_ops = { .send = core_sent };

static pl_status open_core(world *w, uint8_t setting)
{
    PL_TRY(pl_params_new(&w->shape));
    PL_TRY(pl_params_add(w->shape, "part", PL_SHAPE(FLOATS)));
    PL_TRY(pl_params_seal(w->shape));
    PL_TRY(pl_optim_new(
        &w->optim,
        &(pl_optim_opts) { .name = (setting & 4) != 0 ? "ftrl" : "sgd" },
        w->shape, pl_kernels_best()));
    return pl_ps_core_new(&w->core,
                          &(pl_ps_core_opts) {
                              .ps = 1,
                              .workers = 2,
                              .evaluator = true,
                              .mode = (pl_ps_mode)((setting & 3) % 3),
                              .end_step = (setting & 8) != 0 ? 3 : 0,
                              .replicas = (setting & 16) != 0 ? 1 : 0,
                              .first = (setting & 32) != 0 ? BEFORE : 0,
                              .table_first = (setting & 32) != 0 ? BEFORE : 0,
                              .count = FLOATS,
                              .table_count = TABLE,
                              .answers = w->answers,
                              .answer_floats = ANSWER,
                              .params = pl_params_block(w->shape),
                              .optim = w->optim,
                              .schedule = &w->schedule,
                              .kernels = pl_kernels_best(),
                              .ops = &core_ops,
                              .context = w,
                          },
                          w->now_ns);
}

static void feed(world *w, pl_peer from, pl_frame frame, const void *payload)
{
    /* Aligned, and of exactly its size; none has no memory. */
    void *exact = NULL;
    if (frame.payload_bytes > 0) {
        exact = malloc(frame.payload_bytes);
        if (exact == NULL)
            abort();
        memcpy(exact, payload, frame.payload_bytes);
    }
    pl_message message = { .from = from, .frame = frame, .payload = exact };
    pl_ps_core_receive(w->core, &message, w->now_ns);
    free(exact);
}

/* All are there, and there are parameters. */
static void begin(world *w)
{
    static const char *const joins[PEERS] = {
        "{\"role\": \"worker\", \"index\": 0, \"job\": \"\"}",
        "{\"role\": \"worker\", \"index\": 1, \"job\": \"\"}",
        "{\"role\": \"evaluator\", \"index\": 0, \"job\": \"\"}",
    };
    for (int i = 0; i < PEERS; i++)
        feed(w, i,
             (pl_frame) { .kind = PL_FRAME_JOIN,
                          .payload_bytes = (uint32_t)strlen(joins[i]) },
             joins[i]);
    w->sequence[0] = 1;
    feed(w, 0,
         (pl_frame) {
             .kind = PL_FRAME_INIT,
             .generation = w->generation,
             .incarnation = w->incarnation[0],
             .sequence = 1,
             .payload_bytes = (uint32_t)strlen(TEXT),
         },
         TEXT);
}

/* One record; returns what is left after it. */
static const uint8_t *speak(world *w, const uint8_t *r, const uint8_t *end)
{
    static const pl_frame_kind kinds[] = {
        PL_FRAME_PULL, PL_FRAME_PUSH, PL_FRAME_PUSH,  PL_FRAME_PUSH,
        PL_FRAME_INIT, PL_FRAME_ACK,  PL_FRAME_PAUSE, PL_FRAME_BYE,
    };
    if (end - r < RECORD)
        return end;
    int peer = r[0] % PEERS;
    const uint8_t *payload = r + RECORD;
    size_t left = (size_t)(end - payload);
    pl_frame frame = {
        .kind = kinds[r[0] / PEERS % 8],
        .flags = r[1],
        .generation = w->generation,
        .incarnation = w->incarnation[peer],
        .sequence = w->sequence[peer] += r[2] % 2 == 0,
        .step = r[3] == 0xff ? -1 : r[3],
        .first = r[4] == 0xff ? INT64_MIN : (int64_t)r[4] * 8,
        .count = r[4],
        .key_count = r[5],
        .value = { r[6] == 0xff ? INT64_MAX : r[6],
                   r[7] == 0xff ? INT64_MIN : r[7] },
    };
    /* As pl_frame_read would accept it. */
    uint32_t needed = (frame.key_count + 31) / 32 + 4 * frame.count;
    uint32_t rest = r[2] / 2u;
    frame.payload_bytes = needed + rest;
    if (frame.payload_bytes > left)
        return payload;
    feed(w, peer, frame, payload);
    return payload + frame.payload_bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes == 0)
        return 0;
    pl_log_set(no_log, NULL, PL_LOG_ERROR);
    world *w = calloc(1, sizeof *w);
    if (w == NULL)
        abort();
    w->schedule.lr = 0.1;
    w->now_ns = 1;
    if (open_core(w, data[0]) != PL_OK)
        abort();
    begin(w);
    const uint8_t *at = data + 1, *end = data + bytes;
    while (at < end) {
        if (*at >= 0x80) {
            w->now_ns += (*at++ & 0x7f) * TICK_NS;
            pl_ps_core_tick(w->core, w->now_ns);
        } else {
            at = speak(w, at, end);
        }
    }
    pl_ps_core_free(w->core);
    pl_optim_free(w->optim);
    pl_params_free(w->shape);
    free(w);
    return 0;
}

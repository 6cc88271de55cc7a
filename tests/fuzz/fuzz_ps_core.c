/* fuzz_ps_core.c - conversations with a parameter server, and with a client.
 *
 * The first byte is the setting.  Then come records: one that begins with
 * 0x80 or more lets time pass; the others are a frame of RECORD bytes and its
 * payload.  Most fields are written as a choice between what would be right
 * here and what is not, so that many frames get past the first check. */
#include "base/assert.h"
#include "base/log.h"
#include "fuzz/fuzz.h"
#include "sync/ps/core/core.h"
#include "sync/ps/worker/client.h"

#include <stdlib.h>
#include <string.h>

#define FLOATS  40
#define PEERS   8
#define RECORD  12
#define TICK_NS INT64_C(100000000)

/* The setting. */
#define SET_MODE     0x03
#define SET_FOLLOWER 0x04
#define SET_SLOTS    0x08
#define SET_PIECES   0x10
#define SET_CLIENT   0x20
#define SET_STEPS    0x40
#define SET_SERVERS  0x80

typedef struct input {
    const uint8_t *at, *end;
} input;

typedef struct world {
    uint8_t setting;
    pl_ps_core *core;
    pl_ps_client *client;
    pl_params *shape;
    pl_optim *optim;
    pl_schedule schedule;
    float params[FLOATS], grad[FLOATS];
    bool storing; /* the core waits for its outcome */
    int64_t now_ns;
    uint32_t generation;         /* of the core, or the client */
    uint32_t incarnation[PEERS]; /* as the core gave them */
    uint64_t sequence[PEERS];
    bool pushing;
} world;

static void no_log(void *context, pl_log_level level, const char *line)
{
    (void)context, (void)level, (void)line;
}

/* Read all of it, as a network would. */
static void touch(const void *payload, uint32_t bytes)
{
    unsigned sum = 0;
    for (uint32_t i = 0; i < bytes; i++)
        sum += ((const uint8_t *)payload)[i];
    PL_ASSERT(sum < UINT32_MAX);
}

static void core_sent(void *context, pl_peer to, const pl_frame *frame,
                      const void *payload, bool lasting)
{
    (void)lasting;
    world *w = context;
    PL_ASSERT(frame->kind > PL_FRAME_NONE && frame->kind < PL_FRAME_KINDS);
    PL_ASSERT(frame->count * sizeof(float) <= frame->payload_bytes);
    touch(payload, frame->payload_bytes);
    w->generation = frame->generation;
    if (to >= 0 && to < PEERS && frame->kind == PL_FRAME_WELCOME) {
        w->incarnation[to] = frame->incarnation;
        w->sequence[to] = 0;
    }
}

static void client_sent(void *context, int32_t ps, const pl_frame *frame,
                        const void *payload, bool lasting)
{
    world *w = context;
    PL_ASSERT(ps >= 0 && ps < PEERS);
    if (frame->sequence > w->sequence[ps])
        w->sequence[ps] = frame->sequence;
    core_sent(w, -1, frame, payload, lasting);
}

static bool store(void *context, const char *plan, size_t bytes)
{
    world *w = context;
    touch(plan, (uint32_t)bytes);
    PL_ASSERT(!w->storing);
    w->storing = true;
    return true;
}

static bool commit(void *context, const pl_ps_part *parts)
{
    return store(context, (const char *)parts, sizeof *parts);
}

static void cancel(void *context)
{
    ((world *)context)->storing = false;
}

/* Updates wait for every second save. */
static bool may_change(void *context, int64_t first, int64_t count)
{
    const world *w = context;
    PL_ASSERT(first == 0 && count == FLOATS);
    return !w->storing || w->now_ns / TICK_NS % 2 == 0;
}

static const pl_ps_core_ops core_ops = {
    .send = core_sent,
    .save = store,
    .commit = commit,
    .load = store,
    .cancel = cancel,
    .touch = may_change,
};
static const pl_ps_client_ops client_ops = { .send = client_sent };

static pl_status open_core(world *w)
{
    int32_t ps = (w->setting & (SET_FOLLOWER | SET_SERVERS)) != 0 ? 2 : 1;
    PL_TRY(pl_params_new(&w->shape));
    PL_TRY(pl_params_add(w->shape, "part", PL_SHAPE(FLOATS)));
    PL_TRY(pl_params_seal(w->shape));
    bool slots = (w->setting & SET_SLOTS) != 0;
    PL_TRY(pl_optim_new(&w->optim,
                        &(pl_optim_opts) { .name = slots ? "adam" : "sgd" },
                        w->shape, pl_kernels_best()));
    return pl_ps_core_new(&w->core,
                          &(pl_ps_core_opts) {
                              .index = (w->setting & SET_FOLLOWER) != 0 ? 1 : 0,
                              .ps = ps,
                              .workers = 2,
                              .evaluator = true,
                              .mode = (pl_ps_mode)((w->setting & SET_MODE) % 3),
                              .end_step = (w->setting & SET_STEPS) != 0 ? 2 : 0,
                              .count = FLOATS,
                              .piece = (w->setting & SET_PIECES) != 0 ? 4 : 0,
                              .params = w->params,
                              .optim = w->optim,
                              .schedule = &w->schedule,
                              .kernels = pl_kernels_best(),
                              .ops = &core_ops,
                              .context = w,
                          },
                          w->now_ns);
}

static pl_status open_client(world *w)
{
    return pl_ps_client_new(
        &w->client,
        &(pl_ps_client_opts) {
            .role = "worker",
            .ps = (w->setting & SET_SERVERS) != 0 ? 2 : 1,
            .workers = 2,
            .mode = (pl_ps_mode)((w->setting & SET_MODE) % 3),
            .count = FLOATS,
            .piece = (w->setting & SET_PIECES) != 0 ? 4 : 0,
            .params = w->params,
            .ops = &client_ops,
            .context = w,
        },
        w->now_ns);
}

/* Small numbers as they are, and some that are not small. */
static int64_t number(uint8_t code)
{
    static const int64_t large[] = { -1,        INT64_MAX, INT64_MIN,
                                     INT32_MAX, INT32_MIN, INT64_MAX - 3,
                                     FLOATS,    -4 };
    return code < 0xf8 ? code : large[code - 0xf8];
}

/* A frame as pl_frame_read would accept it; false: it would not. */
static bool read_frame(world *w, input *in, pl_peer *from, pl_frame *frame,
                       const uint8_t **payload)
{
    const uint8_t *r = in->at;
    if (in->end - r < RECORD)
        return false;
    int32_t peer = r[0] % PEERS;
    *from = r[0] == 0x7f ? PL_PEER_COORDINATOR : peer;
    uint64_t same = w->sequence[peer];
    bool other = r[8] >= 0xf0; /* generation; else it is the present one */
    bool learns = r[1] % (PL_FRAME_KINDS - 1) == PL_FRAME_JOIN - 1 &&
                  (w->setting & SET_FOLLOWER) == 0;
    *frame = (pl_frame) {
        .kind = (pl_frame_kind)(1 + r[1] % (PL_FRAME_KINDS - 1)),
        .flags = r[2],
        .generation = other    ? r[8] - 0xf0u
                      : learns ? 0
                               : w->generation,
        .incarnation = r[3] == 0 ? w->incarnation[peer] : (uint32_t)r[3] - 1,
        .sequence = r[4] == 0   ? same + 1
                    : r[4] == 1 ? same
                                : (uint64_t)number(r[4]),
        .step = number(r[5]),
        .first = number(r[6]),
        .count = r[7],
        .key_count = other ? 0 : r[8],
        .value = { number(r[9]), number(r[10]) },
        .payload_bytes = r[11] == 0xff ? r[7] * 4u : r[11],
    };
    size_t left = (size_t)(in->end - r - RECORD);
    if (frame->payload_bytes > left)
        frame->payload_bytes = (uint32_t)left;
    *payload = r + RECORD;
    in->at = *payload + frame->payload_bytes;
    if ((frame->key_count + 31) / 32 + 4 * frame->count > frame->payload_bytes)
        return false;
    if (w->core != NULL && frame->kind != PL_FRAME_ACK && r[4] == 0)
        w->sequence[peer] = frame->sequence;
    return true;
}

static void ask_pause(world *w, int how)
{
    static const int64_t counts[2] = { 3, ~INT64_C(4) };
    if (how == 4)
        pl_ps_client_save(w->client, 0, "plan");
    else if (how == 5)
        pl_ps_client_look_saved(w->client, true);
    else if (how == 0)
        pl_ps_client_pause(w->client);
    else if (how == 1)
        pl_ps_client_freeze(w->client);
    else if (how == 2)
        pl_ps_client_thaw(w->client);
    else
        pl_ps_client_load(w->client, 0, counts, "plan");
}

/* What the training loop would ask of the client next. */
static void act(world *w, uint8_t code)
{
    if (code % 10 == 8) {
        pl_ps_client_abort(w->client, "why");
        return;
    }
    if (code % 10 == 9) {
        if (w->pushing && pl_ps_client_busy(w->client))
            pl_ps_client_ready(w->client, code / 10);
        return;
    }
    if (pl_ps_client_rolled(w->client)) {
        w->pushing = false;
        pl_ps_client_join(w->client);
    }
    if (pl_ps_client_busy(w->client))
        return;
    w->pushing = false;
    bool joined = pl_ps_client_look(w->client).incarnation != 0;
    switch (joined ? code % 10 : 0) {
    case 0:
        if (!joined)
            pl_ps_client_join(w->client);
        break;
    case 1:
        pl_ps_client_init(w->client, 0);
        break;
    case 2:
        pl_ps_client_pull(w->client, code / 10 % 4, 0);
        break;
    case 3:
        ask_pause(w, code / 10 % 6);
        break;
    case 4:
        pl_ps_client_stop(w->client, false, "enough");
        break;
    case 5:
        pl_ps_client_bye(w->client, "{}");
        break;
    default:
        pl_ps_client_push(w->client, 0, w->grad);
        w->pushing = true;
        if (code % 10 == 6)
            pl_ps_client_ready(w->client, 0);
        break;
    }
}

static void feed(world *w, pl_peer from, const pl_frame *frame,
                 const uint8_t *payload)
{
    /* Aligned, and of exactly its size; none has no memory. */
    void *exact = NULL;
    if (frame->payload_bytes > 0) {
        exact = malloc(frame->payload_bytes);
        if (exact == NULL)
            abort();
        memcpy(exact, payload, frame->payload_bytes);
    }
    pl_message message = { .from = from, .frame = *frame, .payload = exact };
    if (w->core != NULL) {
        bool follower = (w->setting & SET_FOLLOWER) != 0;
        if (from != PL_PEER_COORDINATOR || follower)
            pl_ps_core_receive(w->core, &message, w->now_ns);
    } else {
        int32_t servers = (w->setting & SET_SERVERS) != 0 ? 2 : 1;
        pl_ps_client_receive(w->client, from < 0 ? 0 : from % servers, &message,
                             w->now_ns);
        w->incarnation[from < 0 ? 0 : from] =
            pl_ps_client_look(w->client).incarnation;
        w->generation = pl_ps_client_look(w->client).generation;
    }
    free(exact);
}

static void pass_time(world *w, uint8_t code)
{
    w->now_ns += (code & 0x7f) * TICK_NS;
    if (w->core != NULL && w->storing && (code & 1) != 0) {
        w->storing = false;
        pl_ps_core_stored(w->core,
                          &(pl_ps_stored) { .outcome = (pl_saved)(code & 2) },
                          w->now_ns);
    }
    if (w->core != NULL)
        pl_ps_core_tick(w->core, w->now_ns);
    else
        pl_ps_client_tick(w->client, w->now_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes == 0)
        return 0;
    pl_log_set(no_log, NULL, PL_LOG_ERROR);
    world w = { .setting = data[0], .schedule = { .lr = 0.1 }, .now_ns = 1 };
    bool client = (w.setting & SET_CLIENT) != 0;
    if ((client ? open_client(&w) : open_core(&w)) != PL_OK)
        abort();
    input in = { data + 1, data + bytes };
    while (in.at < in.end) {
        pl_peer from;
        pl_frame frame;
        const uint8_t *payload;
        if (*in.at >= 0x80) {
            pass_time(&w, *in.at++);
        } else if (client && *in.at >= 0x40 && *in.at < 0x7f) {
            act(&w, *in.at++ - 0x40);
        } else if (read_frame(&w, &in, &from, &frame, &payload)) {
            feed(&w, from, &frame, payload);
        } else if (in.end - in.at < RECORD) {
            break;
        }
    }
    pl_ps_core_free(w.core);
    pl_ps_client_free(w.client);
    pl_optim_free(w.optim);
    pl_params_free(w.shape);
    return 0;
}

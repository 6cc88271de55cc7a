/* fuzz_ps_client.c - what a worker with sparse parameters accepts from its
 * servers.
 *
 * The first byte is the setting.  Then come records: a byte of 0x80 or more
 * is something the worker does (time passes, or its next request begins);
 * others are RECORD bytes and a payload, a message of a server.  Generation,
 * incarnation, sequence and the number of values are usually the right ones,
 * so that the answers are looked at.
 *
 * A request that ended well, and not with the end of the job, has brought a
 * value for every key that was asked for. */
#include "base/assert.h"
#include "base/log.h"
#include "fuzz/fuzz.h"
#include "sync/ps/messages/pieces.h"
#include "sync/ps/worker/client.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FLOATS   2000
#define TABLE    1900
#define WORKERS  3
#define SERVERS  2
#define BATCHES  3
#define KEYS     70
#define RANGE    10
#define MESSAGES 512
#define RECORD   8
#define TICK_NS  INT64_C(100000000)

/* The setting. */
#define SET_MODE    0x03
#define SET_SERVERS 0x04
#define SET_SMALL   0x08 /* shared memory that no message fits in */
#define SET_JOINED  0x10 /* all servers have welcomed it already */

typedef struct world {
    pl_ps_client *client;
    int32_t servers;
    pl_key_batch batches[BATCHES];
    float grad[KEYS], range[RANGE];
    uint8_t messages[MESSAGES];
    pl_frame asked[SERVERS]; /* the last request to each */
    uint64_t joins;
    int64_t now_ns;
    pl_key_batch *want; /* of the current request */
    bool reads;         /* ... or it is about the range */
    bool over;          /* a server answered it with the end of the job */
} world;

static void no_log(void *context, pl_log_level level, const char *line)
{
    (void)context, (void)level, (void)line;
}

static void sent(void *context, int32_t ps, const pl_frame *frame,
                 const void *payload, bool lasting)
{
    (void)lasting;
    world *w = context;
    unsigned sum = 0;
    PL_ASSERT(ps >= 0 && ps < w->servers);
    PL_ASSERT(frame->kind > PL_FRAME_NONE && frame->kind < PL_FRAME_KINDS);
    PL_ASSERT(frame->payload_bytes <= PL_FRAME_PAYLOAD_MAX);
    for (uint32_t i = 0; i < frame->payload_bytes; i++)
        sum += ((const uint8_t *)payload)[i];
    PL_ASSERT(sum < UINT32_MAX);
    if (frame->kind == PL_FRAME_JOIN)
        w->joins = frame->sequence;
    else if (frame->sequence > 0 && frame->kind != PL_FRAME_ACK)
        w->asked[ps] = *frame;
}

static const pl_ps_client_ops ops = { .send = sent };

static pl_status open_world(world *w, uint8_t setting)
{
    w->servers = (setting & SET_SERVERS) != 0 ? SERVERS : 1;
    for (int b = 0; b < BATCHES; b++) {
        pl_key_batch *batch = &w->batches[b];
        PL_TRY(pl_key_batch_init(batch, w->servers));
        PL_TRY(pl_key_batch_resize(batch, KEYS - 30 * b));
        for (int64_t i = 0; i < batch->count; i++)
            batch->keys[i] = (uint64_t)(i * (TABLE / KEYS) + b);
        batch->keys[batch->count - 1] = FLOATS - 1; /* the bias */
        PL_TRY(pl_key_batch_cut(batch, FLOATS));
    }
    return pl_ps_client_new(
        &w->client,
        &(pl_ps_client_opts) {
            .role = "worker",
            .ps = w->servers,
            .workers = WORKERS,
            .mode = (pl_ps_mode)((setting & SET_MODE) % 3),
            .count = FLOATS,
            .table_count = TABLE,
            .messages = w->messages,
            .message_bytes = (setting & SET_SMALL) != 0 ? 0 : MESSAGES,
            .ops = &ops,
            .context = w,
        },
        w->now_ns);
}

/* Ends where the memory of a message ends; none has no memory, as in shared
 * memory. */
static void feed(world *w, int32_t ps, pl_frame frame, const void *payload)
{
    void *exact = NULL;
    if (frame.payload_bytes > 0) {
        exact = malloc(frame.payload_bytes);
        if (exact == NULL)
            abort();
        memcpy(exact, payload, frame.payload_bytes);
    }
    pl_message message = { .frame = frame, .payload = exact };
    pl_ps_client_receive(w->client, ps, &message, w->now_ns);
    free(exact);
}

static void welcome(world *w)
{
    static const char text[] = "{\"job\": \"1f\", \"shm\": \"\"}";
    pl_ps_client_join(w->client);
    for (int32_t ps = 0; ps < w->servers; ps++)
        feed(w, ps,
             (pl_frame) { .kind = PL_FRAME_WELCOME,
                          .generation = 1,
                          .incarnation = 1,
                          .sequence = w->joins,
                          .payload_bytes = sizeof text - 1 },
             text);
}

/* --- what the worker does --------------------------------------------- */

/* The values that are to come are not there yet. */
static pl_key_batch *empty_batch(world *w, uint8_t code)
{
    pl_key_batch *batch = &w->batches[code % BATCHES];
    for (int64_t i = 0; i < batch->count; i++)
        batch->values[i] = NAN;
    return w->want = batch;
}

static void read_range(world *w, uint8_t code)
{
    int64_t first, count;
    pl_pieces_shard(FLOATS, w->servers, code % w->servers, &first, &count);
    for (int i = 0; i < RANGE; i++)
        w->range[i] = NAN;
    w->reads = true;
    pl_ps_client_read(w->client, first, RANGE, w->range);
}

static void ask_without_data(world *w, uint8_t code)
{
    switch (code % 8) {
    case 0:
        pl_ps_client_fill(w->client, 0, "{}");
        break;
    case 1:
        pl_ps_client_freeze(w->client);
        break;
    case 2:
        pl_ps_client_thaw(w->client);
        break;
    case 3:
        pl_ps_client_save(w->client, code, "{}");
        break;
    case 4:
        pl_ps_client_look_saved(w->client, true);
        break;
    case 5:
        pl_ps_client_share(w->client, code, true);
        break;
    case 6:
        pl_ps_client_stop(w->client, false, "enough");
        break;
    default:
        pl_ps_client_bye(w->client, "{}");
        break;
    }
}

/* The next request, where one may begin. */
static void act(world *w, uint8_t code)
{
    if (pl_ps_client_rolled(w->client) ||
        (!pl_ps_client_busy(w->client) &&
         pl_ps_client_look(w->client).incarnation == 0)) {
        pl_ps_client_join(w->client);
        w->want = NULL;
        w->reads = w->over = false;
    }
    if (pl_ps_client_busy(w->client))
        return;
    uint8_t rest = code / 4;
    const pl_key_batch *of = &w->batches[(rest + 1) % BATCHES];
    switch (code % 4) {
    case 0:
        pl_ps_client_ask(w->client, (rest & 3) == 3 ? PL_PULL_PEEK : 0, 0,
                         empty_batch(w, rest));
        break;
    case 1:
        pl_ps_client_push_keys(w->client, rest, of, w->grad,
                               (rest & 4) != 0 ? NULL : empty_batch(w, rest));
        break;
    case 2:
        read_range(w, rest);
        break;
    default:
        ask_without_data(w, rest);
        break;
    }
}

/* Look at what a request brought once it is over. */
static void check(world *w)
{
    if (pl_ps_client_busy(w->client) || pl_ps_client_rolled(w->client) ||
        pl_ps_client_outcome(w->client) != PL_OK)
        return;
    for (int64_t i = 0; w->want != NULL && !w->over && i < w->want->count; i++)
        PL_ASSERT(!isnan(w->want->values[i]));
    for (int i = 0; w->reads && i < RANGE; i++)
        PL_ASSERT(!isnan(w->range[i]));
    w->want = NULL;
    w->reads = w->over = false;
}

/* --- messages of the servers ------------------------------------------ */

/* The number of values that this server was asked for. */
static uint32_t values_asked(const world *w, int32_t ps)
{
    const pl_frame *asked = &w->asked[ps];
    if (asked->kind == PL_FRAME_PULL && (asked->flags & PL_PULL_RANGE) != 0)
        return (uint32_t)asked->value[1];
    return w->want != NULL ? (uint32_t)pl_key_batch_of(w->want, ps) : 0;
}

static int64_t number(uint8_t code)
{
    static const int64_t large[] = { -1, INT64_MAX, INT64_MIN, INT32_MAX };
    return code < 0xfc ? code : large[code - 0xfc];
}

/* One record; returns what is left after it. */
static const uint8_t *hear(world *w, const uint8_t *r, const uint8_t *end)
{
    static const pl_frame_kind kinds[] = {
        PL_FRAME_PARAMS,        PL_FRAME_ACK,    PL_FRAME_REPORT,
        PL_FRAME_WELCOME,       PL_FRAME_REFUSE, PL_FRAME_OVER,
        PL_FRAME_HEARTBEAT_ACK, PL_FRAME_PARAMS,
    };
    if (end - r < RECORD)
        return end;
    int32_t ps = r[0] % w->servers;
    pl_ps_client_view view = pl_ps_client_look(w->client);
    pl_frame frame = {
        .kind = kinds[r[0] / 2 % 8],
        .flags = r[1],
        .generation = view.generation + r[2] % 4 / 3,
        .incarnation = view.incarnation + r[2] / 4 % 8 / 7,
        .sequence = w->asked[ps].sequence - r[2] / 32 / 7,
        .step = number(r[3]),
        .count = r[4] == 0xff ? values_asked(w, ps) : r[4],
        .value = { number(r[5]), number(r[6]) },
    };
    if (frame.kind == PL_FRAME_WELCOME) {
        frame.sequence = w->joins - r[2] / 32 / 7;
        frame.generation = frame.generation > 0 ? frame.generation : 1;
        frame.incarnation = frame.incarnation > 0 ? frame.incarnation : 1;
    }
    if (frame.kind == PL_FRAME_PARAMS && frame.count == 0)
        w->over = w->over || (frame.flags & PL_ANSWER_STOP) != 0;
    /* Values are numbers; texts are what the input has. */
    float values[256] = { 0 };
    uint8_t text[256];
    const uint8_t *payload = r + RECORD;
    size_t left = (size_t)(end - payload);
    if (frame.count > 0) {
        frame.payload_bytes = frame.count * (uint32_t)sizeof *values;
        feed(w, ps, frame, values);
        return payload;
    }
    frame.payload_bytes = (uint32_t)(r[7] < left ? r[7] : left);
    memcpy(text, payload, frame.payload_bytes);
    feed(w, ps, frame, text);
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
    w->now_ns = 1;
    if (open_world(w, data[0]) != PL_OK)
        abort();
    if ((data[0] & SET_JOINED) != 0)
        welcome(w);
    const uint8_t *at = data + 1, *end = data + bytes;
    while (at < end) {
        if (*at >= 0xc0) {
            w->now_ns += (*at++ & 0x3f) * TICK_NS;
            pl_ps_client_tick(w->client, w->now_ns);
        } else if (*at >= 0x80) {
            act(w, *at++ & 0x3f);
        } else {
            at = hear(w, at, end);
        }
        check(w);
    }
    pl_ps_client_free(w->client);
    for (int b = 0; b < BATCHES; b++)
        pl_key_batch_close(&w->batches[b]);
    free(w);
    return 0;
}

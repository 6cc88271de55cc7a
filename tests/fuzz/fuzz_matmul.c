/* fuzz_matmul.c - what a worker of a matrix product accepts from the others.
 *
 * The first byte is the setting.  Then come records: a byte of 0x80 or more
 * is something the worker does; others are RECORD bytes and a payload, a
 * request to its server or an answer to one of its own.  An answer is usually
 * to a piece that was asked for, so that blocks fill up.
 *
 * Only floats of the store leave it, and no step has more floats than it
 * lacked. */
#include "base/assert.h"
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "matmul/mover_priv.h"
#include "matmul/report.h"

#include <stdlib.h>
#include <string.h>

#define WORKERS 3
#define N       12
#define BLOCKS  4
#define RECORD  8
#define MOST    256 /* floats or characters of a payload */
#define JOB     "paceline --n 12"

/* The setting. */
#define SET_WORKER 0x03
#define SET_TRACE  0x04
#define SET_KEYS   0x08 /* senders have proved who they are */

typedef struct world {
    pl_placement placement;
    pl_matmul_plan plan;
    pl_store *store;
    pl_mover mover;
    int32_t computed; /* steps */
    char ends[WORKERS + 1];
} world;

static world *now; /* that endpoints belong to */

/* --- endpoints that go nowhere ---------------------------------------- */

static pl_endpoint *end_of(world *w, int32_t worker)
{
    return (pl_endpoint *)(void *)&w->ends[worker];
}

static bool is_end(const pl_endpoint *end)
{
    const char *at = (const char *)end;
    return at >= now->ends && at <= now->ends + WORKERS;
}

static pl_status send(pl_endpoint *end, pl_peer to, const pl_frame *frame,
                      const void *payload, bool lasting)
{
    (void)to;
    unsigned sum = 0;
    PL_ASSERT(is_end(end));
    PL_ASSERT(frame->kind > PL_FRAME_NONE && frame->kind < PL_FRAME_KINDS);
    PL_ASSERT(frame->count * sizeof(float) <= frame->payload_bytes);
    for (uint32_t i = 0; i < frame->payload_bytes; i++)
        sum += ((const uint8_t *)payload)[i];
    PL_ASSERT(sum < UINT32_MAX);
    if (lasting) {
        const pl_area *area = pl_store_area(now->store);
        const char *begin = pl_area_data(area), *at = payload;
        PL_ASSERT(at >= begin &&
                  at + frame->payload_bytes <= begin + pl_area_bytes(area));
    }
    return PL_OK;
}

static pl_status offer(pl_endpoint *client, char text[PL_OFFER_BYTES])
{
    PL_ASSERT(is_end(client));
    strcpy(text, "offer");
    return PL_OK;
}

static pl_status take_offer(pl_endpoint *server, pl_peer peer, const char *text,
                            char answer[PL_OFFER_BYTES])
{
    (void)peer;
    PL_ASSERT(is_end(server));
    /* As the endpoint does: an offer of nothing is answered by nothing. */
    strcpy(answer, text[0] == '\0' ? "" : "answer");
    return PL_OK;
}

static pl_status complete(pl_endpoint *client, const char *answer)
{
    PL_ASSERT(is_end(client) && strlen(answer) < PL_OFFER_BYTES);
    return PL_OK;
}

static const pl_mover_net net = { send, offer, take_offer, complete };

/* --- the worker ------------------------------------------------------- */

static pl_status open_world(world *w, uint8_t setting)
{
    pl_matmul_job job = {
        .op = (setting & SET_TRACE) != 0 ? PL_MATMUL_TRACE : PL_MATMUL_PRODUCT,
        .n = N,
        .blocks = BLOCKS,
        .workers = WORKERS,
    };
    int32_t own = (setting & SET_WORKER) % WORKERS;
    now = w;
    PL_TRY(pl_placement_parse(&w->placement, &job, "(i+j)%W"));
    PL_TRY(pl_matmul_plan_init(&w->plan, &w->placement, own));
    PL_TRY(pl_store_new(&w->store, &w->placement, own));
    pl_store_fill(w->store);
    PL_TRY(pl_mover_init(&w->mover,
                         &(pl_mover_opts) {
                             .placement = &w->placement,
                             .plan = &w->plan,
                             .store = w->store,
                             .worker = own,
                             .job = JOB,
                             .address = "a:1",
                         },
                         &net));
    w->mover.server = end_of(w, WORKERS);
    for (int32_t i = 0; i < WORKERS; i++) {
        if (i == own)
            continue;
        PL_TRY(pl_mem_copy_text(&w->mover.others[i].address, "b:1"));
        w->mover.others[i].end = end_of(w, i);
    }
    pl_mover_join(&w->mover);
    return PL_OK;
}

/* The next step, where all of it is there. */
static void compute(world *w)
{
    const pl_mover *m = &w->mover;
    const float *wants;
    const pl_slot *slot = &m->slots[w->computed % PL_MATMUL_SLOTS];
    if (w->computed == w->plan.step_count || slot->step != w->computed ||
        slot->left > 0)
        return;
    PL_ASSERT(pl_mover_await(&w->mover, w->computed, &wants) == PL_OK);
    pl_mover_release(&w->mover, w->computed++);
}

static pl_status act(world *w, uint8_t what)
{
    pl_mover *m = &w->mover;
    switch (what % 6) {
    case 0:
        for (int32_t i = 0; i < WORKERS; i++)
            m->others[i].asked_ns = 0; /* long ago */
        return pl_mover_tend(m);
    case 1:
        return m->job == PL_MATMUL_RUNS ? pl_mover_ask(m) : PL_OK;
    case 2:
        if (m->phase == PL_WORKER_PHASE_MAKING)
            m->phase = PL_WORKER_PHASE_READY;
        return PL_OK;
    case 3:
        compute(w);
        return PL_OK;
    case 4:
        if (w->computed == w->plan.step_count && m->report == NULL) {
            m->phase = PL_WORKER_PHASE_DONE;
            return pl_mem_copy_text(&m->report, "{}");
        }
        return PL_OK;
    default:
        return pl_membership_outcome(m->membership);
    }
}

/* --- the others ------------------------------------------------------- */

static int64_t number(uint8_t code)
{
    static const int64_t large[] = { -1, INT64_MAX, INT64_MIN, INT32_MAX };
    return code < 0xfc ? code : large[code - 0xfc];
}

/* Ends where its memory ends; an empty payload has no memory. */
static pl_status hand_over(world *w, uint8_t way, pl_message message,
                           const void *payload)
{
    uint32_t bytes = message.frame.payload_bytes;
    void *exact = bytes > 0 ? malloc(bytes) : NULL;
    if (bytes > 0 && exact == NULL)
        abort();
    if (bytes > 0)
        memcpy(exact, payload, bytes);
    message.payload = exact;
    int32_t from = way % WORKERS;
    pl_status status = PL_OK;
    if ((way & 0x40) == 0)
        status = pl_mover_take_request(&w->mover, &message);
    else if (from != w->mover.opts.worker)
        status = pl_mover_take_answer(&w->mover, from, &message);
    free(exact);
    return status;
}

static pl_status hear(world *w, bool keys, const uint8_t *r, size_t left,
                      size_t *used)
{
    static const pl_frame_kind kinds[] = {
        PL_FRAME_JOIN,   PL_FRAME_HEARTBEAT, PL_FRAME_BYE,
        PL_FRAME_PULL,   PL_FRAME_PARAMS,    PL_FRAME_HEARTBEAT_ACK,
        PL_FRAME_LINK,   PL_FRAME_WELCOME,   PL_FRAME_REFUSE,
        PL_FRAME_LINKED, PL_FRAME_OVER,      PL_FRAME_STOP,
        PL_FRAME_ROLL,   PL_FRAME_SAVE,
    };
    static const float zeros[MOST];
    const pl_ask *ask = &w->mover.asks[r[2] % PL_MOVER_ASKS];
    const uint8_t *text = r + RECORD;
    pl_message message = {
        .from = r[0] % 4,
        .frame = {
            .kind = kinds[r[1] % (sizeof kinds / sizeof *kinds)],
            .flags = r[4],
            .generation = r[3] % 4,
            .incarnation = r[4] % 4,
            .sequence = ask->sequence + r[2] / 0xf0,
            .step = number(r[3]),
            .first = r[3] == 0 ? ask->first : number(r[3]),
            .value = { number(r[5]), number(r[6]) },
        },
    };
    if (message.frame.kind == PL_FRAME_PULL) /* a block by row and column */
        message.frame.value[0] =
            number(r[5]) % 256 / 16 * (INT64_C(1) << 32) + (r[5] & 15);
    if (keys)
        message.who = (pl_principal) { PL_PRINCIPAL_WORKER, r[0] % WORKERS };
    int64_t count = r[4] == 0xff ? ask->count : r[4];
    if (message.frame.kind == PL_FRAME_PARAMS && count <= MOST) {
        message.frame.count = (uint32_t)count;
        message.frame.payload_bytes = (uint32_t)count * (uint32_t)sizeof *zeros;
        *used = RECORD;
        return hand_over(w, r[0], message, zeros);
    }
    size_t bytes = r[7] < left - RECORD ? r[7] : left - RECORD;
    message.frame.payload_bytes = (uint32_t)bytes;
    *used = RECORD + bytes;
    return hand_over(w, r[0], message, text);
}

static void check(const world *w)
{
    for (int i = 0; i < PL_MATMUL_SLOTS; i++)
        PL_ASSERT(w->mover.slots[i].left >= 0);
}

/* The job ended well, and worker 0 reads all reports: each is its sender's. */
static void sum_up(world *w)
{
    pl_matmul_result result;
    pl_matmul_report own = { 0 };
    if (w->mover.opts.worker != 0 || w->mover.job != PL_MATMUL_OVER ||
        pl_matmul_report_sum(&result, &own, &w->mover, &w->placement.job) !=
            PL_OK)
        return;
    for (int32_t i = 0; i < WORKERS; i++)
        PL_ASSERT(result.per_worker[i].index == i);
    pl_fields_close(&pl_matmul_result_fields, &result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes == 0)
        return 0;
    world *w = calloc(1, sizeof *w);
    if (w == NULL || open_world(w, data[0]) != PL_OK)
        abort();
    bool keys = (data[0] & SET_KEYS) != 0;
    pl_status status = PL_OK;
    for (size_t at = 1, used = 0; at < bytes && status == PL_OK; at += used) {
        used = bytes - at;
        if (data[at] >= 0x80) {
            used = 1;
            status = act(w, data[at] & 0x7f);
        } else if (bytes - at >= RECORD) {
            status = hear(w, keys, data + at, bytes - at, &used);
        }
        check(w);
    }
    if (status == PL_OK)
        sum_up(w);
    pl_mover_close(&w->mover);
    pl_store_free(w->store);
    pl_matmul_plan_close(&w->plan);
    pl_placement_close(&w->placement);
    free(w);
    return 0;
}

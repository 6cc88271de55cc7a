/* Whole jobs with sparse parameters: clients and servers in one thread, with
 * messages between them that are lost, doubled and late, and workers that are
 * started again.  What comes out must have the bits of a plain calculation.
 *
 * Invariants and the tests that check them:
 *   keyed K1  lost_and_doubled_messages_change_no_bit,
 *             restarted_workers_change_no_bit
 *   keyed K2  sync_makes_the_bits_of_one_process, with L1 and a bias */
#include "sync/ps/core/core.h"
#include "sync/ps/worker/client.h"

#include "base/mem.h"
#include "base/rng.h"
#include "support/unit.h"
#include "sync/ps/messages/pieces.h"
#include "train/compute/sparse_sum.h"
#include "train/loop/first.h"

#include <stdlib.h>
#include <string.h>

#define FEATURES 1000
#define BLOCK    1024 /* the table, the bias at BIAS, gaps */
#define BIAS     1008
#define KEYS     40
#define WORKERS  3
#define SERVERS  2
#define STEPS    25
#define MESSAGES 4096
#define PEER_PS  1000 /* other servers, as server 0 sees them */
#define LIVES    64
#define TICK_NS  INT64_C(100000000)
#define TEXT                                                                   \
    "{\"seed\": \"7\", \"tensors\": [{\"name\": \"t/weights\", \"first\": 0, " \
    "\"count\": 1000, \"init\": \"uniform:0.5\"}, {\"name\": \"t/bias\", "     \
    "\"first\": 1008, \"count\": 1, \"init\": \"zeros\"}]}"

typedef struct letter {
    int32_t core;   /* to this server, or... */
    int32_t client; /* ... to this life of a worker; -1 */
    pl_peer from;
    int32_t ps; /* to a client: which server it is from */
    pl_frame frame;
    void *payload;
} letter;

typedef enum todo {
    TO_JOIN,
    TO_FILL,
    TO_ASK,
    TO_PUSH,
    TO_STOP,
    TO_BYE,
    ALL_DONE,
} todo;

typedef struct worker {
    pl_ps_client *client;
    int32_t life; /* also its peer number */
    todo next;
    pl_key_batch batches[2];
    pl_key_batch look; /* of a test between two gradients... */
    uint32_t looks;    /* ... remaining batches of it */
    float grad[KEYS + 1];
    int64_t step; /* of the current batch */
    int at;       /* whose batch that is */
} worker;

typedef struct world {
    pl_ps_mode mode;
    uint64_t seed, count; /* of random numbers */
    int loss;             /* in a hundred messages */
    bool restarts;
    pl_ps_core *cores[SERVERS];
    pl_params *shapes[SERVERS];
    pl_optim *optims[SERVERS];
    pl_schedule schedule;
    worker workers[WORKERS];
    int32_t owner[LIVES]; /* the worker of a life */
    int32_t lives;
    letter letters[MESSAGES];
    int waiting;
    int64_t now_ns;
    int64_t sent;
} world;

static uint32_t draw(world *w, uint32_t below)
{
    return pl_rng_below(w->seed, w->count++, below);
}

static void post(world *w, letter l, const void *payload)
{
    int copies = 1;
    w->sent++;
    if ((int)draw(w, 100) < w->loss)
        copies = (int)draw(w, 3) % 2 * 2; /* none, or two */
    for (int i = 0; i < copies; i++) {
        assert_true(w->waiting < MESSAGES);
        l.payload = malloc(l.frame.payload_bytes + 1u);
        assert_non_null(l.payload);
        if (l.frame.payload_bytes > 0)
            memcpy(l.payload, payload, l.frame.payload_bytes);
        w->letters[w->waiting++] = l;
    }
}

typedef struct place {
    world *world;
    int32_t index;
} place;

static void core_sends(void *context, pl_peer to, const pl_frame *frame,
                       const void *payload, bool lasting)
{
    (void)lasting;
    place *p = context;
    letter l = { .core = -1, .client = -1, .ps = p->index, .frame = *frame };
    if (to == PL_PEER_COORDINATOR) {
        l.core = 0;
        l.from = PEER_PS + p->index;
    } else if (to >= PEER_PS) {
        l.core = to - PEER_PS;
        l.from = PL_PEER_COORDINATOR;
    } else {
        l.client = to;
    }
    post(p->world, l, payload);
}

static void client_sends(void *context, int32_t ps, const pl_frame *frame,
                         const void *payload, bool lasting)
{
    (void)lasting;
    place *p = context;
    letter l = { .core = ps,
                 .client = -1,
                 .from = p->world->workers[p->index].life,
                 .frame = *frame };
    post(p->world, l, payload);
}

static const pl_ps_core_ops core_ops = { .send = core_sends };
static const pl_ps_client_ops client_ops = { .send = client_sends };

/* Contexts that outlive calls. */
static place core_places[SERVERS], client_places[WORKERS];

static pl_status open_core(world *w, int32_t j)
{
    int64_t first, count;
    pl_pieces_shard(BLOCK, SERVERS, j, &first, &count);
    core_places[j] = (place) { w, j };
    PL_TRY(pl_params_new(&w->shapes[j]));
    PL_TRY(pl_params_add(w->shapes[j], "part", PL_SHAPE(count)));
    PL_TRY(pl_params_seal(w->shapes[j]));
    PL_TRY(pl_optim_new(&w->optims[j],
                        &(pl_optim_opts) { .name = "adagrad", .l1 = 1e-4 },
                        w->shapes[j], pl_kernels_best()));
    return pl_ps_core_new(&w->cores[j],
                          &(pl_ps_core_opts) {
                              .index = j,
                              .ps = SERVERS,
                              .workers = WORKERS,
                              .mode = w->mode,
                              .end_step = STEPS,
                              .heartbeat_ms = 1000000000,
                              .rejoin_ms = 1000000000,
                              .join_ms = 1000000000,
                              .first = first,
                              .count = count,
                              .table_first = 0,
                              .table_count = FEATURES,
                              .params = pl_params_block(w->shapes[j]),
                              .optim = w->optims[j],
                              .schedule = &w->schedule,
                              .kernels = pl_kernels_best(),
                              .ops = &core_ops,
                              .context = &core_places[j],
                          },
                          w->now_ns);
}

static void start_worker(world *w, int32_t index)
{
    worker *k = &w->workers[index];
    assert_true(w->lives < LIVES);
    pl_ps_client_free(k->client);
    k->life = w->lives++;
    w->owner[k->life] = index;
    k->next = TO_JOIN;
    client_places[index] = (place) { w, index };
    assert_ok(pl_ps_client_new(&k->client,
                               &(pl_ps_client_opts) {
                                   .role = "worker",
                                   .index = index,
                                   .ps = SERVERS,
                                   .workers = WORKERS,
                                   .mode = w->mode,
                                   .count = BLOCK,
                                   .table_count = FEATURES,
                                   .end_step = STEPS,
                                   .run_steps = STEPS,
                                   .ops = &client_ops,
                                   .context = &client_places[index],
                               },
                               w->now_ns));
}

/* The keys of worker `index` at `step`: some of the table, and the bias. */
static void make_keys(int32_t index, int64_t step, pl_key_batch *batch)
{
    uint64_t key = (uint64_t)(step * WORKERS + index), next = 0;
    assert_ok(pl_key_batch_resize(batch, KEYS + 1));
    for (int i = 0; i < KEYS; i++) {
        batch->keys[i] = next + pl_rng_below(key, (uint64_t)i, 20);
        next = batch->keys[i] + 1;
    }
    batch->keys[KEYS] = BIAS;
    assert_ok(pl_key_batch_cut(batch, BLOCK));
}

static void make_gradient(int32_t index, int64_t step, int64_t count,
                          const float *values, float *grad)
{
    uint64_t key = 1000 + (uint64_t)(step * WORKERS + index);
    for (int64_t i = 0; i < count; i++)
        grad[i] =
            0.1f * values[i] + (float)pl_rng_normal(key, (uint64_t)i) * 0.01f;
}

/* The request of a worker is done: what comes next? */
static void go_on(world *w, int32_t index)
{
    worker *k = &w->workers[index];
    pl_ps_client_view view = pl_ps_client_look(k->client);
    if (k->next == TO_ASK && index == 0 && !view.initialized)
        k->next = TO_FILL;
    if (k->next == TO_PUSH && (view.answer & PL_ANSWER_STOP) != 0)
        k->next = TO_BYE;
    switch (k->next) {
    case TO_JOIN:
        pl_ps_client_join(k->client);
        k->next = TO_ASK;
        break;
    case TO_FILL:
        pl_ps_client_fill(k->client, 0, TEXT);
        k->next = TO_STOP; /* then ask, whatever its welcome was */
        break;
    case TO_STOP:
    case TO_ASK: {
        int64_t own = w->mode == PL_PS_SYNC ? view.step : view.own;
        k->at = 0;
        k->step = own;
        make_keys(index, own, &k->batches[0]);
        pl_ps_client_ask(k->client, 0, 0, &k->batches[0]);
        k->next = TO_PUSH;
        break;
    }
    case TO_PUSH: {
        /* In sync another may have been faster with the step. */
        int64_t at = w->mode == PL_PS_SYNC ? view.step : view.own;
        if (at != k->step) {
            k->next = TO_ASK;
            go_on(w, index);
            break;
        }
        if (k->looks > 0) {
            k->looks--;
            make_keys(index, 999, &k->look);
            pl_ps_client_ask(k->client, PL_PULL_PEEK, 0, &k->look);
            break;
        }
        k->looks = draw(w, 4) == 0 ? draw(w, 9) : 0;
        pl_key_batch *of = &k->batches[k->at], *want = &k->batches[1 - k->at];
        make_gradient(index, k->step, of->count, of->values, k->grad);
        make_keys(index, k->step + 1, want);
        pl_ps_client_push_keys(k->client, view.step, of, k->grad, want);
        k->at = 1 - k->at;
        k->step++;
        break;
    }
    case TO_BYE:
        pl_ps_client_bye(k->client, "{}");
        k->next = ALL_DONE;
        break;
    case ALL_DONE:
        break;
    }
}

static void deliver(world *w, letter *l)
{
    pl_message message = { .from = l->from,
                           .frame = l->frame,
                           .payload = l->payload };
    if (l->core >= 0) {
        pl_ps_core_receive(w->cores[l->core], &message, w->now_ns);
    } else {
        worker *k = &w->workers[w->owner[l->client]];
        message.from = 0;
        if (k->life == l->client)
            pl_ps_client_receive(k->client, l->ps, &message, w->now_ns);
    }
    free(l->payload);
}

static void pass_time(world *w)
{
    w->now_ns += TICK_NS;
    for (int32_t j = 0; j < SERVERS; j++)
        pl_ps_core_tick(w->cores[j], w->now_ns);
    for (int32_t k = 0; k < WORKERS; k++)
        pl_ps_client_tick(w->workers[k].client, w->now_ns);
}

static void run(world *w)
{
    for (int64_t turn = 0;; turn++) {
        bool all = true;
        assert_true(turn < 2000000);
        for (int32_t k = 0; k < WORKERS; k++) {
            worker *own = &w->workers[k];
            assert_ok(pl_ps_client_outcome(own->client));
            /* A chief that is lost before the first parameters is another case.
             */
            if (w->restarts && own->next == TO_PUSH && w->lives < LIVES &&
                draw(w, 300) == 0)
                start_worker(w, k);
            if (!pl_ps_client_busy(own->client))
                go_on(w, k);
            all = all && own->next == ALL_DONE;
        }
        if (all && pl_ps_core_look(w->cores[0], 0).step == STEPS)
            break;
        if (w->waiting == 0 || draw(w, 50) == 0) {
            pass_time(w);
            continue;
        }
        /* Late by some messages, mostly not. */
        int at = (int)draw(w, w->waiting < 4 ? (uint32_t)w->waiting : 4);
        letter l = w->letters[at];
        w->waiting--;
        memmove(w->letters + at, w->letters + at + 1,
                (size_t)(w->waiting - at) * sizeof l);
        deliver(w, &l);
    }
}

static void open_world(world *w)
{
    w->schedule = (pl_schedule) { .lr = 0.1, .run_steps = STEPS };
    w->now_ns = 1;
    for (int32_t j = 0; j < SERVERS; j++)
        assert_ok(open_core(w, j));
    for (int32_t k = 0; k < WORKERS; k++) {
        for (int b = 0; b < 2; b++)
            assert_ok(pl_key_batch_init(&w->workers[k].batches[b], SERVERS));
        assert_ok(pl_key_batch_init(&w->workers[k].look, SERVERS));
        start_worker(w, k);
    }
}

static void close_world(world *w)
{
    for (int i = 0; i < w->waiting; i++)
        free(w->letters[i].payload);
    for (int32_t k = 0; k < WORKERS; k++) {
        pl_ps_client_free(w->workers[k].client);
        for (int b = 0; b < 2; b++)
            pl_key_batch_close(&w->workers[k].batches[b]);
        pl_key_batch_close(&w->workers[k].look);
    }
    for (int32_t j = 0; j < SERVERS; j++) {
        pl_ps_core_free(w->cores[j]);
        pl_optim_free(w->optims[j]);
        pl_params_free(w->shapes[j]);
    }
    free(w);
}

/* The same steps on one block. */
static void calculate(float *block, int32_t workers, pl_optim *optim)
{
    pl_sparse_sum sum = { .room = 0 };
    pl_key_batch batch;
    float grad[KEYS + 1];
    assert_ok(pl_key_batch_init(&batch, 1));
    for (int64_t step = 0; step < STEPS; step++) {
        pl_sparse_sum_clear(&sum);
        for (int32_t k = 0; k < workers; k++) {
            make_keys(k, step, &batch);
            for (int64_t i = 0; i < batch.count; i++)
                batch.values[i] = block[batch.keys[i]];
            make_gradient(k, step, batch.count, batch.values, grad);
            assert_ok(pl_sparse_sum_put(
                &sum, &(pl_keys) { batch.keys, batch.count }, grad));
        }
        pl_sparse_sum_scale(&sum, 1.0f / (float)workers);
        pl_optim_begin(optim, step + 1, 0.1);
        int64_t table = sum.keys.count - 1;
        pl_optim_update_keys(optim, 0, table, sum.keys.ids, sum.values, block);
        pl_optim_update(optim, BIAS, 1, sum.values + table, block);
    }
    pl_sparse_sum_close(&sum);
    pl_key_batch_close(&batch);
}

static pl_params *make_block(pl_optim **optim)
{
    pl_params *block;
    pl_json *text;
    assert_ok(pl_params_new(&block));
    assert_ok(pl_params_add(block, "all", PL_SHAPE(BLOCK)));
    assert_ok(pl_params_seal(block));
    assert_ok(pl_optim_new(optim,
                           &(pl_optim_opts) { .name = "adagrad", .l1 = 1e-4 },
                           block, pl_kernels_best()));
    assert_ok(pl_json_parse(&text, TEXT, strlen(TEXT), "text"));
    assert_ok(pl_first_fill(text, (pl_first_range) { 0, BLOCK },
                            pl_params_block(block)));
    pl_json_free(text);
    return block;
}

static void check_bits(const world *w)
{
    pl_optim *optim;
    pl_params *block = make_block(&optim);
    calculate(pl_params_block(block), WORKERS, optim);
    for (int32_t j = 0; j < SERVERS; j++) {
        int64_t first, count;
        pl_pieces_shard(BLOCK, SERVERS, j, &first, &count);
        assert_memory_equal(pl_params_block(block) + first,
                            pl_params_block(w->shapes[j]),
                            (size_t)count * sizeof(float));
    }
    pl_optim_free(optim);
    pl_params_free(block);
}

static world *make_world(pl_ps_mode mode, uint64_t seed, int loss,
                         bool restarts)
{
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->mode = mode;
    w->seed = seed;
    w->loss = loss;
    w->restarts = restarts;
    open_world(w);
    run(w);
    return w;
}

static void sync_makes_the_bits_of_one_process(void **state)
{
    (void)state;
    world *w = make_world(PL_PS_SYNC, 1, 0, false);
    check_bits(w);
    close_world(w);
}

static void lost_and_doubled_messages_change_no_bit(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        world *w = make_world(PL_PS_SYNC, seed, 20, false);
        check_bits(w);
        close_world(w);
    }
}

static void restarted_workers_change_no_bit(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        world *w = make_world(PL_PS_SYNC, seed, 10, true);
        check_bits(w);
        close_world(w);
    }
}

/* In its own order, but each gradient once, by the counts. */
static void async_applies_each_gradient_once(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        pl_ps_mode mode = seed % 2 == 0 ? PL_PS_ASYNC : PL_PS_SSP;
        world *w = make_world(mode, seed, 20, seed % 4 < 2);
        int64_t made = 0;
        for (int32_t k = 0; k < WORKERS; k++)
            made += pl_ps_core_look(w->cores[0], k).applied_of_worker;
        assert_int_equal(STEPS, made);
        close_world(w);
    }
}

static void core_new_survives_each_failed_allocation(void **state)
{
    (void)state;
    bool failed = true;
    for (long nth = 0; failed; nth++) {
        world *w = calloc(1, sizeof *w);
        assert_non_null(w);
        pl_mem_fail_at(nth);
        pl_status status = open_core(w, 0);
        failed = pl_mem_fail_off();
        assert_int_equal(failed ? PL_NOMEM : PL_OK, status);
        assert_true(failed == (w->cores[0] == NULL));
        pl_ps_core_free(w->cores[0]);
        pl_optim_free(w->optims[0]);
        pl_params_free(w->shapes[0]);
        free(w);
    }
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(cmocka_unit_test(sync_makes_the_bits_of_one_process),
           cmocka_unit_test(lost_and_doubled_messages_change_no_bit),
           cmocka_unit_test(restarted_workers_change_no_bit),
           cmocka_unit_test(async_applies_each_gradient_once),
           cmocka_unit_test(core_new_survives_each_failed_allocation))

#include "support/train.h"
#include "train/loop/loop.h"

#include <math.h>
#include <string.h>

#define BATCH 1000 /* of 39,000 non-zeros: several parts */

static pl_compute *start(const rig *r, int64_t batch, bool forward)
{
    pl_compute *compute;
    assert_ok(pl_compute_new(&compute, &(pl_compute_opts) {
                                           .network = r->network,
                                           .batch = batch,
                                           .pool = r->pool,
                                           .forward = forward,
                                       }));
    return compute;
}

static pl_batch first_batch(pl_dataset *set, int64_t rows)
{
    return (pl_batch) {
        .rows = rows,
        .labels = set->labels,
        .row_start = set->row_start,
        .ids = set->ids,
        .values = set->values,
    };
}

static double loss_of(pl_compute *scorer, const pl_batch *batch)
{
    assert_ok(pl_compute_prepare(scorer, batch));
    return pl_compute_score(scorer, batch).loss;
}

/* Also with values, which change what a weight is worth. */
static void check_gradient(const rig *r, const pl_batch *batch)
{
    pl_compute *compute = start(r, batch->rows, false);
    pl_compute *scorer = start(r, batch->rows, true);
    float *table = pl_params_data(r->network->params, 0);
    float *bias = pl_params_data(r->network->params, 1);
    const pl_keys *keys, *none;
    assert_ok(pl_compute_prepare(compute, batch));
    double loss = pl_compute_gradient(compute, batch, 1, 0, NULL);
    assert_true(fabs(loss - loss_of(scorer, batch)) < 1e-5);
    assert_true(pl_compute_accuracy(compute, batch) ==
                pl_compute_score(scorer, batch).accuracy);
    const float *grad = pl_compute_grad(compute, 0, &keys);
    double bias_grad = (double)*pl_compute_grad(compute, 1, &none);
    assert_null(none);
    for (int64_t k = -1; k < keys->count; k += 1 + keys->count / 50) {
        float *at = k < 0 ? bias : &table[keys->ids[k]], old = *at;
        *at = old + 0.05f;
        double above = loss_of(scorer, batch);
        *at = old - 0.05f;
        double below = loss_of(scorer, batch);
        *at = old;
        double got = k < 0 ? bias_grad : (double)grad[k];
        assert_true(fabs((above - below) / 0.1 - got) < 2e-4);
    }
    pl_compute_free(compute);
    pl_compute_free(scorer);
}

static void sparse_gradient_is_that_of_finite_differences(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, &(rig_opts) { .model = &pl_model_sparse, .features = 300 });
    float *table = pl_params_data(r.network->params, 0), values[64 * 39];
    for (int i = 0; i < 300; i++)
        table[i] = (float)(i % 7 - 3) * 0.2f;
    /* No logit is 0, where rounding would tell yes from no. */
    *pl_params_data(r.network->params, 1) = 0.05f;
    for (int i = 0; i < 64 * 39; i++)
        values[i] = (float)(i % 5) * 0.5f;
    pl_batch batch = first_batch(r.train, 64);
    check_gradient(&r, &batch);
    batch.values = values;
    check_gradient(&r, &batch);
    rig_close(&r);
}

static pl_status run_epoch(rig *r, int64_t batch, pl_loop_result *result)
{
    pl_loop_opts opts = rig_loop(r);
    opts.order.batch = batch;
    opts.epochs = 1;
    return pl_loop_run(&opts, result);
}

/* Train with these threads; the caller closes the rig. */
static pl_loop_result train(rig *r, const rig_opts *opts, int threads,
                            int64_t batch)
{
    rig_opts with = *opts;
    with.model = &pl_model_sparse;
    with.threads = threads;
    rig_init(r, &with);
    pl_loop_result result;
    assert_ok(run_epoch(r, batch, &result));
    return result;
}

static void sparse_training_has_the_same_bits_on_any_threads(void **state)
{
    (void)state;
    const pl_optim_opts optims[] = {
        { .name = "sgd", .l1 = 1e-4, .l2 = 1e-3 },
        { .name = "ftrl", .l1 = 1e-3 },
        { .name = "adam" },
    };
    for (size_t i = 0; i < sizeof optims / sizeof *optims; i++) {
        rig one, many;
        rig_opts opts = { .optim = optims[i],
                          .examples = 4 * BATCH,
                          .features = 100000 };
        pl_loop_result expected = train(&one, &opts, 1, BATCH);
        for (int threads = 2; threads <= 3; threads++) {
            pl_loop_result got = train(&many, &opts, threads, BATCH);
            assert_same_state(&one, &many);
            assert_true(expected.test.loss == got.test.loss);
            assert_true(expected.test.auc == got.test.auc);
            rig_close(&many);
        }
        rig_close(&one);
    }
}

/* Also when another thread has found it, long before. */
static void sparse_batch_that_is_wrong_is_reported_in_order(void **state)
{
    (void)state;
    char message[256];
    int64_t step = 0;
    for (int threads = 1; threads <= 4; threads++) {
        rig r;
        pl_loop_result result;
        rig_init(&r, &(rig_opts) { .model = &pl_model_sparse,
                                   .examples = 1000,
                                   .features = 300,
                                   .threads = threads });
        ((uint64_t *)r.train->ids)[r.train->row_start[500]] = 300;
        assert_int_equal(PL_FORMAT, run_epoch(&r, 50, &result));
        if (threads == 1) {
            snprintf(message, sizeof message, "%s", pl_error_message());
            step = result.progress.step;
            assert_true(step > 0 && step < 19);
        }
        assert_string_equal(message, pl_error_message());
        assert_int_equal(step, result.progress.step);
        rig_close(&r);
    }
}

/* The gradient of a key, wherever it stands. */
static float grad_of(const pl_keys *keys, const float *grad, uint64_t id)
{
    for (int64_t k = 0; k < keys->count; k++)
        if (keys->ids[k] == id)
            return grad[k];
    fail_msg("key %llu is missing", (unsigned long long)id);
    return 0;
}

/* A worker that sends keys sorts them, and ends in the bits of one that does
 * not. */
static void sparse_gradient_has_the_same_bits_in_any_key_order(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, &(rig_opts) { .model = &pl_model_sparse,
                               .examples = BATCH,
                               .features = 5000 });
    pl_batch batch = first_batch(r.train, BATCH);
    float *table = pl_params_data(r.network->params, 0);
    for (int i = 0; i < 5000; i++)
        table[i] = (float)(i % 7 - 3) * 0.02f;
    pl_compute *computes[2];
    const float *grads[2];
    const pl_keys *keys[2];
    double loss[2];
    for (int any = 0; any < 2; any++) {
        assert_ok(pl_compute_new(
            &computes[any], &(pl_compute_opts) { .network = r.network,
                                                 .batch = BATCH,
                                                 .pool = r.pool,
                                                 .any_key_order = any == 1 }));
        assert_ok(pl_compute_prepare(computes[any], &batch));
        loss[any] = pl_compute_gradient(computes[any], &batch, 1, 0, NULL);
        grads[any] = pl_compute_grad(computes[any], 0, &keys[any]);
    }
    assert_true(loss[0] == loss[1]);
    assert_int_equal(keys[0]->count, keys[1]->count);
    for (int64_t k = 0; k < keys[0]->count; k++) {
        assert_true(k == 0 || keys[0]->ids[k - 1] < keys[0]->ids[k]);
        assert_true(grads[0][k] == grad_of(keys[1], grads[1], keys[0]->ids[k]));
    }
    pl_compute_free(computes[0]);
    pl_compute_free(computes[1]);
    rig_close(&r);
}

/* Prepare a copy of a batch, which is then gone but for its labels. */
static void prepare_and_spoil(pl_compute *compute, const pl_batch *batch)
{
    int64_t start[65];
    uint64_t ids[64 * 39];
    float values[64 * 39];
    pl_batch copy = *batch;
    int64_t from = batch->row_start[0];
    int64_t count = batch->row_start[batch->rows] - from;
    for (int64_t r = 0; r <= batch->rows; r++)
        start[r] = batch->row_start[r] - from;
    memcpy(ids, batch->ids + from, (size_t)count * sizeof *ids);
    memcpy(values, batch->values + from, (size_t)count * sizeof *values);
    copy.row_start = start;
    copy.ids = ids;
    copy.values = values;
    assert_ok(pl_compute_prepare(compute, &copy));
    memset(start, 0xff, sizeof start);
    memset(ids, 0xff, sizeof ids);
    memset(values, 0xff, sizeof values);
}

/* The values of a batch at hand, of a network that is elsewhere. */
static void place_weights(pl_compute *compute, const rig *r, float *room)
{
    const float *table = pl_params_data(r->network->params, 0);
    const pl_keys *keys;
    pl_compute_grad(compute, 0, &keys);
    for (int64_t k = 0; k < keys->count; k++)
        room[k] = table[keys->ids[k]];
    pl_compute_place(compute, &(pl_values) { .table = room,
                                             .bias = pl_params_data(
                                                 r->network->params, 1) });
}

static void assert_same_gradient(const pl_compute *a, const pl_compute *b)
{
    const pl_keys *of_a, *of_b;
    const float *left = pl_compute_grad(a, 0, &of_a);
    const float *right = pl_compute_grad(b, 0, &of_b);
    assert_int_equal(of_a->count, of_b->count);
    assert_memory_equal(of_a->ids, of_b->ids,
                        (size_t)of_a->count * sizeof *of_a->ids);
    assert_memory_equal(left, right, (size_t)of_a->count * sizeof *left);
}

/* One batch is prepared after the other before the first is computed, and
 * what they were prepared from is no more. */
static void sparse_batches_prepared_ahead_keep_what_they_need(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, &(rig_opts) { .model = &pl_model_sparse, .features = 300 });
    float *table = pl_params_data(r.network->params, 0);
    float values[80 * 39], weights[2][80 * 39];
    for (int i = 0; i < 300; i++)
        table[i] = (float)(i % 7 - 3) * 0.2f;
    for (int i = 0; i < 80 * 39; i++)
        values[i] = (float)(i % 5) * 0.5f;
    pl_batch batches[2] = { first_batch(r.train, 16),
                            first_batch(r.train, 64) };
    pl_compute *ahead[2] = { NULL, NULL }, *here = start(&r, 64, false);
    for (int i = 0; i < 2; i++) {
        batches[i].values = values;
        assert_ok(pl_compute_new(&ahead[i],
                                 &(pl_compute_opts) { .network = r.network,
                                                      .batch = 64,
                                                      .pool = r.pool,
                                                      .elsewhere = true,
                                                      .beside = ahead[0] }));
        prepare_and_spoil(ahead[i], &batches[i]);
    }
    for (int i = 0; i < 2; i++) {
        place_weights(ahead[i], &r, weights[i]);
        double loss = pl_compute_gradient(ahead[i], &batches[i], 1, 0, NULL);
        assert_ok(pl_compute_prepare(here, &batches[i]));
        assert_true(loss == pl_compute_gradient(here, &batches[i], 1, 0, NULL));
        assert_same_gradient(here, ahead[i]);
    }
    pl_compute_free(here);
    pl_compute_free(ahead[1]);
    pl_compute_free(ahead[0]);
    rig_close(&r);
}

static void sparse_training_learns_and_leaves_other_weights_alone(void **state)
{
    (void)state;
    rig r;
    rig_opts opts = { .optim = { .name = "adagrad" },
                      .examples = 20000,
                      .features = 50000 };
    pl_loop_result result = train(&r, &opts, 2, 100);
    assert_true(result.test.binary);
    assert_true(result.test.auc > 0.72);
    assert_true(result.test.loss < 0.5);
    const float *table = pl_params_data(r.network->params, 0);
    bool *seen;
    assert_ok(PL_NEW(seen, 50000));
    for (int64_t j = 0; j < r.train->count * PL_CLICK_NON_ZEROS; j++)
        seen[r.train->ids[j]] = true;
    int64_t moved = 0;
    for (int64_t i = 0; i < 50000; i++) {
        assert_true(seen[i] || table[i] == 0);
        moved += table[i] != 0;
    }
    assert_true(moved > 10000);
    pl_mem_free(seen);
    rig_close(&r);
}

static void sparse_batch_with_an_id_beyond_the_table_is_refused(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, &(rig_opts) { .model = &pl_model_sparse, .features = 300 });
    const int64_t row_start[] = { 0, 2 };
    const uint64_t ids[] = { 7, 300 };
    pl_batch batch = first_batch(r.train, 1);
    batch.row_start = row_start;
    batch.ids = ids;
    for (int forward = 0; forward < 2; forward++) {
        pl_compute *compute = start(&r, 10, forward == 1);
        assert_fails(PL_FORMAT, "the feature 300, but the table has 300",
                     pl_compute_prepare(compute, &batch));
        pl_compute_free(compute);
    }
    rig_close(&r);
}

static pl_status make_and_prepare(const rig *r, pl_compute **out)
{
    pl_batch batch = first_batch(r->train, 20);
    PL_TRY(pl_compute_new(out, &(pl_compute_opts) { .network = r->network,
                                                    .batch = 20,
                                                    .pool = r->pool }));
    pl_status status = pl_compute_prepare(*out, &batch);
    if (status != PL_OK)
        pl_compute_free(*out);
    return status;
}

static void sparse_compute_survives_each_failed_allocation(void **state)
{
    (void)state;
    rig r;
    pl_compute *compute;
    rig_init(&r, &(rig_opts) { .model = &pl_model_sparse });
    assert_survives_failed_allocations(make_and_prepare(&r, &compute),
                                       pl_compute_free(compute));
    rig_close(&r);
}

UNIT_TESTS(
    cmocka_unit_test(sparse_gradient_is_that_of_finite_differences),
    cmocka_unit_test(sparse_training_has_the_same_bits_on_any_threads),
    cmocka_unit_test(sparse_batch_that_is_wrong_is_reported_in_order),
    cmocka_unit_test(sparse_gradient_has_the_same_bits_in_any_key_order),
    cmocka_unit_test(sparse_batches_prepared_ahead_keep_what_they_need),
    cmocka_unit_test(sparse_training_learns_and_leaves_other_weights_alone),
    cmocka_unit_test(sparse_batch_with_an_id_beyond_the_table_is_refused),
    cmocka_unit_test(sparse_compute_survives_each_failed_allocation))

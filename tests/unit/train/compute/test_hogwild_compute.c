#include "support/train.h"
#include "train/loop/loop.h"

#include <math.h>

/* Two passes over 20,000 examples. */
static pl_loop_result train(rig *r, int threads, const pl_hogwild_opts *own)
{
    rig_init(r, &(rig_opts) { .model = &pl_model_sparse,
                              .examples = 20000,
                              .features = 50000,
                              .threads = threads,
                              .lr = 0.02 });
    pl_hogwild_opts hogwild = *own;
    hogwild.schedule = &r->schedule;
    pl_loop_opts opts = rig_loop(r);
    opts.hogwild = &hogwild;
    opts.order.batch = 5000;
    opts.epochs = 2;
    pl_loop_result result;
    assert_ok(pl_loop_run(&opts, &result));
    return result;
}

/* Plain stochastic gradient descent over one epoch in the reader's order; the
 * sum of the losses. */
static double descend_epoch(const rig *r, const pl_reader_opts *order,
                            int64_t epoch, double *table, double *bias)
{
    pl_reader *reader;
    pl_batch batch;
    double loss = 0;
    assert_ok(pl_reader_new(&reader, r->train, order));
    pl_reader_go(reader, epoch * reader->steps_per_epoch);
    for (int64_t b = 0; b < reader->steps_per_epoch; b++) {
        assert_ok(pl_reader_next(reader, &batch));
        for (int64_t i = 0; i < batch.rows; i++) {
            const uint64_t *ids =
                batch.ids + batch.row_start[batch.row_index[i]];
            double logit = *bias;
            for (int j = 0; j < PL_CLICK_NON_ZEROS; j++)
                logit += table[ids[j]];
            double prob = 1 / (1 + exp(-logit));
            int64_t label = pl_view_label(&batch.labels, i);
            double diff = prob - (double)label;
            loss -= log(label != 0 ? prob : 1 - prob);
            for (int j = 0; j < PL_CLICK_NON_ZEROS; j++)
                table[ids[j]] -= 0.02 * diff;
            *bias -= 0.02 * diff;
        }
    }
    pl_reader_free(reader);
    return loss;
}

static void hogwild_on_one_thread_is_sequential_descent(void **state)
{
    (void)state;
    rig r;
    double *table, bias = 0;
    train(&r, 1, &(pl_hogwild_opts) { 0 });
    assert_ok(PL_NEW(table, 50000));
    for (int pass = 0; pass < 2; pass++)
        descend_epoch(&r, &(pl_reader_opts) { .batch = 5000 }, pass, table,
                      &bias);
    const float *got = pl_params_data(r.network->params, 0);
    for (int i = 0; i < 50000; i++)
        assert_true(fabs((double)got[i] - table[i]) < 1e-4);
    assert_true(fabs((double)*pl_params_data(r.network->params, 1) - bias) <
                1e-4);
    pl_mem_free(table);
    rig_close(&r);
}

static void hogwild_converges_on_several_threads(void **state)
{
    (void)state;
    rig one, many;
    double sequential = train(&one, 1, &(pl_hogwild_opts) { 0 }).test.loss;
    for (int threads = 2; threads <= 4; threads += 2) {
        pl_loop_result result = train(&many, threads, &(pl_hogwild_opts) { 0 });
        /* Threads that see little data each are a little behind. */
        assert_true(result.test.loss < 1.05 * sequential);
        assert_true(result.test.auc > 0.75);
        assert_int_equal(40000, result.progress.examples);
        rig_close(&many);
    }
    rig_close(&one);
}

/* An epoch ends in a part of a batch: every example is learnt from, counted,
 * and weighs as much as any other in the loss. */
static void hogwild_leaves_out_no_example(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, &(rig_opts) { .model = &pl_model_sparse,
                               .examples = 20000,
                               .features = 50000,
                               .threads = 1,
                               .lr = 0.02 });
    pl_hogwild_opts hogwild = { .schedule = &r.schedule };
    pl_loop_opts opts = rig_loop(&r);
    opts.hogwild = &hogwild;
    opts.order.batch = 15000;
    opts.order.keep_rest = true;
    opts.epochs = 2;
    pl_loop_result result;
    assert_ok(pl_loop_run(&opts, &result));
    assert_int_equal(4, result.progress.step);
    assert_int_equal(40000, result.progress.examples);
    assert_int_equal(40000, result.own_examples);
    assert_true(result.epochs == 2);

    double *table, bias = 0, loss = 0;
    assert_ok(PL_NEW(table, 50000));
    for (int pass = 0; pass < 2; pass++)
        loss = descend_epoch(&r, &opts.order, pass, table, &bias);
    const float *got = pl_params_data(r.network->params, 0);
    for (int i = 0; i < 50000; i++)
        assert_true(fabs((double)got[i] - table[i]) < 1e-4);
    assert_true(fabs(loss / 20000 - result.train_loss.loss) < 1e-4);
    pl_mem_free(table);
    rig_close(&r);
}

static void hogwild_knows_l1_and_l2(void **state)
{
    (void)state;
    rig plain, l1, l2;
    int64_t zeros = 0, before = 0;
    double squares[2] = { 0 };
    train(&plain, 1, &(pl_hogwild_opts) { 0 });
    train(&l1, 1, &(pl_hogwild_opts) { .l1 = 0.4 });
    train(&l2, 1, &(pl_hogwild_opts) { .l2 = 0.5 });
    const float *a = pl_params_data(plain.network->params, 0);
    const float *b = pl_params_data(l1.network->params, 0);
    const float *c = pl_params_data(l2.network->params, 0);
    for (int i = 0; i < 50000; i++) {
        before += a[i] == 0;
        zeros += b[i] == 0;
        squares[0] += (double)a[i] * (double)a[i];
        squares[1] += (double)c[i] * (double)c[i];
    }
    assert_true(zeros > before + 1000);
    assert_true(squares[1] < 0.9 * squares[0]);
    rig_close(&plain);
    rig_close(&l1);
    rig_close(&l2);
}

/* Accuracy of the first 5000 examples by a compute of these options. */
static double accuracy_of(rig *r, const pl_hogwild_opts *hogwild)
{
    pl_reader *reader;
    pl_compute *compute;
    pl_batch batch;
    assert_ok(
        pl_reader_new(&reader, r->train, &(pl_reader_opts) { .batch = 5000 }));
    assert_ok(
        pl_compute_new(&compute, &(pl_compute_opts) { .network = r->network,
                                                      .batch = 5000,
                                                      .pool = r->pool,
                                                      .hogwild = hogwild }));
    assert_ok(pl_reader_next(reader, &batch));
    assert_ok(pl_compute_prepare(compute, &batch));
    assert_true(pl_compute_gradient(compute, &batch, 1, 0,
                                    hogwild != NULL ? r->sync : NULL) > 0);
    double accuracy = pl_compute_accuracy(compute, &batch);
    pl_compute_free(compute);
    pl_reader_free(reader);
    return accuracy;
}

/* Where nothing is updated, the threads together count as a batch does. */
static void hogwild_counts_right_answers(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        rig r;
        train(&r, threads, &(pl_hogwild_opts) { 0 });
        r.schedule.lr = 0;
        double accuracy = accuracy_of(&r, NULL);
        assert_true(accuracy > 0.6 && accuracy < 1);
        assert_true(accuracy == accuracy_of(&r, &(pl_hogwild_opts) {
                                                    .schedule = &r.schedule }));
        rig_close(&r);
    }
}

/* A checkpoint that is written meanwhile is of the table as it was. */
static void hogwild_announces_what_it_changes(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        rig r;
        train(&r, threads, &(pl_hogwild_opts) { 0 });
        float *block = pl_params_block(r.network->params), *before;
        int64_t floats = pl_params_block_count(r.network->params);
        pl_hogwild_opts hogwild = { .schedule = &r.schedule };
        assert_ok(pl_frozen_new(&hogwild.frozen,
                                &(pl_frozen_opts) {
                                    .planes = { .count = 1, .data = { block } },
                                    .count = floats,
                                    .piece = 1024,
                                }));
        assert_ok(PL_NEW(before, (size_t)floats));
        memcpy(before, block, (size_t)floats * sizeof *block);
        pl_frozen_begin(hogwild.frozen);
        accuracy_of(&r, &hogwild);
        assert_memory_not_equal(before, block, (size_t)floats * sizeof *block);
        const float *data;
        for (int64_t at = 0, count; at < floats; at += count) {
            pl_frozen_read(hogwild.frozen, 0, at, &data, &count);
            assert_memory_equal(before + at, data,
                                (size_t)count * sizeof *data);
        }
        pl_frozen_end(hogwild.frozen);
        pl_frozen_free(hogwild.frozen);
        pl_mem_free(before);
        rig_close(&r);
    }
}

static void hogwild_refuses_an_id_beyond_the_table(void **state)
{
    (void)state;
    rig r;
    const int64_t row_start[] = { 0, 2 };
    const uint64_t ids[] = { 7, 5000 };
    rig_init(&r, &(rig_opts) { .model = &pl_model_sparse });
    pl_hogwild_opts hogwild = { .schedule = &r.schedule };
    pl_batch batch = {
        .rows = 1, .labels = r.train->labels, .row_start = row_start, .ids = ids
    };
    pl_compute *compute;
    assert_ok(
        pl_compute_new(&compute, &(pl_compute_opts) { .network = r.network,
                                                      .batch = 10,
                                                      .pool = r.pool,
                                                      .hogwild = &hogwild }));
    assert_ok(pl_compute_prepare(compute, &batch));
    assert_true(isnan(pl_compute_gradient(compute, &batch, 1, 0, r.sync)));
    assert_fails(PL_FORMAT, "the feature 5000, but the table has 5000",
                 pl_compute_check(compute));
    pl_compute_free(compute);
    rig_close(&r);
}

UNIT_TESTS(cmocka_unit_test(hogwild_on_one_thread_is_sequential_descent),
           cmocka_unit_test(hogwild_converges_on_several_threads),
           cmocka_unit_test(hogwild_leaves_out_no_example),
           cmocka_unit_test(hogwild_knows_l1_and_l2),
           cmocka_unit_test(hogwild_counts_right_answers),
           cmocka_unit_test(hogwild_announces_what_it_changes),
           cmocka_unit_test(hogwild_refuses_an_id_beyond_the_table))

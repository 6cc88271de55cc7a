#include "train/compute/compute.h"

#include "support/train.h"
#include "train/loop/loop.h"

#include <math.h>

#define BATCH 600 /* enough work for several shards */

/* Large enough to be split. */
static const rig_opts large = { .side = 28, .classes = 10, .examples = 1300 };

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

static pl_reader *first_batch(const rig *r, int64_t rows, pl_batch *batch)
{
    pl_reader *reader;
    assert_ok(pl_reader_new(&reader, r->train,
                            &(pl_reader_opts) { .batch = rows, .seed = 1 }));
    assert_ok(pl_reader_next(reader, batch));
    return reader;
}

/* In place: the parts of a rig point into it. */
static void make(rig *r, rig_opts opts, int threads)
{
    opts.threads = threads;
    rig_init(r, &opts);
}

static void compute_gradient_is_the_same_bits_on_any_number_of_threads(
    void **state)
{
    (void)state;
    rig one;
    make(&one, large, 1);
    pl_batch batch;
    pl_reader *reader = first_batch(&one, BATCH, &batch);
    pl_compute *expected = start(&one, BATCH, false);
    assert_true(pl_compute_shards(expected) > 1);
    double loss = pl_compute_gradient(expected, &batch, 1, 0, NULL);
    const int threads[] = { 2, 3, 5 };
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        rig many;
        make(&many, large, threads[t]);
        pl_compute *compute = start(&many, BATCH, false);
        assert_int_equal(pl_compute_shards(expected),
                         pl_compute_shards(compute));
        for (int again = 0; again < 3; again++) {
            double got = pl_compute_gradient(compute, &batch, 1, 0, NULL);
            assert_memory_equal(&loss, &got, sizeof got);
            assert_same_block(pl_compute_diff(expected),
                              pl_compute_diff(compute));
        }
        pl_compute_free(compute);
        rig_close(&many);
    }
    pl_compute_free(expected);
    pl_reader_free(reader);
    rig_close(&one);
    assert_int_equal(0, pl_mem_live());
}

static void assert_near_block(const pl_params *got, const pl_params *expected)
{
    for (int p = 0; p < pl_params_count(got); p++) {
        const float *a = pl_params_data(got, p);
        const float *b = pl_params_data(expected, p);
        int64_t count = pl_params_get(got, p)->count;
        double size = 0;
        for (int64_t i = 0; i < count; i++)
            size = fmax(size, fabs((double)b[i]));
        assert_true(size > 0);
        for (int64_t i = 0; i < count; i++)
            assert_true(fabs((double)a[i] - (double)b[i]) <= 1e-5 * size);
    }
}

/* The whole batch in one execution of the graph. */
static double plain_gradient(const rig *r, const pl_batch *batch,
                             const pl_params *grads)
{
    pl_plan *plan;
    pl_exec *exec;
    assert_ok(pl_plan_new(&plan, &(pl_plan_opts) {
                                     .graph = r->network->graph,
                                     .batch = batch->rows,
                                     .outputs = &r->network->loss,
                                     .output_count = 1,
                                     .diff = r->network->diff,
                                     .diff_count = pl_params_count(grads),
                                 }));
    assert_ok(pl_exec_new(&exec, plan, r->network->params, grads));
    const pl_view views[] = { batch->features, batch->labels };
    pl_exec_run(exec, &(pl_exec_args) {
                          .rows = batch->rows, .views = views, .seed = 1.0f });
    double loss = (double)*pl_exec_output(exec, 0);
    pl_exec_free(exec);
    pl_plan_free(plan);
    return loss;
}

static void compute_shards_add_up_to_the_whole_batch(void **state)
{
    (void)state;
    const int64_t rows[] = { BATCH, BATCH - 1, 37 };
    rig r;
    make(&r, large, 2);
    pl_compute *compute = start(&r, BATCH, false);
    pl_params *grads;
    assert_ok(pl_params_like(&grads, r.network->params));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pl_batch batch;
        pl_reader *reader = first_batch(&r, rows[i], &batch);
        double whole = plain_gradient(&r, &batch, grads);
        double loss = pl_compute_gradient(compute, &batch, 1, 0, NULL);
        assert_true(fabs(loss - whole) < 1e-5);
        assert_near_block(pl_compute_diff(compute), grads);
        pl_reader_free(reader);
    }
    pl_params_free(grads);
    pl_compute_free(compute);
    rig_close(&r);
}

/* Also a last batch that has fewer rows than there are shards. */
static void compute_score_weighs_an_uneven_last_batch(void **state)
{
    (void)state;
    rig r;
    make(&r, large, 3);
    pl_compute *whole = start(&r, 1300, true);
    pl_score expected, got;
    assert_ok(pl_loop_evaluate(whole, r.train, 1300, NULL, NULL, &expected));
    assert_true(expected.loss > 1 && expected.accuracy < 1);
    const int64_t batches[] = { 600, 1299, 433 };
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        pl_compute *compute = start(&r, batches[i], true);
        assert_ok(
            pl_loop_evaluate(compute, r.train, batches[i], NULL, NULL, &got));
        assert_true(fabs(got.loss - expected.loss) < 1e-6);
        assert_true(fabs(got.accuracy - expected.accuracy) < 1e-6);
        pl_compute_free(compute);
    }
    pl_compute_free(whole);
    rig_close(&r);
}

/* Of all rows where each shard has a thread, else of those last computed. */
static void compute_accuracy_is_that_of_the_rows_in_memory(void **state)
{
    (void)state;
    const int threads[] = { 1, 2, 16 };
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        rig r;
        make(&r, large, threads[t]);
        pl_batch batch;
        pl_reader *reader = first_batch(&r, BATCH, &batch);
        pl_compute *compute = start(&r, BATCH, false);
        pl_compute *scorer = start(&r, BATCH, true);
        pl_compute_gradient(compute, &batch, 1, 0, NULL);
        double got = pl_compute_accuracy(compute, &batch);
        double whole = pl_compute_score(scorer, &batch).accuracy;
        assert_true(whole > 0 && whole < 1);
        if (pl_compute_shards(compute) <= threads[t])
            assert_true(fabs(got - whole) < 1e-6);
        else
            assert_true(got >= 0 && got <= 1);
        pl_compute_free(scorer);
        pl_compute_free(compute);
        pl_reader_free(reader);
        rig_close(&r);
    }
}

/* Enough weights to be computed by oneDNN. */
static pl_status wide_build(pl_build *b)
{
    pl_node *hidden = pl_relu(pl_dense(b, "hidden", b->input, 3000));
    b->logits = pl_dense(b, "output", hidden, b->classes);
    return PL_OK;
}

static const pl_model wide = { .name = "wide", .build = wide_build };

static void compute_of_a_large_model_is_one_shard_and_agrees(void **state)
{
    (void)state;
    rig_opts opts = { .model = &wide, .side = 28, .examples = 100 };
    rig r, reference;
    make(&r, opts, 2);
    opts.kernels = pl_kernels_find("reference");
    make(&reference, opts, 1);
    pl_compute *got = start(&r, 50, false), *expected;
    assert_ok(pl_compute_new(&expected,
                             &(pl_compute_opts) { .network = reference.network,
                                                  .batch = 50,
                                                  .pool = reference.pool,
                                                  .kernels = opts.kernels }));
    pl_batch batch;
    pl_reader *reader = first_batch(&r, 50, &batch);
    double loss = pl_compute_gradient(got, &batch, 1, 0, NULL);
    assert_true(fabs(loss - pl_compute_gradient(expected, &batch, 1, 0, NULL)) <
                1e-5);
    assert_near_block(pl_compute_diff(got), pl_compute_diff(expected));
    if (pl_dnn_usable(pl_kernels_best()))
        assert_int_equal(1, pl_compute_shards(got));
    pl_reader_free(reader);
    pl_compute_free(got);
    pl_compute_free(expected);
    rig_close(&r);
    rig_close(&reference);
}

/* Rows at a time, in the memory of another, and fewer at the end. */
static void compute_scores_a_large_model_in_pieces(void **state)
{
    (void)state;
    rig_opts opts = { .model = &wide, .side = 28, .examples = 100 };
    rig r;
    make(&r, opts, 1);
    pl_compute *host = start(&r, 40, false), *pieces, *whole;
    pl_compute_opts score = { .network = r.network,
                              .batch = 100,
                              .pool = r.pool,
                              .forward = true,
                              .beside = host };
    assert_ok(pl_compute_new(&pieces, &score));
    score.beside = NULL;
    score.kernels = pl_kernels_find("reference");
    assert_ok(pl_compute_new(&whole, &score));
    pl_score got, expected;
    assert_ok(pl_loop_evaluate(pieces, r.train, 100, NULL, NULL, &got));
    assert_ok(pl_loop_evaluate(whole, r.train, 100, NULL, NULL, &expected));
    assert_true(fabs(got.loss - expected.loss) < 1e-5);
    assert_true(fabs(got.accuracy - expected.accuracy) < 1e-6);
    pl_compute_free(pieces);
    pl_compute_free(whole);
    pl_compute_free(host);
    rig_close(&r);
}

static int shards_of(rig_opts opts, int threads, int64_t batch)
{
    rig r;
    make(&r, opts, threads);
    pl_compute *compute = start(&r, batch, false);
    int shards = pl_compute_shards(compute);
    pl_compute_free(compute);
    rig_close(&r);
    return shards;
}

static void compute_shards_depend_on_model_and_batch_only(void **state)
{
    (void)state;
    assert_int_equal(shards_of(large, 1, BATCH), shards_of(large, 5, BATCH));
    assert_true(shards_of(large, 1, BATCH) > shards_of(large, 1, 1));
    const rig_opts small = { .side = 2 };
    assert_int_equal(1, shards_of(small, 4, 8));
}

static pl_status summed_build(pl_build *b)
{
    b->logits = pl_dense(b, "output", b->input, b->classes);
    b->loss = pl_sum(pl_softmax_xent(b->logits, b->labels));
    return PL_OK;
}

/* A sum over the batch is not the mean of the sums over its parts. */
static void compute_does_not_split_what_is_not_separable(void **state)
{
    (void)state;
    const pl_model summed = { .name = "summed", .build = summed_build };
    rig_opts opts = large;
    opts.model = &summed;
    rig r;
    make(&r, opts, 2);
    pl_batch batch;
    pl_reader *reader = first_batch(&r, BATCH, &batch);
    pl_compute *compute = start(&r, BATCH, false);
    assert_int_equal(1, pl_compute_shards(compute));
    assert_true(pl_compute_gradient(compute, &batch, 1, 0, NULL) > BATCH);
    pl_compute_free(compute);
    pl_reader_free(reader);
    rig_close(&r);
}

static pl_status dropping_build(pl_build *b)
{
    pl_node *x = pl_dropout(pl_flatten(b->input), 0.2f);
    x = pl_dropout(pl_tanh(pl_dense(b, "hidden", x, 24)), 0.5f);
    b->logits = pl_dense(b, "output", x, b->classes);
    return PL_OK;
}

/* How far two gradients are apart, as a share of the first one's length. */
static double apart(const pl_params *a, const pl_params *b)
{
    double length = 0, off = 0;
    for (int64_t i = 0; i < pl_params_block_count(a); i++) {
        double x = (double)pl_params_block(a)[i];
        double y = (double)pl_params_block(b)[i];
        length += x * x;
        off += (x - y) * (x - y);
    }
    return sqrt(off / length);
}

/* One shard or several, one thread or three: the same elements are dropped;
 * not so in another step or another batch of the step. */
static void compute_drops_by_step_and_part_alone(void **state)
{
    (void)state;
    const pl_model dropping = { .name = "dropping", .build = dropping_build };
    rig_opts opts = large;
    opts.model = &dropping;
    for (int threads = 1; threads <= 3; threads++) {
        rig r;
        make(&r, opts, threads);
        pl_batch batch;
        pl_reader *reader = first_batch(&r, 37, &batch);
        pl_compute *one = start(&r, 37, false);
        pl_compute *many = start(&r, BATCH, false);
        assert_int_equal(1, pl_compute_shards(one));
        assert_true(pl_compute_shards(many) > 1);
        const pl_params *expected = pl_compute_diff(one);
        const pl_params *got = pl_compute_diff(many);
        pl_compute_gradient(one, &batch, 4, 2, NULL);
        pl_compute_gradient(many, &batch, 4, 2, NULL);
        assert_true(apart(expected, got) < 1e-5);
        pl_compute_gradient(many, &batch, 5, 2, NULL);
        assert_true(apart(expected, got) > 0.05);
        pl_compute_gradient(many, &batch, 4, 1, NULL);
        assert_true(apart(expected, got) > 0.05);
        pl_compute_free(many);
        pl_compute_free(one);
        pl_reader_free(reader);
        rig_close(&r);
    }
}

static void compute_allocates_nothing_in_a_step(void **state)
{
    (void)state;
    rig r;
    make(&r, large, 2);
    pl_reader *reader;
    assert_ok(
        pl_reader_new(&reader, r.train, &(pl_reader_opts) { .batch = BATCH }));
    pl_compute *compute = start(&r, BATCH, false);
    pl_compute *scorer = start(&r, BATCH, true);
    long live = pl_mem_live();
    pl_mem_fail_at(0);
    for (int64_t step = 1; step <= 4; step++) {
        pl_batch batch;
        pl_commit committed;
        pl_status status = pl_reader_next(reader, &batch);
        pl_compute_gradient(compute, &batch, step, 0, r.sync);
        if (status == PL_OK)
            status = r.sync->ops->commit(r.sync, &committed);
        pl_compute_score(scorer, &batch);
        assert_int_equal(PL_OK, status);
    }
    assert_false(pl_mem_fail_off());
    assert_int_equal(live, pl_mem_live());
    pl_compute_free(compute);
    pl_compute_free(scorer);
    pl_reader_free(reader);
    rig_close(&r);
}

static void compute_memory_is_known_in_advance(void **state)
{
    (void)state;
    rig r;
    make(&r, large, 2);
    pl_compute_opts opts = { .network = r.network,
                             .batch = BATCH,
                             .pool = r.pool };
    long live = pl_mem_live();
    pl_compute_size size, forward;
    assert_ok(pl_compute_memory(&opts, &size));
    opts.forward = true;
    assert_ok(pl_compute_memory(&opts, &forward));
    assert_int_equal(live, pl_mem_live());
    assert_true(forward.bytes > 0 && forward.bytes < size.bytes);
    rig_close(&r);
}

static void compute_survives_failed_allocations(void **state)
{
    (void)state;
    rig r;
    make(&r, large, 2);
    pl_compute *compute = NULL;
    pl_compute_opts opts = { .network = r.network,
                             .batch = BATCH,
                             .pool = r.pool };
    pl_compute_size size;
    assert_survives_failed_allocations(pl_compute_new(&compute, &opts),
                                       pl_compute_free(compute));
    assert_survives_failed_allocations(pl_compute_memory(&opts, &size),
                                       (void)0);
    rig_close(&r);
}

UNIT_TESTS(cmocka_unit_test(
               compute_gradient_is_the_same_bits_on_any_number_of_threads),
           cmocka_unit_test(compute_shards_add_up_to_the_whole_batch),
           cmocka_unit_test(compute_score_weighs_an_uneven_last_batch),
           cmocka_unit_test(compute_accuracy_is_that_of_the_rows_in_memory),
           cmocka_unit_test(compute_of_a_large_model_is_one_shard_and_agrees),
           cmocka_unit_test(compute_scores_a_large_model_in_pieces),
           cmocka_unit_test(compute_shards_depend_on_model_and_batch_only),
           cmocka_unit_test(compute_does_not_split_what_is_not_separable),
           cmocka_unit_test(compute_drops_by_step_and_part_alone),
           cmocka_unit_test(compute_allocates_nothing_in_a_step),
           cmocka_unit_test(compute_memory_is_known_in_advance),
           cmocka_unit_test(compute_survives_failed_allocations))

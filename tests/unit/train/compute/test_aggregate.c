#include "train/compute/aggregate.h"

#include "support/kernels.h"

#define MICRO 3
#define LARGE 150000 /* more than one chunk a thread */

typedef struct fixture {
    pl_pool *pool;
    pl_params *diffs[MICRO];
    float *expected;
    int64_t count; /* floats of a block */
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL)
        return -1;
    assert_ok(pl_pool_new(&f->pool, 3));
    for (int m = 0; m < MICRO; m++) {
        assert_ok(pl_params_new(&f->diffs[m]));
        assert_ok(pl_params_add(f->diffs[m], "a", PL_SHAPE(3, 7)));
        assert_ok(pl_params_add(f->diffs[m], "b", PL_SHAPE(LARGE)));
        assert_ok(pl_params_seal(f->diffs[m]));
        for (int p = 0; p < 2; p++)
            draw_all(pl_params_data(f->diffs[m], p),
                     pl_params_get(f->diffs[m], p)->count, -1, 1);
    }
    f->count = pl_params_block_count(f->diffs[0]);
    f->expected = pl_mem_alloc((size_t)f->count, sizeof(float));
    *state = f;
    return f->expected == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    for (int m = 0; m < MICRO; m++)
        pl_params_free(f->diffs[m]);
    pl_pool_free(f->pool);
    pl_mem_free(f->expected);
    free(f);
    return pl_mem_live() == 0 ? 0 : -1;
}

/* The same gradients, the second tensor as what running averages approach. */
static pl_params *with_averages(const pl_params *diff)
{
    pl_params *params;
    assert_ok(pl_params_new(&params));
    assert_ok(pl_params_add(params, "a", PL_SHAPE(3, 7)));
    assert_ok(pl_params_add_averaged(params, "b", PL_SHAPE(LARGE)));
    assert_ok(pl_params_seal(params));
    memcpy(pl_params_block(params), pl_params_block(diff),
           (size_t)pl_params_block_count(diff) * sizeof(float));
    return params;
}

/* An aggregator that was given `micro` gradients. */
static pl_aggregator *aggregated(const fixture *f, pl_aggregator_opts opts,
                                 int32_t micro)
{
    pl_aggregator *a;
    opts.params = f->diffs[0];
    opts.pool = opts.pool != NULL ? opts.pool : f->pool;
    opts.micro_batches = micro;
    assert_ok(pl_aggregator_new(&a, &opts));
    assert_int_equal(micro, pl_aggregator_micro_batches(a));
    for (int round = 0; round < 2; round++) /* nothing is left of the first */
        for (int32_t m = 0; m < micro; m++)
            pl_aggregator_put(a, m, f->diffs[m]);
    return a;
}

static void assert_is_expected(const fixture *f, pl_aggregator *a)
{
    assert_memory_equal(f->expected, pl_params_block(pl_aggregator_diff(a)),
                        (size_t)f->count * sizeof(float));
    pl_aggregator_free(a);
}

/* ((g0 + g1) + g2) * (1/3), rounded after each operation. */
static void aggregate_mean_is_the_sum_in_order_times_one_over_m(void **state)
{
    fixture *f = *state;
    const float *g[MICRO];
    for (int m = 0; m < MICRO; m++)
        g[m] = pl_params_block(f->diffs[m]);
    for (int64_t i = 0; i < f->count; i++) {
        float sum = g[0][i] + g[1][i];
        sum = sum + g[2][i];
        f->expected[i] = sum * (1.0f / 3.0f);
    }
    FOR_EACH_TABLE(table)
    {
        assert_is_expected(
            f, aggregated(f, (pl_aggregator_opts) { .kernels = table }, MICRO));
    }
}

static void aggregate_sum_is_the_sum_in_order(void **state)
{
    fixture *f = *state;
    for (int64_t i = 0; i < f->count; i++) {
        float sum = pl_params_block(f->diffs[0])[i];
        for (int m = 1; m < MICRO; m++)
            sum = sum + pl_params_block(f->diffs[m])[i];
        f->expected[i] = sum;
    }
    assert_is_expected(
        f, aggregated(f, (pl_aggregator_opts) { .sum = true }, MICRO));
}

static void aggregate_of_one_is_itself(void **state)
{
    fixture *f = *state;
    memcpy(f->expected, pl_params_block(f->diffs[0]),
           (size_t)f->count * sizeof(float));
    assert_is_expected(f, aggregated(f, (pl_aggregator_opts) { 0 }, 1));
    /* A limit that is not reached changes nothing. */
    assert_is_expected(f,
                       aggregated(f, (pl_aggregator_opts) { .clip = 1e6 }, 1));
}

static double length_of(const float *g, int64_t count)
{
    double squares = 0;
    for (int64_t i = 0; i < count; i++)
        squares += (double)g[i] * (double)g[i];
    return sqrt(squares);
}

/* Each gradient on its own is brought down to the limit, then they add. */
static void aggregate_clips_each_gradient(void **state)
{
    fixture *f = *state;
    const double clip = 2;
    float *small = pl_params_block(f->diffs[1]);
    for (int64_t i = 0; i < f->count; i++)
        small[i] *= 1e-3f; /* stays below the limit */
    FOR_EACH_TABLE(table)
    {
        pl_aggregator *a = aggregated(
            f, (pl_aggregator_opts) { .kernels = table, .clip = clip }, MICRO);
        const float *got = pl_params_block(pl_aggregator_diff(a));
        double factor[MICRO];
        for (int m = 0; m < MICRO; m++) {
            double length = length_of(pl_params_block(f->diffs[m]), f->count);
            factor[m] = length > clip ? clip / length : 1;
        }
        assert_true(factor[0] < 1 && factor[1] == 1);
        for (int64_t i = 0; i < f->count; i++) {
            double sum = 0;
            for (int m = 0; m < MICRO; m++)
                sum += factor[m] * (double)pl_params_block(f->diffs[m])[i];
            assert_true(is_near((double)got[i], sum / MICRO, 1e-8));
        }
        pl_aggregator_free(a);
    }
}

static void aggregate_of_running_averages_is_the_mean_unclipped(void **state)
{
    fixture *f = *state;
    const double clip = 0.5;
    const float *g[MICRO];
    double factor[MICRO];
    for (int m = 0; m < MICRO; m++) {
        pl_params *diff = with_averages(f->diffs[m]);
        pl_params_free(f->diffs[m]);
        f->diffs[m] = diff;
        g[m] = pl_params_block(diff);
        factor[m] = clip / length_of(g[m], 21);
        assert_true(factor[m] < 1);
    }
    pl_aggregator *a = aggregated(
        f, (pl_aggregator_opts) { .clip = clip, .sum = true }, MICRO);
    const float *got = pl_params_block(pl_aggregator_diff(a));
    int64_t trained = pl_params_trained(f->diffs[0]);
    for (int64_t i = 0; i < f->count; i++) {
        float sum = g[0][i] + g[1][i];
        sum = sum + g[2][i];
        double clipped = 0;
        for (int m = 0; m < MICRO; m++)
            clipped += factor[m] * (double)g[m][i];
        if (i >= trained)
            assert_true(got[i] == sum * (1.0f / 3.0f));
        else
            assert_true(is_near((double)got[i], clipped, 1e-6));
    }
    pl_aggregator_free(a);
}

static void aggregate_is_the_same_bits_on_any_number_of_threads(void **state)
{
    fixture *f = *state;
    pl_pool *one;
    assert_ok(pl_pool_new(&one, 1));
    pl_aggregator *a =
        aggregated(f, (pl_aggregator_opts) { .clip = 1, .pool = one }, MICRO);
    memcpy(f->expected, pl_params_block(pl_aggregator_diff(a)),
           (size_t)f->count * sizeof(float));
    pl_aggregator_free(a);
    assert_is_expected(
        f, aggregated(f, (pl_aggregator_opts) { .clip = 1 }, MICRO));
    pl_pool_free(one);
}

static void aggregate_propagates_non_finite_values(void **state)
{
    fixture *f = *state;
    const float bad[] = { NAN, INFINITY };
    for (int i = 0; i < 2; i++) {
        pl_params_data(f->diffs[1], 1)[LARGE - 1] = bad[i];
        pl_aggregator *a =
            aggregated(f, (pl_aggregator_opts) { .clip = 1 }, MICRO);
        float last = pl_params_data(pl_aggregator_diff(a), 1)[LARGE - 1];
        assert_true(isfinite(last) == 0);
        pl_aggregator_free(a);
    }
}

static void aggregate_survives_failed_allocations(void **state)
{
    fixture *f = *state;
    pl_aggregator *a = NULL;
    pl_aggregator_opts opts = { .params = f->diffs[0],
                                .pool = f->pool,
                                .micro_batches = 2 };
    assert_survives_failed_allocations(pl_aggregator_new(&a, &opts),
                                       pl_aggregator_free(a));
}

#define WITH_FIXTURE(test)                                                     \
    cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(WITH_FIXTURE(aggregate_mean_is_the_sum_in_order_times_one_over_m),
           WITH_FIXTURE(aggregate_sum_is_the_sum_in_order),
           WITH_FIXTURE(aggregate_of_one_is_itself),
           WITH_FIXTURE(aggregate_clips_each_gradient),
           WITH_FIXTURE(aggregate_of_running_averages_is_the_mean_unclipped),
           WITH_FIXTURE(aggregate_is_the_same_bits_on_any_number_of_threads),
           WITH_FIXTURE(aggregate_propagates_non_finite_values),
           WITH_FIXTURE(aggregate_survives_failed_allocations))

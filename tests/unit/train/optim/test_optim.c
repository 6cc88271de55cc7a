/* The optimizers against their formulas in double precision. */
#include "train/optim/optim.h"

#include "support/kernels.h"
#include "train/optim/schedule.h"

#define COUNT 37
#define STEPS 6

typedef struct exact {
    double p[COUNT], slot1[COUNT], slot2[COUNT];
} exact;

typedef void exact_step(exact *e, const pl_optim_opts *o, int i, double g,
                        double lr, int t);

static void exact_sgd(exact *e, const pl_optim_opts *o, int i, double g,
                      double lr, int t)
{
    (void)o, (void)t;
    e->p[i] -= lr * g;
}

static void exact_momentum(exact *e, const pl_optim_opts *o, int i, double g,
                           double lr, int t)
{
    (void)t;
    e->slot1[i] = o->momentum * e->slot1[i] + g;
    e->p[i] -= lr * (o->nesterov ? g + o->momentum * e->slot1[i] : e->slot1[i]);
}

/* Kingma and Ba 2015, algorithm 1. */
static void exact_adam(exact *e, const pl_optim_opts *o, int i, double g,
                       double lr, int t)
{
    e->slot1[i] = o->beta1 * e->slot1[i] + (1 - o->beta1) * g;
    e->slot2[i] = o->beta2 * e->slot2[i] + (1 - o->beta2) * g * g;
    double mean = e->slot1[i] / (1 - pow(o->beta1, t));
    double variance = e->slot2[i] / (1 - pow(o->beta2, t));
    e->p[i] -= lr * mean / (sqrt(variance) + o->epsilon);
}

/* Duchi, Hazan and Singer 2011. */
static void exact_adagrad(exact *e, const pl_optim_opts *o, int i, double g,
                          double lr, int t)
{
    (void)t;
    e->slot1[i] += g * g;
    e->p[i] -= lr * g / (sqrt(e->slot1[i]) + o->epsilon);
}

/* Tieleman and Hinton 2012. */
static void exact_rmsprop(exact *e, const pl_optim_opts *o, int i, double g,
                          double lr, int t)
{
    (void)t;
    double rho = fmax(0, o->rho);
    e->slot1[i] = rho * e->slot1[i] + (1 - rho) * g * g;
    e->p[i] -= lr * g / (sqrt(e->slot1[i]) + o->epsilon);
}

/* McMahan et al. 2013, algorithm 1. */
static void exact_ftrl(exact *e, const pl_optim_opts *o, int i, double g,
                       double lr, int t)
{
    (void)t;
    double before = sqrt(e->slot2[i]);
    e->slot2[i] += g * g;
    double root = sqrt(e->slot2[i]);
    e->slot1[i] += g - (root - before) / lr * e->p[i];
    double z = e->slot1[i], beta = fmax(0, o->beta);
    if (fabs(z) <= o->l1)
        e->p[i] = 0;
    else
        e->p[i] =
            -(z - (z > 0 ? o->l1 : -o->l1)) / ((beta + root) / lr + o->l2);
}

/* Towards zero, and not beyond. */
static double exact_shrink(double p, double by)
{
    return fabs(p) <= by ? 0 : p - (p > 0 ? by : -by);
}

static void exact_sgd_l1(exact *e, const pl_optim_opts *o, int i, double g,
                         double lr, int t)
{
    exact_sgd(e, o, i, g + o->l2 * e->p[i], lr, t);
    e->p[i] = exact_shrink(e->p[i], lr * o->l1);
}

static void exact_adagrad_l1(exact *e, const pl_optim_opts *o, int i, double g,
                             double lr, int t)
{
    exact_adagrad(e, o, i, g + o->l2 * e->p[i], lr, t);
    e->p[i] =
        exact_shrink(e->p[i], lr * o->l1 / (sqrt(e->slot1[i]) + o->epsilon));
}

static pl_params *one_param(void)
{
    pl_params *params;
    assert_ok(pl_params_new(&params));
    assert_ok(pl_params_add(params, "p", PL_SHAPE(COUNT)));
    assert_ok(pl_params_seal(params));
    return params;
}

/* `full` are the options with their defaults written out. */
static void check(const pl_kernels *table, const pl_optim_opts *opts,
                  const pl_optim_opts *full, exact_step *step)
{
    pl_params *params = one_param(), *grads = one_param();
    float *p = pl_params_data(params, 0), *g = pl_params_data(grads, 0);
    exact e = { { 0 }, { 0 }, { 0 } };
    pl_optim *optim;
    assert_ok(pl_optim_new(&optim, opts, params, table));
    draw_all(p, COUNT, -1, 1);
    for (int i = 0; i < COUNT; i++) {
        e.p[i] = (double)p[i];
        e.slot1[i] = fmax(0, full->initial_sum);
    }
    for (int t = 1; t <= STEPS; t++) {
        double lr = 0.1 / t;
        draw_all(g, COUNT, -1, 1);
        pl_optim_begin(optim, t, lr);
        pl_optim_update(optim, 0, 16, g, p);
        pl_optim_update(optim, 16, COUNT - 16, g + 16, p);
        for (int i = 0; i < COUNT; i++) {
            double grad = (double)g[i] + full->weight_decay * e.p[i];
            step(&e, full, i, grad, lr, t);
            if (!is_near((double)p[i], e.p[i], 2e-6))
                fail_msg("%s %s step %d: element %d is %.9g, not %.9g",
                         table->name, full->name, t, i, (double)p[i], e.p[i]);
        }
    }
    pl_optim_free(optim);
    pl_params_free(params);
    pl_params_free(grads);
}

static void sgd_follows_its_formula(void **state)
{
    (void)state;
    const pl_optim_opts plain = { 0 }, full = { .name = "sgd" };
    const pl_optim_opts decay = { .name = "sgd", .weight_decay = 0.05 };
    FOR_EACH_TABLE(table)
    {
        check(table, &plain, &full, exact_sgd);
        check(table, &decay, &decay, exact_sgd);
    }
}

static void momentum_follows_its_formula(void **state)
{
    (void)state;
    const pl_optim_opts plain = { .name = "momentum" };
    const pl_optim_opts full = { .name = "momentum", .momentum = 0.9 };
    const pl_optim_opts own = { .name = "momentum",
                                .momentum = 0.5,
                                .weight_decay = 0.01 };
    pl_optim_opts ahead = own;
    ahead.nesterov = true;
    FOR_EACH_TABLE(table)
    {
        check(table, &plain, &full, exact_momentum);
        check(table, &own, &own, exact_momentum);
        check(table, &ahead, &ahead, exact_momentum);
    }
}

static void adam_follows_its_formula(void **state)
{
    (void)state;
    const pl_optim_opts plain = { .name = "adam" };
    const pl_optim_opts full = {
        .name = "adam", .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8
    };
    const pl_optim_opts own = { .name = "adam",
                                .beta1 = 0.8,
                                .beta2 = 0.9,
                                .epsilon = 1e-3,
                                .weight_decay = 0.01 };
    FOR_EACH_TABLE(table)
    {
        check(table, &plain, &full, exact_adam);
        check(table, &own, &own, exact_adam);
    }
}

static void adagrad_follows_its_formula(void **state)
{
    (void)state;
    const pl_optim_opts plain = { .name = "adagrad" };
    const pl_optim_opts full = { .name = "adagrad",
                                 .initial_sum = 0.1,
                                 .epsilon = 1e-8 };
    const pl_optim_opts own = { .name = "adagrad",
                                .initial_sum = 2,
                                .epsilon = 1e-3,
                                .weight_decay = 0.01 };
    pl_optim_opts zero = full;
    zero.initial_sum = -1;
    FOR_EACH_TABLE(table)
    {
        check(table, &plain, &full, exact_adagrad);
        check(table, &own, &own, exact_adagrad);
        check(table, &zero, &zero, exact_adagrad);
    }
}

static void rmsprop_follows_its_formula(void **state)
{
    (void)state;
    const pl_optim_opts plain = { .name = "rmsprop" };
    const pl_optim_opts full = { .name = "rmsprop",
                                 .rho = 0.9,
                                 .epsilon = 1e-8 };
    const pl_optim_opts own = {
        .name = "rmsprop", .rho = 0.5, .epsilon = 1e-3, .weight_decay = 0.01
    };
    pl_optim_opts zero = full;
    zero.rho = -1;
    FOR_EACH_TABLE(table)
    {
        check(table, &plain, &full, exact_rmsprop);
        check(table, &own, &own, exact_rmsprop);
        check(table, &zero, &zero, exact_rmsprop);
    }
}

static void ftrl_follows_its_formula(void **state)
{
    (void)state;
    const pl_optim_opts plain = { .name = "ftrl" };
    const pl_optim_opts full = { .name = "ftrl", .beta = 1 };
    const pl_optim_opts own = { .name = "ftrl",
                                .beta = 0.2,
                                .weight_decay = 0.01 };
    FOR_EACH_TABLE(table)
    {
        check(table, &plain, &full, exact_ftrl);
        check(table, &own, &own, exact_ftrl);
    }
}

/* Each step another third of the elements; the others do not move. */
static void check_keys(const pl_kernels *table, const pl_optim_opts *full,
                       exact_step *step)
{
    pl_params *params = one_param();
    float *p = pl_params_data(params, 0), g[COUNT];
    uint64_t keys[COUNT];
    exact e = { { 0 }, { 0 }, { 0 } };
    pl_optim *optim;
    int zeros = 0;
    assert_ok(pl_optim_new(&optim, full, params, table));
    draw_all(p, COUNT, -1, 1);
    for (int i = 0; i < COUNT; i++) {
        e.p[i] = (double)p[i];
        e.slot1[i] = full->initial_sum;
    }
    for (int t = 1; t <= 3 * STEPS; t++) {
        int64_t count = 0;
        draw_all(g, COUNT, -1, 1);
        for (int i = t % 3; i < COUNT; i += 3) {
            step(&e, full, i, (double)g[count], 0.1, t);
            keys[count++] = (uint64_t)i;
        }
        pl_optim_begin(optim, t, 0.1);
        pl_optim_update_keys(optim, 0, count / 2, keys, g, p);
        pl_optim_update_keys(optim, 0, count - count / 2, keys + count / 2,
                             g + count / 2, p);
        for (int i = 0; i < COUNT; i++)
            if (!is_near((double)p[i], e.p[i], 4e-6))
                fail_msg("%s %s step %d: element %d is %.9g, not %.9g",
                         table->name, full->name, t, i, (double)p[i], e.p[i]);
    }
    for (int i = 0; i < COUNT; i++)
        zeros += p[i] == 0;
    assert_true(zeros > 0 || full->l1 == 0); /* that is what L1 is for */
    pl_optim_free(optim);
    pl_params_free(params);
}

static void optim_updates_only_its_keys_with_l1_and_l2(void **state)
{
    (void)state;
    const pl_optim_opts sgd = { .name = "sgd", .l1 = 0.8, .l2 = 0.05 };
    const pl_optim_opts plain = { .name = "sgd" };
    const pl_optim_opts ftrl = {
        .name = "ftrl", .beta = 1, .l1 = 0.5, .l2 = 0.05
    };
    const pl_optim_opts adagrad = { .name = "adagrad",
                                    .initial_sum = 0.1,
                                    .epsilon = 1e-8,
                                    .l1 = 0.8,
                                    .l2 = 0.05 };
    FOR_EACH_TABLE(table)
    {
        check_keys(table, &plain, exact_sgd);
        check_keys(table, &sgd, exact_sgd_l1);
        check_keys(table, &adagrad, exact_adagrad_l1);
        check_keys(table, &ftrl, exact_ftrl);
    }
}

static void assert_slots_start_at(const pl_optim_opts *opts, float expected)
{
    pl_params *params = one_param();
    FOR_EACH_TABLE(table)
    {
        pl_optim *optim;
        assert_ok(pl_optim_new(&optim, opts, params, table));
        for (int s = 0; s < optim->ops->slot_count; s++) {
            const float *slot = pl_params_data(optim->slots[s], 0);
            for (int i = 0; i < COUNT; i++)
                assert_true(slot[i] == expected);
        }
        pl_optim_free(optim);
    }
    pl_params_free(params);
}

static void optim_slots_start_at_zero_but_the_sum_of_adagrad(void **state)
{
    (void)state;
    for (const pl_optim_ops *const *ops = pl_optim_list(); *ops != NULL; ops++)
        assert_slots_start_at(&(pl_optim_opts) { .name = (*ops)->name },
                              (*ops)->initial != NULL ? 0.1f : 0);
    pl_optim_opts own = { .name = "adagrad", .initial_sum = 3 };
    assert_slots_start_at(&own, 3);
    own.initial_sum = -1;
    assert_slots_start_at(&own, 0);
}

/* Wherever the range is cut: by no optimizer, no decay, no slot. */
static void optim_moves_running_averages_to_their_gradient(void **state)
{
    (void)state;
    const int first = 19;
    pl_optim_opts opts = { .name = "adam", .weight_decay = 0.1 };
    pl_params *params = one_param(), *whole = one_param();
    float g[COUNT], before[COUNT], *p = pl_params_data(params, 0),
                                   *q = pl_params_data(whole, 0);
    pl_optim *a, *b;
    assert_ok(pl_optim_new(&a, &opts, params, pl_kernels_best()));
    assert_ok(pl_optim_new(&b, &opts, whole, pl_kernels_best()));
    pl_optim_average(a, first, 0.25);
    draw_all(p, COUNT, -1, 1);
    draw_all(g, COUNT, -1, 1);
    memcpy(before, p, sizeof before);
    memcpy(q, p, sizeof before);
    pl_optim_begin(a, 1, 0.1);
    pl_optim_begin(b, 1, 0.1);
    pl_optim_update(a, 0, 16, g, p);
    pl_optim_update(a, 16, 16, g + 16, p);
    pl_optim_update(a, 32, COUNT - 32, g + 32, p);
    pl_optim_update(b, 0, COUNT, g, q);
    assert_memory_equal(q, p, (size_t)first * sizeof *p);
    for (int i = first; i < COUNT; i++) {
        float moved = 0.25f * (g[i] - before[i]);
        assert_true(p[i] == before[i] + moved);
        assert_true(pl_params_data(a->slots[0], 0)[i] == 0);
    }
    pl_optim_free(a);
    pl_optim_free(b);
    pl_params_free(params);
    pl_params_free(whole);
}

/* Of a sum they take the mean; what is trained keeps the sum. */
static void optim_takes_the_mean_for_running_averages(void **state)
{
    (void)state;
    pl_params *params = one_param();
    float sum[COUNT];
    pl_optim *optim;
    assert_ok(pl_optim_new(&optim, &(pl_optim_opts) { 0 }, params,
                           pl_kernels_best()));
    for (int first = 0; first < COUNT; first += 7) {
        pl_optim_average(optim, first, 0.1);
        for (int i = 0; i < COUNT; i++)
            sum[i] = 8;
        pl_optim_mean(optim, 0, COUNT, 4, sum);
        for (int i = 0; i < COUNT; i++)
            assert_true(sum[i] == (i < first ? 8 : 2));
    }
    pl_optim_free(optim);
    pl_params_free(params);
}

static void optim_of_an_unknown_name_is_refused(void **state)
{
    (void)state;
    pl_params *params = one_param();
    pl_optim *optim = NULL;
    assert_fails(PL_USAGE, "optimizer \"sdg\" is unknown; expected sgd",
                 pl_optim_new(&optim, &(pl_optim_opts) { .name = "sdg" },
                              params, pl_kernels_best()));
    assert_null(optim);
    pl_params_free(params);
    assert_int_equal(0, pl_mem_live());
}

static void optim_survives_failed_allocations(void **state)
{
    (void)state;
    pl_params *params = one_param();
    for (const pl_optim_ops *const *ops = pl_optim_list(); *ops != NULL;
         ops++) {
        pl_optim *optim = NULL;
        assert_survives_failed_allocations(
            pl_optim_new(&optim, &(pl_optim_opts) { .name = (*ops)->name },
                         params, pl_kernels_best()),
            pl_optim_free(optim));
    }
    pl_params_free(params);
}

static void schedule_rises_evenly_to_the_rate(void **state)
{
    (void)state;
    const pl_schedule plain = { .lr = 0.5 }, warm = { .lr = 0.5, .warmup = 4 };
    assert_true(pl_schedule_lr(&plain, 1) == 0.5);
    assert_true(pl_schedule_lr(&warm, 1) == 0.125);
    assert_true(pl_schedule_lr(&warm, 3) == 0.375);
    assert_true(pl_schedule_lr(&warm, 4) == 0.5);
    assert_true(pl_schedule_lr(&warm, 400) == 0.5);
}

/* The last update before a corner, the corner, and after. */
static void schedule_in_steps_falls_at_fixed_intervals(void **state)
{
    (void)state;
    const pl_schedule s = {
        .lr = 0.5, .kind = PL_SCHEDULE_STEP, .decay = 0.25, .decay_steps = 10
    };
    assert_true(pl_schedule_lr(&s, 1) == 0.5);
    assert_true(pl_schedule_lr(&s, 10) == 0.5);
    assert_true(pl_schedule_lr(&s, 11) == 0.125);
    assert_true(pl_schedule_lr(&s, 20) == 0.125);
    assert_true(pl_schedule_lr(&s, 21) == 0.03125);
    assert_true(pl_schedule_lr(&s, INT64_C(9000000000)) == 0);
}

static void schedule_falls_exponentially(void **state)
{
    (void)state;
    const pl_schedule s = { .lr = 0.5,
                            .kind = PL_SCHEDULE_EXPONENTIAL,
                            .decay = 0.25,
                            .decay_steps = 10 };
    assert_true(pl_schedule_lr(&s, 1) == 0.5);
    assert_true(pl_schedule_lr(&s, 6) == 0.25);
    assert_true(pl_schedule_lr(&s, 11) == 0.125);
    assert_true(is_near(pl_schedule_lr(&s, 2), 0.5 * pow(0.25, 0.1), 1e-15));
}

static void schedule_falls_along_a_cosine_and_stays_at_0(void **state)
{
    (void)state;
    pl_schedule s = { .lr = 0.5,
                      .kind = PL_SCHEDULE_COSINE,
                      .decay_steps = 12,
                      .run_steps = 100 };
    assert_true(pl_schedule_lr(&s, 1) == 0.5);
    assert_true(is_near(pl_schedule_lr(&s, 5), 0.375, 1e-15));
    assert_true(is_near(pl_schedule_lr(&s, 7), 0.25, 1e-15));
    assert_true(is_near(pl_schedule_lr(&s, 9), 0.125, 1e-15));
    assert_true(pl_schedule_lr(&s, 12) > 0);
    assert_true(pl_schedule_lr(&s, 13) == 0);
    assert_true(pl_schedule_lr(&s, 100) == 0);
    /* Without a length of its own, that of the run. */
    s.decay_steps = 0;
    s.run_steps = 12;
    assert_true(is_near(pl_schedule_lr(&s, 7), 0.25, 1e-15));
    assert_true(pl_schedule_lr(&s, 12) > 0);
    assert_true(pl_schedule_lr(&s, 13) == 0);
}

/* Update `warmup` is the first of the decay, whatever its kind. */
static void schedule_counts_from_the_end_of_the_warm_up(void **state)
{
    (void)state;
    const pl_schedule_kind kinds[] = { PL_SCHEDULE_CONSTANT, PL_SCHEDULE_STEP,
                                       PL_SCHEDULE_EXPONENTIAL,
                                       PL_SCHEDULE_COSINE };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const pl_schedule cold = {
            .lr = 0.5, .kind = kinds[k], .decay = 0.25, .decay_steps = 10
        };
        pl_schedule warm = cold;
        warm.warmup = 1;
        assert_true(pl_schedule_lr(&warm, 1) == 0.5);
        assert_true(pl_schedule_lr(&warm, 8) == pl_schedule_lr(&cold, 8));
        warm.warmup = 8;
        for (int update = 1; update < 8; update++)
            assert_true(pl_schedule_lr(&warm, update) == 0.0625 * update);
        for (int update = 8; update < 40; update++)
            assert_true(pl_schedule_lr(&warm, update) ==
                        pl_schedule_lr(&cold, update - 7));
    }
    /* The cosine ends with the run all the same. */
    pl_schedule s = {
        .lr = 0.5, .kind = PL_SCHEDULE_COSINE, .warmup = 9, .run_steps = 20
    };
    assert_true(pl_schedule_lr(&s, 9) == 0.5);
    assert_true(is_near(pl_schedule_lr(&s, 15), 0.25, 1e-15));
    assert_true(pl_schedule_lr(&s, 20) > 0);
    assert_true(pl_schedule_lr(&s, 21) == 0);
    /* A run that ends with its warm-up, or before, never decays. */
    s.run_steps = 9;
    assert_true(pl_schedule_lr(&s, 9) == 0.5);
    s.run_steps = 4;
    assert_true(is_near(pl_schedule_lr(&s, 4), 0.5 * 4 / 9, 1e-15));
}

/* A checkpoint that is written meanwhile has what was there before. */
static void optim_announces_its_updates(void **state)
{
    (void)state;
    const uint64_t keys[] = { 1, 30 };
    for (int by_keys = 0; by_keys < 2; by_keys++) {
        pl_params *params = one_param();
        pl_optim *optim;
        assert_ok(pl_optim_new(&optim, &(pl_optim_opts) { .name = "momentum" },
                               params, pl_kernels_best()));
        float *block = pl_params_block(params), grad[COUNT];
        int64_t floats = pl_params_block_count(params);
        draw_all(block, COUNT, -1, 1);
        draw_all(grad, COUNT, 1, 2);
        float before[COUNT];
        memcpy(before, block, sizeof before);
        assert_ok(pl_frozen_new(&optim->frozen,
                                &(pl_frozen_opts) {
                                    .planes = pl_optim_planes(optim, block),
                                    .count = floats,
                                    .piece = 4,
                                }));
        pl_frozen_begin(optim->frozen);
        pl_optim_begin(optim, 1, 0.1);
        if (by_keys)
            pl_optim_update_keys(optim, 0, 2, keys, grad, block);
        else
            pl_optim_update(optim, 0, COUNT, grad, block);
        assert_true(block[1] != before[1] && block[30] != before[30]);
        for (int plane = 0; plane < 2; plane++) {
            const float *data;
            for (int64_t at = 0, count; at < COUNT; at += count) {
                pl_frozen_read(optim->frozen, plane, at, &data, &count);
                for (int64_t i = 0; i < count && at + i < COUNT; i++)
                    assert_true(data[i] == (plane == 0 ? before[at + i] : 0));
            }
        }
        pl_frozen_end(optim->frozen);
        pl_frozen_free(optim->frozen);
        pl_optim_free(optim);
        pl_params_free(params);
    }
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(cmocka_unit_test(sgd_follows_its_formula),
           cmocka_unit_test(momentum_follows_its_formula),
           cmocka_unit_test(adam_follows_its_formula),
           cmocka_unit_test(adagrad_follows_its_formula),
           cmocka_unit_test(rmsprop_follows_its_formula),
           cmocka_unit_test(ftrl_follows_its_formula),
           cmocka_unit_test(optim_updates_only_its_keys_with_l1_and_l2),
           cmocka_unit_test(optim_slots_start_at_zero_but_the_sum_of_adagrad),
           cmocka_unit_test(optim_announces_its_updates),
           cmocka_unit_test(optim_moves_running_averages_to_their_gradient),
           cmocka_unit_test(optim_takes_the_mean_for_running_averages),
           cmocka_unit_test(optim_of_an_unknown_name_is_refused),
           cmocka_unit_test(optim_survives_failed_allocations),
           cmocka_unit_test(schedule_rises_evenly_to_the_rate),
           cmocka_unit_test(schedule_in_steps_falls_at_fixed_intervals),
           cmocka_unit_test(schedule_falls_exponentially),
           cmocka_unit_test(schedule_falls_along_a_cosine_and_stays_at_0),
           cmocka_unit_test(schedule_counts_from_the_end_of_the_warm_up))

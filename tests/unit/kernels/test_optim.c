#include "support/kernels.h"
#include "train/optim/optim.h"

#define MOST 1000

/* The vectors an optimizer changes; unused slots are carried along. */
typedef struct vectors {
    float *p, *slot1, *slot2;
} vectors;

static const pl_update update = {
    .lr = 0.07f,
    .decay = 0.01f,
    .momentum = 0.9f,
    .beta2 = 0.999f,
    .epsilon = 1e-8f,
    .correct1 = 5.263f,
    .correct2 = 500.2f,
    .beta = 1.0f,
    .l1 = 0.3f,
    .l2 = 0.1f,
};

/* Every optimizer of the list, then momentum as Nesterov has it. */
#define OPTIMIZERS (PL_OPTIMS + 1)
typedef struct optimizer {
    const char *name;
    pl_optim_kind kind;
    bool nesterov;
} optimizer;

static optimizer optimizer_at(int number)
{
    if (number == PL_OPTIMS)
        return (optimizer) { "nesterov", PL_OPTIM_MOMENTUM, true };
    return (optimizer) { pl_optim_list()[number]->name, (pl_optim_kind)number,
                         false };
}

/* Two updates: the second finds slots that the first has made. */
static void run(optimizer o, const pl_kernels *table, int64_t n, const float *g,
                vectors v)
{
    pl_update u = update;
    u.nesterov = o.nesterov;
    float *slots[PL_MAX_SLOTS] = { v.slot1, v.slot2 };
    for (int round = 0; round < 2; round++)
        table->update[o.kind](n, &u, g, v.p, slots);
}

typedef struct fixture {
    guard g, p, slot1, slot2;
    float from_g[MOST], from_p[MOST], from_slot1[MOST], from_slot2[MOST];
    float p_expected[MOST], slot1_expected[MOST], slot2_expected[MOST];
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL)
        return -1;
    f->g = guard_make(MOST);
    f->p = guard_make(MOST);
    f->slot1 = guard_make(MOST);
    f->slot2 = guard_make(MOST);
    draw_all(f->from_g, MOST, -1, 1);
    draw_all(f->from_p, MOST, -1, 1);
    /* Some slots are sums of squares. */
    draw_all(f->from_slot1, MOST, 0, 1);
    draw_all(f->from_slot2, MOST, 0, 1);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    guard_drop(&f->g);
    guard_drop(&f->p);
    guard_drop(&f->slot1);
    guard_drop(&f->slot2);
    free(f);
    return 0;
}

static vectors copies(fixture *f, int64_t n)
{
    return (vectors) { guard_copy(&f->p, f->from_p, n),
                       guard_copy(&f->slot1, f->from_slot1, n),
                       guard_copy(&f->slot2, f->from_slot2, n) };
}

/* What one call on n elements makes. */
static void expect(fixture *f, optimizer o, const pl_kernels *table, int64_t n)
{
    vectors v = { f->p_expected, f->slot1_expected, f->slot2_expected };
    size_t bytes = (size_t)n * sizeof(float);
    memcpy(v.p, f->from_p, bytes);
    memcpy(v.slot1, f->from_slot1, bytes);
    memcpy(v.slot2, f->from_slot2, bytes);
    run(o, table, n, f->from_g, v);
}

static void assert_near(optimizer o, const pl_kernels *table, const float *got,
                        const float *expected, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!is_near((double)got[i], (double)expected[i],
                     1e-6 * (1 + fabs((double)expected[i]))))
            fail_msg("%s %s of %lld: element %lld is %.9g, not %.9g",
                     table->name, o.name, (long long)n, (long long)i,
                     (double)got[i], (double)expected[i]);
}

static void optimizer_matches_the_reference(void **state)
{
    fixture *f = *state;
    for (int k = 0; k < OPTIMIZERS; k++)
        for (int64_t n = 1; n <= MOST; n += n < 70 ? 1 : 186) {
            optimizer o = optimizer_at(k);
            expect(f, o, reference_table(), n);
            FOR_EACH_TABLE(table)
            {
                const float *g = guard_copy(&f->g, f->from_g, n);
                vectors v = copies(f, n);
                run(o, table, n, g, v);
                assert_near(o, table, v.p, f->p_expected, n);
                assert_near(o, table, v.slot1, f->slot1_expected, n);
                assert_near(o, table, v.slot2, f->slot2_expected, n);
                assert_memory_equal(f->from_g, g, (size_t)n * sizeof *g);
                guard_check(&f->p);
                guard_check(&f->slot1);
                guard_check(&f->slot2);
            }
        }
}

/* Threads and servers may split ranges anywhere. */
static void optimizer_rounds_equally_for_any_split_of_a_range(void **state)
{
    fixture *f = *state;
    for (int k = 0; k < OPTIMIZERS; k++)
        FOR_EACH_TABLE(table)
        {
            optimizer o = optimizer_at(k);
            expect(f, o, table, MOST);
            for (int round = 0; round < 40; round++) {
                vectors v = copies(f, MOST);
                for (int64_t i = 0, count; i < MOST; i += count) {
                    count = draw_int(1, round < 20 ? 40 : 400);
                    count = count < MOST - i ? count : MOST - i;
                    vectors at = { v.p + i, v.slot1 + i, v.slot2 + i };
                    run(o, table, count, f->from_g + i, at);
                }
                size_t bytes = MOST * sizeof(float);
                assert_memory_equal(f->p_expected, v.p, bytes);
                assert_memory_equal(f->slot1_expected, v.slot1, bytes);
                assert_memory_equal(f->slot2_expected, v.slot2, bytes);
            }
        }
}

/* The gaps between parameters are zero and stay so. */
static void optimizer_leaves_zeros_zero(void **state)
{
    (void)state;
    for (int k = 0; k < OPTIMIZERS; k++)
        FOR_EACH_TABLE(table)
        {
            float g[19] = { 0 }, p[19] = { 0 }, slot1[19] = { 0 };
            float slot2[19] = { 0 };
            for (int round = 0; round < 3; round++)
                run(optimizer_at(k), table, 19, g,
                    (vectors) { p, slot1, slot2 });
            for (int i = 0; i < 19; i++)
                assert_true(p[i] == 0 && slot1[i] == 0 && slot2[i] == 0);
        }
}

#define WITH_FIXTURE(test)                                                     \
    cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(WITH_FIXTURE(optimizer_matches_the_reference),
           WITH_FIXTURE(optimizer_rounds_equally_for_any_split_of_a_range),
           cmocka_unit_test(optimizer_leaves_zeros_zero))

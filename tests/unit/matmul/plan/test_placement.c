#include "matmul/plan/formula.h"
#include "matmul/plan/placement.h"
#include "matmul/plan/plan.h"
#include "support/unit.h"

#include "base/mem.h"

static pl_matmul_job job_of(pl_matmul_op op, int64_t n, int32_t blocks,
                            int32_t workers)
{
    return (pl_matmul_job) { op, n, blocks, workers, 1 };
}

static int64_t value_of(const char *formula)
{
    int64_t value;
    assert_ok(
        pl_formula_value(formula, &(pl_formula_values) { 5, 7, 3, 8 }, &value));
    return value;
}

static void formula_follows_the_rules_of_arithmetic(void **state)
{
    (void)state;
    assert_int_equal(12, value_of("i+j"));
    assert_int_equal(0, value_of("(i + j) % W"));
    assert_int_equal(47, value_of("i*B+j"));
    assert_int_equal(5 + 7 * 2 - 1, value_of("i+j*2-1"));
    assert_int_equal(-2, value_of("i-j"));
    assert_int_equal(1, value_of("(i-j)%W")); /* never negative */
    assert_int_equal(-1, value_of("(i-j)/W"));
    assert_int_equal(2, value_of("((((j))))/W"));
}

static void formula_errors_name_their_position(void **state)
{
    (void)state;
    static const struct {
        const char *formula, *part;
    } cases[] = {
        { "", "expected a number, i, j, W, B or \"(\" at place 1" },
        { "i+", "at place 3" },
        { "(i+j", "expected \")\" at place 5" },
        { "i j", "expected + - * / % or the end at place 3" },
        { "k", "at place 1" },
        { "i%(j-7)", "division by zero" },
        { "99999999999", "beyond 2^31" },
        { "2147483000*2147483000", "beyond 2^31" },
        { "((((((((((((((((((((((((((((((((((((1", "too many" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t value;
        assert_fails(PL_USAGE, cases[i].part,
                     pl_formula_value(cases[i].formula,
                                      &(pl_formula_values) { 5, 7, 3, 8 },
                                      &value));
    }
}

static void placement_by_formula_names_the_block_without_worker(void **state)
{
    (void)state;
    pl_matmul_job job = job_of(PL_MATMUL_PRODUCT, 8, 4, 2);
    pl_placement p;
    assert_ok(pl_placement_parse(&p, &job, "(i+j)%W"));
    assert_int_equal(1, pl_placement_owner(&p, 2, 3));
    pl_placement_close(&p);
    assert_fails(PL_USAGE, "is 2 for block (0, 2), expected a worker from 0",
                 pl_placement_parse(&p, &job, "i+j"));
    assert_int_equal(0, pl_mem_live());
}

static int64_t moved_by_all(const pl_placement *p)
{
    int64_t sum = 0;
    for (int32_t w = 0; w < p->job.workers; w++)
        sum += pl_placement_moved(p, w);
    return sum;
}

/* Worker 0 of two holds the left half: it lacks the right half of A, and no
 * row of B. */
static void placement_best_of_a_product_is_a_grid(void **state)
{
    (void)state;
    pl_matmul_job job = job_of(PL_MATMUL_PRODUCT, 80, 8, 2);
    pl_placement best, usual;
    assert_ok(pl_placement_best(&best, &job));
    assert_ok(pl_placement_parse(&usual, &job, "(i+j)%W"));
    assert_int_equal(80 * 80 / 2, pl_placement_held(&best, 0));
    assert_int_equal(80 * 80 / 2, pl_placement_moved(&best, 0));
    assert_int_equal(80 * 80, moved_by_all(&best));
    assert_int_equal(2 * 80 * 80, moved_by_all(&usual));
    pl_placement_close(&best);
    pl_placement_close(&usual);
    job = job_of(PL_MATMUL_PRODUCT, 64, 8, 4);
    assert_ok(pl_placement_best(&best, &job));
    /* 2 x 2: a row and a column of halves, less the own quarter of each. */
    assert_int_equal(2 * (64 * 64 / 2 - 64 * 64 / 4),
                     pl_placement_moved(&best, 3));
    pl_placement_close(&best);
}

static void placement_of_traces_moves_nothing_when_symmetric(void **state)
{
    (void)state;
    pl_matmul_job job = job_of(PL_MATMUL_TRACE, 90, 9, 4);
    pl_placement p;
    assert_ok(pl_placement_best(&p, &job));
    assert_int_equal(0, moved_by_all(&p));
    pl_placement_close(&p);
    assert_ok(pl_placement_parse(&p, &job, "(2*i+j)%W"));
    assert_true(moved_by_all(&p) > 0);
    pl_placement_close(&p);
}

/* The plan fetches exactly what the placement counts, each block once. */
static void plan_fetches_what_was_counted(void **state)
{
    (void)state;
    static const char *const formulas[] = { "(i+j)%W", "i%W", "(i*B+j)%W", "0",
                                            "i*W/B" };
    for (int op = PL_MATMUL_TRACE; op <= PL_MATMUL_PRODUCT; op++)
        for (size_t f = 0; f < sizeof formulas / sizeof *formulas; f++) {
            pl_matmul_job job = job_of((pl_matmul_op)op, 50, 7, 3);
            pl_placement p;
            double flops = 0;
            assert_ok(pl_placement_parse(&p, &job, formulas[f]));
            for (int32_t w = 0; w < 3; w++) {
                pl_matmul_plan plan;
                int64_t floats = 0;
                assert_ok(pl_matmul_plan_init(&plan, &p, w));
                for (int32_t k = 0; k < plan.want_count; k++)
                    floats += plan.wants[k].floats;
                assert_int_equal(pl_placement_moved(&p, w), floats);
                flops += plan.flops;
                pl_matmul_plan_close(&plan);
            }
            /* A pair off the diagonal is computed once for two. */
            assert_true(op == PL_MATMUL_TRACE ? flops > 2500 && flops < 5000
                                              : flops == 2.0 * 50 * 50 * 50);
            pl_placement_close(&p);
        }
}

static void plan_starts_with_steps_that_fetch_nothing(void **state)
{
    (void)state;
    pl_matmul_job job = job_of(PL_MATMUL_PRODUCT, 64, 8, 2);
    pl_placement p;
    pl_matmul_plan plan;
    assert_ok(pl_placement_best(&p, &job));
    assert_ok(pl_matmul_plan_init(&plan, &p, 1));
    assert_int_equal(8, plan.step_count);
    for (int32_t s = 0; s < 4; s++)
        assert_int_equal(0, plan.steps[s].floats);
    for (int32_t s = 4; s < 8; s++)
        assert_true(plan.steps[s].floats > 0);
    pl_matmul_plan_close(&plan);
    pl_placement_close(&p);
}

static pl_status make_plan(pl_matmul_plan *plan)
{
    pl_matmul_job job = job_of(PL_MATMUL_PRODUCT, 64, 8, 2);
    pl_placement p;
    PL_TRY(pl_placement_best(&p, &job));
    pl_status status = pl_matmul_plan_init(plan, &p, 1);
    pl_placement_close(&p);
    return status;
}

static void plan_survives_each_failed_allocation(void **state)
{
    (void)state;
    bool failed = true;
    for (long nth = 0; failed; nth++) {
        pl_matmul_plan plan = { 0 };
        pl_mem_fail_at(nth);
        pl_status status = make_plan(&plan);
        failed = pl_mem_fail_off();
        assert_int_equal(failed ? PL_NOMEM : PL_OK, status);
        pl_matmul_plan_close(&plan);
    }
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(
    cmocka_unit_test(formula_follows_the_rules_of_arithmetic),
    cmocka_unit_test(formula_errors_name_their_position),
    cmocka_unit_test(placement_by_formula_names_the_block_without_worker),
    cmocka_unit_test(placement_best_of_a_product_is_a_grid),
    cmocka_unit_test(placement_of_traces_moves_nothing_when_symmetric),
    cmocka_unit_test(plan_fetches_what_was_counted),
    cmocka_unit_test(plan_starts_with_steps_that_fetch_nothing),
    cmocka_unit_test(plan_survives_each_failed_allocation))

#include "support/unit.h"

#include "observe/runs/curve.h"

#include <math.h>

static pl_status fill(pl_curves *curves, size_t count)
{
    *curves = (pl_curves) { 0 };
    pl_status status = PL_OK;
    for (size_t i = 0; i < count && status == PL_OK; i++) {
        status =
            pl_curves_add(curves, "loss", 4, (pl_point) { (double)i, 1, 0 });
        if (status == PL_OK)
            status = pl_curves_add(curves, "lossy", 5,
                                   (pl_point) { (double)i, sin((double)i), 0 });
    }
    if (status != PL_OK)
        pl_curves_close(curves);
    return status;
}

static void points_go_to_the_curve_of_their_name(void **state)
{
    (void)state;
    pl_curves c;
    assert_ok(fill(&c, 100));
    assert_int_equal(2, c.count);
    const pl_curve *loss = pl_curves_find(&c, "loss");
    assert_int_equal(100, loss->count);
    assert_true(loss->points[99].x == 99 && loss->points[99].y == 1);
    assert_int_equal(100, pl_curves_find(&c, "lossy")->count);
    assert_null(pl_curves_find(&c, "los"));
    pl_curves_close(&c);
}

static void points_discarded_by_a_restart_are_cut(void **state)
{
    (void)state;
    pl_curves c;
    assert_ok(fill(&c, 100));
    pl_curves_cut(&c, 40);
    assert_int_equal(41, pl_curves_find(&c, "loss")->count);
    assert_ok(pl_curves_add(&c, "loss", 4, (pl_point) { 41, 7, 0 }));
    assert_true(pl_curves_find(&c, "loss")->points[41].y == 7);
    pl_curves_close(&c);
}

static void a_thinned_curve_keeps_ends_and_peaks(void **state)
{
    (void)state;
    pl_curves c = { 0 };
    for (int i = 0; i < 100000; i++)
        assert_ok(
            pl_curves_add(&c, "y", 1, (pl_point) { i, i == 31415 ? 9 : 0, 0 }));
    pl_curve *y = &c.list[0];
    pl_curve_thin(y, 300);
    assert_int_equal(300, y->count);
    assert_true(y->points[0].x == 0 && y->points[299].x == 99999);
    bool peak = false;
    for (size_t i = 0; i < y->count; i++) {
        peak = peak || (y->points[i].x == 31415 && y->points[i].y == 9);
        assert_true(i == 0 || y->points[i].x > y->points[i - 1].x);
    }
    assert_true(peak);
    pl_curve_thin(y, 300); /* nothing more to do */
    assert_int_equal(300, y->count);
    pl_curve_thin(y, 3);
    assert_int_equal(3, y->count);
    assert_true(y->points[1].y == 9);
    pl_curves_close(&c);
}

static void mean_and_peak_are_measured(void **state)
{
    (void)state;
    pl_curves c = { 0 };
    for (int i = 1; i <= 3; i++)
        assert_ok(pl_curves_add(&c, "y", 1, (pl_point) { i, -i, 0 }));
    pl_curve_stats stats = pl_curve_measure(&c.list[0]);
    assert_true(stats.mean == -2 && stats.most == -1);
    assert_ok(pl_curves_add(&c, "y", 1, (pl_point) { 8, 4, 0 }));
    stats = pl_curve_measure(&c.list[0]); /* five times as long as the others */
    assert_true(stats.mean == (-6.0 + 5 * 4) / 8 && stats.most == 4);
    assert_true(isnan(pl_curve_measure(NULL).mean));
    pl_curves_close(&c);
}

static void a_name_that_holds_a_nul_is_refused(void **state)
{
    (void)state;
    pl_curves c = { 0 };
    for (int i = 0; i < 2; i++)
        assert_fails(
            PL_FORMAT, "NUL",
            pl_curves_add(&c, "a\0bcdefgh", 9, (pl_point) { 1, 1, 0 }));
    assert_ok(pl_curves_add(&c, "a", 1, (pl_point) { 1, 1, 0 }));
    assert_fails(PL_FORMAT, "NUL",
                 pl_curves_add(&c, "a\0bcdefgh", 9, (pl_point) { 1, 1, 0 }));
    assert_int_equal(1, c.count);
    pl_curves_close(&c);
}

static void adding_survives_failed_allocations(void **state)
{
    (void)state;
    pl_curves c;
    assert_survives_failed_allocations(fill(&c, 200), pl_curves_close(&c));
}

UNIT_TESTS(cmocka_unit_test(points_go_to_the_curve_of_their_name),
           cmocka_unit_test(points_discarded_by_a_restart_are_cut),
           cmocka_unit_test(a_thinned_curve_keeps_ends_and_peaks),
           cmocka_unit_test(mean_and_peak_are_measured),
           cmocka_unit_test(a_name_that_holds_a_nul_is_refused),
           cmocka_unit_test(adding_survives_failed_allocations))

#include "sync/ps/recorder.h"

#include "base/clock.h"
#include "support/unit.h"

#include <math.h>

typedef struct fixture {
    pl_metrics *metrics;
    pl_ps_recorder recorder;
    uint64_t second; /* in ticks */
} fixture;

static void open_fixture(fixture *f, bool own_pace)
{
    assert_ok(pl_metrics_new(&f->metrics, NULL));
    assert_ok(pl_ps_recorder_init(&f->recorder, f->metrics, own_pace));
    f->second = (uint64_t)(1e9 / pl_ticks_ns());
}

/* What was put under this name since the last call; the queue is emptied. */
static bool take(fixture *f, const char *name, pl_scalar *out)
{
    bool found = false;
    pl_scalar scalar;
    while (pl_metrics_take(f->metrics, &scalar))
        if (strcmp(pl_metrics_tag_name(f->metrics, scalar.tag), name) == 0) {
            *out = scalar;
            found = true;
        }
    return found;
}

static void ps_recorder_gives_rates_since_the_last_point(void **state)
{
    (void)state;
    const struct {
        const char *name;
        double value;
    } expected[] = {
        { "updates_per_s", 25 },          { "gradients_accepted", 50 },
        { "gradients_dropped", 3 },       { "staleness", 1.5 },
        { "waiting_share", 0.25 },        { "sent_bytes_per_s", 500 },
        { "received_bytes_per_s", 1000 },
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        fixture f;
        pl_scalar got;
        open_fixture(&f, true);
        pl_ps_server_view view = { .initialized = true };
        pl_ps_recorder_put(&f.recorder, &view, f.second, false);
        assert_false(take(&f, expected[i].name, &got));
        view = (pl_ps_server_view) {
            .initialized = true,
            .step = 50,
            .updates = 50,
            .accepted = 50,
            .behind = 75,
            .dropped = 3,
            .waited_s = 0.5,
            .net = { .sent_bytes = 1000, .received_bytes = 2000 },
        };
        pl_ps_recorder_put(&f.recorder, &view, 3 * f.second, false);
        assert_true(take(&f, expected[i].name, &got));
        assert_int_equal(50, got.step);
        assert_true(fabs(got.value - expected[i].value) <
                    1e-4 * expected[i].value);
        pl_ps_recorder_put(&f.recorder, &view, 4 * f.second, false);
        assert_false(take(&f, expected[i].name, &got));
        pl_metrics_free(f.metrics);
    }
}

static void ps_recorder_has_no_staleness_in_lock_step(void **state)
{
    (void)state;
    fixture f;
    pl_scalar got;
    open_fixture(&f, false);
    pl_ps_server_view view = { .initialized = true };
    pl_ps_recorder_put(&f.recorder, &view, f.second, false);
    view.step = view.updates = view.accepted = 1;
    pl_ps_recorder_put(&f.recorder, &view, 2 * f.second, false);
    assert_false(take(&f, "staleness", &got));
    pl_metrics_free(f.metrics);
}

static void ps_recorder_records_where_a_server_resumes(void **state)
{
    (void)state;
    fixture f;
    pl_scalar got;
    open_fixture(&f, false);
    pl_ps_server_view view = { .initialized = false };
    pl_ps_recorder_put(&f.recorder, &view, f.second, false);
    view =
        (pl_ps_server_view) { .initialized = true, .step = 103, .updates = 3 };
    pl_ps_recorder_put(&f.recorder, &view, 2 * f.second, false);
    assert_true(take(&f, PL_METRICS_RESTART, &got));
    assert_int_equal(100, got.step);
    view.updates = 5; /* back to the beginning, and two on */
    view.step = 2;
    pl_ps_recorder_put(&f.recorder, &view, 3 * f.second, false);
    assert_true(take(&f, PL_METRICS_RESTART, &got));
    assert_int_equal(0, got.step);
    view.step++, view.updates++;
    pl_ps_recorder_put(&f.recorder, &view, 4 * f.second, false);
    assert_false(take(&f, PL_METRICS_RESTART, &got));
    pl_metrics_free(f.metrics);
}

/* After a quarter of an hour there is a point every half a second; a rollback
 * in between is recorded at once, and the last steps are a point. */
static void ps_recorder_thins_out_and_ends_with_the_last_steps(void **state)
{
    (void)state;
    fixture f;
    pl_scalar got;
    int points = 0;
    open_fixture(&f, false);
    pl_ps_server_view view = { .initialized = true };
    uint64_t now = f.second;
    for (int i = 0; i < 9000; i++, now += f.second / 10) {
        view.step = ++view.updates;
        pl_ps_recorder_put(&f.recorder, &view, now, false);
        points += take(&f, "updates_per_s", &got);
    }
    assert_in_range(points, 2000, 7000);
    points = 0;
    for (int i = 0; i < 100; i++, now += f.second / 10) {
        view.step = ++view.updates;
        pl_ps_recorder_put(&f.recorder, &view, now, false);
        points += take(&f, "updates_per_s", &got);
    }
    assert_in_range(points, 18, 22);
    view.step -= 50, view.updates += 2;
    pl_ps_recorder_put(&f.recorder, &view, now, false);
    assert_true(take(&f, PL_METRICS_RESTART, &got));
    assert_int_equal(view.step - 2, got.step);
    view.step++, view.updates++;
    pl_ps_recorder_put(&f.recorder, &view, ++now, true);
    assert_true(take(&f, "updates_per_s", &got));
    assert_int_equal(view.step, got.step);
    pl_metrics_free(f.metrics);
}

UNIT_TESTS(cmocka_unit_test(ps_recorder_gives_rates_since_the_last_point),
           cmocka_unit_test(ps_recorder_has_no_staleness_in_lock_step),
           cmocka_unit_test(ps_recorder_records_where_a_server_resumes),
           cmocka_unit_test(ps_recorder_thins_out_and_ends_with_the_last_steps))

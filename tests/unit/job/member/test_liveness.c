#include "job/member/liveness.h"

#include "support/unit.h"

#define SECOND INT64_C(1000000000)

static pl_vital computing(int64_t step)
{
    return (pl_vital) { .step = step,
                        .phase = PL_PHASE_COMPUTING,
                        .progress = 100 * step };
}

static void liveness_is_lost_by_silence_alone(void **state)
{
    (void)state;
    pl_liveness life;
    pl_liveness_reset(&life, 10 * SECOND);
    assert_int_equal(PL_ALIVE, pl_liveness_judge(&life, 5000, 15 * SECOND));
    assert_int_equal(PL_SILENT,
                     pl_liveness_judge(&life, 5000, 15 * SECOND + 1));
}

/* liveness I1: whatever else a task does takes as long as it takes. */
static void liveness_judges_progress_of_computing_tasks_only(void **state)
{
    (void)state;
    for (int phase = 0; phase < PL_PHASES; phase++) {
        pl_liveness life;
        pl_liveness_reset(&life, SECOND);
        pl_vital vital = computing(1);
        pl_liveness_hear(&life, &vital, SECOND);
        vital = computing(2);
        pl_liveness_hear(&life, &vital, SECOND);
        vital.phase = (pl_phase)phase;
        for (int64_t s = 2; s <= 20; s++)
            pl_liveness_hear(&life, &vital, s * SECOND);
        assert_int_equal(phase == PL_PHASE_COMPUTING ? PL_STUCK : PL_ALIVE,
                         pl_liveness_judge(&life, 5000, 20 * SECOND));
    }
}

/* liveness I2: and not before the first progress. */
static void liveness_learns_how_long_work_takes(void **state)
{
    (void)state;
    pl_liveness life;
    pl_liveness_reset(&life, 0);
    pl_liveness_restart(&life, 0);
    pl_vital vital = computing(5); /* counted before */
    assert_false(pl_liveness_hear(&life, &vital, 1000 * SECOND));
    assert_int_equal(PL_ALIVE, pl_liveness_judge(&life, 5000, 1000 * SECOND));
    pl_liveness_reset(&life, 2000 * SECOND);
    vital = computing(6);
    assert_true(pl_liveness_hear(&life, &vital, 2003 * SECOND));
    assert_false(pl_liveness_hear(&life, &vital, 2033 * SECOND));
    assert_int_equal(PL_ALIVE, pl_liveness_judge(&life, 5000, 2033 * SECOND));
    pl_liveness_hear(&life, &vital, 2034 * SECOND);
    assert_int_equal(PL_STUCK, pl_liveness_judge(&life, 5000, 2034 * SECOND));
    /* A new generation: its first work may take longer. */
    pl_liveness_restart(&life, 2034 * SECOND);
    pl_liveness_hear(&life, &vital, 2100 * SECOND);
    assert_int_equal(PL_ALIVE, pl_liveness_judge(&life, 5000, 2100 * SECOND));
    vital = computing(7);
    pl_liveness_hear(&life, &vital, 2101 * SECOND);
    pl_liveness_hear(&life, &vital, 2700 * SECOND);
    assert_int_equal(PL_ALIVE, pl_liveness_judge(&life, 5000, 2700 * SECOND));
}

/* liveness I4: in a step far longer than the earlier ones, operators finish;
 * when no more finish, the time of a step is allowed, not that of one operator.
 */
static void liveness_is_patient_while_operators_finish(void **state)
{
    (void)state;
    pl_liveness life;
    pl_vital vital = computing(0);
    pl_liveness_reset(&life, 0);
    pl_liveness_hear(&life, &vital, 0);
    vital.progress++; /* in the first step: nothing is known yet */
    pl_liveness_hear(&life, &vital, SECOND);
    pl_liveness_hear(&life, &vital, 100 * SECOND);
    assert_int_equal(PL_ALIVE, pl_liveness_judge(&life, 5000, 100 * SECOND));
    pl_liveness_reset(&life, 0);
    vital = computing(1);
    pl_liveness_hear(&life, &vital, 0);
    int64_t now = 2 * SECOND; /* a step of two seconds */
    vital = computing(2);
    pl_liveness_hear(&life, &vital, now);
    for (int i = 0; i < 20; i++) { /* one of 300, in 20 operators */
        now += 15 * SECOND;
        vital.progress++;
        assert_true(pl_liveness_hear(&life, &vital, now));
        assert_int_equal(PL_ALIVE, pl_liveness_judge(&life, 5000, now));
    }
    for (int i = 0; i < 21; i++)
        pl_liveness_hear(&life, &vital, now += SECOND);
    assert_int_equal(PL_STUCK, pl_liveness_judge(&life, 5000, now));
    vital = computing(3); /* now known as the time of a step */
    pl_liveness_hear(&life, &vital, now);
    for (int i = 0; i < 1000; i++)
        pl_liveness_hear(&life, &vital, now += SECOND);
    assert_int_equal(PL_ALIVE, pl_liveness_judge(&life, 5000, now));
}

/* liveness I3: an observer that was stopped declares no task lost. */
static void liveness_forgives_time_the_observer_did_not_run(void **state)
{
    (void)state;
    pl_liveness life;
    int64_t tick = 0;
    pl_liveness_reset(&life, SECOND);
    assert_int_equal(0, pl_liveness_gap(&tick, 1000, SECOND));
    assert_int_equal(0, pl_liveness_gap(&tick, 1000, SECOND + SECOND / 10));
    int64_t gap = pl_liveness_gap(&tick, 1000, 61 * SECOND);
    assert_int_equal(60 * SECOND - SECOND / 10, gap);
    assert_int_equal(PL_SILENT, pl_liveness_judge(&life, 1000, 61 * SECOND));
    pl_liveness_forgive(&life, gap);
    assert_int_equal(PL_ALIVE, pl_liveness_judge(&life, 1000, 61 * SECOND));
}

static void liveness_describes_losses(void **state)
{
    (void)state;
    char text[PL_LOSS_TEXT];
    pl_liveness life;
    pl_vital vital = computing(3);
    pl_liveness_reset(&life, 0);
    pl_liveness_hear(&life, &vital, 0);
    vital = computing(4);
    pl_liveness_hear(&life, &vital, SECOND);
    pl_loss loss = { .task = "worker 1 (b:1)",
                     .life = &life,
                     .state = PL_SILENT,
                     .next = pl_loss_next(PL_ON_LOSS_WAIT),
                     .now_ns = 7 * SECOND };
    pl_loss_text(text, &loss);
    assert_string_equal("worker 1 (b:1) is lost: it has been silent for "
                        "6.0 s; waiting for it to come back",
                        text);
    loss.state = PL_STUCK;
    loss.with_step = true;
    loss.next = NULL;
    pl_loss_text(text, &loss);
    assert_string_equal("worker 1 (b:1) is lost at step 4 while computing: it "
                        "responds, but has made no progress for 6.0 s",
                        text);
    pl_absence_text(text, "worker 1", false, 2500);
    assert_string_equal("worker 1 did not join within 2 s (--join-timeout)",
                        text);
    pl_absence_text(text, "worker 1", true, 60000);
    assert_string_equal(
        "worker 1 did not come back within 60 s (--rejoin-timeout)", text);
}

UNIT_TESTS(cmocka_unit_test(liveness_is_lost_by_silence_alone),
           cmocka_unit_test(liveness_judges_progress_of_computing_tasks_only),
           cmocka_unit_test(liveness_learns_how_long_work_takes),
           cmocka_unit_test(liveness_is_patient_while_operators_finish),
           cmocka_unit_test(liveness_forgives_time_the_observer_did_not_run),
           cmocka_unit_test(liveness_describes_losses))

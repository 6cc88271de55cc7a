#include "sim/sim_ring.h"

#include "base/log.h"
#include "support/unit.h"

#define SEEDS 600

static void no_log(void *context, pl_log_level level, const char *line)
{
    (void)context, (void)level, (void)line;
}

/* S1-S4 of sim_ring.h. */
static void ring_keeps_its_invariants_under_faults(void **state)
{
    (void)state;
    int64_t steps = 0, kills = 0, freezes = 0, cuts = 0, reasons = 0;
    pl_log_set(no_log, NULL, PL_LOG_ERROR);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        pl_sim_result result;
        assert_ok(pl_sim_ring_run(&(pl_sim_opts) { .seed = seed }, &result));
        if (!result.good)
            fail_msg("seed %llu: %s (%s)", (unsigned long long)seed, result.why,
                     result.setting);
        steps += result.steps;
        kills += result.kills;
        freezes += result.freezes;
        cuts += result.cuts;
        reasons += !result.ended_well;
    }
    /* It is a test only if something happened. */
    assert_true(steps > 5 * SEEDS && kills > SEEDS / 2 && freezes > SEEDS / 4 &&
                cuts > SEEDS / 4 && reasons < SEEDS / 2);
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(cmocka_unit_test(ring_keeps_its_invariants_under_faults))

#include "sim/sim.h"

#include "base/log.h"
#include "support/unit.h"

#define SEEDS 400

static pl_sim_result run_seed(uint64_t seed, bool by_hand)
{
    pl_sim_result result;
    pl_sim_opts opts = { .seed = seed, .by_hand = by_hand };
    assert_ok(pl_sim_run(&opts, &result));
    if (!result.good)
        fail_msg("seed %llu: %s (%s)", (unsigned long long)seed, result.why,
                 result.setting);
    return result;
}

static void run_seeds(bool by_hand)
{
    int64_t steps = 0, kills = 0, freezes = 0, reasons = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        pl_sim_result result = run_seed(seed, by_hand);
        steps += result.steps;
        kills += result.kills;
        freezes += result.freezes;
        reasons += !result.ended_well;
    }
    /* It is a test only if something happened. */
    assert_true(steps > 5 * SEEDS && kills > SEEDS / 10 &&
                freezes > SEEDS / 10 && reasons > 0);
    assert_int_equal(0, pl_mem_live());
}

static void sim_seeds_break_no_invariant(void **state)
{
    (void)state;
    run_seeds(false);
}

static void sim_seeds_without_a_supervisor_break_none(void **state)
{
    (void)state;
    run_seeds(true);
}

/* Seeds that broke an invariant once.  What they play changes with every
 * message that the protocol gains; the tests of the core keep what was found.
 */
static void sim_seeds_that_broke_one_are_good(void **state)
{
    (void)state;
    static const uint64_t seeds[] = {
        27,
        4363,
        16262,
        16993,
        17297,
        22592,
        24314,
        29880,
        30218,
        36538,
        37092,
        42185,
        43941,
        47306,
        50374,
        53402,
        54270,
        57157,
        61939,
        64621,
        65428,
        72686,
        78910,
        88020,
        88786,
        88862,
        89463,
        89713,
        90087,
        143787,
        194041,
        236707,
        259474,
        266778,
        279423,
        305278,
        461438,
        /* Found with the real worker machine: a keyed gradient sent again
         * from memory that held the next one, a batch of the step before, a
         * freeze that was never ended, a JOIN that came late. */
        1700,
        1637,
        1189,
        778,
        /* The last step was made by gradients of a worker's life before. */
        27679,
        /* A chief was lost in mid-save while the job was interrupted. */
        1022617,
        /* A chief that had paused was restarted: others are ahead of it. */
        1067030,
        /* Slow disks, and a restarted chief whose heartbeats continued those of
         * its predecessor; all checkpoints damaged one after another. */
        2014652,
        2001169,
        /* A chief that was cut off after its goodbye rejoined when the other
         * worker had ended, and a lost server rolled the job back to its end.
         */
        91892,
    };
    static const uint64_t by_hand[] = {
        46693,
        50020,
        190939,
        206598,
        236707,
        266778,
        279423,
        305278,
        461438,
        821617,
        /* The last keyed gradient of an epoch was dropped and counted. */
        20109,
        24835,
        /* A chief that joined again computed a step beyond the last one, which
         * its own gradient of before had made. */
        5025216,
        /* The chief's pull for its test waited for a grant in a freeze. */
        10052902,
        /* Gradients of lost workers made a step without the chief's. */
        30065710,
    };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        run_seed(seeds[i], false);
    for (size_t i = 0; i < sizeof by_hand / sizeof *by_hand; i++)
        run_seed(by_hand[i], true);
    assert_int_equal(0, pl_mem_live());
}

static void sim_seed_replays_exactly(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        pl_sim_result first, second;
        pl_sim_opts opts = { .seed = seed };
        assert_ok(pl_sim_run(&opts, &first));
        assert_ok(pl_sim_run(&opts, &second));
        assert_memory_equal(&first, &second, sizeof first);
    }
}

static void no_log(void *context, pl_log_level level, const char *line)
{
    (void)context, (void)level, (void)line;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sim_seeds_break_no_invariant),
        cmocka_unit_test(sim_seeds_without_a_supervisor_break_none),
        cmocka_unit_test(sim_seeds_that_broke_one_are_good),
        cmocka_unit_test(sim_seed_replays_exactly),
    };
    pl_log_set(no_log, NULL, PL_LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

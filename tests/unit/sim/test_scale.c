/* A small instance of what paceline-sim --scale measures. */
#include "base/log.h"
#include "sim/sim_scale.h"
#include "support/unit.h"

static pl_sim_scale run(pl_ps_mode mode, int32_t workers)
{
    pl_sim_scale result;
    assert_ok(pl_sim_scale_run(&(pl_sim_scale_opts) { .workers = workers,
                                                      .servers = 3,
                                                      .steps = 40,
                                                      .mode = mode,
                                                      .staleness = 3 },
                               &result));
    assert_int_equal(0, pl_mem_live());
    assert_in_range(result.lost, 1, workers);
    return result;
}

static void scale_job_makes_all_its_updates(void **state)
{
    (void)state;
    assert_int_equal(40, run(PL_PS_SYNC, 12).updates);
    assert_int_equal(12 * 40, run(PL_PS_ASYNC, 12).updates);
    assert_int_equal(12 * 40, run(PL_PS_SSP, 12).updates);
}

/* Twice as many workers: server 0 gets about twice as many messages. */
static void scale_messages_grow_with_workers(void **state)
{
    (void)state;
    for (int mode = PL_PS_SYNC; mode <= PL_PS_SSP; mode++) {
        int64_t some = run((pl_ps_mode)mode, 20).messages;
        int64_t more = run((pl_ps_mode)mode, 40).messages;
        assert_in_range(more, some + some / 2, 2 * some + some / 2);
    }
}

static void no_log(void *context, pl_log_level level, const char *line)
{
    (void)context, (void)level, (void)line;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scale_job_makes_all_its_updates),
        cmocka_unit_test(scale_messages_grow_with_workers),
    };
    pl_log_set(no_log, NULL, PL_LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

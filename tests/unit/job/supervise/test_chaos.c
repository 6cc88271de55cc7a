#include "job/supervise/chaos.h"

#include "base/log.h"
#include "support/unit.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define TASKS  4
#define SECOND INT64_C(1000000000)
#define FAULTS 200

static void say_nothing(void *context, pl_log_level level, const char *line)
{
    (void)context;
    (void)level;
    (void)line;
}

static pid_t start_child(void)
{
    pid_t pid = fork();
    while (pid == 0)
        pause();
    assert_true(pid > 0);
    return pid;
}

static void start_tasks(pl_job_task tasks[TASKS])
{
    for (int i = 0; i < TASKS; i++)
        tasks[i] = (pl_job_task) { .task = { PL_ROLE_WORKER, i },
                                   .worker = i,
                                   .pid = start_child() };
    pl_log_set(say_nothing, NULL, PL_LOG_INFO);
}

static void end_tasks(pl_job_task tasks[TASKS])
{
    pl_log_set(NULL, NULL, PL_LOG_INFO);
    for (int i = 0; i < TASKS; i++) {
        kill(tasks[i].pid, SIGKILL);
        assert_int_equal(tasks[i].pid, waitpid(tasks[i].pid, NULL, 0));
    }
}

static pl_chaos *new_chaos(double rate, uint64_t seed)
{
    pl_chaos *chaos;
    assert_ok(pl_chaos_new(&chaos, &(pl_chaos_opts) {
                                       .rate = rate,
                                       .seed = seed,
                                       .freeze_ms = 1000,
                                       .tasks = TASKS,
                                   }));
    return chaos;
}

/* One fault that was just made. */
typedef struct fault {
    int task;
    int64_t at_ns;
    bool killed;
} fault;

/* Make faults on real processes and look at what happened to each. */
static int64_t make_faults(uint64_t seed, double rate, fault *out)
{
    pl_job_task tasks[TASKS];
    start_tasks(tasks);
    pl_chaos *chaos = new_chaos(rate, seed);
    int64_t now_ns = SECOND;
    for (int f = 0; f < FAULTS; now_ns += SECOND / 1000) {
        pl_chaos_thaw(chaos, tasks, true, now_ns);
        int i = pl_chaos_due(chaos, tasks, true, now_ns);
        if (i < 0)
            continue;
        pl_chaos_hit(chaos, tasks, i, now_ns);
        int how;
        assert_int_equal(tasks[i].pid, waitpid(tasks[i].pid, &how, WUNTRACED));
        out[f++] = (fault) { i, now_ns, WIFSIGNALED(how) };
        if (!WIFSIGNALED(how))
            continue;
        tasks[i].pid = start_child();
        assert_true(pl_chaos_ended(chaos, i));
        assert_false(pl_chaos_ended(chaos, i));
    }
    assert_int_equal(FAULTS, pl_chaos_faults(chaos));
    pl_chaos_free(chaos);
    end_tasks(tasks);
    return now_ns - SECOND;
}

static void chaos_depends_on_the_seed_alone(void **state)
{
    (void)state;
    fault first[FAULTS], again[FAULTS], other[FAULTS];
    make_faults(7, 10, first);
    make_faults(7, 10, again);
    make_faults(8, 10, other);
    int differ = 0;
    for (int f = 0; f < FAULTS; f++) {
        assert_int_equal(first[f].task, again[f].task);
        assert_int_equal(first[f].at_ns, again[f].at_ns);
        assert_int_equal(first[f].killed, again[f].killed);
        differ += first[f].at_ns != other[f].at_ns;
    }
    assert_true(differ > 0);
}

/* Four standard deviations of 200 faults, and all kinds of them. */
static void chaos_keeps_its_rate_and_hits_every_task(void **state)
{
    (void)state;
    fault faults[FAULTS];
    double seconds = (double)make_faults(1, 5, faults) * 1e-9;
    double rate = FAULTS / seconds;
    assert_true(rate > 5 * 0.72 && rate < 5 * 1.28);
    int killed[TASKS] = { 0 }, frozen[TASKS] = { 0 };
    for (int f = 0; f < FAULTS; f++)
        (faults[f].killed ? killed : frozen)[faults[f].task]++;
    for (int i = 0; i < TASKS; i++)
        assert_true(killed[i] > 8 && frozen[i] > 8);
}

static void chaos_waits_for_training(void **state)
{
    (void)state;
    pl_job_task tasks[TASKS];
    start_tasks(tasks);
    pl_chaos *chaos = new_chaos(1000, 1);
    for (int s = 1; s < 100; s++)
        assert_int_equal(-1, pl_chaos_due(chaos, tasks, false, s * SECOND));
    assert_int_equal(-1, pl_chaos_due(chaos, tasks, true, 100 * SECOND));
    assert_true(pl_chaos_due(chaos, tasks, true, 101 * SECOND) >= 0);
    pl_chaos_free(chaos);
    end_tasks(tasks);
}

/* Every task is hit once; a frozen one continues when its time is over. */
static void chaos_thaws_the_tasks_it_froze(void **state)
{
    (void)state;
    pl_job_task tasks[TASKS];
    start_tasks(tasks);
    pl_chaos *chaos = new_chaos(1000, 3);
    int64_t now_ns = SECOND;
    (void)pl_chaos_due(chaos, tasks, true, now_ns);
    bool killed[TASKS] = { false };
    for (int hit = 0; hit < TASKS; hit++) {
        int i = pl_chaos_due(chaos, tasks, true, now_ns += SECOND / 10), how;
        assert_true(i >= 0);
        pl_chaos_hit(chaos, tasks, i, now_ns);
        assert_int_equal(tasks[i].pid, waitpid(tasks[i].pid, &how, WUNTRACED));
        killed[i] = WIFSIGNALED(how);
    }
    assert_int_equal(-1, pl_chaos_due(chaos, tasks, true, now_ns + SECOND));
    pl_chaos_thaw(chaos, tasks, false, now_ns + 2 * SECOND);
    for (int i = 0; i < TASKS; i++) {
        int how;
        if (killed[i])
            tasks[i].pid = start_child();
        else
            assert_int_equal(tasks[i].pid,
                             waitpid(tasks[i].pid, &how, WCONTINUED));
    }
    pl_chaos_free(chaos);
    end_tasks(tasks);
}

static void chaos_new_survives_each_failed_allocation(void **state)
{
    (void)state;
    pl_chaos *chaos;
    assert_survives_failed_allocations(
        pl_chaos_new(&chaos, &(pl_chaos_opts) { .rate = 1, .tasks = TASKS }),
        pl_chaos_free(chaos));
}

UNIT_TESTS(cmocka_unit_test(chaos_depends_on_the_seed_alone),
           cmocka_unit_test(chaos_keeps_its_rate_and_hits_every_task),
           cmocka_unit_test(chaos_waits_for_training),
           cmocka_unit_test(chaos_thaws_the_tasks_it_froze),
           cmocka_unit_test(chaos_new_survives_each_failed_allocation))

#include "base/log.h"

#include "base/thread.h"
#include "support/unit.h"

#define THREADS 4
#define LINES   500

/* What a sink saw; the log's lock makes it safe to count here. */
struct seen {
    int count;
    int broken; /* lines that are not whole */
    pl_log_level level;
    char line[8192];
};

static void see(void *context, pl_log_level level, const char *line)
{
    struct seen *seen = context;
    seen->count++;
    seen->level = level;
    snprintf(seen->line, sizeof seen->line, "%s", line);
    int thread, number, again;
    if (sscanf(line, "thread %d line %d again %d", &thread, &number, &again) !=
            3 ||
        number != again)
        seen->broken++;
}

static int restore(void **state)
{
    (void)state;
    pl_log_set(NULL, NULL, PL_LOG_INFO);
    return 0;
}

static void a_continuation_line_is_not_a_separate_warning(void **state)
{
    (void)state;
    struct seen seen = { 0 };
    pl_log_set(see, &seen, PL_LOG_WARN);
    pl_log(PL_LOG_WARN, "it ended");
    assert_string_equal("warning: it ended", seen.line);
    pl_log_more(PL_LOG_WARN, "  its %s line\n", "last");
    assert_string_equal("  its last line\\x0a", seen.line);
    assert_int_equal(PL_LOG_WARN, seen.level);
    pl_log_more(PL_LOG_INFO, "not shown");
    assert_int_equal(2, seen.count);
}

static void log_gives_the_sink_a_line_and_its_level(void **state)
{
    (void)state;
    struct seen seen = { 0 };
    pl_log_set(see, &seen, PL_LOG_TRACE);
    pl_log(PL_LOG_INFO, "epoch %d of %d", 1, 3);
    assert_int_equal(1, seen.count);
    assert_int_equal(PL_LOG_INFO, seen.level);
    assert_string_equal("epoch 1 of 3", seen.line);
    pl_log(PL_LOG_ERROR, "bad");
    assert_string_equal("error: bad", seen.line);
    pl_log(PL_LOG_WARN, "odd");
    assert_string_equal("warning: odd", seen.line);
    pl_log(PL_LOG_TRACE, "tiny");
    assert_string_equal("tiny", seen.line);
}

static void log_makes_no_line_above_the_level(void **state)
{
    (void)state;
    for (int most = PL_LOG_ERROR; most <= PL_LOG_TRACE; most++) {
        struct seen seen = { 0 };
        pl_log_set(see, &seen, (pl_log_level)most);
        for (int level = PL_LOG_ERROR; level <= PL_LOG_TRACE; level++)
            pl_log((pl_log_level)level, "x");
        assert_int_equal(most + 1, seen.count);
    }
}

static void log_cuts_a_long_line(void **state)
{
    (void)state;
    char text[6000];
    memset(text, 'z', sizeof text);
    text[sizeof text - 1] = '\0';
    struct seen seen = { 0 };
    pl_log_set(see, &seen, PL_LOG_INFO);
    pl_log(PL_LOG_WARN, "%s", text);
    assert_int_equal(4094, strlen(seen.line));
}

static void log_escapes_text_that_would_forge_a_line(void **state)
{
    (void)state;
    struct seen seen = { 0 };
    pl_log_set(see, &seen, PL_LOG_INFO);
    pl_log(PL_LOG_WARN, "peer says %s", "x\nerror: y\x1b[2J");
    assert_int_equal(1, seen.count);
    assert_string_equal("warning: peer says x\\x0aerror: y\\x1b[2J", seen.line);
}

static void chatter(void *arg, int item, int thread)
{
    (void)arg, (void)item;
    for (int i = 0; i < LINES; i++)
        pl_log(PL_LOG_INFO, "thread %d line %d again %d", thread, i, i);
}

static void log_writes_lines_whole_from_several_threads(void **state)
{
    (void)state;
    struct seen seen = { 0 };
    pl_pool *pool;
    assert_ok(pl_pool_new(&pool, THREADS));
    pl_log_set(see, &seen, PL_LOG_INFO);
    pl_pool_run(pool, THREADS, chatter, NULL);
    pl_pool_free(pool);
    assert_int_equal(THREADS * LINES, seen.count);
    assert_int_equal(0, seen.broken);
}

UNIT_TESTS(
    cmocka_unit_test_teardown(a_continuation_line_is_not_a_separate_warning,
                              restore),
    cmocka_unit_test_teardown(log_gives_the_sink_a_line_and_its_level, restore),
    cmocka_unit_test_teardown(log_makes_no_line_above_the_level, restore),
    cmocka_unit_test_teardown(log_cuts_a_long_line, restore),
    cmocka_unit_test_teardown(log_escapes_text_that_would_forge_a_line,
                              restore),
    cmocka_unit_test_teardown(log_writes_lines_whole_from_several_threads,
                              restore))

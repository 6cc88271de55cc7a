#include "support/runs.h"

#include "observe/findings/findings.h"

/* Write a run by the text of its flags and of its results. */
static void write_texts(const char *folder, const char *name, const char *args,
                        const char *results)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"format\": 1, \"model\": \"softmax\", \"args\": {%s}}", args);
    write_run_file(folder, name, "run.json", text);
    snprintf(text, sizeof text, "{%s}", results);
    write_run_file(folder, name, "summary.json", text);
}

static void assert_says(const char *folder, const char *expected)
{
    pl_records r;
    pl_buffer text = { 0 };
    char *paths[] = { (char *)folder };
    assert_ok(pl_records_init(&r, paths, 1));
    know_flags(&r);
    assert_ok(pl_findings(&r, &text));
    assert_string_equal(expected, text.bytes > 0 ? text.data : "");
    pl_buffer_close(&text);
    pl_records_close(&r);
}

static const char *made_args(const char *mode, int workers, const char *sum)
{
    static char text[128];
    snprintf(text, sizeof text,
             "\"strategy\": \"ps\", \"mode\": \"%s\", \"workers\": \"%d\", "
             "\"aggregate\": \"%s\"",
             mode, workers, sum);
    return text;
}

static const char *made_results(const char *mode, int workers, int steps,
                                double accuracy)
{
    static char text[256];
    snprintf(text, sizeof text,
             "\"strategy\": \"ps\", \"mode\": \"%s\", \"workers\": %d, "
             "\"steps\": %d, \"epochs\": 10, \"test_accuracy\": %g, "
             "\"stopped_by\": \"epochs\"",
             mode, workers, steps, accuracy);
    return text;
}

static void averaged_gradients_explain_lost_accuracy(void **folder)
{
    write_texts(*folder, "a", made_args("sync", 1, "mean"),
                made_results("sync", 1, 6000, 0.903));
    write_texts(*folder, "b", made_args("sync", 3, "mean"),
                made_results("sync", 3, 2000, 0.884));
    assert_says(*folder,
                "Test accuracy falls from 90.30 % (workers 1) to 88.40 % "
                "(workers 3), by 1.90 points.\n"
                "In equal epochs 3 workers make 2000 steps instead of 6000, "
                "since each step averages the gradients of all; --aggregate "
                "sum adds them up.\n");
}

/* Each mode by itself. */
static void averaging_names_its_mode(void **folder)
{
    write_texts(*folder, "a", made_args("sync", 1, "mean"),
                made_results("sync", 1, 6000, 0.903));
    write_texts(*folder, "b", made_args("sync", 3, "mean"),
                made_results("sync", 3, 2000, 0.884));
    write_texts(*folder, "c", made_args("async", 1, "mean"),
                made_results("async", 1, 6000, 0.903));
    write_texts(*folder, "d", made_args("async", 3, "mean"),
                made_results("async", 3, 6000, 0.903));
    assert_says(*folder,
                "mode sync: test accuracy falls from 90.30 % (workers 1) to "
                "88.40 % (workers 3), by 1.90 points.\n"
                "mode async: test accuracy stays between 90.30 and 90.30 % "
                "(workers 1 to 3).\n"
                "mode sync: in equal epochs 3 workers make 2000 steps instead "
                "of 6000, since each step averages the gradients of all; "
                "--aggregate sum adds them up.\n"
                "Test accuracy of async against sync, all else equal: +0.00 "
                "to +1.90 points over 2 pairs.\n");
}

/* Async makes as many steps with any number of workers. */
static void lost_accuracy_without_averaging_is_not_explained(void **folder)
{
    write_texts(*folder, "a", made_args("async", 1, "mean"),
                made_results("async", 1, 6000, 0.903));
    write_texts(*folder, "b", made_args("async", 3, "mean"),
                made_results("async", 3, 6000, 0.884));
    assert_says(*folder, "Test accuracy falls from 90.30 % (workers 1) to "
                         "88.40 % (workers 3), by 1.90 points.\n");
}

static void sums_are_compared_with_means(void **folder)
{
    write_texts(*folder, "a", made_args("sync", 3, "mean"),
                made_results("sync", 3, 2000, 0.884));
    write_texts(*folder, "b", made_args("sync", 3, "sum"),
                made_results("sync", 3, 2000, 0.904));
    assert_says(*folder, "Test accuracy of sum against mean, all else equal: "
                         "+2.00 points.\n");
}

/* Against the default; what has too many values is left to the table. */
static void any_flag_of_words_is_compared(void **folder)
{
    static const char *const words[] = { "relu", "tanh", "gelu", "elu",
                                         "none" };
    char args[64], results[64];
    for (int i = 0; i < 5; i++) {
        snprintf(args, sizeof args, "\"activation\": \"%s\"", words[i]);
        snprintf(results, sizeof results,
                 "\"test_accuracy\": %g, \"stopped_by\": \"epochs\"",
                 0.963 - 0.02 * i);
        write_texts(*folder, words[i], args, results);
        if (i == 1)
            assert_says(*folder, "Test accuracy of tanh against relu, all else "
                                 "equal: -2.00 points.\n");
        if (i == 2)
            assert_says(*folder, "Test accuracy of gelu against relu, all else "
                                 "equal: -4.00 points.\n"
                                 "Test accuracy of tanh against relu, all else "
                                 "equal: -2.00 points.\n");
    }
    assert_says(*folder, "");
}

static const char *made_way(int workers, int batch, int steps, double seconds,
                            const char *by)
{
    static char text[256];
    snprintf(text, sizeof text,
             "\"strategy\": \"ps\", \"mode\": \"async\", \"workers\": %d, "
             "\"batch\": %d, \"steps\": %d, \"seconds\": %g, "
             "\"stopped_by\": \"%s\"",
             workers, batch, steps, seconds, by);
    return text;
}

/* Runs that missed the target do not count. */
static void the_time_to_a_target_is_reported(void **folder)
{
    static const char *const args[] = {
        "\"workers\": \"1\", \"batch\": \"10\"",
        "\"workers\": \"3\", \"batch\": \"10\"",
        "\"workers\": \"1\", \"batch\": \"20\"",
        "\"workers\": \"3\", \"batch\": \"20\"",
        "\"workers\": \"1\", \"batch\": \"40\"",
        "\"workers\": \"3\", \"batch\": \"40\"",
    };
    write_texts(*folder, "a", args[0], made_way(1, 10, 7000, 2, "stop_loss"));
    write_texts(*folder, "b", args[1], made_way(3, 10, 7700, 1, "stop_loss"));
    write_texts(*folder, "c", args[2], made_way(1, 20, 7000, 2, "stop_loss"));
    write_texts(*folder, "d", args[3], made_way(3, 20, 7000, 3, "stop_loss"));
    write_texts(*folder, "e", args[4], made_way(1, 40, 7000, 2, "stop_loss"));
    write_texts(*folder, "f", args[5], made_way(3, 40, 9000, 9, "steps"));
    assert_says(*folder,
                "Fastest to the loss: workers 3, batch 10, 1.00 s and 7700 "
                "steps; 1 of 6 runs did not meet it.\n"
                "workers 1: steps to the target stay between 7000 and 7000 "
                "(batch 10 to 40); the time stays between 2.00 s and 2.00 s "
                "(batch 10 to 40).\n"
                "workers 3: steps to the target fall from 7700 (batch 10) to "
                "7000 (batch 20); the time rises from 1.00 s (batch 10) to "
                "3.00 s (batch 20).\n"
                "mode async: to the target 3 workers take 1.00 to 1.10 times "
                "the steps of 1 and 0.50 to 1.50 times the time, over 2 "
                "configurations.\n");
}

static void write_way(const char *folder, const char *name, int seed, int batch,
                      int steps, double seconds)
{
    char args[64];
    snprintf(args, sizeof args, "\"batch\": \"%d\", \"seed\": \"%d\"", batch,
             seed);
    write_texts(folder, name, args,
                made_way(1, batch, steps, seconds, "stop_loss"));
}

/* 9500 steps at batch 1, 7100 at batch 100; the time is shortest between. */
static void the_time_to_a_target_by_batch_is_reported(void **folder)
{
    write_way(*folder, "a", 1, 1, 9500, 2);
    write_way(*folder, "b", 1, 20, 7200, 1);
    write_way(*folder, "c", 1, 100, 7100, 3);
    assert_says(
        *folder,
        "Fastest to the loss: batch 20, 1.00 s and 7200 steps.\n"
        "Steps to the target fall from 9500 (batch 1) to 7100 (batch "
        "100); the time is shortest at batch 20, 1.00 s, and longest at "
        "batch 100, 3.00 s.\n");
}

static void a_time_within_the_spread_is_marked(void **folder)
{
    write_way(*folder, "a", 1, 1, 7000, 1);
    write_way(*folder, "b", 2, 1, 9000, 1);
    write_way(*folder, "c", 1, 20, 7100, 2);
    write_way(*folder, "d", 2, 20, 7100, 2);
    assert_says(*folder,
                "Fastest to the loss: batch 1, 1.00 s and 8000 steps.\n"
                "Steps to the target stay between 7100 and 8000 (batch 1 to "
                "20), within the spread of the repetitions; the time rises "
                "from 1.00 s (batch 1) to 2.00 s (batch 20).\n");
}

static const char *made_shares(const char *mode, int one, int other)
{
    static char text[256];
    snprintf(text, sizeof text,
             "\"strategy\": \"ps\", \"mode\": \"%s\", \"workers\": 2, "
             "\"stopped_by\": \"epochs\", \"per_worker\": [{\"index\": 0, "
             "\"steps\": %d}, {\"index\": 1, \"steps\": %d}]",
             mode, one, other);
    return text;
}

static void uneven_shares_are_reported(void **folder)
{
    write_texts(*folder, "a", "\"lr\": \"1\"", made_shares("async", 900, 300));
    write_texts(*folder, "b", "\"lr\": \"2\"", made_shares("async", 100, 200));
    write_texts(*folder, "c", "\"lr\": \"3\"", made_shares("async", 110, 100));
    assert_says(*folder,
                "Workers that do not wait for each other share the steps "
                "unevenly in 2 of 3 runs: one makes 2.0 to 3.0 times the "
                "steps of another; worker 0 makes the most in 1 of them.\n");
}

/* A worker that joined after the end has no slowdown. */
static void a_worker_without_steps_is_reported(void **folder)
{
    write_texts(*folder, "a", "\"lr\": \"1\"", made_shares("async", 900, 0));
    assert_says(*folder, "");
    write_texts(*folder, "b", "\"lr\": \"2\"", made_shares("async", 0, 700));
    assert_says(*folder,
                "Workers that do not wait for each other share the steps "
                "unevenly in 2 of 2 runs: in 2 a worker makes none; worker 0 "
                "makes the most in 1 of them.\n");
    write_texts(*folder, "c", "\"lr\": \"3\"", made_shares("async", 300, 100));
    assert_says(*folder,
                "Workers that do not wait for each other share the steps "
                "unevenly in 3 of 3 runs: one makes 3.0 times the steps of "
                "another; in 2 a worker makes none; worker 0 makes the most in "
                "2 of them.\n");
}

static const char *made_waits(const char *mode, double one, double other)
{
    static char text[256];
    snprintf(text, sizeof text,
             "\"strategy\": \"ps\", \"mode\": \"%s\", \"workers\": 2, "
             "\"stopped_by\": \"steps\", \"per_worker\": [{\"index\": 0, "
             "\"waiting_share\": %g}, {\"index\": 1, \"waiting_share\": %g}]",
             mode, one, other);
    return text;
}

static void how_long_workers_wait_is_reported(void **folder)
{
    static const char *const args[] = {
        "\"strategy\": \"ps\", \"mode\": \"sync\", \"batch\": \"1\"",
        "\"strategy\": \"ps\", \"mode\": \"async\", \"batch\": \"1\"",
        "\"strategy\": \"ps\", \"mode\": \"sync\", \"batch\": \"2\"",
        "\"strategy\": \"ps\", \"mode\": \"async\", \"batch\": \"2\"",
    };
    write_texts(*folder, "a", args[0], made_waits("sync", 0.4, 0.6));
    write_texts(*folder, "b", args[1], made_waits("async", 0.1, 0.3));
    assert_says(*folder, "Workers wait 50 % of the time in sync and 20 % of "
                         "the time in async, all else equal.\n");
    write_texts(*folder, "c", args[2], made_waits("sync", 0.7, 0.7));
    write_texts(*folder, "d", args[3], made_waits("async", 0.2, 0.2));
    assert_says(*folder, "Workers wait 50 to 70 % of the time in sync and 20 % "
                         "of the time in async, all else equal.\n");
}

static void even_shares_are_not_reported(void **folder)
{
    write_texts(*folder, "a", "\"lr\": \"1\"", made_shares("async", 110, 100));
    write_texts(*folder, "b", "\"lr\": \"2\"", made_shares("sync", 900, 300));
    assert_says(*folder, "");
}

/* `other`: runs on other data, which published values cannot be compared with.
 */
static void write_published(const char *folder, const char *other)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"format\": 1, \"model\": \"softmax\", \"about\": "
             "{\"other\": %s}, \"cells\": [{\"name\": \"a\", "
             "\"published\": {\"test_accuracy\": 0.904}}, {\"name\": "
             "\"b\", \"published\": {\"test_accuracy\": 0.883}}]}",
             other);
    assert_ok(
        pl_file_replace(test_path(folder, "sweep.json"), text, strlen(text)));
}

static void distance_to_published_values_is_reported(void **folder)
{
    static const char *const result[] = {
        "\"test_accuracy\": 0.903, \"stopped_by\": \"epochs\"",
        "\"test_accuracy\": 0.885, \"stopped_by\": \"epochs\"",
    };
    write_texts(*folder, "a", "\"lr\": \"x\"", result[0]);
    write_texts(*folder, "b", "\"lr\": \"y\"", result[1]);
    write_published(*folder, "false");
    assert_says(*folder,
                "Test accuracy differs from the published values by at most "
                "0.20 points, by 0.15 points in the median of 2 values.\n");
    write_published(*folder, "true");
    assert_says(*folder, "");
}

/* Of a trace with 90 us of `find`, 6 of `dot` and 4 of `apply`, and more of
 * what is no operator. */
static void write_traced(const char *folder, const char *name)
{
    write_texts(folder, name, "\"lr\": \"1\"", "\"stopped_by\": \"steps\"");
    write_run_file(
        folder, test_path(name, "trace"), "worker-0.json",
        "{\"otherData\":{\"begin_wall_ns\":1,\"begin_clock_ns\":1,"
        "\"dropped\":0,\"gflops\":1.0,\"gbytes\":1.0,\"operators\":[]},"
        "\"traceEvents\":["
        "{\"name\":\"checkpoint\",\"ph\":\"X\",\"ts\":1.0,\"dur\":999.0,"
        "\"pid\":0,\"tid\":0,\"args\":{\"step\":1}},"
        "{\"name\":\"apply\",\"ph\":\"X\",\"ts\":2000.0,\"dur\":4.0,"
        "\"pid\":0,\"tid\":0,\"args\":{\"step\":1}},"
        "{\"name\":\"dot\",\"ph\":\"X\",\"ts\":3000.0,\"dur\":6.0,"
        "\"pid\":0,\"tid\":0,\"args\":{\"step\":1}},"
        "{\"name\":\"find\",\"ph\":\"X\",\"ts\":4000.0,\"dur\":90.0,"
        "\"pid\":0,\"tid\":0,\"args\":{\"step\":1}}]}");
}

static void assert_operators(const char *folder, const char *expected)
{
    pl_records r;
    pl_buffer text = { 0 };
    char *paths[] = { (char *)folder };
    assert_ok(pl_records_init(&r, paths, 1));
    assert_ok(pl_findings_operators(&r, &text));
    assert_string_equal(expected, text.bytes > 0 ? text.data : "");
    pl_buffer_close(&text);
    pl_records_close(&r);
}

static void operators_that_take_longest_are_reported(void **folder)
{
    write_traced(*folder, "a");
    assert_operators(*folder, "Of the workers' time in operators find takes 90 "
                              "%, dot takes 6 %.\n");
    write_texts(*folder, "b", "\"lr\": \"2\"", "\"stopped_by\": \"steps\"");
    assert_operators(*folder, "a: of the workers' time in operators find takes "
                              "90 %, dot takes 6 %.\n");
    write_run_file(*folder, "a/trace", "worker-0.json", "no trace");
    assert_operators(*folder, "");
}

UNIT_TESTS(TEST_IN_FOLDER(operators_that_take_longest_are_reported),
           TEST_IN_FOLDER(averaged_gradients_explain_lost_accuracy),
           TEST_IN_FOLDER(averaging_names_its_mode),
           TEST_IN_FOLDER(lost_accuracy_without_averaging_is_not_explained),
           TEST_IN_FOLDER(sums_are_compared_with_means),
           TEST_IN_FOLDER(any_flag_of_words_is_compared),
           TEST_IN_FOLDER(the_time_to_a_target_is_reported),
           TEST_IN_FOLDER(the_time_to_a_target_by_batch_is_reported),
           TEST_IN_FOLDER(a_time_within_the_spread_is_marked),
           TEST_IN_FOLDER(uneven_shares_are_reported),
           TEST_IN_FOLDER(a_worker_without_steps_is_reported),
           TEST_IN_FOLDER(how_long_workers_wait_is_reported),
           TEST_IN_FOLDER(even_shares_are_not_reported),
           TEST_IN_FOLDER(distance_to_published_values_is_reported))

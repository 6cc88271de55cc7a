#include "support/runs.h"

#include "observe/findings/findings.h"

/* Made-up runs of which the right sentences are known. */
typedef struct made {
    const char *mode;
    int workers, batch, seed;
    double accuracy, seconds, speed;
    const char *stopped_by;
} made;

static void write_made(const char *folder, const made *runs, size_t count)
{
    char text[512], name[32];
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "r%zu", i);
        snprintf(text, sizeof text,
                 "{\"format\": 1, \"model\": \"softmax\", \"args\": {"
                 "\"mode\": \"%s\", \"workers\": \"%d\", \"batch\": "
                 "\"%d\", \"seed\": \"%d\"}}",
                 runs[i].mode, runs[i].workers, runs[i].batch, runs[i].seed);
        write_run_file(folder, name, "run.json", text);
        snprintf(text, sizeof text,
                 "{\"steps\": 100, \"seconds\": %g, \"test_accuracy\": %g, "
                 "\"examples_per_s\": %g, \"stopped_by\": \"%s\", "
                 "\"bottleneck\": {\"what\": \"computing\", \"share\": 0.9, "
                 "\"text\": \"\"}}",
                 runs[i].seconds, runs[i].accuracy, runs[i].speed,
                 runs[i].stopped_by);
        write_run_file(folder, name, "summary.json", text);
    }
}

static void assert_found(const char *folder, const made *runs, size_t count,
                         const char *expected)
{
    pl_records r;
    pl_buffer text = { 0 };
    char *paths[] = { (char *)folder };
    write_made(folder, runs, count);
    assert_ok(pl_records_init(&r, paths, 1));
    know_flags(&r);
    assert_ok(pl_findings(&r, &text));
    assert_string_equal(expected, text.bytes > 0 ? text.data : "");
    pl_buffer_close(&text);
    pl_records_close(&r);
}

#define FOUND_THERE(folder, expected) assert_found(folder, NULL, 0, expected)
#define FOUND(folder, runs, expected)                                          \
    assert_found(folder, runs, sizeof(runs) / sizeof *(runs), expected)

/* Write a run by its batch and the text of its results; what is found. */
static void write_results(const char *folder, const char *name, int batch,
                          const char *results)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"format\": 1, \"model\": \"alexnet\", \"args\": {\"batch\": "
             "\"%d\"}}",
             batch);
    write_run_file(folder, name, "run.json", text);
    snprintf(text, sizeof text, "{%s, \"stopped_by\": \"steps\"}", results);
    write_run_file(folder, name, "summary.json", text);
}

static void workers_and_modes_are_reported(void **folder)
{
    static const made runs[] = {
        { "async", 1, 100, 1, 0.903, 10, 1000, "epochs" },
        { "async", 2, 100, 1, 0.904, 6, 1800, "epochs" },
        { "async", 4, 100, 1, 0.902, 4, 3000, "epochs" },
        { "sync", 1, 100, 1, 0.903, 10, 1000, "epochs" },
        { "sync", 2, 100, 1, 0.891, 7, 1500, "epochs" },
        { "sync", 4, 100, 1, 0.883, 5, 2000, "epochs" },
    };
    FOUND(*folder, runs,
          "mode async: 4 workers process 3.00 times the examples/s of 1 "
          "(efficiency 75 %).\n"
          "mode sync: 4 workers process 2.00 times the examples/s of 1 "
          "(efficiency 50 %).\n"
          "mode async: test accuracy stays between 90.20 and 90.40 % "
          "(workers 1 to 4).\n"
          "mode sync: test accuracy falls from 90.30 % (workers 1) to 88.30 % "
          "(workers 4), by 2.00 points.\n"
          "Test accuracy of async against sync, all else equal: +0.00 to +1.90 "
          "points over 3 pairs.\n"
          "What limits: computing, in 6 of 6 runs.\n");
}

/* Where nothing else was varied no label stands before the sentence. */
/* No number is rounded to nothing, and none has an exponent. */
static void numbers_are_readable(void **folder)
{
    static const made runs[] = {
        { "", 1, 10, 1, 0.9, 0.00432, 1000, "stop_loss" },
        { "", 1, 50, 1, 0.9, 2, 1000, "stop_loss" },
    };
    FOUND(*folder, runs,
          "Fastest to the loss: batch 10, 0.0043 s and 100 steps.\n"
          "Steps to the target stay between 100 and 100 (batch 10 to 50); the "
          "time rises from 0.0043 s (batch 10) to 2.00 s (batch 50).\n"
          "Examples/s do not grow with the batch (1000 at batch 10, 1000 at "
          "batch 50).\n"
          "1 of 2 runs trained for less than 0.5 s: their times and speeds "
          "differ from run to run, and --repeat tells by how much.\n"
          "What limits: computing, in 2 of 2 runs.\n");
}

static void large_factors_have_no_exponent(void **folder)
{
    write_results(
        *folder, "a", 10,
        "\"dense_traffic\": {\"bytes_per_gradient\": 270123456, "
        "\"moved_per_gradient\": 5555, \"seconds_per_gradient\": "
        "0.00976, \"link_bytes_per_s\": 16000, \"link\": \"network\"}");
    FOUND_THERE(*folder,
                "Dense traffic would have moved 48600 times the bytes, 0.00976 "
                "s for each gradient on the link of the run.\n");
}

static void workers_alone_are_reported(void **folder)
{
    static const made runs[] = {
        { "sync", 1, 100, 1, 0.903, 10, 1000, "epochs" },
        { "sync", 2, 100, 1, 0.903, 7, 1500, "epochs" },
    };
    FOUND(*folder, runs,
          "2 workers process 1.50 times the examples/s of 1 (efficiency 75 "
          "%).\n"
          "Test accuracy stays between 90.30 and 90.30 % (workers 1 to 2).\n"
          "What limits: computing, in 2 of 2 runs.\n");
}

static void the_best_value_of_a_flag_is_reported(void **folder)
{
    static const made runs[] = {
        { "", 1, 10, 1, 0.90, 10, 1000, "epochs" },
        { "", 1, 50, 1, 0.92, 6, 1000, "epochs" },
        { "", 1, 100, 1, 0.85, 4, 1000, "epochs" },
    };
    FOUND(*folder, runs,
          "Examples/s do not grow with the batch (1000 at batch 10, 1000 at "
          "batch 100).\n"
          "Test accuracy is best at batch 50, 92.00 %, and worst at batch 100, "
          "85.00 %.\n"
          "What limits: computing, in 3 of 3 runs.\n");
}

static void the_fastest_to_a_loss_is_reported(void **folder)
{
    static const made runs[] = {
        { "", 1, 10, 1, 0.9, 3, 1000, "stop_loss" },
        { "", 1, 50, 1, 0.9, 2, 1000, "stop_loss" },
        { "", 1, 100, 1, 0.8, 1, 1000, "steps" },
    };
    FOUND(*folder, runs,
          "Fastest to the loss: batch 50, 2.00 s and 100 steps; 1 of 3 runs "
          "did not meet it.\n"
          "Steps to the target stay between 100 and 100 (batch 10 to 50); the "
          "time falls from 3.00 s (batch 10) to 2.00 s (batch 50).\n"
          "Examples/s do not grow with the batch (1000 at batch 10, 1000 at "
          "batch 100).\n"
          "What limits: computing, in 3 of 3 runs.\n");
}

static void the_fastest_to_an_accuracy_is_reported(void **folder)
{
    static const made runs[] = {
        { "", 1, 10, 1, 0.9, 3, 1000, "stop_accuracy" },
        { "", 1, 50, 1, 0.9, 2, 1000, "stop_accuracy" },
    };
    FOUND(*folder, runs,
          "Fastest to the accuracy: batch 50, 2.00 s and 100 steps.\n"
          "Steps to the target stay between 100 and 100 (batch 10 to 50); the "
          "time falls from 3.00 s (batch 10) to 2.00 s (batch 50).\n"
          "Examples/s do not grow with the batch (1000 at batch 10, 1000 at "
          "batch 50).\n"
          "What limits: computing, in 2 of 2 runs.\n");
}

/* The strategy changes with the workers, so neither alone explains the
 * difference. */
static void workers_of_several_strategies_are_not_compared(void **folder)
{
    static const char *const args[] = {
        "\"strategy\": \"allreduce\", \"mode\": \"\", \"workers\": \"2\"",
        "\"strategy\": \"ps\", \"mode\": \"sync\", \"workers\": \"3\"",
    };
    pl_records r;
    pl_buffer text = { 0 };
    char *paths[] = { *folder }, json[256], name[8];
    for (size_t i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "r%zu", i);
        snprintf(json, sizeof json,
                 "{\"format\": 1, \"model\": \"softmax\", \"args\": {%s}}",
                 args[i]);
        write_run_file(*folder, name, "run.json", json);
        snprintf(json, sizeof json,
                 "{\"strategy\": \"%s\", \"workers\": %zu, \"steps\": 100, "
                 "\"seconds\": 1, \"test_accuracy\": 0.9, "
                 "\"examples_per_s\": 1000, \"stopped_by\": \"epochs\"}",
                 i == 0 ? "allreduce" : "ps", 2 + i);
        write_run_file(*folder, name, "summary.json", json);
    }
    assert_ok(pl_records_init(&r, paths, 1));
    know_flags(&r);
    assert_ok(pl_findings(&r, &text));
    assert_int_equal(0, text.bytes);
    pl_buffer_close(&text);
    pl_records_close(&r);
}

static void differences_within_the_spread_are_marked(void **folder)
{
    static const made runs[] = {
        { "async", 2, 10, 1, 0.90, 1, 1000, "epochs" },
        { "async", 2, 10, 2, 0.92, 1, 1200, "epochs" },
        { "sync", 2, 10, 1, 0.91, 1, 1000, "epochs" },
        { "sync", 2, 10, 2, 0.92, 1, 1100, "epochs" },
        { "async", 4, 10, 1, 0.90, 1, 1100, "epochs" },
        { "async", 4, 10, 2, 0.91, 1, 1150, "epochs" },
    };
    FOUND(*folder, runs,
          "mode async: 4 workers are as fast as 2, within the spread of the "
          "repetitions.\n"
          "mode async: test accuracy stays between 90.50 and 91.00 % "
          "(workers 2 to 4), within the spread of the repetitions.\n"
          "Test accuracy of async against sync, all else equal: -0.50 points, "
          "within the spread of the repetitions.\n"
          "What limits: computing, in 6 of 6 runs.\n");
}

/* Two repetitions each: 100 is as fast as 200, but for 2 %. */
static void the_batch_that_saturates_is_reported(void **folder)
{
    static const made runs[] = {
        { "", 1, 10, 1, 0.95, 10, 100, "epochs" },
        { "", 1, 10, 2, 0.93, 10, 100, "epochs" },
        { "", 1, 100, 1, 0.90, 5, 390, "epochs" },
        { "", 1, 100, 2, 0.90, 5, 390, "epochs" },
        { "", 1, 200, 1, 0.80, 5, 400, "epochs" },
        { "", 1, 200, 2, 0.80, 5, 400, "epochs" },
    };
    FOUND(
        *folder, runs,
        "Examples/s grow from 100 (batch 10) to 390 (batch 100), and hardly "
        "beyond.\n"
        "Test accuracy falls from 94.00 \xc2\xb1 1.41 % (batch 10) to 80.00 % "
        "(batch 200), by 14.00 points.\n"
        "What limits: computing, in 6 of 6 runs.\n");
}

static void a_batch_that_is_too_large_is_reported(void **folder)
{
    static const made runs[] = {
        { "", 1, 10, 1, 0.9, 10, 500, "epochs" },
        { "", 1, 100, 1, 0.9, 10, 1000, "epochs" },
        { "", 1, 500, 1, 0.9, 10, 700, "epochs" },
    };
    FOUND(*folder, runs,
          "Examples/s grow from 500 (batch 10) to 1000 (batch 100), and fall "
          "to 700 (batch 500).\n"
          "Test accuracy stays between 90.00 and 90.00 % (batch 10 to 500).\n"
          "What limits: computing, in 3 of 3 runs.\n");
}

/* Speeds of very short runs are random, unless repeated. */
static void speeds_of_short_runs_are_marked(void **folder)
{
    static const made runs[] = {
        { "", 1, 10, 1, 0.9, 0.2, 500, "epochs" },
        { "", 1, 100, 1, 0.9, 2, 1000, "epochs" },
    };
    static const made again[] = {
        { "", 1, 10, 1, 0.9, 0.2, 500, "epochs" },
        { "", 1, 10, 2, 0.9, 0.2, 500, "epochs" },
        { "", 1, 100, 1, 0.9, 2, 1000, "epochs" },
    };
    FOUND(*folder, runs,
          "Examples/s grow from 500 (batch 10) to 1000 (batch 100).\n"
          "1 of 2 runs trained for less than 0.5 s: their times and speeds "
          "differ from run to run, and --repeat tells by how much.\n"
          "Test accuracy stays between 90.00 and 90.00 % (batch 10 to 100).\n"
          "What limits: computing, in 2 of 2 runs.\n");
    FOUND(*folder, again,
          "Examples/s grow from 500 (batch 10) to 1000 (batch 100).\n"
          "Test accuracy stays between 90.00 and 90.00 % (batch 10 to 100).\n"
          "What limits: computing, in 3 of 3 runs.\n");
}

static void memory_that_grows_is_reported(void **folder)
{
    write_results(*folder, "a", 32, "\"peak_rss_mb\": 3000");
    write_results(*folder, "b", 64, "\"peak_rss_mb\": 3500");
    FOUND_THERE(*folder, "");
    write_results(*folder, "c", 128, "\"peak_rss_mb\": 4000");
    FOUND_THERE(*folder, "Peak memory of the largest task grows from 3000 MB "
                         "(batch 32) to 4000 MB (batch 128).\n");
}

/* Runs that share a machine slow each other down. */
static void crowded_machines_are_reported(void **folder)
{
#define CROWDED                                                                \
    "\"examples_per_s\": 10, \"seconds\": 9, \"bottleneck\": {\"what\": "      \
    "\"cores\", \"share\": 0.8, \"text\": \"other processes have the cores: "  \
    "80 "                                                                      \
    "% of the time\"}"
    write_results(*folder, "a", 32, CROWDED);
    write_results(*folder, "b", 64, CROWDED);
    FOUND_THERE(*folder,
                "Examples/s do not grow with the batch (10 at batch 32, 10 at "
                "batch 64).\n"
                "In 2 of 2 runs other processes had the cores: their times and "
                "speeds are not those of the runs alone.\n"
                "What limits: cores, in 2 of 2 runs.\n");
}

static void faults_are_reported(void **folder)
{
    write_results(*folder, "a", 32,
                  "\"restarts\": 2, \"rollbacks\": 1, \"rolled_back\": 40, "
                  "\"incidents\": [{\"time\": 1, \"event\": \"lost\", "
                  "\"task\": \"ps 0\"}, {\"time\": 2, \"event\": \"lost\", "
                  "\"task\": \"worker 1\"}]");
    FOUND_THERE(*folder, "Tasks were lost: 2 losses, 2 restarts, 1 rollback, "
                         "which undid 40 steps.\n");
    write_results(*folder, "b", 64,
                  "\"restarts\": 1, \"incidents\": [{\"time\": 1, \"event\": "
                  "\"lost\", \"task\": \"worker 0\"}]");
    write_results(*folder, "c", 128, "\"restarts\": 0");
    FOUND_THERE(*folder,
                "In 2 of 3 runs tasks were lost: 3 losses, 3 restarts, 1 "
                "rollback, which undid 40 steps.\n");
}

static void the_cost_of_dense_traffic_is_reported(void **folder)
{
    static const char run[] =
        "{\"format\": 1, \"model\": \"sparse\", \"args\": "
        "{\"seed\": \"%d\"}}";
    char text[128];
    pl_records r;
    pl_buffer found = { 0 };
    char *paths[] = { *folder };
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, run, i);
        write_run_file(*folder, i == 0 ? "a" : "b", "run.json", text);
        write_run_file(*folder, i == 0 ? "a" : "b", "summary.json",
                       "{\"stopped_by\": \"steps\", \"dense_traffic\": "
                       "{\"bytes_per_gradient\": 8000, "
                       "\"moved_per_gradient\": 100, "
                       "\"seconds_per_gradient\": 0.5, "
                       "\"link_bytes_per_s\": 16000, \"link\": \"network\"}}");
    }
    assert_ok(pl_records_init(&r, paths, 1));
    know_flags(&r);
    assert_ok(pl_findings(&r, &found));
    assert_string_equal("Dense traffic would have moved 80 times the "
                        "bytes, 0.5 s for each gradient on the link of "
                        "the run.\n",
                        found.data);
    pl_buffer_close(&found);
    pl_records_close(&r);
}

static void one_run_yields_no_findings(void **folder)
{
    static const made runs[] = {
        { "", 1, 10, 1, 0.90, 10, 1000, "stop_loss" },
    };
    FOUND(*folder, runs, "");
}

/* The culprit and the cure follow what limits most runs. */
static void the_best_cure_is_reported(void **folder)
{
    static const char summary[] =
        "{\"steps\": 100, \"stopped_by\": \"steps\", \"bottleneck\": {"
        "\"what\": \"slow worker\", \"share\": 0.6, \"worker\": 2, "
        "\"task\": \"worker 2\", \"host\": \"node3\", \"cures\": [{"
        "\"text\": \"free its processor\", \"gain\": %g}], "
        "\"text\": \"waiting for worker 2 on node3\"}}";
    char text[512], *paths[] = { *folder };
    pl_records r;
    pl_buffer found = { 0 };
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "a" : "b";
        snprintf(text, sizeof text, summary, 2.0 + i);
        write_run_file(*folder, name, "summary.json", text);
        snprintf(text, sizeof text,
                 "{\"format\": 1, \"model\": \"softmax\", \"args\": {"
                 "\"seed\": \"%d\"}}",
                 i);
        write_run_file(*folder, name, "run.json", text);
    }
    assert_ok(pl_records_init(&r, paths, 1));
    know_flags(&r);
    assert_ok(pl_findings(&r, &found));
    assert_string_equal("What limits: slow worker, in 2 of 2 runs. Largest "
                        "expected gain: free its processor, 3.0 x as fast, in "
                        "b (worker 2 on node3).\n",
                        found.data);
    pl_buffer_clear(&found);
    r.count = 1;
    assert_ok(pl_findings(&r, &found));
    assert_string_equal("Bottleneck: waiting for worker 2 on node3.\n",
                        found.data);
    r.count = 2;
    pl_buffer_close(&found);
    pl_records_close(&r);
}

static pl_status find(const pl_records *records)
{
    pl_buffer text = { 0 };
    pl_status status = pl_findings(records, &text);
    pl_buffer_close(&text);
    return status;
}

static void finding_survives_failed_allocations(void **folder)
{
    static const made runs[] = {
        { "async", 1, 10, 1, 0.90, 10, 1000, "epochs" },
        { "sync", 2, 10, 1, 0.92, 6, 1000, "epochs" },
        { "sync", 4, 10, 1, 0.92, 6, 1000, "epochs" },
    };
    pl_records r;
    char *paths[] = { *folder };
    write_made(*folder, runs, 3);
    assert_ok(pl_records_init(&r, paths, 1));
    know_flags(&r);
    assert_survives_failed_allocations(find(&r), (void)0);
    pl_records_close(&r);
}

UNIT_TESTS(TEST_IN_FOLDER(workers_and_modes_are_reported),
           TEST_IN_FOLDER(workers_alone_are_reported),
           TEST_IN_FOLDER(numbers_are_readable),
           TEST_IN_FOLDER(large_factors_have_no_exponent),
           TEST_IN_FOLDER(the_best_value_of_a_flag_is_reported),
           TEST_IN_FOLDER(the_best_cure_is_reported),
           TEST_IN_FOLDER(the_fastest_to_a_loss_is_reported),
           TEST_IN_FOLDER(the_fastest_to_an_accuracy_is_reported),
           TEST_IN_FOLDER(workers_of_several_strategies_are_not_compared),
           TEST_IN_FOLDER(differences_within_the_spread_are_marked),
           TEST_IN_FOLDER(the_batch_that_saturates_is_reported),
           TEST_IN_FOLDER(a_batch_that_is_too_large_is_reported),
           TEST_IN_FOLDER(speeds_of_short_runs_are_marked),
           TEST_IN_FOLDER(memory_that_grows_is_reported),
           TEST_IN_FOLDER(crowded_machines_are_reported),
           TEST_IN_FOLDER(faults_are_reported),
           TEST_IN_FOLDER(the_cost_of_dense_traffic_is_reported),
           TEST_IN_FOLDER(one_run_yields_no_findings),
           TEST_IN_FOLDER(finding_survives_failed_allocations))

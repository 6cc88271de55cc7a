#include "support/runs.h"

#include "observe/compare/compare.h"

static char *compare(const char *folder, bool mean)
{
    pl_records r;
    pl_table *table;
    pl_buffer text = { 0 };
    char *paths[] = { (char *)folder };
    assert_ok(pl_records_init(&r, paths, 1));
    know_flags(&r);
    assert_ok(pl_compare(&table, &r, mean));
    pl_table_csv(table, &text);
    assert_ok(pl_buffer_status(&text));
    pl_table_free(table);
    pl_records_close(&r);
    return text.data;
}

static void assert_compared(const char *folder, bool mean, const char *expected)
{
    char *text = compare(folder, mean);
    assert_string_equal(expected, text);
    pl_mem_free(text);
}

static void flags_that_differ_and_results_are_shown(void **state)
{
    write_run(*state, "a", 10, 1, 1.5, 0.5);
    write_run(*state, "b", 20, 1, 2.5, 0.25);
    assert_compared(*state, false,
                    "run,flag.batch,steps,seconds,test_accuracy,stopped_by\r\n"
                    "a,10,100,1.5,0.5,epochs\r\n"
                    "b,20,100,2.5,0.25,epochs\r\n");
}

static void repetitions_have_a_mean_and_a_spread(void **state)
{
    write_run(*state, "a", 10, 1, 1, 0.5);
    write_run(*state, "b", 10, 2, 3, 0.5);
    write_run(*state, "c", 20, 1, 4, 0.25);
    assert_compared(*state, true,
                    "run,repetitions,flag.batch,steps,steps_spread,seconds,"
                    "seconds_spread,"
                    "test_accuracy,test_accuracy_spread,stopped_by\r\n"
                    "a,2,10,100,0,2,1.4142135623731,0.5,0,epochs\r\n"
                    "c,1,20,100,0,4,0,0.25,0,epochs\r\n");
}

static void a_run_that_has_not_ended_is_shown(void **state)
{
    write_run(*state, "a", 10, 1, 1, 0.5);
    write_run_file(*state, "b", "run.json",
                   "{\"format\": 1, \"model\": \"m\", \"args\": {\"lr\": "
                   "\"0.01\", \"new\": \"x\", \"batch\": \"10\"}}");
    assert_compared(*state, false,
                    "run,model,flag.seed,flag.new,steps,seconds,test_accuracy,"
                    "stopped_by"
                    "\r\na,softmax,1,,100,1,0.5,epochs\r\n"
                    "b,m,,x,,,,not ended\r\n");
}

static void write_named_run(const char *folder, const char *name,
                            const char *epochs, int trained)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"format\": 1, \"model\": \"m\", \"args\": {\"epochs\": "
             "\"%s\", \"steps\": \"\", \"lr\": \"0.5\"}}",
             epochs);
    write_run_file(folder, name, "run.json", text);
    snprintf(text, sizeof text,
             "{\"epochs\": %d.0, \"steps\": %d, \"stopped_by\": \"epochs\"}",
             trained, 10 * trained);
    write_run_file(folder, name, "summary.json", text);
}

static void flags_and_results_of_one_name_are_kept_apart(void **state)
{
    pl_records r;
    pl_table *table;
    pl_json *rows;
    char *text, *paths[] = { *state };
    write_named_run(*state, "a", "2", 1);
    write_named_run(*state, "b", "30", 3);
    assert_compared(*state, false,
                    "run,flag.epochs,steps,epochs,stopped_by\r\n"
                    "a,2,10,1,epochs\r\n"
                    "b,30,30,3,epochs\r\n");
    assert_ok(pl_records_init(&r, paths, 1));
    know_flags(&r);
    assert_ok(pl_compare(&table, &r, false));
    assert_ok(pl_table_json(table, &rows));
    assert_ok(pl_json_text(rows, 0, &text));
    assert_string_equal("[{\"run\":\"a\",\"flag.epochs\":2,\"steps\":10,"
                        "\"epochs\":1.0,\"stopped_by\":\"epochs\"},"
                        "{\"run\":\"b\",\"flag.epochs\":30,\"steps\":30,"
                        "\"epochs\":3.0,\"stopped_by\":\"epochs\"}]",
                        text);
    pl_mem_free(text);
    pl_json_free(rows);
    pl_table_free(table);
    pl_records_close(&r);
}

/* A run of two workers and a server, and one of a worker that was lost. */
static void tasks_stand_side_by_side(void **state)
{
    static const char run[] = "{\"format\": 1, \"model\": \"m\", \"args\": {}}";
    static const char two[] =
        "{\"stopped_by\": \"steps\", \"steps\": 30, \"bottleneck\": {\"what\": "
        "\"waiting\", \"share\": 0.5, \"text\": \"\"}, \"per_worker\": ["
        "{\"worker\": 0, \"host\": \"h\", \"steps\": 10, \"peak_rss_mb\": 50},"
        "{\"worker\": 1, \"host\": \"h\", \"steps\": 20, \"peak_rss_mb\": 70}],"
        "\"per_server\": [{\"ps\": 0, \"host\": \"h\", \"peak_rss_mb\": 9, "
        "\"bytes_sent\": 1500000, \"bytes_received\": 2000000}]}";
    pl_records r;
    pl_table *table;
    pl_buffer text = { 0 };
    char *paths[] = { *state };
    write_run_file(*state, "a", "run.json", run);
    write_run_file(*state, "a", "summary.json", two);
    write_run_file(*state, "b", "run.json", run);
    write_run_file(*state, "b", "summary.json",
                   "{\"stopped_by\": \"steps\", \"steps\": 5}");
    assert_ok(pl_records_init(&r, paths, 1));
    assert_true(r.count == 2);
    assert_ok(pl_compare_tasks(&table, &r, false));
    pl_table_csv(table, &text);
    assert_string_equal("run,bottleneck,bottleneck_share,worker_rss_mb,"
                        "ps_rss_mb,worker_0_steps,worker_1_steps,"
                        "ps_0_received_mb,ps_0_sent_mb\r\n"
                        "a,waiting,0.5,70,9,10,20,2,1.5\r\n"
                        "b,,,,,,,,\r\n",
                        text.data);
    pl_buffer_close(&text);
    pl_table_free(table);
    pl_records_close(&r);
}

static void write_job(const char *folder, const char *name, int workers,
                      int replicas, int keep)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"format\": 1, \"model\": \"m\", \"args\": {\"workers\": "
             "\"%d\", \"replicas\": \"%d\", \"keep\": \"%d\"}}",
             workers, replicas, keep);
    write_run_file(folder, name, "run.json", text);
}

static void flags_are_shown_as_their_rows_specify(void **state)
{
    write_job(*state, "a", 2, 2, 1);
    write_job(*state, "b", 4, 4, 7);
    assert_compared(*state, false,
                    "run,flag.workers,stopped_by\r\na,2,not ended\r\n"
                    "b,4,not ended\r\n");
    write_job(*state, "b", 4, 3, 7);
    assert_compared(*state, false,
                    "run,flag.workers,flag.replicas,stopped_by\r\n"
                    "a,2,2,not ended\r\nb,4,3,not ended\r\n");
}

static void comparing_survives_failed_allocations(void **state)
{
    pl_records r;
    pl_table *table;
    char *paths[] = { *state };
    write_run(*state, "a", 10, 1, 1, 0.5);
    write_run(*state, "b", 20, 1, 1, 0.5);
    assert_ok(pl_records_init(&r, paths, 1));
    know_flags(&r);
    assert_survives_failed_allocations(pl_compare(&table, &r, true),
                                       pl_table_free(table));
    pl_records_close(&r);
}

UNIT_TESTS(TEST_IN_FOLDER(flags_that_differ_and_results_are_shown),
           TEST_IN_FOLDER(flags_are_shown_as_their_rows_specify),
           TEST_IN_FOLDER(repetitions_have_a_mean_and_a_spread),
           TEST_IN_FOLDER(a_run_that_has_not_ended_is_shown),
           TEST_IN_FOLDER(tasks_stand_side_by_side),
           TEST_IN_FOLDER(flags_and_results_of_one_name_are_kept_apart),
           TEST_IN_FOLDER(comparing_survives_failed_allocations))

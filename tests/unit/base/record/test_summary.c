#include "base/clock.h"
#include "base/record/run_record.h"
#include "base/record/summary.h"

#include "support/folder.h"

#include <math.h>

static const char *write_file(const char *folder, const char *name,
                              const char *text)
{
    const char *path = test_path(folder, name);
    assert_ok(pl_file_replace(path, text, strlen(text)));
    return path;
}

static void assert_row(const pl_worker_report *row, const char *expected)
{
    char *text;
    assert_ok(pl_fields_text(&pl_worker_report_fields, row, 0, &text));
    assert_string_equal(expected, text);
    pl_mem_free(text);
}

static void report_of_a_lost_worker_has_the_known_values(void **state)
{
    (void)state;
    pl_worker_report row = pl_worker_report_lost(2, 5, 1);
    assert_row(&row, "{\"index\":2,\"steps\":5,\"dropped\":1,\"lost\":true}");
    row = pl_worker_report_lost(2, -1, 0);
    assert_row(&row, "{\"index\":2,\"dropped\":0,\"lost\":true}");
}

static void report_without_a_test_has_null(void **state)
{
    (void)state;
    static const char text[] =
        "{\"index\":1,\"host\":\"a\",\"steps\":3,\"test_loss\":null,"
        "\"test_accuracy\":null}";
    pl_worker_report row;
    assert_ok(pl_worker_report_parse(&row, text, strlen(text)));
    assert_true(row.reported && isnan(row.test.loss) && isnan(row.seconds));
    assert_int_equal(-1, row.examples);
    assert_row(&row, text);
}

static void report_whose_sums_would_overflow_is_refused(void **state)
{
    (void)state;
    static const char text[] = "{\"bytes_sent\":9223372036854775807}";
    pl_worker_report row;
    assert_fails(PL_FORMAT, "report: bytes_sent: 9223372036854775807 is not in",
                 pl_worker_report_parse(&row, text, strlen(text)));
}

static void usage_of_this_process_is_counted(void **state)
{
    (void)state;
    pl_task_report report;
    pl_task_report_read(&report);
    assert_true(report.host[0] != '\0');
    assert_true(report.usage.peak_rss_mb > 0);
    assert_true(report.usage.alive_seconds >= 0);
    double before = report.usage.user_seconds + report.usage.system_seconds;
    int64_t until = pl_clock_processor_ns() + 20000000;
    while (pl_clock_processor_ns() < until)
        ;
    pl_task_report_read(&report);
    double after = report.usage.user_seconds + report.usage.system_seconds;
    assert_true(after >= before + 0.01 && after < before + 10);
    assert_int_equal(-1, report.usage.bytes_sent); /* unknown to it */
}

static void usage_of_a_short_life_has_no_share_of_a_core(void **state)
{
    (void)state;
    pl_task_usage usage = { .alive_seconds = 0.09,
                            .user_seconds = 0.03,
                            .system_seconds = 0.015 };
    assert_true(fabs(pl_task_usage_cpu(&usage) - 50) < 1e-9);
    usage.alive_seconds = 0.02;
    assert_true(isnan(pl_task_usage_cpu(&usage)));
    usage.alive_seconds = NAN;
    assert_true(isnan(pl_task_usage_cpu(&usage)));
}

static void peers_of_a_report_are_read_and_freed(void **state)
{
    (void)state;
    static const char text[] =
        "{\"index\":0,\"host\":\"a\",\"test_loss\":null,"
        "\"test_accuracy\":null,\"peers\":[{\"peer\":\"ps 0\","
        "\"bytes_sent\":5,\"messages_sent\":1}]}";
    pl_worker_report row;
    assert_ok(pl_worker_report_parse(&row, text, strlen(text)));
    assert_int_equal(1, row.peer_count);
    assert_int_equal(5, row.peers[0].bytes_sent);
    assert_int_equal(-1, row.peers[0].bytes_received);
    assert_row(&row, text);
    pl_fields_close(&pl_worker_report_fields, &row);
    assert_int_equal(0, pl_mem_live());
}

static void report_rounds_memory_up(void **state)
{
    (void)state;
    assert_int_equal(-1, pl_report_mb(0));
    assert_int_equal(1, pl_report_mb(1));
    assert_int_equal(2, pl_report_mb((1 << 20) + 1));
    assert_true(pl_report_mb(INT64_MAX) == (int64_t)1 << 43);
}

static void summary_of_an_older_version_is_read(void **state)
{
    pl_summary s;
    const char *path = write_file(*state, "summary.json",
                                  "{\"stopped_by\":\"steps\",\"steps\":7,"
                                  "\"test_accuracy\":0.5}");
    assert_ok(pl_summary_read(&s, path));
    assert_string_equal("steps", s.stopped_by);
    assert_int_equal(7, s.steps);
    assert_int_equal(-1, s.peak_rss_mb);
    assert_null(s.model);
    assert_false(s.has_bottleneck || s.has_evaluator);
    assert_true(isnan(pl_fields_number(&pl_summary_fields, &s, "epochs")));
    assert_true(isnan(pl_fields_number(&pl_summary_fields, &s, "batch")));
    assert_true(isnan(pl_fields_number(&pl_summary_fields, &s, "model")));
    assert_true(pl_fields_number(&pl_summary_fields, &s, "steps") == 7);
    assert_true(pl_fields_number(&pl_summary_fields, &s, "test_accuracy") ==
                0.5);
    pl_summary_close(&s);
    assert_int_equal(0, pl_mem_live());
}

static void summary_that_does_not_fit_names_the_place(void **state)
{
    pl_summary s;
    const char *path = write_file(*state, "summary.json", "{}");
    assert_fails(PL_FORMAT, "summary.json: stopped_by: missing",
                 pl_summary_read(&s, path));
    path = write_file(*state, "summary.json",
                      "{\"stopped_by\":\"steps\",\"per_server\":[{\"index\":0},"
                      "{\"peak_rss_mb\":\"x\"}]}");
    assert_fails(PL_FORMAT,
                 "summary.json: per_server: index 1: peak_rss_mb: expected an "
                 "integer or null, found a string",
                 pl_summary_read(&s, path));
    assert_fails(PL_NOTFOUND, "none.json",
                 pl_summary_read(&s, test_path(*state, "none.json")));
}

static void run_record_is_checked(void **state)
{
    pl_run_record run;
    write_file(*state, "run.json", "{\"format\":2,\"model\":3}");
    assert_fails(PL_UNSUPPORTED, "written by a newer paceline (format 2)",
                 pl_run_record_read(&run, *state));
    write_file(*state, "run.json",
               "{\"format\":1,\"model\":\"m\",\"args\":{},\"example\":[28,0]}");
    assert_fails(PL_FORMAT,
                 "is not a run folder: ", pl_run_record_read(&run, *state));
    assert_fails(PL_FORMAT, "run.json: example: index 1: value: 0 is not in 1",
                 pl_run_record_read(&run, *state));
    write_file(*state, "run.json",
               "{\"format\":1,\"model\":\"m\",\"args\":{\"lr\":\"1\"},"
               "\"example\":[28,14],\"job\":\"00000000000000ff\"}");
    assert_ok(pl_run_record_read(&run, *state));
    assert_string_equal("m", run.model);
    assert_int_equal(2, run.example_rank);
    assert_int_equal(14, run.example[1].size);
    assert_true(run.job == 255 && !run.has_machine);
    assert_true(pl_json_has(run.args, "lr"));
    pl_run_record_close(&run);
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(cmocka_unit_test(report_of_a_lost_worker_has_the_known_values),
           cmocka_unit_test(report_without_a_test_has_null),
           cmocka_unit_test(report_whose_sums_would_overflow_is_refused),
           cmocka_unit_test(usage_of_this_process_is_counted),
           cmocka_unit_test(usage_of_a_short_life_has_no_share_of_a_core),
           cmocka_unit_test(peers_of_a_report_are_read_and_freed),
           cmocka_unit_test(report_rounds_memory_up),
           TEST_IN_FOLDER(summary_of_an_older_version_is_read),
           TEST_IN_FOLDER(summary_that_does_not_fit_names_the_place),
           TEST_IN_FOLDER(run_record_is_checked))

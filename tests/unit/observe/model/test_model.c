#include "support/runs.h"

#include "observe/model/metric.h"
#include "observe/model/model.h"

#include <math.h>

static pl_status read_model(pl_records *records, pl_runs_model *model,
                            const char *folder)
{
    char *paths[] = { (char *)folder };
    PL_TRY(pl_records_init(records, paths, 1));
    know_flags(records);
    pl_status status = pl_model_init(model, records);
    if (status != PL_OK)
        pl_records_close(records);
    return status;
}

static void close_model(pl_records *records, pl_runs_model *model)
{
    pl_model_close(model);
    pl_records_close(records);
}

static pl_json *parse(const pl_runs_model *model)
{
    pl_buffer text = { 0 };
    pl_json *json;
    pl_buffer_text(&text, "{");
    pl_model_json(model, &text);
    pl_buffer_text(&text, "}");
    assert_ok(pl_buffer_status(&text));
    assert_ok(pl_json_parse(&json, text.data, text.bytes, "model"));
    pl_buffer_close(&text);
    return json;
}

static const pl_json *list_of(const pl_json *json, const char *key)
{
    const pl_json *list;
    assert_ok(pl_json_get_array(json, key, &list));
    return list;
}

static void runs_have_flags_and_results(void **state)
{
    pl_records records;
    pl_runs_model model;
    write_run(*state, "a", 10, 1, 1.5, 0.5);
    write_run(*state, "b", 20, 1, 2.5, 0.25);
    write_run(*state, "c", 20, 2, 3.5, 0.25); /* repeats b */
    assert_ok(read_model(&records, &model, *state));
    pl_json *json = parse(&model);
    const pl_json *runs = list_of(json, "runs"), *flags, *results;
    const char *text;
    double value;
    int64_t like;
    assert_int_equal(1, pl_json_length(list_of(json, "axes")));
    assert_int_equal(3, pl_json_length(runs));
    assert_ok(pl_json_get_text(pl_json_at(runs, 0), "label", &text));
    assert_string_equal("batch 10", text);
    assert_ok(pl_json_get_object(pl_json_at(runs, 1), "flags", &flags));
    assert_ok(pl_json_get_text(flags, "batch", &text));
    assert_string_equal("20", text);
    assert_ok(pl_json_get_object(pl_json_at(runs, 1), "results", &results));
    assert_ok(pl_json_get_real(results, "seconds", &value));
    assert_true(value == 2.5);
    assert_ok(pl_json_get_int(pl_json_at(runs, 2), "like", 0, 9, &like));
    assert_int_equal(1, like);
    pl_json_free(json);
    close_model(&records, &model);
}

static double sum_at(const pl_runs_model *model, const char *metric,
                     double time)
{
    const pl_curve *curve = pl_model_curve(&model->runs[0], metric);
    assert_non_null(curve);
    for (size_t i = 0; i < curve->count; i++)
        if (curve->points[i].time == time)
            return curve->points[i].y;
    fail_msg("no point of %s at %g", metric, time);
    return NAN;
}

/* "b" samples at other times, and is lost after 14. */
static void write_two_hosts(const char *folder)
{
    write_run(folder, "a", 10, 1, 1, 1);
    write_run_file(folder, "a/resources", "a.csv",
                   "time,cpu,job_cpu,ps_cpu\n10,1,100,7\n12,1,200,7\n"
                   "14,1,300,7\n16,1,300,7\n18,1,300,7\n");
    write_run_file(folder, "a/resources", "b.csv",
                   "time,cpu,job_cpu\n11,9,50\n12,9,50\n14,9,70\n");
}

static void the_hosts_of_a_job_are_added_up(void **state)
{
    pl_records records;
    pl_runs_model model;
    write_two_hosts(*state);
    assert_ok(read_model(&records, &model, *state));
    const pl_model_run *run = &model.runs[0];
    assert_int_equal(3, run->count);
    assert_string_equal("all hosts", run->tasks[0].name);
    assert_true(sum_at(&model, "job_cpu", 10) == 150);
    assert_true(sum_at(&model, "job_cpu", 11) == 200); /* "a" in between */
    assert_true(sum_at(&model, "job_cpu", 12) == 250);
    assert_true(sum_at(&model, "job_cpu", 14) == 370);
    assert_true(sum_at(&model, "job_cpu", 18) == 300); /* "b" is lost */
    assert_true(sum_at(&model, "ps_cpu", 12) == 7);    /* on "a" alone */
    assert_true(pl_model_curve(run, "cpu") ==
                pl_curves_find(&run->tasks[1].curves, "cpu"));
    close_model(&records, &model);
}

static void a_series_keeps_its_peaks(void **state)
{
    pl_records records;
    pl_runs_model model;
    pl_buffer csv = { 0 };
    write_run(*state, "a", 10, 1, 1, 1);
    pl_buffer_text(&csv, "time,job_cpu\n");
    for (int i = 0; i < 100000; i++)
        pl_buffer_format(&csv, "%d,%d\n", 1000 + i, i == 31415 ? 99 : 7);
    write_run_file(*state, "a/resources", "host.csv", csv.data);
    pl_buffer_close(&csv);
    assert_ok(read_model(&records, &model, *state));
    assert_int_equal(100000, pl_model_curve(&model.runs[0], "job_cpu")->count);
    pl_json *json = parse(&model);
    const pl_json *series = pl_json_at(list_of(json, "series"), 0);
    const pl_json *values = list_of(series, "y"), *times = list_of(series, "t");
    assert_false(pl_json_has(series, "x"));
    assert_in_range(pl_json_length(values), 100, 2000);
    assert_int_equal(pl_json_length(values), pl_json_length(times));
    bool peak = false;
    for (size_t i = 0; i < pl_json_length(values); i++) {
        int64_t value, time;
        assert_ok(pl_json_int_at(values, i, 0, 100, &value));
        assert_ok(pl_json_int_at(times, i, 0, 100000, &time));
        peak = peak || (value == 99 && time == 31415);
    }
    assert_true(peak);
    pl_json_free(json);
    close_model(&records, &model);
}

/* A running job has no summary: its flags define what a step stands for. */
static void a_step_of_a_running_job_is_a_part_of_an_epoch(void **state)
{
    static const struct {
        const char *args;
        double epoch, examples; /* 0: not known */
    } runs[] = {
        { "\"ps\": \"1\", \"mode\": \"sync\", \"workers\": \"4\", "
          "\"batch\": \"50\", \"epochs\": \"2\", \"steps\": \"\"",
          0.01, 200 },
        { "\"ps\": \"1\", \"mode\": \"ssp\", \"workers\": \"4\", "
          "\"batch\": \"50\", \"epochs\": \"2\"",
          0.01, 50 },
        { "\"ps\": \"0\", \"batch\": \"50\", \"epochs\": \"4\"", 0.02, 50 },
        { "\"batch\": \"50\", \"epochs\": \"4\", \"steps\": \"200\"", 0, 0 },
    };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        pl_records records;
        pl_runs_model model;
        const pl_json *each;
        char text[256];
        double value;
        snprintf(text, sizeof text,
                 "{\"format\": 1, \"model\": \"mlp\", \"end_step\": 200, "
                 "\"args\": {%s}}",
                 runs[i].args);
        write_run_file(*state, "a", "run.json", text);
        assert_ok(read_model(&records, &model, *state));
        pl_json *json = parse(&model);
        const pl_json *run = pl_json_at(list_of(json, "runs"), 0);
        assert_true(pl_json_has(run, "each") == (runs[i].epoch > 0));
        if (runs[i].epoch > 0) {
            assert_ok(pl_json_get_object(run, "each", &each));
            assert_ok(pl_json_get_real(each, "epoch", &value));
            assert_true(value == runs[i].epoch);
            assert_ok(pl_json_get_real(each, "examples", &value));
            assert_true(value == runs[i].examples);
        }
        pl_json_free(json);
        close_model(&records, &model);
    }
}

static void events_count_from_the_start(void **state)
{
    pl_records records;
    pl_runs_model model;
    write_run(*state, "a", 10, 1, 1, 1);
    write_run_file(*state, "a", "timeline.jsonl",
                   "{\"time\": 100, \"event\": \"start\", \"task\": \"x\"}\n"
                   "{\"time\": 112.5, \"event\": \"lost\", \"task\": \"worker "
                   "1\", \"text\": \"killed </script>\"}\n"
                   "not an event\n");
    assert_ok(read_model(&records, &model, *state));
    pl_json *json = parse(&model);
    const pl_json *events = list_of(json, "events");
    const char *text;
    double time;
    assert_int_equal(2, pl_json_length(events));
    assert_ok(pl_json_get_real(pl_json_at(events, 1), "t", &time));
    assert_true(time == 12.5);
    assert_ok(pl_json_get_text(pl_json_at(events, 1), "text", &text));
    assert_string_equal("worker 1: lost, killed </script>", text);
    pl_json_free(json);
    close_model(&records, &model);
}

static void unreadable_files_are_listed(void **state)
{
    pl_records records;
    pl_runs_model model;
    write_run(*state, "a", 10, 1, 1, 1);
    write_run_file(*state, "a/events/worker-0", "x.tfevents.1",
                   "this is no event file at all");
    write_run_file(*state, "a/resources", "host.csv", "no,table\n");
    assert_ok(read_model(&records, &model, *state));
    assert_int_equal(2, pl_json_length(model.left_out));
    assert_null(pl_model_curve(&model.runs[0], "loss"));
    close_model(&records, &model);
}

static void a_metric_has_a_unit_or_its_own_name(void **state)
{
    (void)state;
    char text[64];
    pl_metric_label("test_accuracy", text, sizeof text);
    assert_string_equal("test accuracy [%]", text);
    pl_metric_label("test_loss", text, sizeof text);
    assert_string_equal("test loss", text);
    pl_metric_label("of_mine", text, sizeof text);
    assert_string_equal("of_mine", text);
}

static void a_share_is_the_mean_over_the_workers(void **state)
{
    pl_records records;
    pl_runs_model model;
    write_run(*state, "a", 10, 1, 1, 1);
    write_run_file(*state, "a", "summary.json",
                   "{\"steps\": 1, \"stopped_by\": \"steps\", "
                   "\"per_worker\": [{\"index\": 0, "
                   "\"waiting_share\": 0.5}, {\"index\": 1, "
                   "\"waiting_share\": 0.25}]}");
    assert_ok(read_model(&records, &model, *state));
    assert_true(pl_metric_result(&records.list[0], "waiting_share") == 0.375);
    assert_true(isnan(pl_metric_result(&records.list[0], "seconds")));
    close_model(&records, &model);
}

/* What a task used, as members of its row. */
static const char *usage_of(int cpu_s, int mb, int sent)
{
    static char texts[4][160];
    static unsigned next;
    char *text = texts[next++ % 4];
    snprintf(text, sizeof *texts,
             "\"index\": 0, \"alive_seconds\": 2, \"user_seconds\": %d, "
             "\"system_seconds\": 0, \"peak_rss_mb\": %d, \"bytes_sent\": %d",
             cpu_s, mb, sent);
    return text;
}

static void a_role_has_results_of_its_own(void **state)
{
    pl_records records;
    pl_runs_model model;
    char text[1024];
    write_run(*state, "a", 10, 1, 1, 1);
    snprintf(text, sizeof text,
             "{\"steps\": 1, \"stopped_by\": \"steps\", "
             "\"per_worker\": [{%s}, {%s}], \"per_server\": [{%s}]}",
             usage_of(1, 60, 100), usage_of(2, 70, 300), usage_of(1, 12, 500));
    write_run_file(*state, "a", "summary.json", text);
    assert_ok(read_model(&records, &model, *state));
    const pl_record *run = &records.list[0];
    assert_true(pl_metric_result(run, "worker_cpu_percent") == 75);
    assert_true(pl_metric_result(run, "worker_rss_mb") == 70);
    assert_true(pl_metric_result(run, "worker_bytes_sent") == 200);
    assert_true(pl_metric_result(run, "ps_cpu_percent") == 50);
    assert_true(pl_metric_result(run, "ps_rss_mb") == 12);
    assert_true(pl_metric_result(run, "ps_bytes_sent") == 500);
    assert_true(isnan(pl_metric_result(run, "ps_messages_sent")));
    assert_true(isnan(pl_metric_result(run, "evaluator_rss_mb")));
    close_model(&records, &model);
}

static void a_model_survives_failed_allocations(void **state)
{
    pl_records records;
    pl_runs_model model;
    write_two_hosts(*state);
    assert_survives_failed_allocations(read_model(&records, &model, *state),
                                       close_model(&records, &model));
}

UNIT_TESTS(TEST_IN_FOLDER(runs_have_flags_and_results),
           TEST_IN_FOLDER(the_hosts_of_a_job_are_added_up),
           TEST_IN_FOLDER(a_series_keeps_its_peaks),
           TEST_IN_FOLDER(events_count_from_the_start),
           TEST_IN_FOLDER(a_step_of_a_running_job_is_a_part_of_an_epoch),
           TEST_IN_FOLDER(unreadable_files_are_listed),
           cmocka_unit_test(a_metric_has_a_unit_or_its_own_name),
           TEST_IN_FOLDER(a_share_is_the_mean_over_the_workers),
           TEST_IN_FOLDER(a_role_has_results_of_its_own),
           TEST_IN_FOLDER(a_model_survives_failed_allocations))

#include "support/runs.h"

#include "observe/runs/record.h"

#include <math.h>

static pl_status read_one(pl_records *records, const char *path)
{
    char *paths[] = { (char *)path };
    return pl_records_init(records, paths, 1);
}

static void runs_of_a_folder_come_by_number(void **state)
{
    pl_records r;
    write_run(*state, "batch-100", 100, 1, 1, 0.9);
    write_run(*state, "batch-50", 50, 1, 2, 0.91);
    write_run(*state, ".hidden", 5, 1, 2, 0.91);
    assert_ok(pl_file_make_folder(test_path(*state, "log")));
    assert_ok(read_one(&r, *state));
    assert_int_equal(2, r.count);
    assert_string_equal("batch-50", r.list[0].name);
    assert_string_equal("50", pl_record_arg(&r.list[0], "batch"));
    assert_string_equal("", pl_record_arg(&r.list[0], "none"));
    assert_string_equal("softmax", r.list[0].run.model);
    assert_true(pl_record_number(&r.list[1], "test_accuracy") == 0.9);
    assert_true(isnan(pl_record_number(&r.list[1], "stopped_by")));
    assert_string_equal("epochs", pl_record_stopped_by(&r.list[1]));
    assert_true(pl_records_differ(&r, "batch"));
    assert_false(pl_records_differ(&r, "lr"));
    pl_records_close(&r);
}

static void runs_with_one_name_are_distinguished(void **state)
{
    pl_records r;
    write_run(test_path(*state, "a"), "run", 1, 1, 1, 1);
    write_run(test_path(*state, "b"), "run", 1, 1, 1, 1);
    char first[512], second[512];
    snprintf(first, sizeof first, "%s/a/run/", (char *)*state);
    snprintf(second, sizeof second, "%s/b", (char *)*state);
    char *paths[] = { first, second };
    assert_ok(pl_records_init(&r, paths, 2));
    assert_string_equal("a/run", r.list[0].name);
    assert_string_equal("b/run", r.list[1].name);
    pl_records_close(&r);
}

/* All runs of a sweep bear its name when one of them has to. */
static void runs_of_one_folder_are_named_alike(void **state)
{
    pl_records r;
    write_run(test_path(*state, "a"), "one", 1, 1, 1, 1);
    write_run(test_path(*state, "a"), "two", 1, 1, 1, 1);
    write_run(test_path(*state, "b"), "two", 1, 1, 1, 1);
    write_run(test_path(*state, "c"), "three", 1, 1, 1, 1);
    char folders[3][512], *paths[3];
    for (int i = 0; i < 3; i++) {
        snprintf(folders[i], sizeof folders[i], "%s/%c", (char *)*state,
                 'a' + i);
        paths[i] = folders[i];
    }
    assert_ok(pl_records_init(&r, paths, 3));
    assert_int_equal(4, r.count);
    assert_string_equal("a/one", r.list[0].name);
    assert_string_equal("a/two", r.list[1].name);
    assert_string_equal("b/two", r.list[2].name);
    assert_string_equal("three", r.list[3].name);
    pl_records_close(&r);
}

static void unreadable_runs_are_skipped_and_reported(void **state)
{
    pl_records r;
    const char *path, *why;
    write_run(*state, "good", 1, 1, 1, 1);
    write_run_file(*state, "corrupt", "run.json", "{\"format\":");
    write_run_file(*state, "newer", "run.json", "{\"format\": 99}");
    write_run(*state, "summary", 1, 1, 1, 1);
    write_run_file(*state, "summary", "summary.json", "[");
    write_run(*state, "typed", 1, 1, 1, 1);
    write_run_file(
        *state, "typed", "summary.json",
        "{\"stopped_by\": \"steps\", \"per_worker\": [{\"steps\": \"many\"}]}");
    write_run_file(*state, "unended", "run.json",
                   "{\"format\": 1, \"model\": \"m\", \"args\": {}}");
    assert_ok(read_one(&r, *state));
    assert_int_equal(2, r.count);
    assert_string_equal("unended", r.list[1].name);
    assert_false(r.list[1].ended);
    assert_true(isnan(pl_record_number(&r.list[1], "steps")));
    assert_int_equal(4, pl_json_length(r.left_out));
    const pl_json *newer = pl_json_at(r.left_out, 1);
    assert_ok(pl_json_get_text(newer, "path", &path));
    assert_ok(pl_json_get_text(newer, "why", &why));
    assert_non_null(strstr(path, "newer"));
    assert_non_null(strstr(why, "newer paceline (format 99)"));
    const pl_json *typed = pl_json_at(r.left_out, 3);
    assert_ok(pl_json_get_text(typed, "why", &why));
    assert_non_null(strstr(why, "typed/summary.json: per_worker: index 0: "
                                "steps: expected an integer or null, found a "
                                "string"));
    assert_null(strstr(why, "src/"));
    pl_records_close(&r);
}

static void a_folder_without_runs_is_not_found(void **state)
{
    pl_records r;
    assert_fails(PL_NOTFOUND, "no run.json", read_one(&r, *state));
    assert_fails(PL_NOTFOUND, "none", read_one(&r, test_path(*state, "none")));
}

static void repetitions_differ_in_the_seed_alone(void **state)
{
    pl_records r;
    write_run(*state, "a", 10, 1, 1, 1);
    write_run(*state, "b", 20, 1, 1, 1);
    write_run(*state, "c", 10, 2, 1, 1);
    assert_ok(read_one(&r, *state));
    know_flags(&r);
    assert_int_equal(0, pl_records_first_like(&r, 0));
    assert_int_equal(1, pl_records_first_like(&r, 1));
    assert_int_equal(0, pl_records_first_like(&r, 2));
    pl_records_close(&r);
}

static void write_strategy(const char *folder, const char *name,
                           const char *strategy, int ps)
{
    char text[256];
    snprintf(text, sizeof text,
             "{\"format\": 1, \"model\": \"m\", \"args\": {\"strategy\": "
             "\"%s\", \"mode\": \"sync\", \"ps\": \"%d\"}}",
             strategy, ps);
    write_run_file(folder, name, "run.json", text);
}

static void flags_follow_and_apply_as_their_rows_specify(void **state)
{
    pl_records r;
    write_strategy(*state, "a", "single", 0);
    write_strategy(*state, "b", "ps", 1);
    assert_ok(read_one(&r, *state));
    assert_true(pl_records_flag_applies(&r, 0, "mode")); /* nothing is known */
    know_flags(&r);
    assert_false(pl_records_flag_applies(&r, 0, "mode"));
    assert_true(pl_records_flag_applies(&r, 1, "mode"));
    assert_true(pl_records_flag_follows(&r, "ps"));
    assert_false(pl_records_flag_follows(&r, "mode"));
    pl_records_close(&r);
    write_strategy(*state, "c", "ps", 2);
    assert_ok(read_one(&r, *state));
    know_flags(&r);
    assert_false(pl_records_flag_follows(&r, "ps"));
    pl_records_close(&r);
}

static void reading_survives_failed_allocations(void **state)
{
    pl_records r;
    write_run(*state, "a", 10, 1, 1, 1);
    write_run_file(*state, "newer", "run.json", "{\"format\": 99}");
    assert_survives_failed_allocations(read_one(&r, *state),
                                       pl_records_close(&r));
}

UNIT_TESTS(TEST_IN_FOLDER(runs_of_a_folder_come_by_number),
           TEST_IN_FOLDER(runs_with_one_name_are_distinguished),
           TEST_IN_FOLDER(runs_of_one_folder_are_named_alike),
           TEST_IN_FOLDER(unreadable_runs_are_skipped_and_reported),
           TEST_IN_FOLDER(a_folder_without_runs_is_not_found),
           TEST_IN_FOLDER(repetitions_differ_in_the_seed_alone),
           TEST_IN_FOLDER(flags_follow_and_apply_as_their_rows_specify),
           TEST_IN_FOLDER(reading_survives_failed_allocations))

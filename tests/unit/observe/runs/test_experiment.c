#include "support/runs.h"

#include "observe/compare/compare.h"
#include "observe/runs/experiment.h"

#define CELLS                                                                  \
    "\"cells\": [{\"name\": \"a\", \"published\": {\"test_accuracy\": 0.75}}," \
    "{\"name\": \"b\", \"published\": {\"seconds\": 9}}]"

static void write_sweep(const char *folder, const char *about)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"format\": 1, \"model\": \"softmax\", \"about\": %s, " CELLS
             "}",
             about);
    write_run(folder, "a", 10, 1, 1.5, 0.5);
    write_run(folder, "b", 20, 1, 2.5, 0.25);
    assert_ok(
        pl_file_replace(test_path(folder, "sweep.json"), text, strlen(text)));
}

static char *shown(const char *folder, bool csv)
{
    pl_records r;
    pl_table *table;
    pl_buffer text = { 0 };
    char *paths[] = { (char *)folder };
    assert_ok(pl_records_init(&r, paths, 1));
    if (csv) {
        assert_ok(pl_compare(&table, &r, false));
        pl_table_csv(table, &text);
        pl_table_free(table);
    } else {
        assert_ok(pl_compare_print(&r, false, 0, &text));
    }
    assert_ok(pl_buffer_status(&text));
    pl_records_close(&r);
    return text.data;
}

static void assert_csv(const char *folder, const char *expected)
{
    char *text = shown(folder, true);
    assert_string_equal(expected, text);
    pl_mem_free(text);
}

static void assert_text(const char *folder, const char *part, bool there)
{
    char *text = shown(folder, false);
    if ((strstr(text, part) != NULL) != there)
        fail_msg("%s \"%s\" in:\n%s", there ? "no" : "a", part, text);
    pl_mem_free(text);
}

static void published_values_appear_beside_measured_ones(void **folder)
{
    write_sweep(*folder, "{\"experiment\": \"A1\", \"question\": \"Why?\", "
                         "\"machine_bound\": [\"seconds\"]}");
    assert_csv(*folder, "run,flag.batch,steps,seconds,published.seconds,"
                        "difference.seconds,test_accuracy,published.test_"
                        "accuracy,difference.test_accuracy,stopped_by\r\n"
                        "a,10,100,1.5,,,0.5,0.75,-0.25,epochs\r\n"
                        "b,20,100,2.5,9,-6.5,0.25,,,epochs\r\n");
    assert_text(*folder, "A1: Why?\n", true);
    assert_text(*folder, "published elsewhere [s]", true);
    assert_text(*folder, "-25.00", true);
    assert_text(*folder, "depend on the machine: seconds.\n", true);
    assert_text(*folder, "no differences", false);
}

/* Otherwise the speed says the same. */
static void time_per_step_is_shown_where_it_was_published(void **folder)
{
    static const char sweep[] =
        "{\"format\": 1, \"model\": \"softmax\", \"about\": {}, \"cells\": "
        "[{\"name\": \"a\", \"published\": {\"seconds_per_step\": 0.0125}}]}";
    write_sweep(*folder, "{}");
    assert_ok(pl_file_replace(test_path(*folder, "sweep.json"), sweep,
                              strlen(sweep)));
    assert_csv(*folder, "run,flag.batch,steps,seconds,test_accuracy,"
                        "seconds_per_step,published.seconds_per_step,"
                        "difference.seconds_per_step,stopped_by\r\n"
                        "a,10,100,1.5,0.5,0.015,0.0125,0.0025,epochs\r\n"
                        "b,20,100,2.5,0.25,0.025,,,epochs\r\n");
}

static void other_data_are_not_compared(void **folder)
{
    write_sweep(*folder, "{\"experiment\": \"A1\", \"question\": \"Why?\", "
                         "\"notes\": [\"quick\"], \"other\": true}");
    assert_csv(*folder, "run,flag.batch,steps,seconds,published.seconds,"
                        "test_accuracy,published.test_accuracy,stopped_by\r\n"
                        "a,10,100,1.5,,0.5,0.75,epochs\r\n"
                        "b,20,100,2.5,9,0.25,,epochs\r\n");
    assert_text(*folder, "\nquick\n", true);
    assert_text(*folder, "no differences are shown", true);
}

static void a_damaged_sweep_leaves_its_runs_readable(void **folder)
{
    write_sweep(*folder, "{\"experiment\": 5}");
    assert_csv(*folder, "run,flag.batch,steps,seconds,test_accuracy,"
                        "stopped_by\r\n"
                        "a,10,100,1.5,0.5,epochs\r\n"
                        "b,20,100,2.5,0.25,epochs\r\n");
}

static void a_folder_of_sweeps_is_read_in_order(void **folder)
{
    char first[256], second[256];
    pl_records r, part;
    char *paths[] = { *folder };
    snprintf(first, sizeof first, "%s", test_path(*folder, "c2"));
    snprintf(second, sizeof second, "%s", test_path(*folder, "c10"));
    assert_ok(pl_file_make_folder(first));
    assert_ok(pl_file_make_folder(second));
    write_sweep(first, "{\"experiment\": \"C2\", \"question\": \"Why?\"}");
    write_sweep(second, "{}");
    assert_ok(pl_records_init(&r, paths, 1));
    assert_int_equal(4, r.count);
    assert_int_equal(2, pl_experiment_part(&r, 0, &part));
    assert_string_equal("c2", pl_experiment_name(&part.list[0]));
    assert_int_equal(4, pl_experiment_part(&r, 2, &part));
    assert_string_equal("c10", pl_experiment_name(&part.list[0]));
    pl_records_close(&r);
    assert_text(*folder, "C2: Why?\n", true);
    assert_text(*folder, "\nc10\n", true);
    assert_survives_failed_allocations(pl_records_init(&r, paths, 1),
                                       pl_records_close(&r));
}

UNIT_TESTS(TEST_IN_FOLDER(published_values_appear_beside_measured_ones),
           TEST_IN_FOLDER(time_per_step_is_shown_where_it_was_published),
           TEST_IN_FOLDER(other_data_are_not_compared),
           TEST_IN_FOLDER(a_damaged_sweep_leaves_its_runs_readable),
           TEST_IN_FOLDER(a_folder_of_sweeps_is_read_in_order))

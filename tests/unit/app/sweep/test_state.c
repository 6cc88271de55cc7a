#include "app/sweep/state.h"

#include "support/folder.h"

#define CELL(batch)                                                            \
    "{\"args\":[\"--batch\",\"" batch "\"],\"name\":\"batch-" batch            \
    "\",\"values\":{\"batch\":\"" batch "\"},\"repeat\":1"
#define PLAN "[" CELL("10") "}," CELL("20") "}]"

static pl_json *parse(const char *text)
{
    pl_json *json;
    assert_ok(pl_json_parse(&json, text, strlen(text), "text"));
    return json;
}

static void write_file(const char *folder, const char *cells)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"format\": 1, \"model\": \"softmax\", \"cells\": [%s]}", cells);
    assert_ok(
        pl_file_replace(test_path(folder, "sweep.json"), text, strlen(text)));
}

static void state_is_saved_and_resumed(void **folder)
{
    pl_json *plan = parse(PLAN);
    pl_sweep_state s;
    assert_ok(pl_sweep_state_init(&s, *folder, "softmax", NULL, plan));
    assert_int_equal(2, s.count);
    assert_string_equal("batch-20", s.cells[1].name);
    s.cells[0].state = PL_CELL_DONE;
    s.cells[0].seconds = 2.5;
    s.cells[1].state = PL_CELL_FAILED;
    assert_ok(pl_mem_copy_text(&s.cells[1].error, "it was killed"));
    assert_ok(pl_sweep_state_save(&s));
    pl_sweep_state_close(&s);

    assert_ok(pl_sweep_state_init(&s, *folder, "softmax", NULL, plan));
    assert_int_equal(PL_CELL_DONE, s.cells[0].state);
    assert_true(s.cells[0].seconds == 2.5);
    assert_int_equal(PL_CELL_FAILED, s.cells[1].state);
    assert_string_equal("it was killed", s.cells[1].error);
    pl_sweep_state_close(&s);
    pl_json_free(plan);
}

static void state_keeps_cells_of_other_plans(void **folder)
{
    pl_json *plan = parse(PLAN);
    pl_sweep_state s;
    char *text;
    write_file(*folder, CELL("5") ",\"state\":\"failed\",\"seconds\":1.0,"
                                  "\"error\":\"e\"}," CELL("10") "}");
    assert_ok(pl_sweep_state_init(&s, *folder, "softmax", NULL, plan));
    assert_int_equal(1, s.others.count);
    assert_ok(pl_sweep_state_save(&s));
    pl_sweep_state_close(&s);
    assert_ok(pl_file_read_text(&text, test_path(*folder, "sweep.json"), 4096));
    pl_json *json = parse(text);
    const pl_json *cells;
    const char *name;
    assert_ok(pl_json_get_array(json, "cells", &cells));
    assert_int_equal(3, pl_json_length(cells));
    assert_ok(pl_json_get_text(pl_json_at(cells, 0), "name", &name));
    assert_string_equal("batch-5", name);
    pl_json_free(json);
    pl_mem_free(text);
    pl_json_free(plan);
}

static void state_that_does_not_fit_is_refused(void **folder)
{
    pl_json *plan = parse(PLAN);
    pl_sweep_state s;
    write_file(*folder, CELL("10") ",\"state\":\"over\"}");
    assert_fails(PL_FORMAT,
                 "sweep.json: cells: index 0: state: expected waiting, "
                 "running, done or failed, found over",
                 pl_sweep_state_init(&s, *folder, "softmax", NULL, plan));
    write_file(*folder, "{\"args\":[],\"name\":\"batch-10\","
                        "\"state\":\"done\"}");
    assert_fails(PL_USAGE, "the cell batch-10 was run with other flags",
                 pl_sweep_state_init(&s, *folder, "softmax", NULL, plan));
    assert_fails(PL_USAGE, "belongs to a sweep of softmax, not of lenet",
                 pl_sweep_state_init(&s, *folder, "lenet", NULL, plan));
    pl_json_free(plan);
    assert_int_equal(0, pl_mem_live());
}

static void state_survives_each_failed_allocation(void **folder)
{
    pl_json *plan = parse(PLAN);
    pl_sweep_state s;
    write_file(*folder,
               CELL("10") ",\"state\":\"failed\",\"error\":\"a\"}," CELL(
                   "10") ",\"state\":\"failed\",\"error\":\"b\"}");
    assert_survives_failed_allocations(
        pl_sweep_state_init(&s, *folder, "softmax", NULL, plan),
        pl_sweep_state_close(&s));
    pl_json_free(plan);
}

UNIT_TESTS(TEST_IN_FOLDER(state_is_saved_and_resumed),
           TEST_IN_FOLDER(state_keeps_cells_of_other_plans),
           TEST_IN_FOLDER(state_that_does_not_fit_is_refused),
           TEST_IN_FOLDER(state_survives_each_failed_allocation))

#include "support/unit.h"

#include "app/sweep/plan.h"
#include "app/sweep/spec.h"
#include "base/buffer.h"
#include "nn/model.h"

static const pl_model *softmax(void)
{
    for (const pl_model *const *m = pl_model_list(); *m != NULL; m++)
        if (strcmp((*m)->name, "softmax") == 0)
            return *m;
    fail_msg("no softmax");
    return NULL;
}

static pl_status plan_as(pl_json **out, const char *text, int64_t repeat,
                         bool quick)
{
    pl_json *spec;
    char *more[] = { "--epochs", "2" };
    PL_TRY(pl_sweep_spec_parse(&spec, text, "file"));
    pl_status status = pl_sweep_plan(out, &(pl_sweep_plan_opts) {
                                              .spec = spec,
                                              .model = softmax(),
                                              .flags = more,
                                              .flag_count = 2,
                                              .repeat = repeat,
                                              .quick = quick,
                                          });
    pl_json_free(spec);
    return status;
}

static pl_status plan(pl_json **out, const char *text, int64_t repeat)
{
    return plan_as(out, text, repeat, false);
}

/* Each cell as a line "name: args". */
static void assert_cells_as(const char *text, int64_t repeat, bool quick,
                            const char *expected)
{
    pl_json *cells;
    pl_buffer lines = { 0 };
    assert_ok(plan_as(&cells, text, repeat, quick));
    for (size_t i = 0; i < pl_json_length(cells); i++) {
        const pl_json *cell = pl_json_at(cells, i), *args;
        const char *name, *word;
        assert_ok(pl_json_get_text(cell, "name", &name));
        assert_ok(pl_json_get_array(cell, "args", &args));
        pl_buffer_format(&lines, "%s:", name);
        for (size_t a = 0; a < pl_json_length(args); a++) {
            assert_ok(pl_json_as_text(pl_json_at(args, a), "", &word));
            pl_buffer_format(&lines, " %s", word);
        }
        pl_buffer_text(&lines, "\n");
    }
    assert_string_equal(expected, lines.data);
    pl_buffer_close(&lines);
    pl_json_free(cells);
}

static void assert_cells(const char *text, int64_t repeat, const char *expected)
{
    assert_cells_as(text, repeat, false, expected);
}

static void a_grid_gives_every_combination(void **state)
{
    (void)state;
    assert_cells("model softmax\nflags --lr 0.1\ngrid batch=1,2 seed=7,8\n", 0,
                 "batch-1_seed-7: --lr 0.1 --epochs 2 --batch 1 --seed 7\n"
                 "batch-1_seed-8: --lr 0.1 --epochs 2 --batch 1 --seed 8\n"
                 "batch-2_seed-7: --lr 0.1 --epochs 2 --batch 2 --seed 7\n"
                 "batch-2_seed-8: --lr 0.1 --epochs 2 --batch 2 --seed 8\n");
}

static void a_mode_brings_a_server_and_workers_0_none(void **state)
{
    (void)state;
    assert_cells(
        "model softmax\nflags --eval-on workers --transport=tcp --evaluator\n"
        "grid mode=sync,async workers=0,2\n",
        0,
        "single: --epochs 2\n"
        "mode-sync_workers-2: --eval-on workers --transport=tcp --evaluator "
        "--epochs 2 --mode sync --workers 2 --ps 1\n"
        "mode-async_workers-2: --eval-on workers --transport=tcp --evaluator "
        "--epochs 2 --mode async --workers 2 --ps 1\n");
    assert_cells("model softmax\ngrid mode=sync ps=2\n", 0,
                 "mode-sync_ps-2: --epochs 2 --mode sync --ps 2\n");
}

static void repetitions_have_seeds_one_apart(void **state)
{
    (void)state;
    assert_cells("model softmax\nflags --seed 5\ngrid batch=9\nrepeat 9\n", 2,
                 "batch-9_r1: --seed 5 --epochs 2 --batch 9 --seed 5\n"
                 "batch-9_r2: --seed 5 --epochs 2 --batch 9 --seed 6\n");
}

static void true_and_false_are_a_flag_or_none(void **state)
{
    (void)state;
    assert_cells("model softmax\nflags --optimizer momentum\n"
                 "grid nesterov=false,true\n",
                 0,
                 "nesterov-false: --optimizer momentum --epochs 2\n"
                 "nesterov-true: --optimizer momentum --epochs 2 --nesterov\n");
}

static void names_suit_folders(void **state)
{
    (void)state;
    assert_cells("model softmax\ngrid data='idx:a/b c'\n", 0,
                 "data-idx-a-b-c: --epochs 2 --data idx:a/b c\n");
}

/* "name: published", a line each. */
static void published_values_are_dealt_to_the_cells(void **state)
{
    (void)state;
    pl_json *cells;
    pl_buffer lines = { 0 };
    assert_ok(plan(&cells,
                   "model softmax\ngrid mode=sync workers=0,2,3\n"
                   "grid mode=async workers=0,2\n"
                   "published steps 5 7 ? 8\n"
                   "published test_accuracy mode=async 90%\n"
                   "published seconds machine workers=2 1 2\n",
                   2));
    for (size_t i = 0; i < pl_json_length(cells); i += 2)
        for (size_t k = i; k < i + 2; k++) {
            const pl_json *published = NULL;
            char *text;
            assert_int_equal(pl_json_has(pl_json_at(cells, i), "published"),
                             pl_json_has(pl_json_at(cells, k), "published"));
            if (!pl_json_has(pl_json_at(cells, k), "published"))
                continue;
            assert_ok(pl_json_get_object(pl_json_at(cells, k), "published",
                                         &published));
            assert_ok(pl_json_text(published, 0, &text));
            pl_buffer_format(&lines, "%zu %s\n", k, text);
            pl_mem_free(text);
        }
    assert_string_equal(
        "0 {\"steps\":5.0}\n1 {\"steps\":5.0}\n"
        "2 {\"steps\":7.0,\"seconds\":1.0}\n"
        "3 {\"steps\":7.0,\"seconds\":1.0}\n"
        "6 {\"steps\":8.0,\"test_accuracy\":0.9,\"seconds\":2.0}\n"
        "7 {\"steps\":8.0,\"test_accuracy\":0.9,\"seconds\":2.0}\n",
        lines.data);
    pl_buffer_close(&lines);
    pl_json_free(cells);
}

#define QUICK                                                                  \
    "model softmax\nflags --lr 1\ngrid batch=1,2,3\n"                          \
    "quick --lr 0.5 batch=1,3\npublished steps 10 20 30\n"

/* Published values are those of the whole sweep, by cell. */
static void a_quick_sweep_has_fewer_cells_and_other_flags(void **state)
{
    (void)state;
    pl_json *cells;
    const pl_json *published;
    double steps;
    assert_cells_as(QUICK, 0, true,
                    "batch-1: --lr 1 --lr 0.5 --epochs 2 --batch 1\n"
                    "batch-3: --lr 1 --lr 0.5 --epochs 2 --batch 3\n");
    assert_ok(plan_as(&cells, QUICK, 0, true));
    assert_ok(
        pl_json_get_object(pl_json_at(cells, 1), "published", &published));
    assert_ok(pl_json_get_real(published, "steps", &steps));
    assert_true(steps == 30);
    pl_json_free(cells);
    assert_cells(QUICK, 0,
                 "batch-1: --lr 1 --epochs 2 --batch 1\n"
                 "batch-2: --lr 1 --epochs 2 --batch 2\n"
                 "batch-3: --lr 1 --epochs 2 --batch 3\n");
    assert_fails(PL_USAGE, "no quick line",
                 plan_as(&cells, "model softmax\ngrid lr=1\n", 0, true));
    assert_fails(
        PL_USAGE, "quick: lr=2 is in no grid",
        plan_as(&cells, "model softmax\ngrid lr=1\nquick lr=2\n", 0, true));
    assert_fails(
        PL_USAGE, "quick: batch=1 is in no grid",
        plan_as(&cells, "model softmax\ngrid lr=1\nquick batch=1\n", 0, true));
    assert_fails(
        PL_USAGE, "--lr is in the grid and among",
        plan_as(&cells, "model softmax\ngrid lr=1\nquick --lr 2\n", 0, true));
}

static void wrong_flags_are_found_before_anything_runs(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "grid batsch=1",
          "batsch is not a flag of train; did you mean batch" },
        { "grid batch=1,x", "cell batch-x: --batch: expected" },
        { "grid batch=1\nflags --batch 2", "--batch is in the grid and" },
        { "grid epochs=1", "--epochs is in the grid and" },
        { "grid run=x", "--run cannot be part of a sweep" },
        { "grid lr=1\nflags --resume", "--resume cannot be part" },
        { "grid lr=1\nflags --nope", "cell lr-1: unknown flag --nope" },
        { "grid lr=1\nflags word", "unexpected argument \"word\"" },
        { "grid staleness=1,2 workers=2 ps=1", "--staleness needs --mode ssp" },
        { "grid seed=1,2\nrepeat 2", "seed is in the grid, but repeated" },
        { "grid nesterov=2\nflags --optimizer momentum",
          "nesterov=2: expected true or false" },
        { "grid data=idx:a/b,idx:a-b", "another cell of this name" },
        { "grid lr=1,2\npublished steps 1",
          "file:3: 1 values of steps; expected 2" },
        { "grid lr=1,2\npublished steps lr=3 1", "expected 0" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        pl_json *cells;
        snprintf(text, sizeof text, "model softmax\n%s\n", cases[i].text);
        assert_fails(PL_USAGE, cases[i].message, plan(&cells, text, 0));
    }
}

static void planning_survives_failed_allocations(void **state)
{
    (void)state;
    pl_json *cells;
    assert_survives_failed_allocations(
        plan(&cells,
             "model softmax\ngrid mode=sync workers=0,2\n"
             "published steps 1 2\n",
             2),
        pl_json_free(cells));
}

UNIT_TESTS(cmocka_unit_test(a_grid_gives_every_combination),
           cmocka_unit_test(a_mode_brings_a_server_and_workers_0_none),
           cmocka_unit_test(repetitions_have_seeds_one_apart),
           cmocka_unit_test(true_and_false_are_a_flag_or_none),
           cmocka_unit_test(names_suit_folders),
           cmocka_unit_test(published_values_are_dealt_to_the_cells),
           cmocka_unit_test(a_quick_sweep_has_fewer_cells_and_other_flags),
           cmocka_unit_test(wrong_flags_are_found_before_anything_runs),
           cmocka_unit_test(planning_survives_failed_allocations))

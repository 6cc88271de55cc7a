#include "app/options/command_line.h"

#include "app/task/part.h"
#include "support/unit.h"

#define MOST 32

typedef struct {
    int64_t depth;
    double slope;
    const char *note;
    bool deep;
} own_options;

#define OWN(f) offsetof(own_options, f)

static const pl_param own_params[] = {
    { .name = "depth",
      .kind = PL_PARAM_INT,
      .offset = OWN(depth),
      .fallback = "3",
      .least = 1,
      .most = 9,
      .help = "how deep" },
    { .name = "slope",
      .kind = PL_PARAM_REAL,
      .offset = OWN(slope),
      .fallback = "0.5",
      .most = 1,
      .help = "how steep" },
    { .name = "note",
      .kind = PL_PARAM_TEXT,
      .offset = OWN(note),
      .help = "any" },
    { .name = "deep",
      .kind = PL_PARAM_FLAG,
      .offset = OWN(deep),
      .help = "very" },
};

static pl_status build_nothing(pl_build *build)
{
    (void)build;
    return PL_OK;
}

static const pl_model mine = {
    .name = "mine",
    .params = own_params,
    .param_count = 4,
    .options_bytes = sizeof(own_options),
    .build = build_nothing,
};

static pl_status parse(pl_options *options, pl_part *part, int argc,
                       char **argv)
{
    PL_TRY(pl_options_init(options, &mine));
    pl_status status = pl_options_parse(options, argc, argv);
    if (status == PL_OK)
        status = pl_part_init(part, options, NULL);
    if (status == PL_OK)
        status = pl_options_resolve(options);
    return status;
}

static int count_words(const pl_command_line *line, const char *word)
{
    int count = 0;
    for (size_t i = 0; i < line->count; i++)
        count += strcmp(line->argv[i], word) == 0;
    return count;
}

/* A task that reads the rebuilt command line has the same settings. */
static void check_same_settings(int argc, char **argv)
{
    pl_options first, second;
    pl_part part, task;
    pl_command_line line;
    pl_json *a, *b;
    assert_ok(parse(&first, &part, argc, argv));
    assert_int_equal(PL_PART_SUPERVISOR, part.kind);
    assert_ok(pl_command_line_init(&line, &first, "paceline", "a run"));
    assert_null(line.argv[line.count]);
    assert_string_equal("paceline", line.argv[0]);
    assert_string_equal("train", line.argv[1]);
    assert_string_equal("mine", line.argv[2]);

    char *words[2 * MOST];
    int count = 0;
    for (size_t i = 3; i < line.count; i++)
        words[count++] = line.argv[i];
    char *role[] = { "--role", "worker", "--index", "0", "--control", "9" };
    for (size_t i = 0; i < sizeof role / sizeof *role; i++)
        words[count++] = role[i];
    assert_ok(parse(&second, &task, count, words));
    assert_int_equal(PL_PART_TASK, task.kind);
    assert_string_equal("a run", second.train.run);
    assert_int_equal(first.train.join_timeout, second.train.join_timeout);
    assert_int_equal(first.train.quiet, second.train.quiet);
    assert_ok(pl_options_record(&first, PL_OPTIONS_RECORDED, &a));
    assert_ok(pl_options_record(&second, PL_OPTIONS_RECORDED, &b));
    assert_true(pl_json_equal(a, b));

    pl_json_free(a);
    pl_json_free(b);
    pl_command_line_close(&line);
    pl_part_close(&part);
    pl_part_close(&task);
    pl_options_close(&first);
    pl_options_close(&second);
    assert_int_equal(0, pl_mem_live());
}

#define SAME(...)                                                              \
    do {                                                                       \
        char *words[] = { __VA_ARGS__ };                                       \
        check_same_settings((int)(sizeof words / sizeof *words), words);       \
    } while (0)

static void command_line_gives_a_task_the_same_settings(void **state)
{
    (void)state;
    SAME("--ps", "1");
    SAME("--workers", "4", "--ps", "2", "--global-batch", "64", "--lr",
         "0.30000000000000004", "--seed", "8999999999999999", "--quiet");
    SAME("--workers", "2", "--ps=1", "--mode", "ssp", "--staleness", "3",
         "--eval-every", "20000ex", "--evaluator", "--json", "--run", "other");
    SAME("--workers", "3", "--ps=1", "--replicas-to-aggregate", "2",
         "--on-worker-loss", "continue", "--batch", "7", "--optimizer", "adam",
         "--beta1", "0");
    SAME("--workers", "3", "--ps=1", "--mode", "async", "--depth", "5",
         "--note=--a \"b\"", "--slope", "1e-3", "--deep", "--data", "idx:a b");
}

static void command_line_omits_flags_of_a_single_task(void **state)
{
    (void)state;
    char *argv[] = { "--ps", "1", "--global-batch", "8" };
    pl_options options;
    pl_part part;
    pl_command_line line;
    assert_ok(parse(&options, &part, 4, argv));
    assert_ok(pl_command_line_init(&line, &options, "paceline", "r"));
    assert_int_equal(0, count_words(&line, "--role"));
    assert_int_equal(0, count_words(&line, "--index"));
    assert_int_equal(0, count_words(&line, "--control"));
    assert_int_equal(0, count_words(&line, "--global-batch"));
    assert_int_equal(1, count_words(&line, "--batch"));
    assert_int_equal(1, count_words(&line, "--run"));
    pl_command_line_close(&line);
    assert_survives_failed_allocations(
        pl_command_line_init(&line, &options, "paceline", "r"),
        pl_command_line_close(&line));
    pl_part_close(&part);
    pl_options_close(&options);
}

static void launch_keeps_flags_that_define_the_cluster(void **state)
{
    static const struct {
        char *words[2];
        int kept;
    } cases[] = {
        { { "--workers", "3" }, 2 },   { { "--ps=1", "a" }, 1 },
        { { "--evaluator", "a" }, 1 }, { { "--run", "a" }, 2 },
        { { "--runs", "a" }, 0 },      { { "--batch", "3" }, 0 },
        { { "train", "--ps" }, 0 },    { { "--", "--ps" }, 0 },
    };
    (void)state;
    pl_options options;
    assert_ok(pl_options_init(&options, &mine));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(
            cases[i].kept,
            pl_command_line_kept(&options, 2, (char **)cases[i].words));
    char *alone[] = { "--ps" };
    assert_int_equal(1, pl_command_line_kept(&options, 1, alone));
    pl_options_close(&options);
}

UNIT_TESTS(cmocka_unit_test(launch_keeps_flags_that_define_the_cluster),
           cmocka_unit_test(command_line_gives_a_task_the_same_settings),
           cmocka_unit_test(command_line_omits_flags_of_a_single_task))

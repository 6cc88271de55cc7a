#include "base/param/param.h"

#include "support/unit.h"

#include <math.h>
#include <stdlib.h>

struct train {
    int64_t batch;
    int64_t seed;
    int64_t steps;
    double lr;
    double momentum;
    const char *run;
    bool profile;
    int reduction;
    pl_every eval;
};

struct other {
    int64_t threads;
    int optimizer;
};

static const pl_param train_params[] = {
    { .name = "batch",
      .kind = PL_PARAM_INT,
      .offset = offsetof(struct train, batch),
      .fallback = "100",
      .least = 1,
      .most = 1000000,
      .help = "examples in one step" },
    { .name = "seed",
      .kind = PL_PARAM_INT,
      .offset = offsetof(struct train, seed),
      .fallback = "1",
      .help = "what everything random is made from; the same seed gives the "
              "same run, bit for bit, on any number of threads" },
    { .name = "steps",
      .kind = PL_PARAM_INT,
      .offset = offsetof(struct train, steps),
      .least = 1,
      .most = INFINITY,
      .help = "stop after so many steps" },
    { .name = "lr",
      .kind = PL_PARAM_REAL,
      .offset = offsetof(struct train, lr),
      .fallback = "0.1",
      .least = 0,
      .most = 1000,
      .help = "learning rate" },
    { .name = "momentum",
      .kind = PL_PARAM_REAL,
      .offset = offsetof(struct train, momentum),
      .help = "momentum" },
    { .name = "run",
      .kind = PL_PARAM_TEXT,
      .offset = offsetof(struct train, run),
      .value = "DIR",
      .help = "folder of the run" },
    { .name = "profile",
      .kind = PL_PARAM_FLAG,
      .offset = offsetof(struct train, profile),
      .help = "record spans" },
    { .name = "reduction",
      .kind = PL_PARAM_CHOICE,
      .offset = offsetof(struct train, reduction),
      .fallback = "mean",
      .choices = "mean|sum|none",
      .help = "how losses of a batch are joined" },
    { .name = "eval-every",
      .kind = PL_PARAM_EVERY,
      .offset = offsetof(struct train, eval),
      .fallback = "1ep",
      .help = "how often to evaluate" },
};

static const pl_param other_params[] = {
    { .name = "threads",
      .kind = PL_PARAM_INT,
      .offset = offsetof(struct other, threads),
      .fallback = "0",
      .least = 0,
      .most = 1024,
      .help = "threads; 0: one a core" },
    { .name = "optimizer",
      .kind = PL_PARAM_CHOICE,
      .offset = offsetof(struct other, optimizer),
      .choices = "sgd|adam",
      .value = "NAME",
      .help = "optimizer" },
};

#define TRAIN_COUNT (sizeof train_params / sizeof *train_params)
#define OTHER_COUNT (sizeof other_params / sizeof *other_params)

/* Two groups, the structs they fill and what the last parse left over. */
struct command {
    struct train train;
    struct other other;
    bool given[TRAIN_COUNT];
    char *positional[16];
    int positional_count;
    pl_param_group groups[2];
};

static void command_init(struct command *command)
{
    memset(command, 0, sizeof *command);
    command->positional_count = -1;
    command->groups[0] =
        (pl_param_group) { "Training", train_params, TRAIN_COUNT,
                           &command->train, command->given };
    command->groups[1] =
        (pl_param_group) { "Machine", other_params, OTHER_COUNT,
                           &command->other, NULL };
    assert_ok(pl_param_defaults(command->groups, 2));
}

/* Parse a NULL-terminated list into a fresh command. */
static pl_status parse(struct command *command, char **argv)
{
    int argc = 0;
    while (argv[argc] != NULL)
        argc++;
    command_init(command);
    return pl_param_parse(command->groups, 2, argc, argv, command->positional,
                          &command->positional_count);
}

#define ARGS(...)     ((char *[]) { __VA_ARGS__, NULL })
#define PARSE(c, ...) parse((c), ARGS(__VA_ARGS__))

static void param_defaults_fill_every_field(void **state)
{
    (void)state;
    struct command c;
    command_init(&c);
    assert_int_equal(100, c.train.batch);
    assert_int_equal(0, c.train.steps);
    assert_true(c.train.lr == 0.1);
    assert_true(c.train.momentum == 0);
    assert_null(c.train.run);
    assert_false(c.train.profile);
    assert_int_equal(0, c.train.reduction);
    assert_int_equal(PL_EVERY_EPOCHS, c.train.eval.unit);
    assert_int_equal(1, c.train.eval.count);
    assert_int_equal(-1, c.other.optimizer);
}

static void param_a_default_that_does_not_fit_is_reported(void **state)
{
    (void)state;
    int64_t field;
    pl_param bad = { .name = "n",
                     .kind = PL_PARAM_INT,
                     .fallback = "11",
                     .least = 1,
                     .most = 10 };
    pl_param_group group = { "Bad", &bad, 1, &field, NULL };
    assert_fails(PL_USAGE, "default of --n: expected a whole number from 1",
                 pl_param_defaults(&group, 1));
}

static void param_parse_reads_both_forms_of_a_value(void **state)
{
    (void)state;
    struct command c;
    assert_ok(PARSE(&c, "--batch", "32", "--lr=0.5", "--run", "a=b",
                    "--reduction=sum", "--profile", "--eval-every", "60s",
                    "--threads", "3", "--optimizer", "adam"));
    assert_int_equal(32, c.train.batch);
    assert_true(c.train.lr == 0.5);
    assert_string_equal("a=b", c.train.run);
    assert_int_equal(1, c.train.reduction);
    assert_true(c.train.profile);
    assert_int_equal(PL_EVERY_SECONDS, c.train.eval.unit);
    assert_int_equal(60, c.train.eval.count);
    assert_int_equal(3, c.other.threads);
    assert_int_equal(1, c.other.optimizer);
    assert_int_equal(0, c.positional_count);
}

static void param_parse_marks_the_given_flags(void **state)
{
    (void)state;
    struct command c;
    assert_ok(PARSE(&c, "--batch=100", "--profile"));
    for (size_t i = 0; i < TRAIN_COUNT; i++)
        assert_int_equal(strcmp(train_params[i].name, "batch") == 0 ||
                             strcmp(train_params[i].name, "profile") == 0,
                         c.given[i]);
}

static void param_parse_keeps_positional_words_in_order(void **state)
{
    (void)state;
    struct command c;
    assert_ok(
        PARSE(&c, "softmax", "--batch", "7", "-", "-3", "--", "--lr", "--"));
    assert_int_equal(5, c.positional_count);
    assert_string_equal("softmax", c.positional[0]);
    assert_string_equal("-", c.positional[1]);
    assert_string_equal("-3", c.positional[2]);
    assert_string_equal("--lr", c.positional[3]);
    assert_string_equal("--", c.positional[4]);
    assert_int_equal(7, c.train.batch);
}

static void param_parse_takes_the_last_of_two(void **state)
{
    (void)state;
    struct command c;
    assert_ok(PARSE(&c, "--batch", "1", "--batch=2"));
    assert_int_equal(2, c.train.batch);
}

static void param_parse_takes_negative_numbers_as_values(void **state)
{
    (void)state;
    struct command c;
    assert_ok(PARSE(&c, "--seed", "-5", "--momentum", "-.5e-1"));
    assert_int_equal(-5, c.train.seed);
    assert_true(c.train.momentum == -0.05);
}

static void param_int_accepts_all_of_its_range(void **state)
{
    (void)state;
    struct command c;
    assert_ok(PARSE(&c, "--seed", "9223372036854775807"));
    assert_true(c.train.seed == INT64_MAX);
    assert_ok(PARSE(&c, "--seed=-9223372036854775808"));
    assert_true(c.train.seed == INT64_MIN);
    assert_ok(PARSE(&c, "--batch", "1"));
    assert_ok(PARSE(&c, "--batch", "1000000"));
    assert_ok(PARSE(&c, "--steps", "9223372036854775807"));
}

static void param_int_refuses_text_and_out_of_range_numbers(void **state)
{
    (void)state;
    struct command c;
    static char *const bad[] = {
        "ten", "",        "1e6", "60_000", " 5",   "5 ",  "+5",
        "0",   "1000001", "-1",  "-",      "0x10", "1.0", "99999999999999999999"
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char expected[128];
        snprintf(expected, sizeof expected,
                 "--batch: expected a whole number from 1 to 1000000, found "
                 "\"%s\"",
                 bad[i]);
        assert_fails(PL_USAGE, expected, PARSE(&c, "--batch", bad[i]));
    }
    assert_fails(PL_USAGE, "--steps: expected a whole number of at least 1, ",
                 PARSE(&c, "--steps", "0"));
    assert_fails(PL_USAGE, "--seed: expected a whole number, found \"9999",
                 PARSE(&c, "--seed", "99999999999999999999"));
    assert_int_equal(1, c.train.seed);
    assert_int_equal(-1, c.positional_count);
}

static void param_real_refuses_non_finite_and_out_of_range_numbers(void **state)
{
    (void)state;
    struct command c;
    static char *const bad[] = { "x",   "",    "nan", "inf",   "-inf", "0x1p3",
                                 "1e9", " 1",  "1 ",  "1.2.3", "e5",   "1e",
                                 ".",   "-.1", "--1", "1e999" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char flag[64];
        snprintf(flag, sizeof flag, "--lr=%s", bad[i]);
        assert_fails(PL_USAGE, "--lr: expected a number from 0 to 1000, found",
                     PARSE(&c, flag));
    }
    assert_fails(PL_USAGE, "--momentum: expected a number, found \"nan\"",
                 PARSE(&c, "--momentum", "nan"));
}

static void param_choice_lists_the_choices(void **state)
{
    (void)state;
    struct command c;
    assert_fails(PL_USAGE,
                 "--reduction: expected mean, sum or none, found \"men\"; did "
                 "you mean mean?",
                 PARSE(&c, "--reduction", "men"));
    assert_fails(PL_USAGE, "expected sgd or adam, found \"sgd|adam\"",
                 PARSE(&c, "--optimizer", "sgd|adam"));
    assert_fails(PL_USAGE, "found \"\"", PARSE(&c, "--optimizer="));
}

static void param_parse_reports_a_missing_value(void **state)
{
    (void)state;
    struct command c;
    assert_fails(PL_USAGE, "--lr needs a value", PARSE(&c, "--lr"));
    assert_fails(PL_USAGE, "--lr needs a value",
                 PARSE(&c, "--lr", "--batch", "3"));
    assert_fails(PL_USAGE, "--run needs a value", PARSE(&c, "--run", "--"));
    assert_fails(PL_USAGE, "--profile takes no value",
                 PARSE(&c, "--profile=yes"));
    assert_ok(PARSE(&c, "--run="));
    assert_string_equal("", c.train.run);
}

static void param_parse_suggests_the_nearest_flag(void **state)
{
    (void)state;
    struct command c;
    assert_fails(PL_USAGE, "unknown flag --bacth; did you mean --batch?",
                 PARSE(&c, "--bacth", "3"));
    assert_fails(PL_USAGE,
                 "unknown flag --eval_every; did you mean "
                 "--eval-every?",
                 PARSE(&c, "--eval_every=3"));
    assert_fails(PL_USAGE, "unknown flag -batch; did you mean --batch?",
                 PARSE(&c, "-batch", "3"));
    assert_fails(PL_USAGE, "unknown flag --wallpaper [",
                 PARSE(&c, "--wallpaper"));
    assert_fails(PL_USAGE, "unknown flag -h [", PARSE(&c, "-h"));
    assert_fails(PL_USAGE, "unknown flag --batchbatchbatchbatchbatchbatchba",
                 PARSE(&c, "--batchbatchbatchbatchbatchbatchbatchbatchbatch"));
}

static void param_nearest_counts_edits(void **state)
{
    (void)state;
    static const char *const models[] = { "softmax", "lenet", "alexnet",
                                          "sparse", NULL };
    static const struct {
        const char *word;
        const char *nearest;
    } cases[] = {
        { "sofmax", "softmax" },
        { "lennet", "lenet" },
        { "alxenet", "alexnet" },
        { "alexnet", "alexnet" },
        { "sprase", "sparse" },
        { "transformer", NULL },
        { "", NULL },
        { "x", NULL },
        { "softmaxxxx", "softmax" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *nearest = pl_param_nearest(cases[i].word, models);
        if (cases[i].nearest == NULL)
            assert_null(nearest);
        else
            assert_string_equal(cases[i].nearest, nearest);
    }
    assert_null(pl_param_nearest("word", (const char *[]) { NULL }));
}

static void every_parse_reads_all_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        pl_every_unit unit;
        int64_t count;
    } good[] = { { "100", PL_EVERY_STEPS, 100 },
                 { "20000ex", PL_EVERY_EXAMPLES, 20000 },
                 { "1ep", PL_EVERY_EPOCHS, 1 },
                 { "60s", PL_EVERY_SECONDS, 60 },
                 { "never", PL_EVERY_NEVER, 0 } };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        pl_every every = { PL_EVERY_STEPS, -1 };
        assert_ok(pl_every_parse(&every, good[i].text));
        assert_int_equal(good[i].unit, every.unit);
        assert_int_equal(good[i].count, every.count);
    }
}

static void every_parse_refuses_the_rest(void **state)
{
    (void)state;
    static const char *const bad[] = { "",
                                       "0",
                                       "-1",
                                       "ep",
                                       "1 ep",
                                       "1e3",
                                       "always",
                                       "0s",
                                       "5m",
                                       "1epx",
                                       "99999999999999999999",
                                       "1111111111111111111111111111111111111s",
                                       "Never" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pl_every every = { PL_EVERY_STEPS, 42 };
        assert_fails(PL_USAGE, "expected how often",
                     pl_every_parse(&every, bad[i]));
        assert_int_equal(42, every.count);
    }
    struct command c;
    assert_fails(PL_USAGE, "--eval-every: expected how often",
                 PARSE(&c, "--eval-every", "x"));
}

/* The text of the train parameter called `name`. */
static const char *value_of(const struct command *c, const char *name)
{
    static char text[64];
    for (size_t i = 0; i < TRAIN_COUNT; i++)
        if (strcmp(train_params[i].name, name) == 0)
            pl_param_value_text(&train_params[i], &c->train, text, sizeof text);
    return text;
}

static void param_value_text_matches_command_line_input(void **state)
{
    (void)state;
    struct command c;
    assert_ok(PARSE(&c, "--lr", "1e-5", "--reduction", "none", "--eval-every",
                    "500ex", "--profile"));
    assert_string_equal("100", value_of(&c, "batch"));
    assert_string_equal("", value_of(&c, "steps"));
    assert_string_equal("1e-05", value_of(&c, "lr"));
    assert_string_equal("0", value_of(&c, "momentum"));
    assert_string_equal("", value_of(&c, "run"));
    assert_string_equal("true", value_of(&c, "profile"));
    assert_string_equal("none", value_of(&c, "reduction"));
    assert_string_equal("500ex", value_of(&c, "eval-every"));

    c.train.lr = 1.0 / 3;
    assert_true(strtod(value_of(&c, "lr"), NULL) == 1.0 / 3);
    c.train.reduction = 0;
    assert_string_equal("mean", value_of(&c, "reduction"));
    c.train.reduction = -1;
    assert_string_equal("", value_of(&c, "reduction"));
    c.train.run = "runs/a";
    assert_string_equal("runs/a", value_of(&c, "run"));
}

static void param_value_text_reads_back_as_the_same_value(void **state)
{
    (void)state;
    struct command a, b;
    assert_ok(PARSE(&a, "--lr", "0.30000000000000004", "--eval-every", "never",
                    "--batch", "17"));
    char lr[96], eval[96];
    snprintf(lr, sizeof lr, "--lr=%s", value_of(&a, "lr"));
    snprintf(eval, sizeof eval, "--eval-every=%s", value_of(&a, "eval-every"));
    assert_ok(PARSE(&b, lr, eval));
    assert_true(a.train.lr == b.train.lr);
    assert_int_equal(PL_EVERY_NEVER, b.train.eval.unit);
}

static void param_value_text_is_truncated_to_its_buffer(void **state)
{
    (void)state;
    struct command c;
    char text[4];
    assert_ok(PARSE(&c, "--batch", "123456"));
    pl_param_value_text(&train_params[0], &c.train, text, sizeof text);
    assert_string_equal("123", text);
}

typedef void print_form(const pl_param_group *groups, size_t group_count,
                        FILE *file);

static void print_markdown(const pl_param_group *groups, size_t group_count,
                           FILE *file)
{
    pl_param_print_markdown(groups, group_count, NULL, file);
}

/* What `print` writes; the caller frees it with free(). */
static char *printed(print_form *print)
{
    struct command c;
    command_init(&c);
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    print(c.groups, 2, file);
    fclose(file);
    return text;
}

static void param_help_is_aligned_and_wrapped(void **state)
{
    (void)state;
    char *text = printed(pl_param_print_help);
    assert_string_equal(
        "Training:\n"
        "  --batch N                  examples in one step [100]\n"
        "  --seed N                   what everything random is made from; the "
        "same seed\n"
        "                             gives the same run, bit for bit, on any "
        "number of\n"
        "                             threads [1]\n"
        "  --steps N                  stop after so many steps\n"
        "  --lr X                     learning rate [0.1]\n"
        "  --momentum X               momentum\n"
        "  --run DIR                  folder of the run\n"
        "  --profile                  record spans\n"
        "  --reduction mean|sum|none  how losses of a batch are joined "
        "[mean]\n"
        "  --eval-every E             how often to evaluate [1ep]\n"
        "\n"
        "Machine:\n"
        "  --threads N                threads; 0: one a core [0]\n"
        "  --optimizer NAME           optimizer: sgd, adam\n",
        text);
    for (char *line = strtok(text, "\n"); line != NULL;
         line = strtok(NULL, "\n"))
        assert_true(strlen(line) <= 80);
    free(text);
}

/* Two flags, of which people mostly need one; the caller frees the text. */
static pl_param_group rare_and_common(pl_param params[2], void *target)
{
    params[0] = (pl_param) { .name = "rare",
                             .kind = PL_PARAM_INT,
                             .least = 1,
                             .most = 9,
                             .fallback = "4",
                             .needs = "mode=ssp",
                             .help = "a number" };
    params[1] = (pl_param) { .name = "often",
                             .kind = PL_PARAM_FLAG,
                             .traits = PL_PARAM_COMMON,
                             .help = "a switch",
                             .why = "Switch it on when the light is off." };
    return (pl_param_group) { "Group", params, 2, target, NULL };
}

static void param_short_help_shows_the_common_flags(void **state)
{
    (void)state;
    pl_param params[2];
    pl_param_group group = rare_and_common(params, NULL);
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    assert_int_equal(1, pl_param_print_common(&group, 1, NULL, file));
    params[1].traits = 0; /* without marks all are shown */
    assert_int_equal(0, pl_param_print_common(&group, 1, NULL, file));
    fclose(file);
    assert_string_equal("Group:\n  --often  a switch\n"
                        "Group:\n  --rare N  a number [4]\n"
                        "  --often   a switch\n",
                        text);
    free(text);
}

static void param_explains_one_flag(void **state)
{
    (void)state;
    pl_param params[2];
    pl_param_group group = rare_and_common(params, NULL);
    pl_param_facts facts = { 0 };
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    assert_ok(pl_param_explain(&group, 1, &facts, "rare", file));
    assert_ok(pl_param_explain(&group, 1, &facts, "--often", file));
    assert_fails(PL_USAGE, "unknown flag --offen; did you mean --often?",
                 pl_param_explain(&group, 1, &facts, "offen", file));
    fclose(file);
    assert_string_equal("--rare N\n\n  a number\n\n"
                        "  value     a whole number from 1 to 9\n"
                        "  default   4\n"
                        "  needs     --mode ssp\n"
                        "--often\n\n  a switch\n\n"
                        "  Switch it on when the light is off.\n\n"
                        "  value     none: the flag by itself turns it on\n",
                        text);
    free(text);
}

static void param_help_of_a_wide_flag_begins_on_the_next_line(void **state)
{
    (void)state;
    pl_param wide = { .name = "a-flag-with-a-very-long-name-indeed",
                      .kind = PL_PARAM_FLAG,
                      .help = "help" };
    pl_param_group group = { "Wide", &wide, 1, NULL, NULL };
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    pl_param_print_help(&group, 1, file);
    fclose(file);
    assert_string_equal("Wide:\n  --a-flag-with-a-very-long-name-indeed\n"
                        "    help\n",
                        text);
    free(text);
}

static void param_markdown_is_one_table_a_group(void **state)
{
    (void)state;
    char *text = printed(print_markdown);
    assert_non_null(strstr(text,
                           "### Training\n\n| Flag | Default | Meaning "
                           "|\n|---|---|---|\n| `--batch N` | `100` | "
                           "examples in one step, from 1 to 1000000 |\n"));
    assert_non_null(strstr(text, "| `--reduction mean\\|sum\\|none` | `mean` "
                                 "| how losses of a batch are joined |\n"));
    assert_non_null(strstr(text, "\n### Machine\n"));
    free(text);
}

static void param_troff_escapes_hyphens(void **state)
{
    (void)state;
    char *text = printed(pl_param_print_troff);
    assert_non_null(strstr(text, ".SS Training\n.TP\n\\fB\\-\\-batch\\fR "
                                 "\\fIN\\fR\nexamples in one step [100]\n"));
    assert_non_null(strstr(text, "\\fB\\-\\-eval\\-every\\fR \\fIE\\fR\n"));
    assert_non_null(strstr(text, "\\fB\\-\\-profile\\fR\nrecord spans\n"));
    free(text);
}

UNIT_TESTS(
    cmocka_unit_test(param_defaults_fill_every_field),
    cmocka_unit_test(param_a_default_that_does_not_fit_is_reported),
    cmocka_unit_test(param_parse_reads_both_forms_of_a_value),
    cmocka_unit_test(param_parse_marks_the_given_flags),
    cmocka_unit_test(param_parse_keeps_positional_words_in_order),
    cmocka_unit_test(param_parse_takes_the_last_of_two),
    cmocka_unit_test(param_parse_takes_negative_numbers_as_values),
    cmocka_unit_test(param_int_accepts_all_of_its_range),
    cmocka_unit_test(param_int_refuses_text_and_out_of_range_numbers),
    cmocka_unit_test(param_real_refuses_non_finite_and_out_of_range_numbers),
    cmocka_unit_test(param_choice_lists_the_choices),
    cmocka_unit_test(param_parse_reports_a_missing_value),
    cmocka_unit_test(param_parse_suggests_the_nearest_flag),
    cmocka_unit_test(param_nearest_counts_edits),
    cmocka_unit_test(every_parse_reads_all_units),
    cmocka_unit_test(every_parse_refuses_the_rest),
    cmocka_unit_test(param_value_text_matches_command_line_input),
    cmocka_unit_test(param_value_text_reads_back_as_the_same_value),
    cmocka_unit_test(param_value_text_is_truncated_to_its_buffer),
    cmocka_unit_test(param_help_is_aligned_and_wrapped),
    cmocka_unit_test(param_short_help_shows_the_common_flags),
    cmocka_unit_test(param_explains_one_flag),
    cmocka_unit_test(param_help_of_a_wide_flag_begins_on_the_next_line),
    cmocka_unit_test(param_markdown_is_one_table_a_group),
    cmocka_unit_test(param_troff_escapes_hyphens))

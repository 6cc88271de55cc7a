#include "base/param/param.h"

#include "support/unit.h"

#include <stdlib.h>

struct train {
    int64_t staleness;
    int64_t replicas;
    double beta;
    const char *deploy, *cluster;
    bool wild;
    int mode, optimizer;
    int64_t descriptor;
};

#define FIELD(f) offsetof(struct train, f)

static const pl_param params[] = {
    { .name = "mode",
      .kind = PL_PARAM_CHOICE,
      .offset = FIELD(mode),
      .fallback = "sync",
      .choices = "sync|async|ssp",
      .needs = "strategy=ps",
      .help = "how" },
    { .name = "staleness",
      .kind = PL_PARAM_INT,
      .offset = FIELD(staleness),
      .needs = "mode=ssp, strategy=ps",
      .help = "how far" },
    { .name = "replicas",
      .kind = PL_PARAM_INT,
      .offset = FIELD(replicas),
      .needs = "mode!=async|ssp",
      .help = "how many" },
    { .name = "optimizer",
      .kind = PL_PARAM_CHOICE,
      .offset = FIELD(optimizer),
      .fallback = "sgd",
      .choices = "sgd|adam|adagrad|rmsprop",
      .help = "which" },
    { .name = "beta",
      .kind = PL_PARAM_REAL,
      .offset = FIELD(beta),
      .needs = "optimizer=adam|adagrad|rmsprop, wild=false",
      .help = "what" },
    { .name = "cluster",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(cluster),
      .help = "where" },
    { .name = "deploy",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(deploy),
      .needs = "cluster",
      .help = "whom" },
    { .name = "wild",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(wild),
      .needs = "data=click|view",
      .help = "at all" },
    { .name = "descriptor",
      .kind = PL_PARAM_INT,
      .offset = FIELD(descriptor),
      .traits = PL_PARAM_INTERNAL,
      .help = "secret" },
};

#define COUNT (sizeof params / sizeof *params)

static const pl_param_term terms[] = {
    { "strategy=ps", "a server", "needs a server: add one" },
    { "data=click|view", "clicks", NULL },
};

struct command {
    struct train train;
    bool given[COUNT];
    pl_param_group group;
    pl_param_facts facts;
};

static void read_flags(struct command *c, const pl_param_fact *facts,
                       size_t count, const char *flags)
{
    static char text[256]; /* the options point into it */
    char *argv[16], *positional[16];
    int argc = 0, words;
    *c = (struct command) { 0 };
    c->group = (pl_param_group) { "Flags", params, COUNT, &c->train, c->given };
    c->facts = (pl_param_facts) { facts, count, terms, 2, &c->group, 1 };
    snprintf(text, sizeof text, "%s", flags);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    assert_ok(pl_param_defaults(&c->group, 1));
    assert_ok(pl_param_parse(&c->group, 1, argc, argv, positional, &words));
}

static const pl_param_fact in_ps[] = { { "strategy", "ps" },
                                       { "data", "image" },
                                       { "data", "view" } };
static const pl_param_fact alone[] = { { "strategy", "single" },
                                       { "data", "image" } };

static void needs_refuse_flags_without_effect(void **state)
{
    static const struct {
        const char *flags, *why;
    } cases[] = {
        { "--mode async", "--mode needs a server: add one" },
        { "--staleness 1", "--staleness needs --mode ssp" },
        { "--mode ssp --replicas 1",
          "--mode needs a server" }, /* the first of the table */
        { "--beta 1", "--beta needs --optimizer adam, adagrad or rmsprop" },
        { "--deploy a", "--deploy needs --cluster" },
        { "--wild", "--wild needs clicks" },
    };
    (void)state;
    struct command c;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        read_flags(&c, alone, 2, cases[i].flags);
        assert_fails(PL_USAGE, cases[i].why, pl_param_check(&c.facts));
    }
    read_flags(&c, in_ps, 3, "--mode async --replicas 1");
    assert_fails(PL_USAGE, "--replicas has no effect with --mode async or ssp",
                 pl_param_check(&c.facts));
    read_flags(&c, in_ps, 3, "--wild --optimizer adam --beta 1");
    assert_fails(PL_USAGE, "--beta has no effect with --wild: leave out one",
                 pl_param_check(&c.facts));
}

static void needs_accept_flags_that_have_an_effect(void **state)
{
    static const char *const cases[] = {
        "",       "--mode ssp --staleness 3",  "--replicas 1",
        "--wild", "--optimizer adam --beta 1", "--cluster a --deploy b",
    };
    (void)state;
    struct command c;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        read_flags(&c, in_ps, 3, cases[i]);
        assert_ok(pl_param_check(&c.facts));
    }
}

/* A default of no effect is no mistake of the user's. */
static void needs_are_checked_for_given_flags_only(void **state)
{
    (void)state;
    struct command c;
    read_flags(&c, alone, 2, "");
    assert_ok(pl_param_check(&c.facts));
    assert_false(pl_param_applies(&params[0], &c.facts));
}

static void needs_with_unknown_facts_hold(void **state)
{
    static const pl_param_fact unknown = { "strategy", NULL };
    (void)state;
    struct command c;
    read_flags(&c, &unknown, 1, "--mode ssp --staleness 2 --wild");
    assert_ok(pl_param_check(&c.facts));
    assert_true(pl_param_applies(&params[1], &(pl_param_facts) { 0 }));
}

static void needs_are_a_column_of_the_markdown(void **state)
{
    (void)state;
    struct command c;
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    read_flags(&c, NULL, 0, "");
    pl_param_print_markdown(&c.group, 1, &c.facts, file);
    fclose(file);
    assert_non_null(strstr(
        text, "| Flag | Default | Meaning | Needs |\n|---|---|---|---|"));
    assert_non_null(strstr(text, "| how far | --mode ssp, a server |\n"));
    assert_non_null(strstr(text, "| how many | no --mode async or ssp |\n"));
    assert_non_null(
        strstr(text, "--optimizer adam, adagrad or rmsprop, no --wild |"));
    assert_non_null(strstr(text, "| where |  |\n"));
    free(text);
}

static void internal_flags_are_not_in_help_but_are_read(void **state)
{
    (void)state;
    struct command c;
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    read_flags(&c, NULL, 0, "--descriptor 5");
    assert_int_equal(5, c.train.descriptor);
    pl_param_print_help(&c.group, 1, file);
    pl_param_print_markdown(&c.group, 1, NULL, file);
    pl_param_print_troff(&c.group, 1, file);
    fclose(file);
    assert_non_null(strstr(text, "--staleness"));
    assert_null(strstr(text, "descriptor"));
    free(text);
    char *argv[] = { "--descripto", "5" }, *words[2];
    int count;
    assert_fails(PL_USAGE, "unknown flag --descripto",
                 pl_param_parse(&c.group, 1, 2, argv, words, &count));
    assert_null(strstr(pl_error_message(), "did you mean"));
}

UNIT_TESTS(cmocka_unit_test(needs_refuse_flags_without_effect),
           cmocka_unit_test(needs_accept_flags_that_have_an_effect),
           cmocka_unit_test(needs_are_checked_for_given_flags_only),
           cmocka_unit_test(needs_with_unknown_facts_hold),
           cmocka_unit_test(needs_are_a_column_of_the_markdown),
           cmocka_unit_test(internal_flags_are_not_in_help_but_are_read))

#include "app/options/options.h"

#include "app/options/options_priv.h"
#include "nn/model.h"
#include "support/unit.h"

#define MOST 16

typedef struct {
    int64_t depth, pace;
} own_options;

static const pl_param own_params[] = {
    { .name = "depth",
      .kind = PL_PARAM_INT,
      .offset = offsetof(own_options, depth),
      .fallback = "3",
      .help = "how deep" },
    { .name = "pace",
      .kind = PL_PARAM_INT,
      .offset = offsetof(own_options, pace),
      .fallback = "1",
      .needs = "optimizer=adam",
      .traits = PL_PARAM_MAY_CHANGE | PL_PARAM_LOCAL | PL_PARAM_NOT_HPARAM,
      .help = "how fast" },
};

static pl_status build_nothing(pl_build *build)
{
    (void)build;
    return PL_OK;
}

static const pl_model mine = {
    .name = "mine",
    .params = own_params,
    .param_count = 2,
    .options_bytes = sizeof(own_options),
    .build = build_nothing,
};

static const pl_model *find_model(const char *name)
{
    for (const pl_model *const *m = pl_model_list(); *m != NULL; m++)
        if (strcmp((*m)->name, name) == 0)
            return *m;
    return &mine;
}

/* Flags that blanks separate, after the model's name. */
static pl_status read_flags(pl_options *options, const char *line)
{
    static char text[256]; /* the options point into it */
    char *argv[MOST];
    int argc = 0;
    snprintf(text, sizeof text, "%s", line);
    const pl_model *model = find_model(strtok(text, " "));
    for (char *word; (word = strtok(NULL, " ")) != NULL;)
        argv[argc++] = word;
    PL_TRY(pl_options_init(options, model));
    return pl_options_parse(options, argc, argv);
}

static void options_refuse_flags_without_effect(void **state)
{
    static const struct {
        const char *line, *why;
    } cases[] = {
        { "softmax --shuffle-buffer 5", "is for sparse data in files" },
        { "sparse --shuffle-buffer 5", "is for sparse data in files" },
        { "softmax --data mnist:a --skip-bad 5", "sparse data in files" },
        { "sparse --data libsvm:a --label-feature b",
          "--label-feature needs --data tfrecord:FILE" },
        { "sparse --data tfrecord:a --integers bucket",
          "--integers needs --data criteo:FILE" },
        { "softmax --examples 5",
          "--examples needs --data synthetic or synthetic-sparse" },
        { "softmax --data synthetic --cache a", "is generated or unpacked" },
        { "softmax --hogwild", "--hogwild is for sparse models" },
        { "softmax --features 5", "--features is for sparse models" },
        { "lenet --l2 1", "--l2 is for sparse models" },
        { "sparse --clip 1", "--clip is for dense models" },
        { "sparse --hogwild --optimizer ftrl", "needs --optimizer sgd" },
        { "sparse --hogwild --micro-batches 2", "no effect with --hogwild" },
        { "sparse --hogwild --aggregate sum", "no effect with --hogwild" },
        { "sparse --hogwild --weight-decay 1", "no effect with --hogwild" },
        { "softmax --nesterov", "--nesterov needs --optimizer momentum" },
        { "sparse --l1 1 --optimizer adam",
          "--l1 needs --optimizer sgd, adagrad or ftrl" },
        { "softmax --schedule cosine --decay 0.5",
          "--decay needs --schedule step or exponential" },
        { "softmax --resume", "--resume needs --run DIR" },
        { "softmax --stop-loss 1 --eval-every never",
          "--stop-loss needs tests, but --eval-every is never" },
        { "softmax --ps 1 --evaluator --eval-every never", "needs tests" },
        { "mine --pace 2", "--pace needs --optimizer adam" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_options options;
        assert_ok(read_flags(&options, cases[i].line));
        assert_fails(PL_USAGE, cases[i].why, pl_options_check(&options, NULL));
        pl_options_close(&options);
    }
    assert_int_equal(0, pl_mem_live());
}

static void options_accept_flags_that_have_an_effect(void **state)
{
    static const char *const cases[] = {
        "sparse --data libsvm:a --shuffle-buffer 5 --cache b",
        "sparse --data libsvm:a --test-data criteo:b --integers bucket",
        "softmax --data synthetic --examples 5",
        "softmax --cache a",
        "sparse --hogwild --l1 1 --batch 5",
        "mine --optimizer adam --pace 2 --beta1 0",
        "softmax --run a --resume --staleness 1 --mode ssp --transport tcp",
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_options options;
        assert_ok(read_flags(&options, cases[i]));
        assert_ok(pl_options_check(&options, NULL));
        pl_options_close(&options);
    }
}

static bool is_known(const pl_options *options, const char *condition)
{
    static const char *const facts[] = { "model", "data", "source", "start" };
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(condition, "!=,"),
             condition);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (strcmp(facts[i], name) == 0)
            return true;
    return pl_param_find(options->groups, options->group_count, name) != NULL;
}

/* A misspelt condition would always hold. */
static void options_conditions_name_known_flags(void **state)
{
    (void)state;
    pl_options options;
    assert_ok(read_flags(&options, "softmax"));
    for (size_t g = 0; g < PL_OPTION_TABLES; g++)
        for (size_t i = 0; i < pl_options_tables[g].count; i++) {
            const pl_param *param = &pl_options_tables[g].params[i];
            for (const char *c = param->needs; c != NULL;
                 c = strstr(c, ", ") != NULL ? strstr(c, ", ") + 2 : NULL)
                if (!is_known(&options, c))
                    fail_msg("--%s needs %s", param->name, c);
            if (param->follows != NULL)
                assert_true(is_known(&options, param->follows));
        }
    pl_options_close(&options);
}

static bool is_in(const pl_options *options, pl_options_part part,
                  const char *name)
{
    pl_json *record;
    assert_ok(pl_options_record(options, part, &record));
    bool there = pl_json_has(record, name);
    pl_json_free(record);
    return there;
}

static void options_are_recorded_as_their_rows_specify(void **state)
{
    static const struct {
        const char *flag;
        bool in[4]; /* by pl_options_part */
    } cases[] = {
        { "batch", { true, true, true, true } },
        { "depth", { true, true, true, true } },
        { "pace", { true, false, false, false } },
        { "data", { true, true, false, true } },
        { "lr", { true, false, true, true } },
        { "threads", { true, false, false, true } },
        { "holdout", { true, true, true, false } },
        { "run", { false, false, false, false } },
        { "control", { false, false, false, false } },
    };
    (void)state;
    pl_options options;
    assert_ok(read_flags(&options, "mine"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int part = 0; part < 4; part++)
            assert_int_equal(
                cases[i].in[part],
                is_in(&options, (pl_options_part)part, cases[i].flag));
    pl_options_close(&options);
}

/* What `now` has after a run of `before` is resumed by it. */
static pl_status resume(pl_options *now, pl_json **record, const char *before,
                        const char *line)
{
    pl_options then;
    PL_TRY(read_flags(&then, before));
    pl_status status = pl_options_record(&then, PL_OPTIONS_RECORDED, record);
    pl_options_close(&then);
    PL_TRY(status);
    status = read_flags(now, line);
    return status == PL_OK ? pl_options_recall(now, *record) : status;
}

static void options_are_recalled_as_their_rows_specify(void **state)
{
    (void)state;
    pl_options options;
    pl_json *record;
    const own_options *own;
    assert_ok(resume(&options, &record,
                     "mine --depth 4 --pace 5 --batch 7 --lr 2 --threads 9 "
                     "--workers 3 --staleness 2 --epochs 8",
                     "mine --pace 6 --lr 3 --ps 1 --steps 5"));
    own = options.model_options;
    assert_int_equal(4, own->depth);
    assert_int_equal(6, own->pace); /* may change */
    assert_int_equal(7, options.train.batch);
    assert_true(options.train.lr == 3);
    assert_int_equal(0, options.train.threads); /* of the machine */
    assert_int_equal(0, options.train.workers); /* the tasks are others */
    assert_int_equal(0, options.train.staleness);
    assert_int_equal(0, options.train.epochs); /* another length */
    pl_json_free(record);
    pl_options_close(&options);
    assert_fails(PL_USAGE, "--depth 5: the run was started with \"4\"",
                 resume(&options, &record, "mine --depth 4", "mine --depth 5"));
    pl_json_free(record);
    pl_options_close(&options);
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(cmocka_unit_test(options_refuse_flags_without_effect),
           cmocka_unit_test(options_accept_flags_that_have_an_effect),
           cmocka_unit_test(options_conditions_name_known_flags),
           cmocka_unit_test(options_are_recorded_as_their_rows_specify),
           cmocka_unit_test(options_are_recalled_as_their_rows_specify))

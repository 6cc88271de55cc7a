/* The flags of a training: the defaults that depend on the model or on other
 * flags, the combinations that are refused, and what is recorded and recalled
 * on resume, according to the tables. */
#include "app/options/options.h"

#include "app/options/options_priv.h"
#include "base/mem.h"
#include "base/thread.h"
#include "nn/init.h"
#include "nn/model.h"

#include <string.h>

/* Recorded in addition to the flags for a model that was read from a file. */
#define MODEL_FILE    "model-file"
#define MODEL_WEIGHTS "model-weights"

#define VALUE_BYTES 64 /* of a number, a choice or a flag as text */
/* Defaults with --hogwild, where all threads share the work of a batch, and
 * each example is an update. */
#define HOGWILD_BATCH 20000
#define HOGWILD_LR    0.02

static bool built_in(const char *name)
{
    return pl_param_find(pl_options_tables, PL_OPTION_TABLES, name) != NULL;
}

/* Checks of a program's own model. */
static pl_status check_model(const pl_model *model)
{
    if (model->name == NULL || model->name[0] == '\0' ||
        strchr(model->name, '/') != NULL || model->build == NULL)
        return PL_FAIL(PL_USAGE, "a model needs a build function and a name "
                                 "without /");
    if (model->param_count > PL_OPTION_MOST)
        return PL_FAIL(PL_USAGE, "model %s has %zu flags; at most %d",
                       model->name, model->param_count, PL_OPTION_MOST);
    if (model->param_count > 0 && model->options_bytes == 0)
        return PL_FAIL(PL_USAGE, "model %s has flags but no options_bytes",
                       model->name);
    for (size_t i = 0; i < model->param_count; i++)
        if (built_in(model->params[i].name))
            return PL_FAIL(PL_USAGE,
                           "model %s: every model has --%s; give "
                           "its own flag another name",
                           model->name, model->params[i].name);
    return PL_OK;
}

pl_status pl_options_init(pl_options *options, const pl_model *model)
{
    *options = (pl_options) { .model = model };
    PL_TRY(check_model(model));
    if (model->options_bytes > 0)
        PL_TRY(pl_mem_check(options->model_options =
                                pl_mem_alloc(1, model->options_bytes),
                            1, model->options_bytes));
    for (size_t g = 0; g < PL_OPTION_TABLES; g++) {
        options->groups[g] = pl_options_tables[g];
        options->groups[g].target = &options->train;
    }
    options->groups[PL_OPTION_TABLES] =
        (pl_param_group) { .title = "Model",
                           .params = model->params,
                           .count = model->param_count,
                           .target = options->model_options };
    options->group_count = PL_OPTION_TABLES + (model->param_count > 0);
    for (size_t g = 0; g < options->group_count; g++)
        options->groups[g].given = options->given[g];
    pl_status status = pl_param_defaults(options->groups, options->group_count);
    if (status != PL_OK)
        pl_options_close(options);
    return status;
}

void pl_options_close(pl_options *options)
{
    pl_mem_free(options->model_options);
}

pl_status pl_options_parse(pl_options *options, int argc, char **argv)
{
    char **positional;
    int count = 0;
    PL_TRY(PL_NEW(positional, (size_t)argc + 1));
    pl_status status = pl_param_parse(options->groups, options->group_count,
                                      argc, argv, positional, &count);
    if (status == PL_OK && count > 0)
        status = PL_FAIL(PL_USAGE, "unexpected argument \"%s\"", positional[0]);
    pl_mem_free(positional);
    if (options->train.resume_or_start)
        options->train.resume = true;
    return status;
}

static const pl_param *find_param(const pl_options *options, const char *name,
                                  size_t *group, size_t *index)
{
    for (*group = 0; *group < options->group_count; ++*group)
        for (*index = 0; *index < options->groups[*group].count; ++*index) {
            const pl_param *param = &options->groups[*group].params[*index];
            if (strcmp(param->name, name) == 0)
                return param;
        }
    return NULL;
}

bool pl_options_given(const pl_options *options, size_t offset)
{
    for (size_t g = 0; g < PL_OPTION_TABLES; g++)
        for (size_t i = 0; i < options->groups[g].count; i++)
            if (options->groups[g].params[i].offset == offset)
                return options->given[g][i];
    return false;
}

const pl_param_group *pl_options_flags(size_t *group_count)
{
    *group_count = PL_OPTION_TABLES;
    return pl_options_tables;
}

int32_t pl_options_classes(const pl_options *options)
{
    size_t group, index;
    const pl_param *param = find_param(options, "classes", &group, &index);
    if (param == NULL || param->kind != PL_PARAM_INT)
        return options->model->file != NULL ? options->model->classes : 0;
    const char *target = options->groups[group].target;
    return (int32_t) * (const int64_t *)(const void *)(target + param->offset);
}

/* The field of a text parameter; NULL when unset or not a text. */
static const char *given_text(const pl_param *param, const void *target)
{
    if (param->kind != PL_PARAM_TEXT)
        return NULL;
    return *(const char *const *)((const char *)target + param->offset);
}

/* The value as recorded: a text unchanged, anything else as typed.  Points to
 * the text or into `room`. */
static const char *record_text(const pl_param *param, const void *target,
                               char room[VALUE_BYTES])
{
    const char *text = given_text(param, target);
    if (text != NULL)
        return text;
    pl_param_value_text(param, target, room, VALUE_BYTES);
    return room;
}

static void use_defaults(pl_train_options *train, const pl_model *model)
{
    if (train->data == NULL)
        train->data = model->data != NULL ? model->data : PL_OPTIONS_DATA;
    if (train->batch == 0)
        train->batch = train->hogwild     ? HOGWILD_BATCH
                       : model->batch > 0 ? model->batch
                                          : 100;
    if (train->lr == 0)
        train->lr = train->hogwild  ? HOGWILD_LR
                    : model->lr > 0 ? model->lr
                    : model->sparse
                        ? pl_optim_list()[train->optimizer]->sparse_lr
                        : 0.1;
    if (train->steps == 0 && train->epochs == 0)
        train->epochs = model->epochs > 0 ? model->epochs : 5;
    if (train->init == NULL)
        train->init = model->init != NULL ? model->init : "glorot";
    if (train->threads == 0)
        train->threads = pl_thread_cores();
}

pl_param_facts pl_options_help_facts(pl_options *options,
                                     pl_param_fact list[PL_OPTIONS_FACTS])
{
    bool sparse = options->model->sparse;
    pl_param_facts facts = pl_options_facts(options);
    list[0] = (pl_param_fact) { "model", sparse ? "sparse" : "dense" };
    /* Dense data is not read from files of a sparse format. */
    list[1] = (pl_param_fact) { "source", sparse ? NULL : PL_OPTIONS_DATA };
    list[2] = (pl_param_fact) { "data", sparse ? NULL : "synthetic" };
    use_defaults(&options->train, options->model);
    facts.list = list;
    facts.count = PL_OPTIONS_FACTS;
    facts.groups = NULL; /* other flags may still be given */
    facts.group_count = 0;
    return facts;
}

/* Everything that is recorded must be UTF-8: otherwise writing the summary
 * would fail after hours of training. */
static pl_status check_texts(const pl_options *options)
{
    pl_json *scratch;
    PL_TRY(pl_json_new_object(&scratch));
    pl_status status = PL_OK;
    for (size_t g = 0; g < options->group_count && status == PL_OK; g++) {
        const pl_param_group *group = &options->groups[g];
        for (size_t i = 0; i < group->count && status == PL_OK; i++) {
            const char *text = given_text(&group->params[i], group->target);
            if (text == NULL)
                continue;
            if (text[0] == '\0') {
                status = PL_FAIL(PL_USAGE, "--%s needs a value",
                                 group->params[i].name);
                break;
            }
            status = pl_json_set_text(scratch, "text", text);
            if (status == PL_FORMAT)
                status = PL_FAIL(PL_USAGE, "--%s %s: not UTF-8 text",
                                 group->params[i].name, text);
        }
    }
    pl_json_free(scratch);
    return status;
}

static pl_status check_schedule(const pl_train_options *train)
{
    if ((train->schedule == PL_SCHEDULE_STEP ||
         train->schedule == PL_SCHEDULE_EXPONENTIAL) &&
        train->decay_steps == 0)
        return PL_FAIL(PL_USAGE, "--schedule %s needs --decay-steps N",
                       train->schedule == PL_SCHEDULE_STEP ? "step"
                                                           : "exponential");
    return PL_OK;
}

static bool is_set(const pl_param *param, const void *target)
{
    char text[64];
    pl_param_value_text(param, target, text, sizeof text);
    return text[0] != '\0' && strcmp(text, "false") != 0;
}

/* Whatever tests decide needs tests; also checked for recalled flags. */
static pl_status check_tests(const pl_options *options)
{
    if (options->train.eval_every.unit != PL_EVERY_NEVER)
        return PL_OK;
    for (size_t g = 0; g < options->group_count; g++) {
        const pl_param_group *group = &options->groups[g];
        for (size_t i = 0; i < group->count; i++)
            if ((group->params[i].traits & PL_OPTION_BY_TESTS) != 0 &&
                is_set(&group->params[i], group->target))
                return PL_FAIL(PL_USAGE,
                               "--%s needs tests, but --eval-every is never",
                               group->params[i].name);
    }
    return PL_OK;
}

pl_status pl_options_resolve(pl_options *options)
{
    pl_train_options *train = &options->train;
    if (PL_GIVEN(options, steps) && PL_GIVEN(options, epochs))
        return PL_FAIL(PL_USAGE,
                       "--steps and --epochs: give one of them, not both");
    PL_TRY(pl_options_check(options, NULL));
    PL_TRY(check_schedule(train));
    PL_TRY(check_tests(options));
    use_defaults(train, options->model);
    if (train->holdout > 0 && train->test_data != NULL)
        return PL_FAIL(PL_USAGE,
                       "--holdout and --test-data: give one of them, not both");
    if (train->local_steps > 1 && train->aggregate == PL_AGGREGATE_SUM)
        return PL_FAIL(PL_USAGE,
                       "--local-steps %lld and --aggregate sum: parameters "
                       "have a mean, not a sum; leave one of them out",
                       (long long)train->local_steps);
    PL_TRY(check_texts(options));
    pl_range steps;
    PL_TRY(pl_options_profile(options, &steps));
    if (options->model->file != NULL && strcmp(train->init, PL_INIT_FILE) == 0)
        return PL_OK;
    pl_status status = pl_init_check(train->init);
    return status == PL_OK ? PL_OK : pl_context(status, "--init");
}

static bool is_of(const pl_param *param, pl_options_part part)
{
    static const unsigned never[] = {
        [PL_OPTIONS_RECORDED] = 0,
        [PL_OPTIONS_KEPT] = PL_PARAM_MAY_CHANGE,
        [PL_OPTIONS_AGREED] = PL_PARAM_LOCAL,
        [PL_OPTIONS_HPARAMS] = PL_PARAM_NOT_HPARAM,
    };
    return (param->traits & (never[part] | PL_PARAM_NOT_RECORDED)) == 0;
}

/* A model from a file is identified by the file's contents, not its path. */
static pl_status record_file(const pl_model *model, pl_options_part part,
                             pl_json *record)
{
    const pl_model_file *file = model->file;
    if (file == NULL || part == PL_OPTIONS_HPARAMS)
        return PL_OK;
    PL_TRY(pl_json_set_text(record, MODEL_FILE, file->sha256));
    if (part != PL_OPTIONS_AGREED || file->weights_sha256[0] == '\0')
        return PL_OK;
    return pl_json_set_text(record, MODEL_WEIGHTS, file->weights_sha256);
}

pl_status pl_options_record(const pl_options *options, pl_options_part part,
                            pl_json **out)
{
    pl_json *record;
    PL_TRY(pl_json_new_object(&record));
    pl_status status = PL_OK;
    for (size_t g = 0; g < options->group_count; g++) {
        const pl_param_group *group = &options->groups[g];
        for (size_t i = 0; i < group->count; i++) {
            const pl_param *param = &group->params[i];
            char room[VALUE_BYTES];
            if (is_of(param, part))
                PL_TRY_OUT(
                    status,
                    pl_json_set_text(record, param->name,
                                     record_text(param, group->target, room)));
        }
    }
    PL_TRY_OUT(status, record_file(options->model, part, record));
    *out = record;
    return PL_OK;
out:
    pl_json_free(record);
    return status;
}

/* A flag that was given again must have its recorded value. */
static pl_status check_same(const pl_param *param, const void *target,
                            const char *then)
{
    char room[VALUE_BYTES];
    const char *now = record_text(param, target, room);
    if (strcmp(now, then) == 0)
        return PL_OK;
    return PL_FAIL(PL_USAGE,
                   "--%s %s: the run was started with %s%s%s; resume with the "
                   "same, or start a new --run",
                   param->name, now, then[0] == '\0' ? "" : "\"",
                   then[0] == '\0' ? "the default" : then,
                   then[0] == '\0' ? "" : "\"");
}

static bool any_given(const pl_options *options, unsigned traits)
{
    for (size_t g = 0; g < options->group_count; g++)
        for (size_t i = 0; i < options->groups[g].count; i++)
            if (options->given[g][i] &&
                (options->groups[g].params[i].traits & traits) != 0)
                return true;
    return false;
}

/* Flags that depend on one that was given again are not recalled. */
static bool is_outdated(const pl_options *options, const pl_param *param)
{
    unsigned traits = param->traits;
    return ((traits & (PL_OPTION_TASKS | PL_OPTION_OF_TASKS)) != 0 &&
            any_given(options, PL_OPTION_TASKS)) ||
           ((traits & PL_OPTION_OF_TASKS) != 0 && PL_GIVEN(options, mode)) ||
           ((traits & PL_OPTION_LENGTH) != 0 &&
            any_given(options, PL_OPTION_LENGTH));
}

/* Set one flag as if the user had typed it. */
static pl_status set_text(pl_options *options, const char *name,
                          const char *text)
{
    size_t group, index;
    const pl_param *param = find_param(options, name, &group, &index);
    if (param == NULL)
        return PL_OK;
    void *target = options->groups[group].target;
    if (options->given[group][index])
        return is_of(param, PL_OPTIONS_KEPT) ? check_same(param, target, text)
                                             : PL_OK;
    if (text[0] == '\0' || is_outdated(options, param) ||
        (param->traits & (PL_PARAM_NOT_RECORDED | PL_OPTION_NOT_RECALLED)) != 0)
        return PL_OK;
    return pl_param_store(param, target, text);
}

static pl_status check_file(const pl_model *model, const char *then)
{
    if (model->file == NULL || strcmp(model->file->sha256, then) == 0)
        return PL_OK;
    return PL_FAIL(PL_USAGE,
                   "%s is not the model that the run was started with "
                   "(SHA-256 %.12s..., then %.12s...)",
                   model->file->path, model->file->sha256, then);
}

pl_status pl_options_recall(pl_options *options, const pl_json *record)
{
    for (size_t i = 0; i < pl_json_length(record); i++) {
        const char *name = pl_json_key_at(record, i), *text;
        PL_TRY(pl_json_get_text(record, name, &text));
        if (strcmp(name, MODEL_FILE) == 0)
            PL_TRY(check_file(options->model, text));
        PL_TRY(set_text(options, name, text));
    }
    return PL_OK;
}

bool pl_options_keyed(const pl_options *options)
{
    return options->model->sparse &&
           options->train.strategy == PL_TRAIN_STRATEGY_PS &&
           options->train.traffic == PL_TRAIN_TRAFFIC_SPARSE;
}

int64_t pl_options_silence_ms(const pl_train_options *train)
{
    return (int64_t)(train->heartbeat_timeout * 950);
}

pl_status pl_options_kernels(const pl_options *options, const pl_kernels **out)
{
    static const char *const names[] = { "auto", "avx512", "avx2", "portable",
                                         "reference" };
    const char *name = names[options->train.kernels];
    *out =
        options->train.kernels == 0 ? pl_kernels_best() : pl_kernels_find(name);
    if (*out == NULL)
        return PL_FAIL(PL_USAGE,
                       "--kernels %s: this processor does not support it; use "
                       "%s or auto",
                       name, pl_kernels_best()->name);
    return PL_OK;
}

/* A 0 that the user gave; to the optimizer 0 means the default. */
static double own_zero(double value)
{
    return value > 0 ? value : -1;
}

pl_status pl_options_profile(const pl_options *options, pl_range *out)
{
    const char *text = options->train.profile;
    long long first = 0, last = 0;
    int used = 0;
    *out = (pl_range) { 0, 0 };
    if (text == NULL)
        return PL_OK;
    if (strspn(text, "0123456789:") != strlen(text) || strlen(text) > 30 ||
        sscanf(text, "%lld:%lld%n", &first, &last, &used) != 2 ||
        text[used] != '\0' || last < 1 || last < first)
        return PL_FAIL(PL_USAGE,
                       "--profile: expected steps (100:200, from the 100th to "
                       "the 200th), found \"%.80s\"",
                       text);
    *out = (pl_range) { first, last };
    return PL_OK;
}

pl_optim_opts pl_options_optim(const pl_options *options)
{
    const pl_train_options *train = &options->train;
    return (pl_optim_opts) {
        .name = pl_optim_list()[train->optimizer]->name,
        .weight_decay = train->weight_decay,
        .momentum =
            own_zero(pl_options_own_momentum(train) > 0 ? 0 : train->momentum),
        .nesterov = train->nesterov,
        .beta1 = own_zero(train->beta1),
        .beta2 = own_zero(train->beta2),
        .rho = own_zero(train->rho),
        .initial_sum = own_zero(train->initial_accumulator),
        .epsilon = train->epsilon,
        .beta = own_zero(train->ftrl_beta),
        .l1 = train->l1,
        .l2 = train->l2,
        .outer = train->local_steps > 1 && train->outer_momentum > 0,
    };
}

pl_schedule pl_options_schedule(const pl_options *options)
{
    const pl_train_options *train = &options->train;
    return (pl_schedule) {
        .lr = train->lr,
        .warmup = train->warmup,
        .kind = (pl_schedule_kind)train->schedule,
        .decay = train->decay,
        .decay_steps = train->decay_steps,
    };
}

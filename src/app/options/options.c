/* The flags of a training: their tables by group, the defaults that depend on
 * the model or on other flags, and the combinations that are refused. */
#include "app/options/options.h"

#include "app/options/options_priv.h"
#include "base/mem.h"
#include "base/thread.h"
#include "data/source.h"
#include "nn/init.h"

#include <string.h>

#define VALUE_BYTES 64 /* of a number, a choice or a flag as text */
/* Of --hogwild, where a batch is a stretch of work for all threads, and each
 * example an update. */
#define HOGWILD_BATCH 20000
#define HOGWILD_LR    0.02

static const pl_param data_params[] = {
    { "data", PL_PARAM_TEXT, PL_OPTION_FIELD(data), NULL, 0, 0, NULL, "SRC",
      "training data: " PL_SOURCES_TEXT
      " (default: the model's, mostly digits)" },
    { "test-data", PL_PARAM_TEXT, PL_OPTION_FIELD(test_data), NULL, 0, 0, NULL,
      "SRC", "test data (default: the test part of --data)" },
    { "examples", PL_PARAM_INT, PL_OPTION_FIELD(examples), NULL, 1, 1e9, NULL,
      "N",
      "examples of synthetic data (default: 10000, or what fits in 64 MB; "
      "synthetic-sparse: 200000)" },
    { "features", PL_PARAM_INT, PL_OPTION_FIELD(features), NULL, 1,
      PL_OPTIONS_FEATURES, NULL, "N",
      "sparse data: ids are 0 to N-1, a weight each (default: from the data)" },
    { "holdout", PL_PARAM_REAL, PL_OPTION_FIELD(holdout), "0", 0, 0.9, NULL,
      "X",
      "test on the last X (0.1: a tenth) of --data, which is not trained on" },
    { "train-examples", PL_PARAM_INT, PL_OPTION_FIELD(train_examples), NULL, 1,
      1e15, NULL, "N",
      "train on the last N training examples only; the test data stays whole "
      "(MNIST: 55000 leaves out what its usual loader keeps for validation)" },
    { "cache", PL_PARAM_TEXT, PL_OPTION_FIELD(cache), NULL, 0, 0, NULL, "DIR",
      "folder for generated and unpacked data (default: ~/.cache/paceline)" },
    { "shard", PL_PARAM_CHOICE, PL_OPTION_FIELD(shard), "auto", 0, 0,
      "auto|none", NULL,
      "auto: the workers share the examples; none: each has its own" },
    { "shuffle-buffer", PL_PARAM_INT, PL_OPTION_FIELD(shuffle_buffer), NULL, 1,
      3e7, NULL, "N",
      "sparse files: shuffle over about N examples (default: all of up to 64 "
      "MB, else 32768)" },
    { "skip-bad", PL_PARAM_INT, PL_OPTION_FIELD(skip_bad), "0", 0, 1e15, NULL,
      "N", "sparse files: pass over up to N bad examples" },
    { "unpack-ratio", PL_PARAM_INT, PL_OPTION_FIELD(unpack_ratio), "200", 1,
      1e6, NULL, "N",
      "sparse files: refuse gzip or zstd that becomes more than N times as "
      "long, and more than 64 MB" },
    { "label-feature", PL_PARAM_TEXT, PL_OPTION_FIELD(label_feature), "label",
      0, 0, NULL, "NAME", "tfrecord: the feature with the label" },
    { "index-feature", PL_PARAM_TEXT, PL_OPTION_FIELD(index_feature), "index",
      0, 0, NULL, "NAME", "tfrecord: the feature with the ids" },
    { "value-feature", PL_PARAM_TEXT, PL_OPTION_FIELD(value_feature), "value",
      0, 0, NULL, "NAME",
      "tfrecord: the feature with the values; without it all are 1" },
    { "integers", PL_PARAM_CHOICE, PL_OPTION_FIELD(integers), "log", 0, 0,
      "log|bucket", NULL,
      "criteo: the logarithm of an integer is its value, or its feature" },
};

static const pl_param train_params[] = {
    { "batch", PL_PARAM_INT, PL_OPTION_FIELD(batch), NULL, 1, 1e8, NULL, "N",
      "examples of one gradient (default: the model's)" },
    { "global-batch", PL_PARAM_INT, PL_OPTION_FIELD(global_batch), NULL, 1, 1e9,
      NULL, "N", "instead of --batch: examples of all workers' gradients" },
    { "micro-batches", PL_PARAM_INT, PL_OPTION_FIELD(micro_batches), "1", 1,
      1e6, NULL, "N", "gradients combined into one update" },
    { "aggregate", PL_PARAM_CHOICE, PL_OPTION_FIELD(aggregate), "mean", 0, 0,
      "mean|sum", NULL, "how gradients are combined" },
    { "batch-reduction", PL_PARAM_CHOICE, PL_OPTION_FIELD(batch_reduction),
      "mean", 0, 0, "mean|sum", NULL,
      "whether a gradient is the mean or the sum over the examples of its "
      "batch; losses are always means" },
    { "epochs", PL_PARAM_INT, PL_OPTION_FIELD(epochs), NULL, 1, 1e9, NULL, "N",
      "passes over the data (default: the model's)" },
    { "steps", PL_PARAM_INT, PL_OPTION_FIELD(steps), NULL, 1, 9e9, NULL, "N",
      "updates, instead of --epochs" },
    { "steps-per-epoch", PL_PARAM_INT, PL_OPTION_FIELD(steps_per_epoch), NULL,
      1, 9e9, NULL, "N",
      "steps that count as an epoch; the data begin anew when they end "
      "(default: one pass over the data)" },
    { "lr", PL_PARAM_REAL, PL_OPTION_FIELD(lr), NULL, 1e-12, 1e6, NULL, "X",
      "learning rate (default: the model's; of sparse ones the "
      "optimizer's)" },
    { "warmup", PL_PARAM_INT, PL_OPTION_FIELD(warmup), "0", 0, 9e9, NULL, "N",
      "updates over which the learning rate rises from 0" },
    { "schedule", PL_PARAM_CHOICE, PL_OPTION_FIELD(schedule), "constant", 0, 0,
      "constant|step|exponential|cosine", NULL,
      "how the learning rate falls after the warm-up" },
    { "decay-steps", PL_PARAM_INT, PL_OPTION_FIELD(decay_steps), "0", 0, 9e9,
      NULL, "N",
      "updates of one --decay, or of the cosine (0: to the end of the run)" },
    { "decay", PL_PARAM_REAL, PL_OPTION_FIELD(decay), "0.1", 1e-12, 1, NULL,
      "X",
      "factor of the learning rate, of the schedules step and exponential" },
    { "optimizer", PL_PARAM_CHOICE, PL_OPTION_FIELD(optimizer), "sgd", 0, 0,
      PL_OPTIM_CHOICES, NULL, "how a gradient becomes an update" },
    { "momentum", PL_PARAM_REAL, PL_OPTION_FIELD(momentum), "0.9", 0, 1, NULL,
      "X", "of the momentum optimizer" },
    { "nesterov", PL_PARAM_FLAG, PL_OPTION_FIELD(nesterov), NULL, 0, 0, NULL,
      NULL, "momentum that looks ahead" },
    { "beta1", PL_PARAM_REAL, PL_OPTION_FIELD(beta1), "0.9", 0, 0.999999, NULL,
      "X", "of adam" },
    { "beta2", PL_PARAM_REAL, PL_OPTION_FIELD(beta2), "0.999", 0, 0.999999999,
      NULL, "X", "of adam" },
    { "rho", PL_PARAM_REAL, PL_OPTION_FIELD(rho), "0.9", 0, 0.999999999, NULL,
      "X", "of rmsprop" },
    { "initial-accumulator", PL_PARAM_REAL,
      PL_OPTION_FIELD(initial_accumulator), "0.1", 0, 1e6, NULL, "X",
      "what the sum of adagrad starts at" },
    { "epsilon", PL_PARAM_REAL, PL_OPTION_FIELD(epsilon), "1e-8", 1e-30, 1,
      NULL, "X", "of adam, adagrad and rmsprop" },
    { "ftrl-beta", PL_PARAM_REAL, PL_OPTION_FIELD(ftrl_beta), "1", 0, 1e6, NULL,
      "X", "of ftrl; its alpha is --lr" },
    { "l1", PL_PARAM_REAL, PL_OPTION_FIELD(l1), "0", 0, 1e6, NULL, "X",
      "sparse models: pull weights to zero, by sgd, adagrad or ftrl" },
    { "l2", PL_PARAM_REAL, PL_OPTION_FIELD(l2), "0", 0, 1e6, NULL, "X",
      "sparse models: keep weights small" },
    { "weight-decay", PL_PARAM_REAL, PL_OPTION_FIELD(weight_decay), "0", 0, 1e6,
      NULL, "X", "added to the gradient as X times the parameter" },
    { "clip", PL_PARAM_REAL, PL_OPTION_FIELD(clip), "0", 0, 1e30, NULL, "X",
      "most length of a gradient (0: no limit)" },
    { "hogwild", PL_PARAM_FLAG, PL_OPTION_FIELD(hogwild), NULL, 0, 0, NULL,
      NULL,
      "sparse models: threads update the table without waiting for each "
      "other; fastest, not repeatable" },
    { "init", PL_PARAM_TEXT, PL_OPTION_FIELD(init), NULL, 0, 0, NULL, "HOW",
      "how weights start: zeros, ones, uniform:A, normal:S, glorot, he "
      "(default: the model's)" },
    { "seed", PL_PARAM_INT, PL_OPTION_FIELD(seed), "1", 0, 9e15, NULL, "N",
      "of the data order, the weights and dropout" },
};

static const pl_param eval_params[] = {
    { "eval-every", PL_PARAM_EVERY, PL_OPTION_FIELD(eval_every), "1ep", 0, 0,
      NULL, "E", "test this often: 100 (steps), 20000ex, 1ep, 60s or never" },
    { "eval-batch", PL_PARAM_INT, PL_OPTION_FIELD(eval_batch), NULL, 1, 1e8,
      NULL, "N",
      "examples tested at once (default: 1000, or what fits in 64 MB)" },
    { "stop-loss", PL_PARAM_REAL, PL_OPTION_FIELD(stop_loss), NULL, 1e-12, 1e30,
      NULL, "X", "end when the test loss is at most X" },
};

static const pl_param run_params[] = {
    { "run", PL_PARAM_TEXT, PL_OPTION_FIELD(run), NULL, 0, 0, NULL, "DIR",
      "run folder (default: runs/<time>-<model>)" },
    { "resume", PL_PARAM_FLAG, PL_OPTION_FIELD(resume), NULL, 0, 0, NULL, NULL,
      "go on with the run in --run, from its newest checkpoint" },
    { "resume-or-start", PL_PARAM_FLAG, PL_OPTION_FIELD(resume_or_start), NULL,
      0, 0, NULL, NULL,
      "go on with the run in --run, or start it when none is there: for jobs "
      "that a scheduler requeues" },
    { "checkpoint-every", PL_PARAM_EVERY, PL_OPTION_FIELD(checkpoint_every),
      "60s", 0, 0, NULL, "E",
      "save this often: 100 (steps), 20000ex, 1ep, 60s or never" },
    { "keep", PL_PARAM_INT, PL_OPTION_FIELD(keep), "3", 1, 1e6, NULL, "N",
      "checkpoints that stay" },
    { "threads", PL_PARAM_INT, PL_OPTION_FIELD(threads), NULL, 1, 1024, NULL,
      "N",
      "threads that compute (default: the cores of this machine, divided by "
      "the workers on it)" },
    { "kernels", PL_PARAM_CHOICE, PL_OPTION_FIELD(kernels), "auto", 0, 0,
      "auto|avx512|avx2|portable|reference", NULL,
      "instruction set; results are equal in every bit only within one" },
    { "histograms-every", PL_PARAM_EVERY, PL_OPTION_FIELD(histograms_every),
      "never", 0, 0, NULL, "E",
      "record how weights, gradients and predictions lie, for TensorBoard: "
      "100 (steps), 20000ex, 1ep, 60s or never" },
    { "monitor-every", PL_PARAM_REAL, PL_OPTION_FIELD(monitor_every), "1", 0,
      3600, NULL, "S",
      "seconds between two samples of what the host and the job use (0: "
      "never)" },
    { "profile", PL_PARAM_TEXT, PL_OPTION_FIELD(profile), NULL, 0, 0, "0:1000",
      "[A:B]",
      "write a trace of every operator and message of the steps A to B, or of "
      "the first 1000" },
    { "json", PL_PARAM_FLAG, PL_OPTION_FIELD(json), NULL, 0, 0, NULL, NULL,
      "print the summary as one line of JSON" },
    { "quiet", PL_PARAM_FLAG, PL_OPTION_FIELD(quiet), NULL, 0, 0, NULL, NULL,
      "no progress, only warnings and errors" },
};

/* What a resumed run cannot change; the model's own flags belong here too. */
static const char *const kept[] = {
    "data",
    "test-data",
    "examples",
    "batch",
    "micro-batches",
    "optimizer",
    "aggregate",
    "batch-reduction",
    "momentum",
    "nesterov",
    "beta1",
    "beta2",
    "epsilon",
    "weight-decay",
    "clip",
    "init",
    "seed",
    "rho",
    "initial-accumulator",
    "ftrl-beta",
    "l1",
    "l2",
    "features",
    "holdout",
    "train-examples",
    "hogwild",
    "shard",
    "shuffle-buffer",
    "label-feature",
    "index-feature",
    "value-feature",
    "integers",
    NULL,
};

/* What a record does not hold: where and how to show. */
static const char *const not_recorded[] = {
    "run",   "resume",   "resume-or-start", "json",
    "quiet", "cache",    "global-batch",    "role",
    "index", "control",  "join-timeout",    "restarted",
    "keys",  "insecure", "chaos",           "profile",
    NULL,
};

/* Who takes part.  Where one of these is given, none is taken from a record:
 * they are only right together. */
static const char *const topology[] = { "strategy", "workers",   "ps",
                                        "cluster",  "deploy",    "role",
                                        "control",  "evaluator", NULL };

/* What may follow from who takes part and from the mode; not taken from a
 * record where these are given anew. */
static const char *const consequence[] = { "replicas-to-aggregate", "staleness",
                                           "on-worker-loss", NULL };

#define COUNT(table) (sizeof(table) / sizeof *(table))

static bool listed(const char *name, const char *const *list)
{
    for (; *list != NULL; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

static bool built_in(const char *name)
{
    const struct {
        const pl_param *params;
        size_t count;
    } tables[] = { { data_params, COUNT(data_params) },
                   { train_params, COUNT(train_params) },
                   { eval_params, COUNT(eval_params) },
                   { pl_options_cluster, pl_options_cluster_count },
                   { run_params, COUNT(run_params) } };
    for (size_t t = 0; t < COUNT(tables); t++)
        for (size_t i = 0; i < tables[t].count; i++)
            if (strcmp(tables[t].params[i].name, name) == 0)
                return true;
    return false;
}

/* What a program may say of its own model. */
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
    pl_train_options *train = &options->train;
    const pl_param_group groups[PL_OPTION_GROUPS] = {
        { "Data", data_params, COUNT(data_params), train, NULL },
        { "Training", train_params, COUNT(train_params), train, NULL },
        { "Evaluation", eval_params, COUNT(eval_params), train, NULL },
        { "Cluster", pl_options_cluster, pl_options_cluster_count, train,
          NULL },
        { "Run", run_params, COUNT(run_params), train, NULL },
        { "Model", model->params, model->param_count, options->model_options,
          NULL },
    };
    options->group_count = PL_OPTION_GROUPS - (model->param_count == 0);
    for (size_t g = 0; g < options->group_count; g++) {
        options->groups[g] = groups[g];
        options->groups[g].given = options->given[g];
    }
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

bool pl_options_given(const pl_options *options, const char *name)
{
    size_t group, index;
    return find_param(options, name, &group, &index) != NULL &&
           options->given[group][index];
}

int32_t pl_options_classes(const pl_options *options)
{
    size_t group, index;
    const pl_param *param = find_param(options, "classes", &group, &index);
    if (param == NULL || param->kind != PL_PARAM_INT)
        return 0;
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

/* The value as recorded: a text as it is, anything else as one would type it.
 * Points to the text or into `room`. */
static const char *record_text(const pl_param *param, const void *target,
                               char room[VALUE_BYTES])
{
    const char *text = given_text(param, target);
    if (text != NULL)
        return text;
    pl_param_value_text(param, target, room, VALUE_BYTES);
    return room;
}

/* What only a table of sparse features has a use for, or none. */
static pl_status check_sparse(const pl_options *options)
{
    static const char *const sparse[] = { "features", "hogwild", "l1", "l2",
                                          NULL };
    static const char *const dense[] = { "clip", NULL };
    const pl_model *model = options->model;
    const pl_train_options *train = &options->train;
    const char *const *flags = model->sparse ? dense : sparse;
    for (; *flags != NULL; flags++)
        if (pl_options_given(options, *flags))
            return PL_FAIL(PL_USAGE, "--%s: not with the model %s, which %s",
                           *flags, model->name,
                           model->sparse ? "is sparse" : "is not sparse");
    if (train->hogwild && train->optimizer != 0)
        return PL_FAIL(PL_USAGE, "--hogwild needs --optimizer sgd");
    if (train->hogwild && pl_options_given(options, "batch-reduction"))
        return PL_FAIL(PL_USAGE, "--batch-reduction: not with --hogwild, which "
                                 "updates after each example");
    return PL_OK;
}

static void use_defaults(pl_train_options *train, const pl_model *model)
{
    if (train->data == NULL)
        train->data = model->data != NULL ? model->data : "digits";
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

/* Everything that is written down must be UTF-8, or the summary could not be
 * written after hours of training. */
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

/* A flag of one optimizer given with another would do nothing. */
static pl_status check_optimizer(const pl_options *options)
{
    static const struct {
        const char *flag, *optimizers;
    } needs[] = {
        { "momentum", "momentum" },
        { "nesterov", "momentum" },
        { "beta1", "adam" },
        { "beta2", "adam" },
        { "rho", "rmsprop" },
        { "initial-accumulator", "adagrad" },
        { "epsilon", "adam, adagrad or rmsprop" },
        { "ftrl-beta", "ftrl" },
        { "l1", "sgd, adagrad or ftrl" },
    };
    const char *name = pl_optim_list()[options->train.optimizer]->name;
    for (size_t i = 0; i < COUNT(needs); i++)
        if (pl_options_given(options, needs[i].flag) &&
            strstr(needs[i].optimizers, name) == NULL)
            return PL_FAIL(PL_USAGE, "--%s needs --optimizer %s", needs[i].flag,
                           needs[i].optimizers);
    return PL_OK;
}

/* What was only recalled from a run's record may be of no use. */
static pl_status check_schedule(const pl_options *options)
{
    const pl_train_options *train = &options->train;
    bool constant = train->schedule == PL_SCHEDULE_CONSTANT;
    bool cosine = train->schedule == PL_SCHEDULE_COSINE;
    if (constant && pl_options_given(options, "decay-steps"))
        return PL_FAIL(PL_USAGE, "--decay-steps needs --schedule step, "
                                 "exponential or cosine");
    if ((constant || cosine) && pl_options_given(options, "decay"))
        return PL_FAIL(PL_USAGE,
                       "--decay needs --schedule step or exponential");
    if (!constant && !cosine && train->decay_steps == 0)
        return PL_FAIL(PL_USAGE, "--schedule %s needs --decay-steps N",
                       train->schedule == PL_SCHEDULE_STEP ? "step"
                                                           : "exponential");
    return PL_OK;
}

pl_status pl_options_resolve(pl_options *options)
{
    pl_train_options *train = &options->train;
    if (pl_options_given(options, "steps") &&
        pl_options_given(options, "epochs"))
        return PL_FAIL(PL_USAGE,
                       "--steps and --epochs: give one of them, not both");
    if (train->resume && train->run == NULL)
        return PL_FAIL(PL_USAGE,
                       "--%s needs --run DIR, the folder of the run to go on "
                       "with",
                       train->resume_or_start ? "resume-or-start" : "resume");
    PL_TRY(check_optimizer(options));
    PL_TRY(check_schedule(options));
    PL_TRY(check_sparse(options));
    if (train->stop_loss > 0 && train->eval_every.unit == PL_EVERY_NEVER)
        return PL_FAIL(PL_USAGE,
                       "--stop-loss needs tests, but --eval-every is never");
    use_defaults(train, options->model);
    if (pl_options_given(options, "examples") &&
        strcmp(train->data, "synthetic") != 0 &&
        strcmp(train->data, "synthetic-sparse") != 0)
        return PL_FAIL(PL_USAGE, "--examples needs --data synthetic or "
                                 "synthetic-sparse");
    if (train->holdout > 0 && train->test_data != NULL)
        return PL_FAIL(PL_USAGE,
                       "--holdout and --test-data: give one of them, not both");
    PL_TRY(check_texts(options));
    pl_range steps;
    PL_TRY(pl_options_profile(options, &steps));
    pl_status status = pl_init_check(train->init);
    return status == PL_OK ? PL_OK : pl_context(status, "--init");
}

pl_status pl_options_record(const pl_options *options, bool kept_only,
                            pl_json **out)
{
    pl_json *record;
    PL_TRY(pl_json_new_object(&record));
    pl_status status = PL_OK;
    for (size_t g = 0; g < options->group_count; g++) {
        const pl_param_group *group = &options->groups[g];
        bool models = group->params == options->model->params;
        for (size_t i = 0; i < group->count; i++) {
            const pl_param *param = &group->params[i];
            if (listed(param->name, not_recorded) ||
                (kept_only && !models && !listed(param->name, kept)))
                continue;
            char room[VALUE_BYTES];
            PL_TRY_OUT(status, pl_json_set_text(
                                   record, param->name,
                                   record_text(param, group->target, room)));
        }
    }
    *out = record;
    return PL_OK;
out:
    pl_json_free(record);
    return status;
}

/* What was given again must be what it was. */
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

static bool any_given(const pl_options *options, const char *const *names)
{
    for (; *names != NULL; names++)
        if (pl_options_given(options, *names))
            return true;
    return false;
}

/* Set one parameter as if the user had typed it. */
static pl_status set_text(pl_options *options, const char *name,
                          const char *text)
{
    size_t group, index;
    const pl_param *param = find_param(options, name, &group, &index);
    bool models = param != NULL &&
                  options->groups[group].params == options->model->params;
    if (param != NULL && options->given[group][index] &&
        (models || listed(name, kept)))
        return check_same(param, options->groups[group].target, text);
    bool lengths = strcmp(name, "steps") == 0 || strcmp(name, "epochs") == 0;
    if (lengths && (pl_options_given(options, "steps") ||
                    pl_options_given(options, "epochs")))
        return PL_OK;
    bool anew = any_given(options, topology);
    if ((anew && listed(name, topology)) ||
        ((anew || pl_options_given(options, "mode")) &&
         listed(name, consequence)))
        return PL_OK;
    if (param == NULL || options->given[group][index] || text[0] == '\0' ||
        listed(name, not_recorded) || strcmp(name, "threads") == 0)
        return PL_OK; /* threads suit the machine; few models depend on them */
    return pl_param_store(param, options->groups[group].target, text);
}

pl_status pl_options_recall(pl_options *options, const pl_json *record)
{
    for (size_t i = 0; i < pl_json_length(record); i++) {
        const char *name = pl_json_key_at(record, i), *text;
        PL_TRY(pl_json_get_text(record, name, &text));
        PL_TRY(set_text(options, name, text));
    }
    return PL_OK;
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
                       "--kernels %s: this processor does not have it; use "
                       "%s or auto",
                       name, pl_kernels_best()->name);
    return PL_OK;
}

/* A 0 that was asked for; to the optimizer 0 means the default. */
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
        .momentum = own_zero(train->momentum),
        .nesterov = train->nesterov,
        .beta1 = own_zero(train->beta1),
        .beta2 = own_zero(train->beta2),
        .rho = own_zero(train->rho),
        .initial_sum = own_zero(train->initial_accumulator),
        .epsilon = train->epsilon,
        .beta = own_zero(train->ftrl_beta),
        .l1 = train->l1,
        .l2 = train->l2,
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

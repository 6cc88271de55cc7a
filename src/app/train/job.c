/* Checks whether data, model and memory of a training fit together, before
 * large allocations; an error names the data set. */
#include "app/train/job.h"

#include "app/data/progress.h"
#include "app/train/memory.h"
#include "app/train/precision.h"
#include "base/assert.h"
#include "base/file/file.h"
#include "base/hash/sha256.h"
#include "base/mem.h"
#include "data/memory/memory.h"
#include "data/sparse/set.h"
#include "tensor/shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Address space of a thread's stack, used or not. */
#define STACK_BYTES ((int64_t)8 << 20)
#define HASH_FLOATS 262144 /* floats read at a time */

pl_status pl_job_cache_folder(const char *given, char **out)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (given != NULL)
        return pl_mem_copy_text(out, given);
    if (xdg != NULL && xdg[0] == '/')
        return pl_file_join(out, xdg, "paceline");
    if (home != NULL && home[0] == '/')
        return pl_file_join(out, home, ".cache/paceline");
    return PL_OK;
}

pl_targets pl_job_targets(const pl_job *job)
{
    const pl_train_options *train = &job->options->train;
    return (pl_targets) {
        .stop_loss = train->stop_loss,
        .stop_accuracy = train->stop_accuracy,
        .patience = train->patience,
        .keep_best = train->keep_best,
    };
}

pl_due_steps pl_job_deciding_tests(const pl_job *job, int64_t epoch_updates)
{
    const pl_train_options *train = &job->options->train;
    pl_targets targets = pl_job_targets(job);
    if (!pl_targets_any(&targets) || job->test == NULL)
        return (pl_due_steps) { 0, 0 };
    pl_due_pace pace = { train->batch * train->micro_batches, epoch_updates };
    return pl_due_by_steps(train->eval_every, pace);
}

/* Open a program's own examples. */
static pl_status open_memory(const pl_options *options, pl_split split,
                             const pl_source_opts *opts, pl_dataset **out)
{
    bool first = split == PL_SPLIT_TRAIN || opts->holdout > 0;
    const pl_data *data = first ? options->train_data : options->test_data;
    pl_dataset *set;
    if (data == NULL)
        return PL_FAIL(PL_USAGE,
                       "the %s data was in the memory of the program that "
                       "trained the run and is not available; give other data",
                       first ? "training" : "test");
    PL_TRY(pl_memory_open(&set, data, opts->no_shard));
    pl_status status = pl_source_prepare(&set, split, opts);
    if (status == PL_OK)
        *out = set;
    else
        pl_dataset_free(set);
    return status;
}

/* The options of a set. */
static pl_status source_opts(pl_job *job, pl_split split, pl_source_opts *out)
{
    const pl_train_options *train = &job->options->train;
    const pl_model *model = job->options->model;
    int32_t own_classes = pl_options_classes(job->options);
    bool own_test =
        train->test_data == NULL && !(train->holdout > 0) && !job->unlabelled;
    if (job->cache == NULL)
        PL_TRY(pl_job_cache_folder(train->cache, &job->cache));
    *out = (pl_source_opts) {
        .cache_dir = job->cache,
        .shape = job->example.rank > 0     ? job->example
                 : model->example.rank > 0 ? model->example
                                           : PL_SHAPE(28, 28),
        .classes = own_classes > 0 ? own_classes : model->classes,
        .examples = train->examples,
        .features = train->features,
        .holdout = train->holdout,
        .train_examples = train->train_examples,
        .seed = (uint64_t)train->seed,
        .threads = (int32_t)train->threads,
        .no_shard = train->shard == PL_TRAIN_SHARD_NONE,
        .shuffle_buffer = train->shuffle_buffer,
        .skip_bad = train->skip_bad,
        .unpack_ratio = train->unpack_ratio,
        .label_feature = train->label_feature,
        .index_feature = train->index_feature,
        .value_feature = train->value_feature,
        .integers = (pl_integers)train->integers,
        .encoding = &job->encoding,
        .own_test = own_test && split == PL_SPLIT_TEST,
        .unlabelled = job->unlabelled,
        .numeric = train->loss != PL_OBJECTIVE_CROSS_ENTROPY,
        .standardize = train->standardize,
        .scale = train->scale,
        .augment = train->augment,
        .example_shape = train->example_shape,
        .image_feature = train->image_feature,
        .channels = (pl_channel_order)train->channels,
        .image_size = train->image_size,
        .colors = (pl_colors)train->colors,
        .label_column = train->label_column,
        .delimiter = train->delimiter,
        .categories = train->categories,
        .ignore_columns = train->ignore_columns,
        .fill_missing = train->fill_missing,
        .header = (pl_header)train->header,
        .progress = train->quiet || job->unlabelled ? NULL : pl_data_progress,
    };
    return PL_OK;
}

pl_status pl_job_open_set(pl_job *job, const char *source, pl_split split,
                          pl_dataset **out)
{
    pl_source_opts opts;
    PL_TRY(source_opts(job, split, &opts));
    if (strcmp(source, PL_OPTIONS_MEMORY) == 0)
        return open_memory(job->options, split, &opts, out);
    return pl_source_open(out, source, split, &opts);
}

pl_status pl_job_open_memory(pl_job *job, const pl_data *data, pl_dataset **out)
{
    pl_source_opts opts;
    pl_dataset *set;
    PL_TRY(source_opts(job, PL_SPLIT_TEST, &opts));
    opts.holdout = 0;
    opts.unlabelled = true;
    opts.numeric = data->info.numeric;
    PL_TRY(pl_memory_open(&set, data, false));
    pl_status status = pl_source_prepare(&set, PL_SPLIT_TEST, &opts);
    if (status == PL_OK)
        *out = set;
    else
        pl_dataset_free(set);
    return status;
}

pl_status pl_job_keep_encoding(const pl_job *job, pl_json *settings)
{
    char *text = NULL;
    PL_TRY(pl_encoding_text(&job->encoding, &text));
    if (text == NULL)
        return PL_OK;
    pl_status status = pl_json_set_text(settings, "input", text);
    pl_mem_free(text);
    return status;
}

static pl_status open_data(pl_job *job, pl_job_data wanted)
{
    const pl_train_options *train = &job->options->train;
    if (wanted == PL_JOB_DATA_NONE)
        return PL_OK;
    const char *test =
        train->test_data != NULL ? train->test_data : train->data;
    if (wanted == PL_JOB_DATA_ALL)
        PL_TRY(pl_job_open_set(job, train->data, PL_SPLIT_TRAIN, &job->train));
    job->encoding.fixed = true; /* test data is encoded the same */
    if (wanted == PL_JOB_DATA_ALL && train->eval_every.unit == PL_EVERY_NEVER)
        return PL_OK;
    return pl_job_open_set(job, test, PL_SPLIT_TEST, &job->test);
}

/* Sparse models need sparse data, dense models dense data. */
static pl_status check_kind(const pl_job *job, const pl_dataset *set)
{
    const pl_model *model = job->options->model;
    if (set == NULL || set->sparse == model->sparse)
        return PL_OK;
    return PL_FAIL(PL_USAGE, "the model %s needs %s data, but that of %s is %s",
                   model->name, model->sparse ? "sparse" : "dense", set->name,
                   set->sparse ? "sparse" : "dense");
}

/* The network is built for --features, or for the data's features. */
static pl_status choose_features(pl_job *job, const pl_dataset *data)
{
    int64_t own = job->options->train.features;
    if (own > 0 && data->feature_count > own)
        return PL_FAIL(PL_USAGE, "--features %lld: %s has %lld", (long long)own,
                       data->name, (long long)data->feature_count);
    if (own == 0 && data->feature_count > PL_SHAPE_ELEMENTS)
        return PL_FAIL(PL_USAGE,
                       "%s has the id %lld, but a table has at most %lld "
                       "weights; renumber the ids: data convert %s cache:FILE "
                       "--renumber MAP",
                       data->name, (long long)data->feature_count - 1,
                       (long long)PL_SHAPE_ELEMENTS, data->name);
    job->example = PL_SHAPE(own > 0 ? own : data->feature_count);
    return PL_OK;
}

pl_status pl_job_check_numbering(const pl_job *job, const pl_dataset *set)
{
    if (set->numbering == job->numbering)
        return PL_OK;
    return PL_FAIL(PL_USAGE,
                   "the ids of %s are %s, those of the training data are %s: "
                   "convert it with the --renumber FILE of the training data",
                   set->name,
                   set->numbering == 0 ? "not renumbered" : "renumbered",
                   job->numbering == 0   ? "not renumbered"
                   : set->numbering == 0 ? "renumbered"
                                         : "renumbered by another file");
}

static pl_status check_features(const pl_job *job)
{
    const pl_dataset *test = job->test;
    if (test != NULL)
        PL_TRY(pl_job_check_numbering(job, test));
    if (test == NULL || test->feature_count <= job->example.dim[0])
        return PL_OK;
    char cure[96] = "renumber the ids of training and test data alike";
    if (test->feature_count <= PL_OPTIONS_FEATURES)
        snprintf(cure, sizeof cure, "train with --features %lld",
                 (long long)test->feature_count);
    return PL_FAIL(PL_USAGE,
                   "the test data (%s) has %lld features, but the model was "
                   "made for %lld; %s",
                   test->name, (long long)test->feature_count,
                   (long long)job->example.dim[0], cure);
}

pl_status pl_job_check_data(const pl_job *job)
{
    const pl_dataset *test = job->test;
    PL_TRY(check_kind(job, job->train));
    PL_TRY(check_kind(job, test));
    if (job->train != NULL && job->train->weights.data != NULL &&
        job->options->train.hogwild)
        return PL_FAIL(PL_USAGE,
                       "%s has weights, which --hogwild does not support; "
                       "leave out one of them",
                       job->train->name);
    if (job->options->model->sparse)
        return check_features(job);
    char a[PL_SHAPE_TEXT], b[PL_SHAPE_TEXT], trained[128] = "";
    if (job->train != NULL)
        snprintf(trained, sizeof trained, " (%.120s)", job->train->name);
    if (test == NULL)
        return PL_OK;
    if (!pl_shape_equal(job->example, test->shape))
        return PL_FAIL(PL_USAGE,
                       "training examples%s are %s, but test examples (%s) "
                       "are %s",
                       trained, pl_shape_text(job->example, a), test->name,
                       pl_shape_text(test->shape, b));
    if (test->numeric && test->classes != job->classes)
        return PL_FAIL(PL_USAGE,
                       "the test data (%s) has %d numbers as a label, but the "
                       "training data%s has %d",
                       test->name, test->classes, trained, job->classes);
    if (test->classes > job->classes)
        return PL_FAIL(PL_USAGE,
                       "the test data (%s) has %d classes, but the training "
                       "data%s has only %d",
                       test->name, test->classes, trained, job->classes);
    return PL_OK;
}

/* The model's --classes, otherwise the classes of the data. */
static pl_status choose_classes(pl_job *job, const pl_dataset *data)
{
    int32_t own = data->numeric ? 0 : pl_options_classes(job->options);
    if (own > 0 && data->classes > own)
        return PL_FAIL(PL_USAGE, "--classes %d: %s has %d classes", own,
                       data->name, data->classes);
    job->classes = own > 0 ? own : data->classes;
    return PL_OK;
}

static pl_status build(const pl_job *job, bool no_values, pl_network **out)
{
    const pl_train_options *train = &job->options->train;
    return pl_network_new(
        out, job->options->model,
        &(pl_network_opts) {
            .example = job->example,
            .classes = job->classes,
            .loss = (pl_objective)train->loss,
            .huber_delta = train->huber_delta,
            .weighted = job->train != NULL && job->train->weights.data != NULL,
            .init = train->init,
            .options = job->options->model_options,
            .seed = (uint64_t)train->seed,
            .no_values = no_values,
        });
}

/* Address space besides memory: stacks of threads (ours, oneDNN's, and those
 * for progress and checkpoints), and the checkpoint, which is mapped to be
 * read. */
static int64_t own_addresses(const pl_job *job, const pl_network *network)
{
    const pl_train_options *train = &job->options->train;
    int64_t sets = 1 + pl_optim_list()[train->optimizer]->slot_count;
    if (job->elsewhere)
        sets = 0;
    return (2 * train->threads + 2) * STACK_BYTES +
           sets * pl_params_block_count(network->params) *
               (int64_t)sizeof(float);
}

/* Advice for a smaller table; NULL for none.  In files, the largest id
 * determines its length: fewer --features would be refused. */
static const char *table_cure(const pl_job *job, char text[PL_ERROR_BYTES])
{
    long long features = job->example.dim[0];
    if (!job->options->model->sparse)
        return NULL;
    if (pl_sparse_set_is(job->train) && job->options->train.features == 0)
        snprintf(text, PL_ERROR_BYTES,
                 "the largest id of %s makes a table of %lld weights; renumber "
                 "the ids: data convert %s cache:FILE --renumber MAP",
                 job->train->name, features, job->train->name);
    else
        snprintf(text, PL_ERROR_BYTES,
                 "the table has %lld weights; lower --features", features);
    return text;
}

/* Check that a training fits into memory before most of it is allocated. */
static pl_status check_memory(const pl_job *job)
{
    PL_ASSERT(job->train != NULL);
    /* A batch larger than the data is refused by the reader. */
    if (job->train->count > 0 && job->options->train.batch > job->train->count)
        return PL_OK;
    pl_network *network;
    PL_TRY(build(job, true, &network));
    pl_status status = pl_precision_check(job, network);
    if (status != PL_OK) {
        pl_network_free(network);
        return status;
    }
    pl_budget_opts plan = pl_memory_plan(&(pl_memory_opts) {
        .options = job->options,
        .network = network,
        .kernels = job->kernels,
        .train = job->train,
        .test = job->test,
        .elsewhere = job->elsewhere,
    });
    pl_ram ram = pl_ram_available();
    char cure[PL_ERROR_BYTES];
    if (ram.address_space)
        plan.address_bytes = own_addresses(job, network);
    const char *instead = table_cure(job, cure);
    if (instead == NULL && ram.address_space)
        instead = "raise ulimit -v";
    status = pl_memory_check(&plan, ram, instead);
    pl_network_free(network);
    return status;
}

static pl_status open_optim(pl_job *job, const pl_optim_opts *opts)
{
    const pl_params *params = job->network->params;
    PL_TRY(pl_optim_new(&job->optim, opts, params, job->kernels));
    pl_optim_average(job->optim, pl_params_trained(params),
                     job->network->average_rate);
    return PL_OK;
}

static pl_status open_job(pl_job *job, pl_job_data wanted)
{
    const pl_options *options = job->options;
    const pl_train_options *train = &options->train;
    PL_TRY(pl_options_kernels(options, &job->kernels));
    PL_TRY(open_data(job, wanted));
    const pl_dataset *data = job->train != NULL ? job->train : job->test;
    if (job->example.rank == 0) {
        PL_TRY(check_kind(job, data));
        job->example = data->shape;
        job->numbering = data->numbering;
        if (data->sparse)
            PL_TRY(choose_features(job, data));
        PL_TRY(choose_classes(job, data));
    }
    PL_TRY(pl_job_check_data(job));
    if (wanted == PL_JOB_DATA_ALL)
        PL_TRY(check_memory(job));
    PL_TRY(build(job, job->elsewhere, &job->network));
    PL_TRY(pl_pool_new(&job->pool, (int)train->threads));
    pl_optim_opts optim = pl_options_optim(options);
    if (!job->elsewhere)
        PL_TRY(open_optim(job, &optim));
    job->schedule = pl_options_schedule(options);
    return PL_OK;
}

pl_status pl_job_init(pl_job *job, const pl_job_opts *opts)
{
    PL_ASSERT(opts->data != PL_JOB_DATA_NONE || opts->example.rank > 0);
    *job = (pl_job) {
        .options = opts->options,
        .example = opts->example,
        .classes = opts->classes,
        .numbering = opts->numbering,
        .elsewhere = opts->elsewhere,
        .unlabelled = opts->unlabelled,
    };
    pl_status status = PL_OK;
    if (opts->encoding != NULL)
        status = pl_encoding_init(&job->encoding, opts->encoding);
    if (status == PL_OK)
        status = open_job(job, opts->data);
    if (status != PL_OK)
        pl_job_close(job);
    return status;
}

void pl_job_close(pl_job *job)
{
    pl_optim_free(job->optim);
    pl_pool_free(job->pool);
    pl_network_free(job->network);
    pl_dataset_free(job->train);
    pl_dataset_free(job->test);
    pl_encoding_close(&job->encoding);
    pl_mem_free(job->cache);
    *job = (pl_job) { 0 };
}

pl_planes pl_job_planes(const pl_job *job)
{
    if (job->optim == NULL)
        return (pl_planes) { 0 };
    return pl_optim_planes(job->optim, pl_params_block(job->network->params));
}

/* The parameter with the next name after `last` in byte order. */
static int next_by_name(const pl_params *params, const char *last)
{
    int best = -1;
    for (int i = 0; i < pl_params_count(params); i++) {
        const char *name = pl_params_get(params, i)->name;
        if (strcmp(name, last) > 0 &&
            (best < 0 || strcmp(name, pl_params_get(params, best)->name) < 0))
            best = i;
    }
    return best;
}

/* The name and shape of a parameter, before its elements. */
static void hash_head(pl_sha256 *sha, const pl_params_item *item)
{
    char shape[PL_SHAPE_TEXT];
    pl_shape_text(item->shape, shape);
    pl_sha256_update(sha, item->name, strlen(item->name));
    pl_sha256_update(sha, shape, strlen(shape));
}

static void hash_text(pl_sha256 *sha, char hex[65])
{
    uint8_t digest[PL_SHA256_BYTES];
    pl_sha256_final(sha, digest);
    pl_sha256_text(digest, hex);
}

void pl_job_hash(const pl_job *job, char hex[65])
{
    const pl_params *params = job->network->params;
    pl_sha256 sha;
    pl_sha256_init(&sha);
    int next;
    for (const char *last = ""; (next = next_by_name(params, last)) >= 0;
         last = pl_params_get(params, next)->name) {
        const pl_params_item *item = pl_params_get(params, next);
        hash_head(&sha, item);
        pl_sha256_update(&sha, pl_params_data(params, next),
                         (size_t)item->count * sizeof(float));
    }
    hash_text(&sha, hex);
}

static pl_status hash_read(pl_sha256 *sha, const pl_params_item *item,
                           pl_job_read read, void *context, float *floats)
{
    for (int64_t at = 0; at < item->count; at += HASH_FLOATS) {
        int64_t left = item->count - at;
        int64_t count = left < HASH_FLOATS ? left : HASH_FLOATS;
        PL_TRY(read(context, item->offset + at, count, floats));
        pl_sha256_update(sha, floats, (size_t)count * sizeof *floats);
    }
    return PL_OK;
}

pl_status pl_job_hash_read(const pl_job *job, pl_job_read read, void *context,
                           char hex[65])
{
    const pl_params *params = job->network->params;
    pl_status status = PL_OK;
    float *floats;
    pl_sha256 sha;
    PL_TRY(PL_NEW(floats, HASH_FLOATS));
    pl_sha256_init(&sha);
    int next;
    for (const char *last = "";
         status == PL_OK && (next = next_by_name(params, last)) >= 0;
         last = pl_params_get(params, next)->name) {
        hash_head(&sha, pl_params_get(params, next));
        status =
            hash_read(&sha, pl_params_get(params, next), read, context, floats);
    }
    pl_mem_free(floats);
    hash_text(&sha, hex);
    return status;
}

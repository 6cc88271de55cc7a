/* cmd_data.c - `data`: dispatches its verbs (get, digits, convert, stats) and
 * turns flags into the options of a source. */
#include "app/data/get.h"
#include "app/data/pass.h"
#include "app/train/job.h"
#include "base/mem.h"
#include "base/param/param.h"
#include "base/thread.h"
#include "cli/commands.h"
#include "data/idx/idx.h"
#include "data/source.h"

#include <stdio.h>
#include <string.h>

typedef struct data_options {
    const char *out;
    const char *from;
    int64_t timeout;
    int64_t threads;
    int64_t examples;
    int64_t features;
    int64_t skip_bad;
    int64_t unpack_ratio;
    const char *renumber;
    const char *label_feature;
    const char *index_feature;
    const char *value_feature;
    int integers;
    const char *cache;
    bool json;
    bool quiet;
} data_options;

#define FIELD(name) offsetof(data_options, name)

static const pl_param params[] = {
    { "out", PL_PARAM_TEXT, FIELD(out), NULL, 0, 0, NULL, "DIR",
      "digits, get: folder for the files; made when missing (get: mnist)" },
    { "from", PL_PARAM_TEXT, FIELD(from), NULL, 0, 0, NULL, "URL",
      "get: where the files lie (default: public mirrors)" },
    { "timeout", PL_PARAM_INT, FIELD(timeout), "600", 1, 86400, NULL, "S",
      "get: seconds until all must be there" },
    { "threads", PL_PARAM_INT, FIELD(threads), NULL, 1, 1024, NULL, "N",
      "threads to draw or decode with (default: the cores)" },
    { "examples", PL_PARAM_INT, FIELD(examples), NULL, 1, 1e9, NULL, "N",
      "synthetic-sparse: how many (default: 200,000)" },
    { "features", PL_PARAM_INT, FIELD(features), NULL, 1, 9e15, NULL, "N",
      "ids are 0 to N-1 (default: any)" },
    { "skip-bad", PL_PARAM_INT, FIELD(skip_bad), "0", 0, 1e15, NULL, "N",
      "pass over up to N bad examples" },
    { "unpack-ratio", PL_PARAM_INT, FIELD(unpack_ratio), "200", 1, 1e6, NULL,
      "N",
      "refuse gzip or zstd that becomes more than N times as long, and more "
      "than 64 MB" },
    { "renumber", PL_PARAM_TEXT, FIELD(renumber), NULL, 0, 0, NULL, "MAP",
      "convert to cache: number ids by frequency, or as the file MAP says" },
    { "label-feature", PL_PARAM_TEXT, FIELD(label_feature), "label", 0, 0, NULL,
      "NAME", "tfrecord: the feature with the label" },
    { "index-feature", PL_PARAM_TEXT, FIELD(index_feature), "index", 0, 0, NULL,
      "NAME", "tfrecord: the feature with the ids" },
    { "value-feature", PL_PARAM_TEXT, FIELD(value_feature), "value", 0, 0, NULL,
      "NAME", "tfrecord: the feature with the values" },
    { "integers", PL_PARAM_CHOICE, FIELD(integers), "log", 0, 0, "log|bucket",
      NULL,
      "criteo: the logarithm of an integer is its value, or its feature" },
    { "cache", PL_PARAM_TEXT, FIELD(cache), NULL, 0, 0, NULL, "DIR",
      "folder for unpacked data (default: ~/.cache/paceline)" },
    { "json", PL_PARAM_FLAG, FIELD(json), NULL, 0, 0, NULL, NULL,
      "stats: print one line of JSON" },
    { "quiet", PL_PARAM_FLAG, FIELD(quiet), NULL, 0, 0, NULL, NULL,
      "no progress" },
};

static pl_status write_split(const char *source, pl_split split,
                             const data_options *options)
{
    pl_dataset *set;
    PL_TRY(pl_source_open(&set, source, split,
                          &(pl_source_opts) {
                              .threads = options->threads > 0
                                             ? (int32_t)options->threads
                                             : pl_thread_cores(),
                          }));
    pl_status status = pl_dataset_write_idx(set, options->out, split);
    if (status == PL_OK)
        printf("%s: %lld examples\n",
               split == PL_SPLIT_TRAIN ? "train" : "test",
               (long long)set->count);
    pl_dataset_free(set);
    return status;
}

static pl_status write_digits(const data_options *options)
{
    if (options->out == NULL || options->out[0] == '\0')
        return PL_FAIL(PL_USAGE, "data digits needs --out DIR");
    PL_TRY(write_split("digits", PL_SPLIT_TRAIN, options));
    PL_TRY(write_split("digits", PL_SPLIT_TEST, options));
    printf("IDX files written to %s; train with --data idx:%s\n", options->out,
           options->out);
    return PL_OK;
}

static pl_status get_mnist(const data_options *options)
{
    const char *from = options->from;
    if (from != NULL && strncmp(from, "http://", 7) != 0 &&
        strncmp(from, "https://", 8) != 0)
        return PL_FAIL(PL_USAGE,
                       "--from \"%s\": expected http://HOST/... or "
                       "https://HOST/...",
                       from);
    return pl_data_get_mnist(&(pl_data_get_opts) {
        .from = from,
        .out = options->out != NULL ? options->out : "mnist",
        .timeout_s = options->timeout,
        .quiet = options->quiet,
    });
}

/* A window that keeps all threads busy; a set that is only passed through
 * need not be held. */
#define WINDOW 32768

static pl_status pass_files(const data_options *options, const pl_words *words)
{
    char *cache = NULL;
    PL_TRY(pl_job_cache_folder(options->cache, &cache));
    const pl_source_opts opts = {
        .cache_dir = cache,
        .threads = (int32_t)options->threads,
        .examples = options->examples,
        .features = options->features,
        .skip_bad = options->skip_bad,
        .unpack_ratio = options->unpack_ratio,
        .label_feature = options->label_feature,
        .index_feature = options->index_feature,
        .value_feature = options->value_feature,
        .integers = (pl_integers)options->integers,
        .shuffle_buffer = WINDOW,
        .any_ids = true,
    };
    pl_status status = words->count == 3
                           ? pl_data_convert(&(pl_data_convert_opts) {
                                 .source = words->list[1],
                                 .target = words->list[2],
                                 .opts = &opts,
                                 .renumber = options->renumber,
                                 .quiet = options->quiet,
                             })
                           : pl_data_stats(words->list[1], &opts, options->json,
                                           options->quiet);
    pl_mem_free(cache);
    return status;
}

static bool says(const pl_words *words, const char *verb, int count)
{
    return words->count == count && strcmp(words->list[0], verb) == 0;
}

#define USAGE "data get mnist | digits --out DIR | convert SRC DST | stats SRC"

static pl_status run(const pl_app *app, int argc, char **argv)
{
    data_options options;
    pl_words words;
    PL_TRY(pl_command_parse(
        &pl_cmd_data, app,
        "get mnist: download MNIST, verified; what broke off is resumed.\n"
        "digits: write the built-in digits as IDX files.\n"
        "convert: write the sparse examples of SRC to DST, which is "
        "cache:FILE,\n  libsvm:FILE or tfrecord:FILE (compressed when FILE "
        "ends in .gz or "
        ".zst).\n"
        "stats: count the sparse examples of SRC, their labels and ids.",
        &options, argc, argv, &words));
    if (words.list == NULL)
        return PL_OK;
    pl_status status;
    if (says(&words, "get", 2) && strcmp(words.list[1], "mnist") == 0)
        status = get_mnist(&options);
    else if (says(&words, "get", 2))
        status = PL_FAIL(PL_USAGE, "data get %s: unknown; expected mnist",
                         words.list[1]);
    else if (says(&words, "digits", 1))
        status = write_digits(&options);
    else if (says(&words, "convert", 3) || says(&words, "stats", 2))
        status = pass_files(&options, &words);
    else
        status = PL_FAIL(PL_USAGE, "expected: " USAGE);
    pl_mem_free(words.list);
    return status;
}

const pl_command pl_cmd_data = {
    .name = "data",
    .usage = USAGE,
    .help = "get, make, convert and count data",
    .run = run,
    .params = params,
    .param_count = sizeof params / sizeof *params,
};

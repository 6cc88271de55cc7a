/* cmd_data.c - `data`: dispatches its verbs (get, digits, convert, stats) and
 * turns flags into the options of a source. */
#include "app/data/get.h"
#include "app/data/pass.h"
#include "app/data/progress.h"
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
    int split;
    const char *picture;
    const char *image_feature;
    const char *example_shape;
    int channels;
    const char *image_size;
    int colors;
    const char *label_column;
    int labels;
    const char *categories;
    const char *ignore_columns;
    const char *delimiter;
    int header;
    const char *cache;
    bool json;
    bool quiet;
} data_options;

/* The choices of --labels. */
enum {
    LABELS_CLASSES,
    LABELS_NUMBERS
};

#define FIELD(name) offsetof(data_options, name)
#define PASS        "verb=convert|stats"

static const pl_param params[] = {
    { .name = "out",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(out),
      .value = "DIR",
      .needs = "verb=digits|get",
      .traits = PL_PARAM_COMMON,
      .help =
          "digits, get: folder for the files, created if missing (default of "
          "get: mnist)",
      .why = "Files of the same names are replaced by `digits`; `get` keeps "
             "those that are complete and correct, so it can be repeated." },
    { .name = "from",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(from),
      .value = "URL",
      .needs = "verb=get",
      .help = "get: address of the files (default: public mirrors)",
      .why = "For a mirror in your own network, or when the public ones cannot "
             "be reached. Every file is verified by its checksum, wherever it "
             "comes from." },
    { .name = "timeout",
      .kind = PL_PARAM_INT,
      .offset = FIELD(timeout),
      .fallback = "600",
      .least = 1,
      .most = 86400,
      .value = "S",
      .needs = "verb=get",
      .help = "get: seconds after which the download fails",
      .why = "Raise it for slow connections. The bytes received so far are "
             "kept, and the same command continues." },
    { .name = "threads",
      .kind = PL_PARAM_INT,
      .offset = FIELD(threads),
      .least = 1,
      .most = 1024,
      .needs = "verb!=get",
      .traits = PL_PARAM_COMMON,
      .help = "threads that generate or decode examples (default: the cores)",
      .why = "Lower it to leave cores to other processes. The result does not "
             "depend on it." },
    { .name = "examples",
      .kind = PL_PARAM_INT,
      .offset = FIELD(examples),
      .least = 1,
      .most = 1e9,
      .needs = PASS ", data=synthetic-sparse",
      .traits = PL_PARAM_COMMON,
      .help = "synthetic-sparse: number of examples (default: 200,000)",
      .why = "Give as many as your own data will have, to measure speed and "
             "size before it is available." },
    { .name = "features",
      .kind = PL_PARAM_INT,
      .offset = FIELD(features),
      .least = 1,
      .most = 9e15,
      .needs = PASS,
      .traits = PL_PARAM_COMMON,
      .help = "number of features, with ids from 0 to N-1 (default: any)",
      .why = "Larger ids are then refused, which finds damaged data early. For "
             "criteo, categories are hashed to this many features (default: "
             "16777216); train with the same number." },
    { .name = "skip-bad",
      .kind = PL_PARAM_INT,
      .offset = FIELD(skip_bad),
      .fallback = "0",
      .most = 1e15,
      .needs = PASS ", source=files|images",
      .traits = PL_PARAM_COMMON,
      .help = "skip up to N malformed examples",
      .why = "Malformed lines usually mean the wrong format, so by default the "
             "first one is an error that names it. With `stats` a large N "
             "counts how many there are." },
    { .name = "unpack-ratio",
      .kind = PL_PARAM_INT,
      .offset = FIELD(unpack_ratio),
      .fallback = "200",
      .least = 1,
      .most = 1e6,
      .needs = PASS ", source=files|csv",
      .help = "refuse gzip or zstd data that unpacks to more than N times its "
              "size and more than 64 MB",
      .why = "Protects memory and disk from a damaged or malicious file, since "
             "the formats do not state how large the unpacked data is. Raise "
             "it for trusted files that compress unusually well." },
    { .name = "renumber",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(renumber),
      .value = "MAP",
      .needs = "verb=convert",
      .traits = PL_PARAM_COMMON,
      .help = "convert to cache: renumber ids by frequency, or as in the file "
              "MAP if it exists",
      .why = "Frequent features then lie together in memory, which makes "
             "--hogwild and large tables faster. Convert test data with the "
             "same MAP; features that are not in it are left out." },
    { .name = "label-feature",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(label_feature),
      .fallback = "label",
      .value = "NAME",
      .needs = PASS ", data=tfrecord",
      .help = "tfrecord: name of the feature that holds the label",
      .why = "Give it when the program that wrote the records chose another "
             "name, such as --label-feature clicked." },
    { .name = "index-feature",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(index_feature),
      .fallback = "index",
      .value = "NAME",
      .needs = PASS ", data=tfrecord",
      .help = "tfrecord: name of the feature that holds the ids",
      .why = "Give it when the program that wrote the records chose another "
             "name, such as --index-feature ids. The feature must be a list of "
             "integers from 0." },
    { .name = "value-feature",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(value_feature),
      .fallback = "value",
      .value = "NAME",
      .needs = PASS ", data=tfrecord",
      .help = "tfrecord: name of the feature that holds the values",
      .why = "Give it when the program that wrote the records chose another "
             "name, such as --value-feature weights. Without this feature all "
             "values are 1." },
    { .name = "integers",
      .kind = PL_PARAM_CHOICE,
      .offset = FIELD(integers),
      .fallback = "log",
      .choices = "log|bucket",
      .needs = PASS ", data=criteo",
      .help = "criteo: log: an integer's logarithm is its value; bucket: the "
              "logarithm selects a feature",
      .why = "`log` learns one weight for each of the 13 integer columns. "
             "`bucket` learns one for each range of an integer, so its effect "
             "need not grow with it, and hashes them to the features of the "
             "categories. Convert training and test data in the same way." },
    { .name = "split",
      .kind = PL_PARAM_CHOICE,
      .offset = FIELD(split),
      .fallback = "train",
      .choices = "train|test",
      .needs = PASS,
      .traits = PL_PARAM_COMMON,
      .help = "dense data: part of the source to use",
      .why = "Sources such as digits and MNIST have two parts: convert each of "
             "them by a command of its own, the second with --split test." },
    { .name = "picture",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(picture),
      .value = "FILE",
      .needs = "verb=stats",
      .traits = PL_PARAM_COMMON,
      .help = "images: draw some of each class into a PNG file",
      .why = "A look at the data finds swapped labels, inverted colors and "
             "channels in the wrong place. Example: --picture some.png." },
    { .name = "image-feature",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(image_feature),
      .value = "NAME",
      .needs = PASS ", data=tfrecord",
      .help =
          "tfrecord: name of the feature that holds the pixels or numbers of "
          "a dense example",
      .why = "Give it when none of the usual names is used, and always for "
             "compressed record files, which are not inspected beforehand. "
             "Example: --image-feature pixels." },
    { .name = "example-shape",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(example_shape),
      .value = "LIST",
      .needs = PASS,
      .help = "dense data: shape of an example, such as 28,28 or 3,32,32",
      .why = "Needed to write rows of a table as images, or to draw them with "
             "--picture. The sizes must multiply to the number of values of an "
             "example." },
    { .name = "channels",
      .kind = PL_PARAM_CHOICE,
      .offset = FIELD(channels),
      .fallback = "auto",
      .choices = "auto|first|last",
      .needs = PASS ", data=npy|npz|idx|tfrecord",
      .help = "arrays: position of an image's channels",
      .why = "Give `last` for [height, width, channels] with more than four "
             "channels, and `first` for [channels, height, width] with at most "
             "four columns. Images with channels last are copied to memory in "
             "the other order." },
    { .name = "image-size",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(image_size),
      .value = "WxH",
      .needs = PASS ", data=images|tfrecord",
      .help = "images: resize all to this size",
      .why = "Convert once to the size that you will train with: the result is "
             "smaller and opens faster. The proportions are not kept. By "
             "default all images must have the size of the first." },
    { .name = "colors",
      .kind = PL_PARAM_CHOICE,
      .offset = FIELD(colors),
      .fallback = "auto",
      .choices = "auto|gray|rgb",
      .needs = PASS ", data=images|tfrecord",
      .help = "images: color channels",
      .why =
          "Use gray if color does not matter, which is a third of the data, "
          "or rgb if the first image happens to be gray and others are not." },
    { .name = "labels",
      .kind = PL_PARAM_CHOICE,
      .offset = FIELD(labels),
      .fallback = "classes",
      .choices = "classes|numbers",
      .needs = PASS ", data=npy|npz|csv",
      .traits = PL_PARAM_COMMON,
      .help = "arrays and tables: whether labels are classes, or numbers to "
              "predict",
      .why = "Give `numbers` for prices, temperatures and the like, which you "
             "will train with --loss squared-error or huber. Classes are "
             "integers from 0." },
    { .name = "label-column",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(label_column),
      .value = "NAME",
      .needs = PASS ", data=csv",
      .traits = PL_PARAM_COMMON,
      .help = "csv: label column, by name or by number from 1",
      .why = "Give it when the label has another name, or when the file has no "
             "header: --label-column 1 is the first column." },
    { .name = "categories",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(categories),
      .value = "LIST",
      .needs = PASS ", data=csv",
      .traits = PL_PARAM_COMMON,
      .help = "csv: text columns",
      .why =
          "A label column becomes classes, a feature column one input for "
          "each of its values, at most 65536; so leave out names and "
          "identifiers (--ignore-columns). Example: --categories color,city." },
    { .name = "ignore-columns",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(ignore_columns),
      .value = "LIST",
      .needs = PASS ", data=csv",
      .help = "csv: columns to ignore",
      .why = "For columns that must not influence the answer, such as row "
             "numbers, or that are text with too many values for --categories. "
             "Example: --ignore-columns id,2." },
    { .name = "delimiter",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(delimiter),
      .value = "C",
      .needs = PASS ", data=csv",
      .help = "csv: delimiter between cells, a character or tab",
      .why = "Give it when the first line misleads the detection, as a header "
             "with commas in its names does. Example: --delimiter tab." },
    { .name = "header",
      .kind = PL_PARAM_CHOICE,
      .offset = FIELD(header),
      .fallback = "auto",
      .choices = "auto|yes|no",
      .needs = PASS ", data=csv",
      .help = "csv: whether the first line names the columns",
      .why = "The detection expects a text above a number, or no number at all "
             "in the first line. Give `yes` if all names are numbers, such as "
             "years, and `no` if a table without names consists of text, or "
             "begins with a text above a number." },
    { .name = "cache",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(cache),
      .value = "DIR",
      .needs = PASS ", source=files|csv|images",
      .help = "folder for unpacked data (default: ~/.cache/paceline)",
      .why = "Put it on a fast local disk with room for the unpacked data. "
             "Several processes may use one folder at the same time." },
    { .name = "json",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(json),
      .needs = "verb=stats",
      .traits = PL_PARAM_COMMON,
      .help = "stats: print one line of JSON",
      .why = "For scripts that check data before a training: it has the same "
             "counts as the text." },
    { .name = "quiet",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(quiet),
      .traits = PL_PARAM_COMMON,
      .help = "no progress",
      .why = "For scripts and scheduled jobs; results, warnings and errors are "
             "still printed." },
};

static const pl_param_term terms[] = {
    { "verb=digits|get", "`digits` or `get`",
      "is a flag of `data digits` and `data get`: leave it out" },
    { "verb=get", "`get`", "is a flag of `data get`: leave it out" },
    { "verb!=get", "not `get`", "has no effect with `data get`: leave it out" },
    { "verb=convert", "`convert`",
      "is a flag of `data convert`: leave it out" },
    { PASS, "`convert` or `stats`",
      "is a flag of `data convert` and `data stats`: leave it out" },
    { "verb=stats", "`stats`", "is a flag of `data stats`: leave it out" },
    { "data=synthetic-sparse", "the source synthetic-sparse", NULL },
    { "data=tfrecord", "the source tfrecord:FILE", NULL },
    { "data=criteo", "the source criteo:FILE", NULL },
    { "data=csv", "the source csv:FILE", NULL },
    { "data=npy|npz|csv", "npy, npz or csv", NULL },
    { "data=images|tfrecord", "images, in files or as tfrecord", NULL },
    { "data=npy|npz|idx|tfrecord", "arrays: npy, npz, idx or tfrecord", NULL },
    { "source=files|csv|images", "a source in files", NULL },
    { "source=files|images", "sparse data in files, or images", NULL },
    { "source=files|csv", "sparse data in files, or tables", NULL },
};

static bool is_verb(const char *word)
{
    static const char *const verbs[] = { "get", "digits", "convert", "stats" };
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verbs[i], word) == 0)
            return true;
    return false;
}

/* The verb, and what `convert` and `stats` read.  These report errors in their
 * arguments themselves. */
static size_t find_facts(const pl_words *words, pl_param_fact *facts)
{
    size_t count = 0;
    const char *source = words->count > 1 ? pl_source_name(words->list[1]) : "";
    if (words->count > 0 && is_verb(words->list[0]))
        facts[count++] = (pl_param_fact) { "verb", words->list[0] };
    if (source[0] != '\0') {
        facts[count++] = (pl_param_fact) { "data", source };
        facts[count++] =
            (pl_param_fact) { "source",
                              pl_source_is_format(source) ? "files" : source };
    }
    return count;
}

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

/* A window that keeps all threads busy; a set that is read only once need not
 * be kept in memory. */
#define WINDOW 32768

static pl_status pass_files(const data_options *options, const pl_words *words)
{
    char *cache = NULL;
    pl_encoding encoding = { .learned = NULL };
    pl_split split = options->split == 0 ? PL_SPLIT_TRAIN : PL_SPLIT_TEST;
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
        .encoding = &encoding,
        .unlabelled = true,
        .allow_missing = true,
        .image_feature = options->image_feature,
        .example_shape = options->example_shape,
        .channels = (pl_channel_order)options->channels,
        .image_size = options->image_size,
        .colors = (pl_colors)options->colors,
        .numeric = options->labels == LABELS_NUMBERS,
        .label_column = options->label_column,
        .categories = options->categories,
        .ignore_columns = options->ignore_columns,
        .delimiter = options->delimiter,
        .header = (pl_header)options->header,
        .own_test = true,
        .progress = options->quiet ? NULL : pl_data_progress,
    };
    pl_status status = words->count == 3
                           ? pl_data_convert(&(pl_data_convert_opts) {
                                 .source = words->list[1],
                                 .target = words->list[2],
                                 .opts = &opts,
                                 .renumber = options->renumber,
                                 .split = split,
                                 .quiet = options->quiet,
                             })
                           : pl_data_stats(&(pl_data_stats_opts) {
                                 .source = words->list[1],
                                 .opts = &opts,
                                 .split = split,
                                 .picture = options->picture,
                                 .json = options->json,
                                 .quiet = options->quiet,
                             });
    pl_encoding_close(&encoding);
    pl_mem_free(cache);
    return status;
}

static bool says(const pl_words *words, const char *verb, int count)
{
    return words->count == count && strcmp(words->list[0], verb) == 0;
}

#define USAGE "data get mnist | digits --out DIR | convert SRC DST | stats SRC"

static pl_status wrong_verb(const pl_words *words)
{
    static const char *const verbs[] = { "get", "digits", "convert", "stats",
                                         NULL };
    const char *verb = words->count > 0 ? words->list[0] : "";
    const char *near = pl_param_nearest(verb, verbs);
    if (near == NULL || strcmp(near, verb) == 0)
        return PL_FAIL(PL_USAGE, "expected: " USAGE);
    return PL_FAIL(PL_USAGE,
                   "data %.80s: did you mean data %s? expected: " USAGE, verb,
                   near);
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    data_options options;
    pl_words words;
    PL_TRY(pl_command_parse(&pl_cmd_data, app, &options, argc, argv, &words));
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
        status = wrong_verb(&words);
    pl_mem_free(words.list);
    return status;
}

const pl_command pl_cmd_data = {
    .name = "data",
    .usage = USAGE,
    .help = "download, generate, convert and inspect data",
    .about =
        "get mnist: download MNIST and verify it; an interrupted download is "
        "resumed.\ndigits: write the built-in digits as IDX files.\nconvert: "
        "write the sparse examples of SRC to DST, which is cache:FILE,\n  "
        "libsvm:FILE or tfrecord:FILE (compressed when FILE ends in .gz or "
        ".zst);\n  dense ones to npy:FILE,LABELS, npz:FILE, csv:FILE, "
        "idx:DIR, images:DIR or\n  tfrecord:FILE.\nstats: describe the "
        "examples of SRC: labels and ids, or classes and the range\n  of "
        "values.",
    .examples = {
        { "data get mnist --out mnist", "download MNIST, verified" },
        { "data digits --out digits", "the built-in digits as IDX files" },
        { "data convert libsvm:a.svm cache:a.cache", "a binary file that "
                                                     "loads at once" },
    },
    .run = run,
    .params = params,
    .param_count = sizeof params / sizeof *params,
    .facts = find_facts,
    .terms = terms,
    .term_count = sizeof terms / sizeof *terms,
};

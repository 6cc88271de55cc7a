/* cmd_predict.c - `predict`: classes and probabilities of images, tables and
 * arrays, or of the examples of a sparse source; as text, CSV or JSON. */
#include "app/predict/predict_sparse.h"
#include "app/predict/predictor.h"
#include "app/train/trained.h"
#include "base/buffer.h"
#include "base/mem.h"
#include "base/text/quote.h"
#include "cli/commands.h"
#include "data/images/image.h"
#include "data/source.h"
#include "tensor/shape.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct predict_options {
    int64_t top;
    int64_t threads;
    bool json;
    bool csv;
    bool best;
} predict_options;

static const pl_param params[] = {
    { .name = "top",
      .kind = PL_PARAM_INT,
      .offset = offsetof(predict_options, top),
      .fallback = "1",
      .least = 1,
      .most = 1e6,
      .value = "K",
      .help = "print the K most probable classes of each image",
      .why = "Use it when the second choice matters, or to see how certain a "
             "model is. K is at most the number of classes, and models that "
             "predict numbers have only one answer." },
    { .name = "threads",
      .kind = PL_PARAM_INT,
      .offset = offsetof(predict_options, threads),
      .least = 1,
      .most = 1024,
      .help = "compute threads (default: the cores)",
      .why = "Lower it to leave cores to other processes, such as a training "
             "that is still in progress. It changes only the time, except in "
             "the last digits of layers that oneDNN computes." },
    { .name = "best",
      .kind = PL_PARAM_FLAG,
      .offset = offsetof(predict_options, best),
      .help = "use the checkpoint with the lowest test loss, kept by train "
              "--keep-best",
      .why = "The newest checkpoint is used by default, which may already "
             "overfit. It needs a run that was trained with --keep-best and "
             "has tested at least once." },
    { .name = "json",
      .kind = PL_PARAM_FLAG,
      .offset = offsetof(predict_options, json),
      .help = "print one line of JSON for each example",
      .why = "For programs: each line has the file, the number of the example, "
             "the class and its probability, or the predicted numbers. With "
             "--top it also has a list of the classes." },
    { .name = "csv",
      .kind = PL_PARAM_FLAG,
      .offset = offsetof(predict_options, csv),
      .needs = "json=false",
      .help =
          "print CSV: source, example, rank, class, name, probability; for a "
          "model that predicts numbers: source, example, number, value",
      .why = "For spreadsheets and data frames: one row for each answer, so "
             "--top 3 prints three rows for an example. Sparse models print "
             "text or JSON only." },
};

typedef struct answer {
    int32_t class;
    double logit;
    double probability;
} answer;

/* One `predict` command, from the opened run to the printed lines. */
typedef struct session {
    const predict_options *options;
    pl_trained *trained;
    pl_predictor *predictor;
    answer *best; /* [options->top], the most probable first */
    bool several; /* several files: lines name theirs */
    const pl_dataset *set;
    const char *word; /* as given */
} session;

static pl_status check_examples(const session *s)
{
    pl_shape shape = s->set->shape, want = s->trained->job.example;
    char a[PL_SHAPE_TEXT], b[PL_SHAPE_TEXT];
    if (s->set->sparse)
        return PL_FAIL(PL_USAGE,
                       "%s has sparse examples, but the model was "
                       "trained on dense ones",
                       s->word);
    if (!pl_shape_equal(shape, want))
        return PL_FAIL(
            PL_USAGE, "examples of %s are %s, but the model was trained on %s",
            s->word, pl_shape_text(shape, a), pl_shape_text(want, b));
    return PL_OK;
}

/* The best classes in order; of equal ones the first, as in tests. */
static void find_best(const session *s, const float *logits)
{
    int64_t found = 0;
    for (int32_t c = 0; c < s->trained->job.classes; c++) {
        int64_t at = found < s->options->top ? found++ : found;
        for (; at > 0 && (double)logits[c] > s->best[at - 1].logit; at--)
            if (at < found)
                s->best[at] = s->best[at - 1];
        if (at < found)
            s->best[at] = (answer) { .class = c, .logit = (double)logits[c] };
    }
}

/* Softmax over all classes, kept for the best of them. */
static pl_status find_probabilities(const session *s, const float *logits)
{
    double most = s->best[0].logit, sum = 0;
    for (int32_t c = 0; c < s->trained->job.classes; c++)
        sum += exp((double)logits[c] - most);
    if (!isfinite(sum))
        return PL_FAIL(PL_NUMERIC, "the model's output is not finite");
    for (int64_t k = 0; k < s->options->top; k++)
        s->best[k].probability = exp(s->best[k].logit - most) / sum;
    return PL_OK;
}

static pl_status set_answer(pl_json *json, const answer *best)
{
    PL_TRY(pl_json_set_int(json, "class", best->class));
    return pl_json_set_real(json, "probability", best->probability);
}

/* "top": [{"class": 7, "probability": 0.9}, ...] */
static pl_status set_top(pl_json *json, const session *s)
{
    pl_json *top;
    PL_TRY(pl_json_new_array(&top));
    pl_status status = PL_OK;
    for (int64_t k = 0; k < s->options->top && status == PL_OK; k++) {
        pl_json *item;
        PL_TRY_OUT(status, pl_json_new_object(&item));
        status = set_answer(item, &s->best[k]);
        if (status == PL_OK)
            status = pl_json_append_take(top, item);
        else
            pl_json_free(item);
    }
out:
    if (status == PL_OK)
        return pl_json_set_take(json, "top", top);
    pl_json_free(top);
    return status;
}

/* The name of an image's file; NULL: examples have only numbers. */
static const char *name_of(const session *s, int64_t index)
{
    return s->set->row_names != NULL ? s->set->row_names[index] : NULL;
}

static const char *class_name(const session *s, int32_t class)
{
    return pl_encoding_class(&s->trained->job.encoding, class);
}

static pl_status set_names(pl_json *json, const session *s, int64_t index)
{
    const char *name = name_of(s, index);
    const char *class = class_name(s, s->best[0].class);
    if (name != NULL)
        PL_TRY(pl_json_set_text(json, "example", name));
    return class != NULL ? pl_json_set_text(json, "name", class) : PL_OK;
}

static pl_status print_json(const session *s, int64_t index)
{
    pl_json *json;
    PL_TRY(pl_json_new_object(&json));
    pl_status status;
    PL_TRY_OUT(status, pl_json_set_text(json, "file", s->word));
    PL_TRY_OUT(status, pl_json_set_int(json, "index", index));
    PL_TRY_OUT(status, set_answer(json, &s->best[0]));
    PL_TRY_OUT(status, set_names(json, s, index));
    if (s->options->top > 1)
        PL_TRY_OUT(status, set_top(json, s));
    PL_TRY_OUT(status, pl_json_print(json, stdout));
out:
    pl_json_free(json);
    return status;
}

static pl_status print_line(pl_buffer *line)
{
    pl_status status = pl_buffer_status(line);
    if (status == PL_OK)
        fwrite(line->data, 1, line->bytes, stdout);
    pl_buffer_close(line);
    return status;
}

static void put_source(pl_buffer *line, const session *s)
{
    if (!s->several)
        return;
    pl_quote_terminal(line, s->word);
    pl_buffer_text(line, ":");
}

/* Names of files and classes are untrusted: they come from a folder or a
 * run.json. */
static pl_status print_text(const session *s, int64_t index)
{
    pl_buffer line = { .data = NULL };
    const char *name = name_of(s, index);
    put_source(&line, s);
    if (name != NULL)
        pl_quote_terminal(&line, name);
    else
        pl_buffer_format(&line, "%lld", (long long)index);
    for (int64_t k = 0; k < s->options->top; k++) {
        const char *class = class_name(s, s->best[k].class);
        pl_buffer_text(&line, " ");
        if (class != NULL)
            pl_quote_terminal(&line, class);
        else
            pl_buffer_format(&line, "%d", s->best[k].class);
        pl_buffer_format(&line, " %.6f", s->best[k].probability);
    }
    pl_buffer_text(&line, "\n");
    return print_line(&line);
}

/* source, example, rank, class, name, probability */
static pl_status print_csv(const session *s, int64_t index)
{
    pl_buffer line = { .data = NULL };
    const char *name = name_of(s, index);
    for (int64_t k = 0; k < s->options->top; k++) {
        const char *class = class_name(s, s->best[k].class);
        pl_quote_csv(&line, s->word);
        pl_buffer_text(&line, ",");
        if (name != NULL)
            pl_quote_csv(&line, name);
        else
            pl_buffer_format(&line, "%lld", (long long)index);
        pl_buffer_format(&line, ",%lld,%d,", (long long)k + 1,
                         s->best[k].class);
        pl_quote_csv(&line, class != NULL ? class : "");
        pl_buffer_format(&line, ",%.7g\n", s->best[k].probability);
    }
    return print_line(&line);
}

/* --- models that predict numbers ---------------------------------------- */

/* "prediction": 2.5, or a list for several numbers. */
static pl_status set_numbers(pl_json *json, const session *s,
                             const float *numbers)
{
    int32_t count = s->trained->job.classes;
    if (count == 1)
        return pl_json_set_real(json, "prediction", (double)numbers[0]);
    pl_json *list;
    PL_TRY(pl_json_new_array(&list));
    pl_status status = PL_OK;
    for (int32_t i = 0; i < count && status == PL_OK; i++)
        status = pl_json_append_real(list, (double)numbers[i]);
    if (status == PL_OK)
        return pl_json_set_take(json, "prediction", list);
    pl_json_free(list);
    return status;
}

static pl_status print_numbers_json(const session *s, int64_t index,
                                    const float *numbers)
{
    pl_json *json;
    PL_TRY(pl_json_new_object(&json));
    pl_status status;
    PL_TRY_OUT(status, pl_json_set_text(json, "file", s->word));
    PL_TRY_OUT(status, pl_json_set_int(json, "index", index));
    PL_TRY_OUT(status, set_numbers(json, s, numbers));
    PL_TRY_OUT(status, pl_json_print(json, stdout));
out:
    pl_json_free(json);
    return status;
}

/* source, example, number, value */
static pl_status print_numbers_csv(const session *s, int64_t index,
                                   const float *numbers)
{
    pl_buffer line = { .data = NULL };
    for (int32_t i = 0; i < s->trained->job.classes; i++) {
        pl_quote_csv(&line, s->word);
        pl_buffer_format(&line, ",%lld,%d,%.9g\n", (long long)index, i + 1,
                         (double)numbers[i]);
    }
    return print_line(&line);
}

static pl_status print_numbers_text(const session *s, int64_t index,
                                    const float *numbers)
{
    pl_buffer line = { .data = NULL };
    put_source(&line, s);
    pl_buffer_format(&line, "%lld", (long long)index);
    for (int32_t i = 0; i < s->trained->job.classes; i++)
        pl_buffer_format(&line, " %.7g", (double)numbers[i]);
    pl_buffer_text(&line, "\n");
    return print_line(&line);
}

static pl_status print_numbers(const session *s, int64_t index,
                               const float *numbers)
{
    for (int32_t i = 0; i < s->trained->job.classes; i++)
        if (!isfinite(numbers[i]))
            return PL_FAIL(PL_NUMERIC, "the model's output is not finite");
    if (s->options->json)
        return print_numbers_json(s, index, numbers);
    if (s->options->csv)
        return print_numbers_csv(s, index, numbers);
    return print_numbers_text(s, index, numbers);
}

/* --- classifiers -------------------------------------------------------- */

static pl_status print_class(const session *s, int64_t index,
                             const float *logits)
{
    find_best(s, logits);
    PL_TRY(find_probabilities(s, logits));
    if (s->options->json)
        return print_json(s, index);
    if (s->options->csv)
        return print_csv(s, index);
    return print_text(s, index);
}

static pl_status print_example(const session *s, int64_t index,
                               const float *logits)
{
    pl_status status = s->trained->job.network->numeric
                           ? print_numbers(s, index, logits)
                           : print_class(s, index, logits);
    return status == PL_OK ? PL_OK
                           : pl_context(status, "%s: example %lld", s->word,
                                        (long long)index);
}

static pl_status print_examples(const session *s)
{
    int64_t count = s->set->count, classes = s->trained->job.classes;
    int64_t room = pl_predictor_room(s->predictor);
    /* Without a reader of the output there is nothing left to compute. */
    for (int64_t first = 0; first < count && !ferror(stdout); first += room) {
        int64_t rows = count - first < room ? count - first : room;
        pl_view view = pl_view_from(&s->set->features, first);
        const float *logits = pl_predictor_run(s->predictor, &view, rows);
        PL_TRY(pl_dataset_check(s->set, true));
        for (int64_t r = 0; r < rows; r++)
            PL_TRY(print_example(s, first + r, logits + r * classes));
    }
    return PL_OK;
}

/* A source in the syntax of training.  For a plain file, its first bytes tell
 * whether it is an image or IDX. */
static pl_status name_source(char **out, const char *word)
{
    pl_map map;
    if (strchr(word, ':') != NULL && pl_source_name(word)[0] != '\0')
        return pl_mem_copy_text(out, word);
    PL_TRY(pl_map_init(&map, word));
    bool image = pl_image_is(map.data, map.bytes);
    pl_map_close(&map);
    return pl_mem_format(out, "%s:%s", image ? "images" : "idx", word);
}

static pl_status predict_source(session *s, const char *word)
{
    pl_train_options *train = &s->trained->options.train;
    pl_dataset *set = NULL;
    char *source;
    PL_TRY(name_source(&source, word));
    train->holdout = 0; /* predict every example */
    pl_status status =
        pl_job_open_set(&s->trained->job, source, PL_SPLIT_TEST, &set);
    s->set = set;
    s->word = word;
    if (status == PL_OK)
        status = check_examples(s);
    if (status == PL_OK)
        status = print_examples(s);
    pl_dataset_free(set);
    pl_mem_free(source);
    return status;
}

static pl_status open_session(session *s, const pl_app *app, const char *run)
{
    PL_TRY(pl_trained_new(&s->trained, &(pl_trained_opts) {
                                           .app = app,
                                           .run = run,
                                           .threads = s->options->threads,
                                           .no_data = true,
                                           .best = s->options->best,
                                       }));
    const pl_job *job = &s->trained->job;
    if (job->network->sparse)
        return s->options->top == 1
                   ? PL_OK
                   : PL_FAIL(PL_USAGE,
                             "--top %lld: a sparse model gives one "
                             "probability, that of label 1",
                             (long long)s->options->top);
    if (s->options->top > 1 && job->network->numeric)
        return PL_FAIL(PL_USAGE,
                       "--top %lld: the model predicts numbers, not classes",
                       (long long)s->options->top);
    if (s->options->top > job->classes)
        return PL_FAIL(PL_USAGE, "--top %lld: the model has only %d classes",
                       (long long)s->options->top, job->classes);
    PL_TRY(PL_NEW(s->best, (size_t)s->options->top));
    return pl_predictor_new(&s->predictor,
                            &(pl_predictor_opts) {
                                .network = job->network,
                                .pool = job->pool,
                                .kernels = job->kernels,
                                .part = job->options->train.eval_batch,
                            });
}

static pl_status predict_one(session *s, const char *word)
{
    if (!s->trained->job.network->sparse)
        return predict_source(s, word);
    return pl_predict_sparse(s->trained, &(pl_predict_sparse_opts) {
                                             .source = word,
                                             .json = s->options->json,
                                             .several = s->several,
                                         });
}

static pl_status predict(const pl_app *app, const predict_options *options,
                         char **words, int count)
{
    if (count < 2)
        return PL_FAIL(PL_USAGE, "predict needs a run folder and files: "
                                 "predict RUN FILE...");
    session s = { .options = options, .several = count > 2 };
    pl_status status = open_session(&s, app, words[0]);
    if (status == PL_OK && options->csv && s.trained->job.network->sparse)
        status = PL_FAIL(PL_USAGE, "--csv is for dense models; a sparse one "
                                   "prints number and probability");
    if (status == PL_OK && options->csv)
        printf(s.trained->job.network->numeric
                   ? "source,example,number,value\n"
                   : "source,example,rank,class,name,probability\n");
    for (int i = 1; i < count && status == PL_OK; i++)
        status = predict_one(&s, words[i]);
    pl_predictor_free(s.predictor);
    pl_mem_free(s.best);
    pl_trained_free(s.trained);
    return status;
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    predict_options options;
    pl_words words;
    PL_TRY(
        pl_command_parse(&pl_cmd_predict, app, &options, argc, argv, &words));
    if (words.list == NULL)
        return PL_OK;
    pl_status status = predict(app, &options, words.list, words.count);
    pl_mem_free(words.list);
    return status;
}

const pl_command pl_cmd_predict = {
    .name = "predict",
    .usage = "predict RUN FILE... [flags]",
    .help = "classify examples with a run's newest checkpoint",
    .about =
        "Print the number, class and probability of each example, using the "
        "newest\ncheckpoint of the run in the folder RUN. FILE is a PNG, JPEG "
        "or IDX file (plain\nor .gz), or any source of training data: "
        "npy:FILE, csv:FILE, images:DIR, ... A\nsparse model prints the "
        "probability of label 1 of each example, a model that\npredicts "
        "numbers its prediction.",
    .examples = {
        { "predict runs/a digits/t10k-images-idx3-ubyte", "classes of images" },
        { "predict runs/b libsvm:new.svm", "probabilities from a sparse model" },
        { "predict runs/a images.gz --best", "with the checkpoint of "
                                             "--keep-best" },
    },
    .run = run,
    .params = params,
    .param_count = sizeof params / sizeof *params,
};

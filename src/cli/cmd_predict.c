/* cmd_predict.c - `predict`: classes and probabilities of images, or of the
 * examples of a sparse source. */
#include "app/predict/predict_sparse.h"
#include "app/predict/predictor.h"
#include "app/train/trained.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "data/idx/idx.h"
#include "tensor/shape.h"

#include <math.h>
#include <stdio.h>

typedef struct predict_options {
    int64_t top;
    int64_t threads;
    bool json;
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
      .help = "print the K best classes of each image" },
    { .name = "threads",
      .kind = PL_PARAM_INT,
      .offset = offsetof(predict_options, threads),
      .least = 1,
      .most = 1024,
      .help = "threads that compute (default: the cores)" },
    { .name = "best",
      .kind = PL_PARAM_FLAG,
      .offset = offsetof(predict_options, best),
      .help = "by the checkpoint with the lowest test loss, of train "
              "--keep-best" },
    { .name = "json",
      .kind = PL_PARAM_FLAG,
      .offset = offsetof(predict_options, json),
      .help = "print one line of JSON for each example" },
};

typedef struct answer {
    int32_t class;
    double logit;
    double probability;
} answer;

/* One `predict` from opened run to printed lines. */
typedef struct session {
    const predict_options *options;
    pl_trained *trained;
    pl_predictor *predictor;
    answer *best; /* options->top of them, the best first */
    bool several; /* files: lines say which */
} session;

/* [9, 28, 28] -> [28, 28] */
static pl_shape example_of(pl_shape images)
{
    pl_shape shape = { .rank = images.rank - 1 };
    for (int d = 1; d < images.rank; d++)
        shape.dim[d - 1] = images.dim[d];
    return shape;
}

static pl_status check_images(const session *s, const pl_idx *images,
                              const char *path)
{
    pl_shape shape = example_of(images->shape), want = s->trained->job.example;
    char a[PL_SHAPE_TEXT], b[PL_SHAPE_TEXT];
    if (shape.rank == 0)
        return PL_FAIL(PL_USAGE,
                       "%s holds one number an example, as files of labels "
                       "do; expected images of %s",
                       path, pl_shape_text(want, b));
    if (!pl_shape_equal(shape, want))
        return PL_FAIL(PL_USAGE,
                       "images of %s are %s, but the model was trained on %s",
                       path, pl_shape_text(shape, a), pl_shape_text(want, b));
    return PL_OK;
}

/* The best classes in order; of equal ones the first, as in a test. */
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

/* Softmax over all classes, for the best of them. */
static pl_status find_probabilities(const session *s, const float *logits)
{
    double most = s->best[0].logit, sum = 0;
    for (int32_t c = 0; c < s->trained->job.classes; c++)
        sum += exp((double)logits[c] - most);
    if (!isfinite(sum))
        return PL_FAIL(PL_NUMERIC, "what the model computes is not finite");
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

static pl_status print_json(const session *s, const char *path, int64_t index)
{
    char *text = NULL;
    pl_json *json;
    PL_TRY(pl_json_new_object(&json));
    pl_status status;
    PL_TRY_OUT(status, pl_json_set_text(json, "file", path));
    PL_TRY_OUT(status, pl_json_set_int(json, "index", index));
    PL_TRY_OUT(status, set_answer(json, &s->best[0]));
    if (s->options->top > 1)
        PL_TRY_OUT(status, set_top(json, s));
    PL_TRY_OUT(status, pl_json_text(json, 0, &text));
    printf("%s\n", text);
out:
    pl_mem_free(text);
    pl_json_free(json);
    return status;
}

static void print_text(const session *s, const char *path, int64_t index)
{
    if (s->several)
        printf("%s:", path);
    printf("%lld", (long long)index);
    for (int64_t k = 0; k < s->options->top; k++)
        printf(" %d %.6f", s->best[k].class, s->best[k].probability);
    printf("\n");
}

static pl_status print_image(const session *s, const char *path, int64_t index,
                             const float *logits)
{
    find_best(s, logits);
    pl_status status = find_probabilities(s, logits);
    if (status == PL_OK && s->options->json)
        status = print_json(s, path, index);
    else if (status == PL_OK)
        print_text(s, path, index);
    return status == PL_OK
               ? PL_OK
               : pl_context(status, "%s: image %lld", path, (long long)index);
}

static pl_status print_images(const session *s, const pl_idx *images,
                              const char *path)
{
    int64_t count = images->shape.dim[0], classes = s->trained->job.classes;
    pl_view all = {
        .data = images->data,
        .stride = pl_shape_row(s->trained->job.example),
        .dtype = PL_UINT8,
        .scale = 1.0f / 255.0f,
    };
    int64_t room = pl_predictor_room(s->predictor);
    /* With the reader gone there is nothing left to compute for. */
    for (int64_t first = 0; first < count && !ferror(stdout); first += room) {
        int64_t rows = count - first < room ? count - first : room;
        pl_view view = pl_view_from(&all, first);
        const float *logits = pl_predictor_run(s->predictor, &view, rows);
        PL_TRY(pl_map_check(&images->map));
        for (int64_t r = 0; r < rows; r++)
            PL_TRY(print_image(s, path, first + r, logits + r * classes));
    }
    return PL_OK;
}

static pl_status predict_file(const session *s, const char *path)
{
    pl_idx images;
    PL_TRY(pl_idx_init(&images, path));
    pl_status status = check_images(s, &images, path);
    if (status == PL_OK)
        status = print_images(s, &images, path);
    pl_idx_close(&images);
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

static pl_status predict_one(const session *s, const char *word)
{
    if (!s->trained->job.network->sparse)
        return predict_file(s, word);
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
    PL_TRY(pl_command_parse(
        &pl_cmd_predict, app,
        "Print number, class and probability of each image in the IDX files, "
        "plain or\n.gz, by the newest checkpoint of the run in the folder RUN; "
        "of a sparse\nmodel, number and probability of label 1 of each example "
        "of libsvm:FILE or any\nother source.",
        &options, argc, argv, &words));
    if (words.list == NULL)
        return PL_OK;
    pl_status status = predict(app, &options, words.list, words.count);
    pl_mem_free(words.list);
    return status;
}

const pl_command pl_cmd_predict = {
    .name = "predict",
    .usage = "predict RUN FILE... [flags]",
    .help = "classify examples by the newest checkpoint of a run",
    .run = run,
    .params = params,
    .param_count = sizeof params / sizeof *params,
};

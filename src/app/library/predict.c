/* predict.c - a trained model inside a program: opens its checkpoint, checks
 * that data is of its kind, and turns the network's output into predictions. */
#include "paceline/predict.h"
#include "app/library/training.h"
#include "app/predict/predictor.h"
#include "app/predict/score.h"
#include "app/train/trained.h"
#include "base/mem.h"
#include "data/memory/memory.h"
#include "nn/onnx/export.h"
#include "state/safetensors/safetensors.h"

#include <math.h>
#include <string.h>

#define SPARSE_BATCH 4096

struct pl_predict {
    pl_app app;
    pl_app_files files; /* holds the model of a run that was trained from a
                           file */
    pl_trained *trained;
};

static const pl_job *job_of(const pl_predict *predict)
{
    return &predict->trained->job;
}

static bool is_sparse(const pl_predict *predict)
{
    return predict->trained->options.model->sparse;
}

/* --- opening ---------------------------------------------------------- */

static pl_status open_trained(pl_predict *predict, const pl_predict_opts *opts)
{
    if (opts->run == NULL)
        return PL_FAIL(PL_USAGE, "a prediction needs a run folder");
    predict->app = (pl_app) { .program = "paceline", .files = &predict->files };
    if (opts->own != NULL || opts->net != NULL)
        PL_TRY(pl_library_model(&predict->app, NULL, opts->own, opts->net,
                                &predict->app.mine));
    return pl_trained_new(&predict->trained, &(pl_trained_opts) {
                                                 .app = &predict->app,
                                                 .run = opts->run,
                                                 .threads = opts->threads,
                                                 .no_data = true,
                                                 .best = opts->best,
                                             });
}

pl_status pl_predict_open(pl_predict **out, const pl_predict_opts *opts)
{
    pl_predict *predict;
    PL_TRY(PL_NEW(predict, 1));
    pl_status status = open_trained(predict, opts);
    if (status == PL_OK)
        *out = predict;
    else
        pl_predict_free(predict);
    return status;
}

void pl_predict_free(pl_predict *predict)
{
    if (predict == NULL)
        return;
    pl_trained_free(predict->trained);
    pl_app_files_close(&predict->files);
    pl_mem_free(predict);
}

void pl_predict_describe(const pl_predict *predict, pl_predict_info *out)
{
    const pl_trained *trained = predict->trained;
    const pl_job *job = job_of(predict);
    bool sparse = is_sparse(predict);
    *out = (pl_predict_info) {
        .model = trained->options.model->name,
        .sparse = sparse,
        .example = sparse ? PL_SCALAR : job->example,
        .columns = sparse ? job->example.dim[0] : 0,
        .classes = job->classes,
        .outputs = sparse ? 1 : job->classes,
        .numeric = job->network->numeric,
        .step = trained->progress.step,
        .tensors = pl_params_count(job->network->params),
        .elements = pl_params_elements(job->network->params),
    };
}

/* --- predicting ------------------------------------------------------- */

/* A set of examples to be predicted or tested. */
static pl_status open_data(pl_predict *predict, const pl_data *data,
                           pl_dataset **out)
{
    pl_job with = *job_of(predict);
    if (data->info.labelled && data->info.numeric != with.network->numeric)
        return PL_FAIL(PL_USAGE,
                       "%s has %s as labels, but the model predicts "
                       "%s",
                       data->name, data->info.numeric ? "numbers" : "classes",
                       with.network->numeric ? "numbers" : "classes");
    PL_TRY(pl_job_open_memory(&predict->trained->job, data, out));
    with.train = NULL;
    with.test = *out;
    with.test->numbering = with.numbering; /* a program uses the model's ids */
    pl_status status = pl_job_check_data(&with);
    if (status != PL_OK)
        pl_dataset_free(*out);
    return status;
}

/* Softmax in place, in double precision until the final rounding. */
static pl_status to_probabilities(float *values, int64_t rows, int32_t classes)
{
    for (int64_t r = 0; r < rows; r++, values += classes) {
        double most = (double)values[0], sum = 0;
        for (int32_t c = 1; c < classes; c++)
            most = (double)values[c] > most ? (double)values[c] : most;
        for (int32_t c = 0; c < classes; c++)
            sum += exp((double)values[c] - most);
        if (!isfinite(sum))
            return PL_FAIL(PL_NUMERIC, "the model's output for a row is not "
                                       "finite");
        for (int32_t c = 0; c < classes; c++)
            values[c] = (float)(exp((double)values[c] - most) / sum);
    }
    return PL_OK;
}

/* The network, of a dense or of a sparse model. */
typedef struct machine {
    pl_predictor *dense;
    pl_compute *sparse;
    int64_t batch;
} machine;

static pl_status open_machine(const pl_predict *predict, machine *m)
{
    const pl_job *job = job_of(predict);
    *m = (machine) { .batch = SPARSE_BATCH };
    if (is_sparse(predict))
        return pl_compute_new(&m->sparse, &(pl_compute_opts) {
                                              .network = job->network,
                                              .batch = m->batch,
                                              .pool = job->pool,
                                              .kernels = job->kernels,
                                              .forward = true,
                                          });
    PL_TRY(pl_predictor_new(&m->dense, &(pl_predictor_opts) {
                                           .network = job->network,
                                           .pool = job->pool,
                                           .kernels = job->kernels,
                                       }));
    m->batch = pl_predictor_room(m->dense);
    return PL_OK;
}

static pl_status answer(const pl_predict *predict, const machine *m,
                        const pl_batch *batch, int32_t kind, float *to)
{
    if (m->sparse != NULL) {
        PL_TRY(pl_compute_prepare(m->sparse, batch));
        (void)pl_compute_score(m->sparse, batch);
        memcpy(to, pl_compute_probs(m->sparse),
               (size_t)batch->rows * sizeof *to);
        return PL_OK;
    }
    int32_t classes = job_of(predict)->classes;
    memcpy(to, pl_predictor_run(m->dense, &batch->features, batch->rows),
           (size_t)(batch->rows * classes) * sizeof *to);
    return kind == PL_PREDICT_LOGITS
               ? PL_OK
               : to_probabilities(to, batch->rows, classes);
}

static pl_status answer_all(const pl_predict *predict, pl_dataset *set,
                            int32_t kind, float *to)
{
    int64_t outputs = is_sparse(predict) ? 1 : job_of(predict)->classes;
    machine m;
    pl_reader *reader = NULL;
    pl_batch batch = { .rows = 1 };
    pl_status status = open_machine(predict, &m);
    if (status == PL_OK)
        status = pl_reader_new(
            &reader, set,
            &(pl_reader_opts) { .batch = m.batch, .one_pass = true });
    while (status == PL_OK && batch.rows > 0) {
        status = pl_reader_next(reader, &batch);
        if (status == PL_OK && batch.rows > 0)
            status = answer(predict, &m, &batch, kind, to);
        to += batch.rows * outputs;
    }
    pl_reader_free(reader);
    pl_compute_free(m.sparse);
    pl_predictor_free(m.dense);
    return status;
}

pl_status pl_predict_run(pl_predict *predict, const pl_data *data, int32_t kind,
                         float *values, int64_t count)
{
    pl_data_info info;
    pl_dataset *set;
    pl_data_describe(data, &info);
    int64_t need =
        info.rows * (is_sparse(predict) ? 1 : job_of(predict)->classes);
    if (count < need)
        return PL_FAIL(PL_USAGE,
                       "room for %lld numbers, but %lld rows need "
                       "%lld",
                       (long long)count, (long long)info.rows, (long long)need);
    if (kind != PL_PREDICT_PROBABILITIES && kind != PL_PREDICT_LOGITS)
        return PL_FAIL(PL_USAGE, "%d is not a kind of prediction", kind);
    if (kind == PL_PREDICT_LOGITS && is_sparse(predict))
        return PL_FAIL(PL_UNSUPPORTED, "a sparse model gives probabilities, "
                                       "not logits");
    if (kind == PL_PREDICT_PROBABILITIES && job_of(predict)->network->numeric)
        return PL_FAIL(PL_UNSUPPORTED, "the model predicts numbers, not "
                                       "probabilities; ask for the logits");
    PL_TRY(open_data(predict, data, &set));
    pl_status status = answer_all(predict, set, kind, values);
    pl_dataset_free(set);
    return status;
}

/* --- testing ---------------------------------------------------------- */

/* A set opened for predictions may have no labels. */
static pl_status check_labels(const pl_dataset *set)
{
    if (set->sparse || set->labels.data != NULL)
        return PL_OK;
    return PL_FAIL(PL_USAGE, "%s has no labels to test with", set->name);
}

static pl_status open_source(pl_predict *predict, const char *source,
                             pl_dataset **out)
{
    pl_train_options *train = &predict->trained->options.train;
    pl_job *job = &predict->trained->job, with;
    double holdout = train->holdout;
    if (source == NULL)
        source = train->test_data != NULL ? train->test_data : train->data;
    if (strcmp(source, train->data) != 0)
        train->holdout = 0;
    pl_status opened = pl_job_open_set(job, source, PL_SPLIT_TEST, out);
    train->holdout = holdout;
    PL_TRY(opened);
    with = *job;
    with.train = NULL;
    with.test = *out;
    pl_status status = check_labels(*out);
    if (status == PL_OK)
        status = pl_job_check_data(&with);
    if (status != PL_OK)
        pl_dataset_free(*out);
    return status;
}

pl_status pl_predict_evaluate(pl_predict *predict, const pl_data *data,
                              const char *source, pl_evaluation *out)
{
    pl_dataset *set;
    pl_score score;
    if (data != NULL && source != NULL)
        return PL_FAIL(PL_USAGE, "data and a source: give one of them");
    if (data != NULL && !data->info.labelled)
        return PL_FAIL(PL_USAGE, "%s has no labels to test with", data->name);
    PL_TRY(data != NULL ? open_data(predict, data, &set)
                        : open_source(predict, source, &set));
    pl_status status =
        pl_score_set(job_of(predict), set,
                     predict->trained->options.train.eval_batch, NULL, &score);
    if (status == PL_OK)
        *out = (pl_evaluation) {
            .examples = set->count,
            .loss = score.loss,
            .accuracy = score.accuracy,
            .auc = score.binary ? score.auc : (double)NAN,
            .precision = score.binary ? score.precision : (double)NAN,
            .recall = score.binary ? score.recall : (double)NAN,
            .calibration = score.binary ? score.calibration : (double)NAN,
            .top5_accuracy = score.binary ? (double)NAN : score.top5,
            .rmse = score.numeric ? score.rmse : (double)NAN,
            .mae = score.numeric ? score.mae : (double)NAN,
            .r2 = score.numeric ? score.r2 : (double)NAN,
        };
    pl_dataset_free(set);
    return status;
}

/* --- parameters ------------------------------------------------------- */

pl_status pl_predict_get(const pl_predict *predict, int32_t index,
                         pl_predict_tensor *out)
{
    const pl_params *params = job_of(predict)->network->params;
    if (index < 0 || index >= pl_params_count(params))
        return PL_FAIL(PL_USAGE, "parameter %d, expected 0 to %d", index,
                       pl_params_count(params) - 1);
    const pl_params_item *item = pl_params_get(params, index);
    *out = (pl_predict_tensor) {
        .name = item->name,
        .shape = item->shape,
        .values = pl_params_data(params, index),
        .count = item->count,
    };
    return PL_OK;
}

static pl_status export_onnx(const pl_predict *predict, const char *path)
{
    pl_buffer file = { 0 };
    pl_status status = pl_onnx_export(job_of(predict)->network, &file);
    if (status == PL_OK)
        status = pl_buffer_save(&file, path);
    pl_buffer_close(&file);
    return status;
}

static pl_status export_safetensors(const pl_predict *predict, const char *path)
{
    const pl_params *params = job_of(predict)->network->params;
    size_t count = (size_t)pl_params_count(params);
    pl_safetensors_pair about = { "model",
                                  predict->trained->options.model->name };
    pl_safetensor *tensors;
    PL_TRY(PL_NEW(tensors, count));
    for (size_t i = 0; i < count; i++) {
        const pl_params_item *item = pl_params_get(params, (int)i);
        tensors[i] = (pl_safetensor) {
            .name = item->name,
            .dtype = PL_FLOAT32,
            .shape = item->shape,
            .data = pl_params_data(params, (int)i),
        };
    }
    pl_status status =
        pl_safetensors_write(path,
                             &(pl_safetensors_content) { .tensors = tensors,
                                                         .count = count,
                                                         .metadata = &about,
                                                         .metadata_count = 1 },
                             NULL);
    pl_mem_free(tensors);
    return status;
}

pl_status pl_predict_export(const pl_predict *predict, const char *path)
{
    return pl_onnx_is_file(path) ? export_onnx(predict, path)
                                 : export_safetensors(predict, path);
}

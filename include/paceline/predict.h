/* predict.h - predictions and tests of a trained model, and its parameters.
 *
 * A predictor is the model of a run folder with the parameters of one
 * checkpoint: the newest complete one, or the best (train with keep-best).  It
 * holds the whole model, however many servers wrote the checkpoint.
 *
 * Every struct here may be zeroed first; a field that is 0 has its default.
 *
 * Threads: a predictor is used by one thread at a time. */
#ifndef PACELINE_PREDICT_H
#define PACELINE_PREDICT_H

#include <paceline/data.h>
#include <paceline/model.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct pl_predict pl_predict;

typedef struct pl_predict_opts {
    const char *run; /* the run folder; required */
    bool best;       /* the checkpoint with the lowest test loss */
    int32_t threads; /* default: the cores */
    /* For a run of a model that is not built in, the model; borrowed. */
    const pl_model *own;
    const pl_net *net;
} pl_predict_opts;

/* PL_NOTFOUND when the run has no complete checkpoint (or no best one). */
pl_status pl_predict_open(pl_predict **out,
                          const pl_predict_opts *opts) PL_MUST_CHECK;
void pl_predict_free(pl_predict *predict); /* NULL is fine */

/* Texts live as long as the predictor. */
typedef struct pl_predict_info {
    const char *model;
    bool sparse;
    pl_shape example; /* of dense models: the shape of one example */
    int64_t columns;  /* of sparse models: ids are below this */
    int32_t classes;
    int32_t outputs;  /* numbers per example: the classes; sparse: 1; of a model
                         with numeric labels, the numbers it predicts */
    bool numeric;     /* it predicts numbers, not classes */
    int64_t step;     /* of the checkpoint */
    int32_t tensors;  /* parameters, and... */
    int64_t elements; /* ... their elements in total */
} pl_predict_info;
void pl_predict_describe(const pl_predict *predict, pl_predict_info *out);

typedef enum pl_predict_kind {
    PL_PREDICT_PROBABILITIES, /* softmax; sparse: of label 1 */
    PL_PREDICT_LOGITS,        /* of dense models; for models that predict
                                 numbers, these numbers and the only kind */
} pl_predict_kind;

/* Write `outputs` numbers for every row of the data, in its order.  `count` is
 * the capacity of `values` in numbers: at least rows * outputs.  PL_USAGE when
 * the data does not have the model's kind and shape. */
pl_status pl_predict_run(pl_predict *predict, const pl_data *data, int32_t kind,
                         float *values, int64_t count) PL_MUST_CHECK;

/* The result of a test; NAN: does not apply to this model. */
typedef struct pl_evaluation {
    int64_t examples;
    double loss, accuracy;
    double auc, precision, recall, calibration; /* of binary classifiers */
    double top5_accuracy; /* of models with more than five classes */
    double rmse, mae, r2; /* of models that predict numbers */
} pl_evaluation;

/* Test it on data with labels, or on a source in the syntax of --test-data
 * ("mnist:data/mnist"); both NULL: on the run's own test data. */
pl_status pl_predict_evaluate(pl_predict *predict, const pl_data *data,
                              const char *source,
                              pl_evaluation *out) PL_MUST_CHECK;

/* Parameter number `index`, from 0 to tensors - 1; it lives as long as the
 * predictor. */
typedef struct pl_predict_tensor {
    const char *name; /* "dense1/weights" */
    pl_shape shape;
    const float *values; /* in C order */
    int64_t count;
} pl_predict_tensor;
pl_status pl_predict_get(const pl_predict *predict, int32_t index,
                         pl_predict_tensor *out) PL_MUST_CHECK;

/* Write one file, which replaces an existing one: the whole model as ONNX
 * (docs/onnx.md) where the name ends in .onnx, otherwise all parameters as
 * safetensors.  PL_UNSUPPORTED for a model that ONNX cannot express. */
pl_status pl_predict_export(const pl_predict *predict,
                            const char *path) PL_MUST_CHECK;

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif

/* predict.h - what a trained model says: of examples in memory, or of a test
 * set; and its parameters.
 *
 * A predictor is the model of a run folder with the parameters of one
 * checkpoint: the newest complete one, or the best (train with keep-best).
 * Whatever the number of servers that wrote it, it holds the whole model.
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
    pl_shape example; /* of dense models: what one example is */
    int64_t columns;  /* of sparse models: ids are below this */
    int32_t classes;
    int32_t outputs;  /* numbers an example: the classes; sparse: 1; of a model
                         that predicts numbers as many as that */
    bool numeric;     /* it predicts numbers */
    int64_t step;     /* of the checkpoint */
    int32_t tensors;  /* parameters, and... */
    int64_t elements; /* ... their numbers in all */
} pl_predict_info;
void pl_predict_describe(const pl_predict *predict, pl_predict_info *out);

typedef enum pl_predict_kind {
    PL_PREDICT_PROBABILITIES, /* softmax; sparse: of label 1 */
    PL_PREDICT_LOGITS,        /* of dense models; the only kind of those that
                                 predict numbers: these numbers */
} pl_predict_kind;

/* Of every row of the data, in its order, `outputs` numbers.  `count` is the
 * room of `values` in numbers: at least rows * outputs.  PL_USAGE when the
 * data is not of the model's kind and shape. */
pl_status pl_predict_run(pl_predict *predict, const pl_data *data, int32_t kind,
                         float *values, int64_t count) PL_MUST_CHECK;

/* The result of a test; NAN: not for this model. */
typedef struct pl_evaluation {
    int64_t examples;
    double loss, accuracy;
    double auc, precision, recall, calibration; /* of yes-or-no models */
    double top5_accuracy; /* of models with more than five classes */
    double rmse, mae, r2; /* of models that predict numbers */
} pl_evaluation;

/* Test it on data with labels, or on a source as --test-data has it
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

/* Write all parameters as one file, which replaces what is there: where the
 * name ends in .onnx the whole model as ONNX (docs/onnx.md), else the
 * parameters as safetensors.  PL_UNSUPPORTED for a model that ONNX cannot
 * express. */
pl_status pl_predict_export(const pl_predict *predict,
                            const char *path) PL_MUST_CHECK;

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif

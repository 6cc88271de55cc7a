/* nn.h - models, as a program defines them.
 *
 * A model is a name, a function that builds its graph, and its defaults.  The
 * function receives the input and the labels as nodes and sets the logits; the
 * library derives loss, gradients, training and evaluation.
 *
 * The examples of a sparse model are lists of non-zeros, with labels 0 and 1.
 * Its function only calls pl_sparse_layer.
 *
 * Threads: a model is constant; build runs in one thread. */
#ifndef PACELINE_NN_H
#define PACELINE_NN_H

#include <paceline/graph.h>

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct pl_model pl_model;

typedef struct pl_build {
    /* Inputs. */
    const pl_model *model; /* that is being built */
    pl_graph *graph;
    pl_node *input;      /* [batch, ...example], values scaled to 0 .. 1;
                            NULL for sparse models */
    pl_node *labels;     /* [batch], 0 .. classes-1; NULL for sparse models.
                            Numeric labels: float32 [batch, classes] */
    int32_t classes;     /* of the data, or the model's own --classes; with
                            numeric labels, the numbers per label */
    bool numeric;        /* labels are numbers: regression */
    const char *init;    /* how weights start: --init or the model's */
    const void *options; /* the model's own flags, parsed */
    int64_t features;    /* sparse models: ids are below this */
    const void *context; /* pl_model.context */
    /* Outputs. */
    pl_node *table;  /* sparse models: by pl_sparse_layer */
    pl_node *bias;   /* likewise */
    pl_node *logits; /* [batch, classes]; required */
    pl_node *loss;   /* a scalar, a mean over the batch; default: the softmax
                        cross-entropy, or the one that --loss selects */
} pl_build;

struct pl_model {
    const char *name; /* as in `train NAME` */
    const char *help; /* one line */
    pl_status (*build)(pl_build *build);
    bool sparse; /* examples are lists of non-zeros */

    /* Defaults for its flags; all may be left out. */
    const char *data; /* "digits" */
    pl_shape example; /* shape of synthetic examples; [28, 28] */
    int32_t classes;  /* of synthetic data; 10 */
    const char *init; /* "glorot" */
    double lr;        /* 0.1; sparse: by --optimizer */
    int64_t batch;    /* 100 */
    int64_t epochs;   /* 5 */

    /* The model's own flags, and the struct they fill.  An integer flag
     * `classes` sets the number of classes of the model and of synthetic data;
     * without it the data decides. */
    const pl_param *params;
    size_t param_count;
    size_t options_bytes;

    /* Set by the program for a model that it read from a file. */
    const struct pl_model_file *file;
    const void *context; /* passed to build */
};

/* A dense layer: "name/weights" [units, inputs] and "name/bias" [units].
 * Inputs of higher rank are flattened. */
pl_node *pl_dense(pl_build *build, const char *name, pl_node *src,
                  int64_t units);

/* Batch normalization of [batch, channels, ...]: "name/scale" of ones and
 * "name/shift" of zeros, which are trained, and the running statistics
 * "name/mean" and "name/variance", which each step moves by a tenth towards
 * those of the batch. */
pl_node *pl_batch_norm_layer(pl_build *build, const char *name, pl_node *src);

/* Layer normalization over the last dimension: "name/scale" of ones and
 * "name/shift" of zeros. */
pl_node *pl_layer_norm_layer(pl_build *build, const char *name, pl_node *src);

/* The only layer of a sparse model: "name/weights" [features] and "name/bias"
 * [1].  The logit of label 1 is the bias plus the sum of an example's
 * non-zeros, each times its weight. */
void pl_sparse_layer(pl_build *build, const char *name);

/* A convolution: "name/weights" [outs, channels, kernel, kernel] and
 * "name/bias" [outs] over images [batch, channels, height, width]. */
pl_node *pl_conv_layer(pl_build *build, const char *name, pl_node *src,
                       int64_t outs, int64_t kernel, int64_t stride,
                       int64_t pad);

/* The same without a bias, for use before a normalization. */
pl_node *pl_conv_layer_plain(pl_build *build, const char *name, pl_node *src,
                             int64_t outs, int64_t kernel, int64_t stride,
                             int64_t pad);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif

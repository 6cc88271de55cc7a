/* nn.h - models: what a user writes to train something of their own.
 *
 * A model is a name, a function that builds its graph, and its defaults.  The
 * function gets the input and the labels as nodes and sets the logits; loss,
 * gradients, training and evaluation follow from there.
 *
 * A sparse model is of examples that are lists of non-zeros, with labels 0 and
 * 1.  Its function calls pl_sparse_layer and nothing else.
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
    /* Given. */
    const pl_model *model; /* that is built */
    pl_graph *graph;
    pl_node *input;      /* [batch, ...example], values scaled to 0 .. 1;
                            NULL for sparse models */
    pl_node *labels;     /* [batch], 0 .. classes-1; likewise.  With numbers as
                            labels float32 of [batch, classes] */
    int32_t classes;     /* of the data, or the model's own --classes; how many
                            numbers a label has */
    bool numeric;        /* labels are numbers: regression */
    const char *init;    /* how weights start: --init or the model's */
    const void *options; /* the model's own flags, parsed */
    int64_t features;    /* sparse models: ids are below this */
    const void *context; /* pl_model.context */
    /* To be set. */
    pl_node *table;  /* sparse models: by pl_sparse_layer */
    pl_node *bias;   /* likewise */
    pl_node *logits; /* [batch, classes]; required */
    pl_node *loss;   /* a scalar, the mean of something over the batch;
                        default: the softmax cross-entropy, or what --loss
                        says */
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

    /* Flags of its own, and the struct they fill.  One named `classes` (an
     * integer) says how many classes the model is built for, and how many
     * synthetic data has; without it that is up to the data. */
    const pl_param *params;
    size_t param_count;
    size_t options_bytes;

    /* Set by the program for a model that it read from a file. */
    const struct pl_model_file *file;
    const void *context; /* handed to build */
};

/* A dense layer: "name/weights" [units, inputs] and "name/bias" [units].
 * Inputs of higher rank are flattened. */
pl_node *pl_dense(pl_build *build, const char *name, pl_node *src,
                  int64_t units);

/* Batch normalization of [batch, channels, ...]: "name/scale" of ones and
 * "name/shift" of zeros, which are trained, and the running statistics
 * "name/mean" and "name/variance", which follow the batches by a tenth a
 * step. */
pl_node *pl_batch_norm_layer(pl_build *build, const char *name, pl_node *src);

/* Layer normalization over the last dimension: "name/scale" of ones and
 * "name/shift" of zeros. */
pl_node *pl_layer_norm_layer(pl_build *build, const char *name, pl_node *src);

/* The only layer of a sparse model: "name/weights" [features], of which an
 * example takes those of its non-zeros, times their values, and "name/bias"
 * [1].  The sum is the logit of label 1. */
void pl_sparse_layer(pl_build *build, const char *name);

/* A convolution: "name/weights" [outs, channels, kernel, kernel] and
 * "name/bias" [outs] over images [batch, channels, height, width]. */
pl_node *pl_conv_layer(pl_build *build, const char *name, pl_node *src,
                       int64_t outs, int64_t kernel, int64_t stride,
                       int64_t pad);

/* The same without a bias, as in front of a normalization. */
pl_node *pl_conv_layer_plain(pl_build *build, const char *name, pl_node *src,
                             int64_t outs, int64_t kernel, int64_t stride,
                             int64_t pad);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif

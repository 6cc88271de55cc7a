/* nn.h - models: what a user writes to train something of their own.
 *
 * A model is a name, a function that builds its graph, and its defaults.  The
 * function gets the input and the labels as nodes and sets the logits; loss,
 * gradients, training and evaluation follow from there.
 *
 * Threads: a model is constant; build runs in one thread. */
#ifndef PACELINE_NN_H
#define PACELINE_NN_H

#include <paceline/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pl_build {
    /* Given. */
    pl_graph *graph;
    pl_node *input;      /* [batch, ...example], values scaled to 0 .. 1 */
    pl_node *labels;     /* [batch], 0 .. classes-1 */
    int32_t classes;     /* of the data, or the model's own --classes */
    const char *init;    /* how weights start: --init or the model's */
    const void *options; /* the model's own flags, parsed */
    /* To be set. */
    pl_node *logits; /* [batch, classes]; required */
    pl_node *loss;   /* a scalar, the mean of something over the batch;
                        default: the softmax cross-entropy */
} pl_build;

typedef struct pl_model {
    const char *name; /* as in `train NAME` */
    const char *help; /* one line */
    pl_status (*build)(pl_build *build);

    /* Defaults for its flags; all may be left out. */
    const char *data; /* "digits" */
    pl_shape example; /* shape of synthetic examples; [28, 28] */
    int32_t classes;  /* of synthetic data; 10 */
    const char *init; /* "glorot" */
    double lr;        /* 0.1 */
    int64_t batch;    /* 100 */
    int64_t epochs;   /* 5 */

    /* Flags of its own, and the struct they fill.  One named `classes` (an
     * integer) says how many classes the model is built for, and how many
     * synthetic data has; without it that is up to the data. */
    const pl_param *params;
    size_t param_count;
    size_t options_bytes;
} pl_model;

/* A dense layer: "name/weights" [units, inputs] and "name/bias" [units].
 * Inputs of higher rank are flattened. */
pl_node *pl_dense(pl_build *build, const char *name, pl_node *src,
                  int64_t units);

/* A convolution: "name/weights" [outs, channels, kernel, kernel] and
 * "name/bias" [outs] over images [batch, channels, height, width]. */
pl_node *pl_conv_layer(pl_build *build, const char *name, pl_node *src,
                       int64_t outs, int64_t kernel, int64_t stride,
                       int64_t pad);

#ifdef __cplusplus
}
#endif

#endif

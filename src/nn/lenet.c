/* LeNet-5 (LeCun et al. 1998) as it is used today: two convolutions with
 * pooling, three dense layers. */
#include "nn/models.h"

#include <stdio.h>

typedef struct options {
    const char *kernel; /* "5,5" */
    int64_t pad;
    int pool;       /* 0: max, 1: avg */
    int activation; /* 0: relu, 1: tanh */
} options;

static const pl_param params[] = {
    { .name = "kernel",
      .kind = PL_PARAM_TEXT,
      .offset = offsetof(options, kernel),
      .fallback = "5,5",
      .value = "A,B",
      .help = "kernel sizes of the two convolutions" },
    { .name = "pad",
      .kind = PL_PARAM_INT,
      .offset = offsetof(options, pad),
      .fallback = "2",
      .least = 0,
      .most = 16,
      .value = "N",
      .help = "zeros around the image for the first convolution" },
    { .name = "pool",
      .kind = PL_PARAM_CHOICE,
      .offset = offsetof(options, pool),
      .fallback = "max",
      .choices = "max|avg",
      .help = "pooling" },
    { .name = "activation",
      .kind = PL_PARAM_CHOICE,
      .offset = offsetof(options, activation),
      .fallback = "relu",
      .choices = "relu|tanh",
      .help = "what follows each layer but the last" },
};

static pl_status parse_kernels(const char *text, int *first, int *second)
{
    char rest;
    if (sscanf(text, "%2d,%2d%c", first, second, &rest) != 2 || *first < 1 ||
        *second < 1)
        return PL_FAIL(PL_USAGE,
                       "--kernel: expected two sizes like 5,5, found \"%s\"",
                       text);
    return PL_OK;
}

static pl_status build(pl_build *b)
{
    const options *o = b->options;
    int first, second;
    PL_TRY(parse_kernels(o->kernel, &first, &second));
    pl_node *(*act)(pl_node *) = o->activation == 0 ? pl_relu : pl_tanh;
    pl_node *(*pool)(pl_node *, int64_t, int64_t) =
        o->pool == 0 ? pl_max_pool : pl_avg_pool;

    pl_shape input = pl_node_shape(b->input);
    pl_node *x = b->input;
    if (input.rank == 3) /* one channel */
        x = pl_reshape(x, PL_SHAPE(PL_BATCH, 1, input.dim[1], input.dim[2]));
    x = act(pl_conv_layer(b, "conv1", x, 6, first, 1, o->pad));
    x = pool(x, 2, 2);
    x = act(pl_conv_layer(b, "conv2", x, 16, second, 1, 0));
    x = pool(x, 2, 2);
    x = act(pl_dense(b, "dense1", x, 120));
    x = act(pl_dense(b, "dense2", x, 84));
    b->logits = pl_dense(b, "dense3", x, b->classes);
    return PL_OK;
}

const pl_model pl_model_lenet = {
    .name = "lenet",
    .help = "LeNet-5: two convolutions with pooling, three dense layers",
    .build = build,
    .lr = 0.01,
    .batch = 32,
    .params = params,
    .param_count = sizeof params / sizeof *params,
    .options_bytes = sizeof(options),
};

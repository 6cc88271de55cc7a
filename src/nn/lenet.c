/* LeNet-5 (LeCun et al. 1998) in its modern form: two convolutions with
 * pooling, three dense layers. */
#include "nn/models.h"

#include <stdbool.h>
#include <stdio.h>

#define PAD_MOST 16

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
      .help = "kernel sizes of the two convolutions",
      .why = "The default is that of LeNet-5. Smaller kernels compute faster "
             "and suit smaller images, such as 3,3 with --pad 1." },
    { .name = "pad",
      .kind = PL_PARAM_INT,
      .offset = offsetof(options, pad),
      .fallback = "2",
      .least = 0,
      .most = PAD_MOST,
      .value = "N",
      .help = "zero padding around the image for the first convolution",
      .why = "The default keeps the size of the image after a kernel of 5; "
             "give 1 with a kernel of 3. Without padding the pixels at the "
             "edge count less." },
    { .name = "pool",
      .kind = PL_PARAM_CHOICE,
      .offset = offsetof(options, pool),
      .fallback = "max",
      .choices = "max|avg",
      .help = "pooling",
      .why =
          "max usually learns faster; avg is closer to the original LeNet-5." },
    { .name = "activation",
      .kind = PL_PARAM_CHOICE,
      .offset = offsetof(options, activation),
      .fallback = "relu",
      .choices = "relu|tanh",
      .help = "activation after each layer but the last",
      .why = "relu is faster and usually more accurate; tanh is closer to the "
             "original LeNet-5 and may need a higher --lr." },
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

/* Is a side of the image long enough for both convolutions, each with a pooling
 * of 2? */
static bool side_fits(int64_t side, int64_t first, int64_t second, int64_t pad)
{
    int64_t pooled = (side + 2 * pad - first + 1) / 2;
    return pooled - second + 1 >= 2;
}

/* Reject images that are too small; the error names the largest kernels that
 * fit. */
static pl_status check_image(pl_shape input, const options *o, int first,
                             int second)
{
    if (input.rank != 3 && input.rank != 4)
        return PL_OK; /* checked by the operators */
    int64_t h = input.dim[input.rank - 2], w = input.dim[input.rank - 1];
    int64_t side = h < w ? h : w;
    if (side_fits(side, first, second, o->pad))
        return PL_OK;
    int64_t kernel = (first > second ? first : second) | 1;
    kernel = kernel < 2 * PAD_MOST ? kernel : 2 * PAD_MOST + 1;
    while (kernel > 0 && !side_fits(side, kernel, kernel, kernel / 2))
        kernel -= 2;
    if (kernel <= 0)
        return PL_FAIL(PL_USAGE,
                       "images of %lld x %lld, expected 4 x 4 or more",
                       (long long)h, (long long)w);
    return PL_FAIL(PL_USAGE,
                   "images of %lld x %lld are too small for --kernel %d,%d "
                   "--pad %lld; give --kernel %lld,%lld --pad %lld",
                   (long long)h, (long long)w, first, second, (long long)o->pad,
                   (long long)kernel, (long long)kernel,
                   (long long)(kernel / 2));
}

static pl_status build(pl_build *b)
{
    const options *o = b->options;
    int first, second;
    PL_TRY(parse_kernels(o->kernel, &first, &second));
    PL_TRY(check_image(pl_node_shape(b->input), o, first, second));
    pl_node *(*act)(pl_node *) = o->activation == 0 ? pl_relu : pl_tanh;
    pl_node *(*pool)(pl_node *, int64_t, int64_t) =
        o->pool == 0 ? pl_max_pool : pl_avg_pool;

    pl_shape input = pl_node_shape(b->input);
    pl_node *x = b->input;
    if (input.rank == 3) /* add a channel */
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

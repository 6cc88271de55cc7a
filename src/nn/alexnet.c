/* AlexNet (Krizhevsky 2014, "One weird trick ..."): one tower of five
 * convolutions, three dense layers; 61,100,840 parameters for 1000 classes of
 * images [3, 224, 224].  Other sizes work if at least one pixel is left after
 * the last pooling. */
#include "nn/models.h"

#define SIDE_LEAST 63 /* less is reduced to 0 by five strides and pools */

typedef struct options {
    int64_t classes;
    double dropout;
} options;

static const pl_param params[] = {
    { .name = "classes",
      .kind = PL_PARAM_INT,
      .offset = offsetof(options, classes),
      .fallback = "1000",
      .least = 1,
      .most = 1e6,
      .value = "N",
      .help = "number of classes",
      .why = "The size of the last layer, and the number of classes of "
             "synthetic data. Data with more classes is refused; with fewer, "
             "some outputs are never right. The default is that of ImageNet." },
    { .name = "dropout",
      .kind = PL_PARAM_REAL,
      .offset = offsetof(options, dropout),
      .fallback = "0.5",
      .least = 0,
      .most = 0.99,
      .value = "X",
      .help = "fraction of the inputs of the first two dense layers dropped "
              "in training",
      .why = "Raise it if the test loss rises while the training loss falls; 0 "
             "turns it off, which learns faster from much data." },
};

static pl_node *conv(pl_build *b, const char *name, pl_node *x, int64_t outs,
                     int64_t kernel, int64_t stride, int64_t pad)
{
    return pl_relu(pl_conv_layer(b, name, x, outs, kernel, stride, pad));
}

static pl_status check_image(pl_shape input)
{
    if (input.rank != 3 && input.rank != 4)
        return PL_OK; /* checked by the operators */
    int64_t h = input.dim[input.rank - 2], w = input.dim[input.rank - 1];
    if (h >= SIDE_LEAST && w >= SIDE_LEAST)
        return PL_OK;
    return PL_FAIL(PL_USAGE,
                   "images of %lld x %lld, expected %d x %d or more; lenet "
                   "takes smaller ones",
                   (long long)h, (long long)w, SIDE_LEAST, SIDE_LEAST);
}

static pl_status build(pl_build *b)
{
    const options *o = b->options;
    float dropout = (float)o->dropout;
    pl_shape input = pl_node_shape(b->input);
    PL_TRY(check_image(input));
    pl_node *x = b->input;
    if (input.rank == 3) /* add a channel */
        x = pl_reshape(x, PL_SHAPE(PL_BATCH, 1, input.dim[1], input.dim[2]));

    x = pl_max_pool(conv(b, "conv1", x, 64, 11, 4, 2), 3, 2);
    x = pl_max_pool(conv(b, "conv2", x, 192, 5, 1, 2), 3, 2);
    x = conv(b, "conv3", x, 384, 3, 1, 1);
    x = conv(b, "conv4", x, 256, 3, 1, 1);
    x = pl_max_pool(conv(b, "conv5", x, 256, 3, 1, 1), 3, 2);

    x = pl_dropout(pl_flatten(x), dropout);
    x = pl_dropout(pl_relu(pl_dense(b, "dense1", x, 4096)), dropout);
    x = pl_relu(pl_dense(b, "dense2", x, 4096));
    b->logits = pl_dense(b, "dense3", x, b->classes);
    return PL_OK;
}

const pl_model pl_model_alexnet = {
    .name = "alexnet",
    .help = "AlexNet: five convolutions, three dense layers, dropout",
    .build = build,
    .data = "synthetic",
    .example = { 3, { 3, 224, 224 } },
    .init = "he", /* with Glorot, eight layers of ReLU would fade */
    .lr = 0.01,
    .batch = 128,
    .params = params,
    .param_count = sizeof params / sizeof *params,
    .options_bytes = sizeof(options),
};

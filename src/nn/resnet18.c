/* ResNet-18 (He et al. 2016): a stem, four stages of two residual blocks, the
 * mean over the remaining image, one dense layer.
 *
 * For large images (ImageNet's 224 x 224) the stem is a convolution of 7 x 7
 * with stride 2 and a pooling; for small ones (CIFAR's 32 x 32) one of 3 x 3,
 * so that the last stage still has 4 x 4 pixels.  11,689,512 trained parameters
 * for 1000 classes of large images, as torchvision's. */
#include "nn/models.h"

#include <stdio.h>

#define STAGES     4
#define BLOCKS     2
#define SIDE_LEAST 8  /* three stages halve it */
#define SIDE_LARGE 64 /* --stem auto: large from this size on */

typedef struct options {
    int64_t classes;
    int64_t width;
    int stem;
    double smoothing;
} options;

enum {
    STEM_AUTO,
    STEM_SMALL,
    STEM_LARGE
};

static const pl_param params[] = {
    { .name = "classes",
      .kind = PL_PARAM_INT,
      .offset = offsetof(options, classes),
      .fallback = "10",
      .least = 1,
      .most = 1e6,
      .value = "N",
      .help = "number of classes",
      .why = "The size of the last layer, and the number of classes of "
             "synthetic data. Data with more classes is refused; with fewer, "
             "some outputs are never right. The default is that of CIFAR-10." },
    { .name = "width",
      .kind = PL_PARAM_INT,
      .offset = offsetof(options, width),
      .fallback = "64",
      .least = 1,
      .most = 1024,
      .value = "N",
      .help = "channels of the first stage; each further one doubles them",
      .why = "Work and memory of the parameters grow with its square: 16 makes "
             "a model for quick experiments, 64 is that of the paper." },
    { .name = "stem",
      .kind = PL_PARAM_CHOICE,
      .offset = offsetof(options, stem),
      .fallback = "auto",
      .choices = "auto|small|large",
      .help = "first layers: 3 x 3 (small), or 7 x 7 and a pooling (large); "
              "auto: large from 64 x 64 pixels on",
      .why = "small keeps details of small images. large shrinks an image to a "
             "quarter of each side first, so the later layers do about a "
             "sixteenth of the work." },
    { .name = "label-smoothing",
      .kind = PL_PARAM_REAL,
      .offset = offsetof(options, smoothing),
      .fallback = "0",
      .least = 0,
      .most = 0.99,
      .value = "X",
      .help = "fraction of the target spread evenly over all classes",
      .why = "0.1 is a common value: the model becomes less certain and often "
             "a little more accurate. Losses, also those of tests, are then "
             "higher and not comparable with runs without it." },
};

/* A convolution without bias and its normalization. */
static pl_node *conv(pl_build *b, const char *layer, int number, pl_node *x,
                     int64_t outs, int64_t kernel, int64_t stride)
{
    char name[64];
    snprintf(name, sizeof name, "%s/conv%d", layer, number);
    x = pl_conv_layer_plain(b, name, x, outs, kernel, stride, kernel / 2);
    snprintf(name, sizeof name, "%s/norm%d", layer, number);
    return pl_batch_norm_layer(b, name, x);
}

/* Two convolutions with a shortcut, which a third convolution brings to their
 * shape if it differs. */
static pl_node *block(pl_build *b, const char *layer, pl_node *x, int64_t outs,
                      int64_t stride)
{
    pl_node *y = pl_relu(conv(b, layer, 1, x, outs, 3, stride));
    y = conv(b, layer, 2, y, outs, 3, 1);
    if (stride != 1 || pl_node_shape(x).dim[1] != outs)
        x = conv(b, layer, 3, x, outs, 1, stride);
    return pl_relu(pl_add(y, x));
}

static pl_status check_image(pl_shape input)
{
    if (input.rank != 3 && input.rank != 4)
        return PL_OK; /* checked by the operators */
    int64_t h = input.dim[input.rank - 2], w = input.dim[input.rank - 1];
    if (h >= SIDE_LEAST && w >= SIDE_LEAST)
        return PL_OK;
    return PL_FAIL(PL_USAGE,
                   "images of %lld x %lld, expected %d x %d or more; mlp takes "
                   "smaller ones",
                   (long long)h, (long long)w, SIDE_LEAST, SIDE_LEAST);
}

static pl_node *stem(pl_build *b, pl_node *x)
{
    const options *o = b->options;
    pl_shape shape = pl_node_shape(x);
    if (x == NULL || shape.rank != 4)
        return pl_relu(conv(b, "stem", 1, x, o->width, 3, 1)); /* rejected */
    bool large = o->stem == STEM_LARGE ||
                 (o->stem == STEM_AUTO && shape.dim[2] >= SIDE_LARGE &&
                  shape.dim[3] >= SIDE_LARGE);
    if (!large)
        return pl_relu(conv(b, "stem", 1, x, o->width, 3, 1));
    x = pl_relu(conv(b, "stem", 1, x, o->width, 7, 2));
    return pl_max_pool(pl_pad(x, 1), 3, 2); /* no negative inputs */
}

static pl_status build(pl_build *b)
{
    const options *o = b->options;
    pl_shape input = pl_node_shape(b->input);
    PL_TRY(check_image(input));
    pl_node *x = b->input;
    if (input.rank == 3) /* add a channel */
        x = pl_reshape(x, PL_SHAPE(PL_BATCH, 1, input.dim[1], input.dim[2]));
    x = stem(b, x);
    for (int stage = 0; stage < STAGES && x != NULL; stage++)
        for (int i = 0; i < BLOCKS; i++) {
            char layer[40];
            snprintf(layer, sizeof layer, "stage%d/block%d", stage + 1, i + 1);
            x = block(b, layer, x, o->width << stage,
                      stage > 0 && i == 0 ? 2 : 1);
        }
    b->logits = pl_dense(b, "dense", pl_global_avg_pool(x), b->classes);
    if (o->smoothing > 0)
        b->loss = pl_mean(
            pl_softmax_xent_smooth(b->logits, b->labels, (float)o->smoothing));
    return PL_OK;
}

const pl_model pl_model_resnet18 = {
    .name = "resnet18",
    .help = "ResNet-18: residual blocks with batch normalization",
    .build = build,
    .data = "synthetic",
    .example = { 3, { 3, 32, 32 } },
    .init = "he",
    .lr = 0.1,
    .batch = 128,
    .params = params,
    .param_count = sizeof params / sizeof *params,
    .options_bytes = sizeof(options),
};

/* A convolutional network of an unusual shape: three blocks of 3x3 convolutions
 * with odd channel counts.
 *
 *   three_blocks train three_blocks --data mnist:DIR --epochs 3 */
#include <paceline.h>

static pl_node *block(pl_build *b, const char *name, pl_node *x, int64_t outs)
{
    x = pl_relu(pl_conv_layer(b, name, x, outs, 3, 1, 1));
    return pl_max_pool(x, 2, 2);
}

static pl_status build(pl_build *b)
{
    pl_shape input = pl_node_shape(b->input); /* [batch, height, width] */
    pl_node *x =
        pl_reshape(b->input, PL_SHAPE(PL_BATCH, 1, input.dim[1], input.dim[2]));
    x = block(b, "block1", x, 11);
    x = block(b, "block2", x, 23);
    x = block(b, "block3", x, 37);
    b->logits = pl_dense(b, "output", x, b->classes);
    return PL_OK;
}

static const pl_model three_blocks = {
    .name = "three_blocks",
    .help = "three blocks of 3x3 convolutions with 11, 23 and 37 channels",
    .build = build,
    .lr = 0.05,
    .batch = 32,
    .epochs = 3,
};

int main(int argc, char **argv)
{
    return pl_app_main(argc, argv, &three_blocks);
}

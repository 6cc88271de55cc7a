/* A program with an image network of current operators: convolutions with batch
 * normalization around a residual connection, two branches side by side, layer
 * normalization, and as its loss the Huber loss of the probabilities.
 *
 *   residual train residual --epochs 1 --workers 2 */
#include <paceline.h>

/* A convolution that keeps the size, normalized. */
static pl_node *conv(pl_build *b, const char *name, const char *norm,
                     pl_node *x, int64_t outs)
{
    return pl_batch_norm_layer(b, norm,
                               pl_conv_layer_plain(b, name, x, outs, 3, 1, 1));
}

static pl_status build(pl_build *b)
{
    pl_shape shape = pl_node_shape(b->input);
    pl_node *x = b->input;
    if (shape.rank == 3) /* one channel */
        x = pl_reshape(x, PL_SHAPE(PL_BATCH, 1, shape.dim[1], shape.dim[2]));
    x = pl_max_pool(pl_gelu(conv(b, "conv1", "norm1", x, 8)), 2, 2);
    x = pl_leaky_relu(pl_add(x, conv(b, "conv2", "norm2", x, 8)), 0.1f);
    x = pl_concat(x, pl_relu(conv(b, "conv3", "norm3", x, 8)), 1);
    x = pl_layer_norm_layer(b, "norm4", pl_global_avg_pool(x));
    b->logits = pl_dense(b, "dense", x, b->classes);
    pl_node *target = pl_one_hot(b->labels, b->classes);
    b->loss = pl_mean(pl_huber(pl_softmax(b->logits), target, 0.5f));
    return PL_OK;
}

static const pl_model residual = {
    .name = "residual",
    .help = "a residual block, two branches, the Huber loss",
    .build = build,
    .lr = 2,
    .batch = 50,
};

int main(int argc, char **argv)
{
    return pl_app_main(argc, argv, &residual);
}

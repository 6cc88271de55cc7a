/* A multilayer perceptron: dense layers of the widths in --hidden, each with an
 * activation, and one more for the classes. */
#include "nn/models.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define WIDTH_MOST  100000
#define LAYERS_MOST 32

typedef struct options {
    const char *hidden; /* "128,64" */
    int activation;
    double dropout;
    int normalize; /* 0: none, 1: batch, 2: layer */
} options;

static pl_node *leaky(pl_node *src)
{
    return pl_leaky_relu(src, 0.01f);
}

/* In the order of the flag's choices. */
static pl_node *(*const activations[])(pl_node *) = { pl_relu, leaky, pl_gelu,
                                                      pl_tanh, pl_sigmoid };

static const pl_param params[] = {
    { .name = "hidden",
      .kind = PL_PARAM_TEXT,
      .offset = offsetof(options, hidden),
      .fallback = "128,64",
      .value = "A,B,...",
      .help = "widths of the hidden layers",
      .why = "Wider and more layers can learn more, take longer and overfit "
             "sooner. Start with one or two layers, such as 256,64." },
    { .name = "activation",
      .kind = PL_PARAM_CHOICE,
      .offset = offsetof(options, activation),
      .fallback = "relu",
      .choices = "relu|leaky-relu|gelu|tanh|sigmoid",
      .help = "activation after each hidden layer",
      .why = "relu is the fastest; leaky-relu keeps units from becoming "
             "inactive, gelu is smoother, tanh and sigmoid are for comparisons "
             "with older networks." },
    { .name = "dropout",
      .kind = PL_PARAM_REAL,
      .offset = offsetof(options, dropout),
      .fallback = "0",
      .least = 0,
      .most = 0.99,
      .value = "X",
      .help = "fraction of each hidden layer's outputs dropped in training",
      .why = "Use 0.1 to 0.5 if the test loss rises while the training loss "
             "falls. Training then needs more epochs." },
    { .name = "normalize",
      .kind = PL_PARAM_CHOICE,
      .offset = offsetof(options, normalize),
      .fallback = "none",
      .choices = "none|batch|layer",
      .help = "normalization before each activation",
      .why = "Lets deeper networks learn with a higher --lr. batch needs "
             "batches of 16 examples or more; layer works with any batch and "
             "treats each example alone." },
};

/* The next width of the list; *text moves past it and its comma. */
static pl_status next_width(const char *all, const char **text, int64_t *width)
{
    char *end;
    errno = 0;
    long long value = strtoll(*text, &end, 10);
    bool ends = *end == '\0' || (*end == ',' && end[1] != '\0');
    if (end == *text || !ends || errno != 0 || value < 1 || value > WIDTH_MOST)
        return PL_FAIL(PL_USAGE,
                       "--hidden: expected widths of 1 to %d like 128,64, "
                       "found \"%s\"",
                       WIDTH_MOST, all);
    *width = value;
    *text = *end == ',' ? end + 1 : end;
    return PL_OK;
}

static pl_node *hidden_layer(pl_build *b, int number, pl_node *x, int64_t width)
{
    const options *o = b->options;
    char name[32], norm[40];
    snprintf(name, sizeof name, "dense%d", number);
    snprintf(norm, sizeof norm, "norm%d", number);
    x = pl_dense(b, name, x, width);
    if (o->normalize == 1)
        x = pl_batch_norm_layer(b, norm, x);
    else if (o->normalize == 2)
        x = pl_layer_norm_layer(b, norm, x);
    return pl_dropout(activations[o->activation](x), (float)o->dropout);
}

static pl_status build(pl_build *b)
{
    const options *o = b->options;
    const char *text = o->hidden;
    pl_node *x = b->input;
    int number = 1;
    for (; *text != '\0'; number++) {
        int64_t width = 0;
        PL_TRY(next_width(o->hidden, &text, &width));
        if (number > LAYERS_MOST)
            return PL_FAIL(PL_USAGE, "--hidden %s: expected %d layers or fewer",
                           o->hidden, LAYERS_MOST);
        x = hidden_layer(b, number, x, width);
    }
    char name[32];
    snprintf(name, sizeof name, "dense%d", number);
    b->logits = pl_dense(b, name, x, b->classes);
    return PL_OK;
}

const pl_model pl_model_mlp = {
    .name = "mlp",
    .help = "multilayer perceptron: dense layers of chosen widths",
    .build = build,
    .lr = 0.1,
    .params = params,
    .param_count = sizeof params / sizeof *params,
    .options_bytes = sizeof(options),
};

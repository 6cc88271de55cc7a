/* A program with a model of its own: one hidden layer, two flags.
 *
 *   two_layer train two_layer --hidden 64 --activation tanh --epochs 3
 *
 * It has every command and flag of `paceline`, and the built-in models. */
#include <paceline.h>

#include <stddef.h>

typedef struct options {
    int64_t hidden;
    int activation; /* index in "relu|tanh|sigmoid" */
} options;

static const pl_param params[] = {
    { .name = "hidden",
      .kind = PL_PARAM_INT,
      .offset = offsetof(options, hidden),
      .fallback = "128",
      .least = 1,
      .most = 65536,
      .value = "N",
      .help = "units of the hidden layer" },
    { .name = "activation",
      .kind = PL_PARAM_CHOICE,
      .offset = offsetof(options, activation),
      .fallback = "relu",
      .choices = "relu|tanh|sigmoid",
      .help = "what the hidden layer applies" },
};

static pl_status build(pl_build *b)
{
    static pl_node *(*const activations[])(pl_node *) = { pl_relu, pl_tanh,
                                                          pl_sigmoid };
    const options *o = b->options;
    pl_node *hidden = pl_dense(b, "hidden", b->input, o->hidden);
    hidden = activations[o->activation](hidden);
    b->logits = pl_dense(b, "output", hidden, b->classes);
    return PL_OK;
}

static const pl_model two_layer = {
    .name = "two_layer",
    .help = "a hidden layer between pixels and classes",
    .build = build,
    .params = params,
    .param_count = sizeof params / sizeof *params,
    .options_bytes = sizeof(options),
};

int main(int argc, char **argv)
{
    return pl_app_main(argc, argv, &two_layer);
}

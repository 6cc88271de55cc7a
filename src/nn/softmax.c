/* Softmax regression: one dense layer from pixels to classes. */
#include "nn/models.h"

static pl_status build(pl_build *b)
{
    b->logits = pl_dense(b, "softmax", b->input, b->classes);
    return PL_OK;
}

const pl_model pl_model_softmax = {
    .name = "softmax",
    .help = "softmax regression, one dense layer",
    .build = build,
    .init = "zeros",
    .lr = 0.1,
};

/* Logistic regression over millions of sparse features: one weight each. */
#include "nn/models.h"

static pl_status build(pl_build *b)
{
    pl_sparse_layer(b, "sparse");
    return PL_OK;
}

const pl_model pl_model_sparse = {
    .name = "sparse",
    .help = "logistic regression over millions of sparse features",
    .build = build,
    .sparse = true,
    .data = "synthetic-sparse",
    .example = { .rank = 1, .dim = { 33762578 } },
    .classes = 2,
    .init = "zeros",
    .batch = 100,
    .epochs = 1,
};

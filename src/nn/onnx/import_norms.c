/* import_norms.c - normalization and means over an image: decides whether batch
 * normalization learns from its batches or keeps the averages of the file. */
#include "nn/onnx/import.h"

#include "base/error.h"
#include "graph/graph.h"
#include "tensor/shape.h"

#include <string.h>

/* An export for inference has no training_mode: its averages are kept. */
static pl_status batch_norm(pl_import *im)
{
    bool trains = pl_import_int(im, "training_mode", 0) != 0;
    float rate = trains ? 1 - pl_import_float(im, "momentum", 0.9F) : 0;
    pl_node *src, *scale, *shift, *mean, *variance;
    if (!(rate >= 0 && rate <= 1))
        return PL_FAIL(PL_UNSUPPORTED, "momentum %g: expected 0 to 1",
                       (double)(1 - rate));
    PL_TRY(pl_import_in(im, 0, &src));
    PL_TRY(pl_import_vector(im, 1, "ones", -1, &scale));
    PL_TRY(pl_import_vector(im, 2, "zeros", -1, &shift));
    PL_TRY(pl_import_vector(im, 3, "zeros", rate, &mean));
    PL_TRY(pl_import_vector(im, 4, "ones", rate, &variance));
    im->out->node = pl_batch_norm(src, scale, shift, mean, variance,
                                  pl_import_float(im, "epsilon", 1e-5F));
    return PL_OK;
}

static pl_status layer_norm(pl_import *im)
{
    int64_t axis = pl_import_int(im, "axis", -1);
    pl_node *src, *scale, *shift;
    PL_TRY(pl_import_in(im, 0, &src));
    if (axis != -1 && axis != src->shape.rank - 1)
        return PL_FAIL(PL_UNSUPPORTED, "axis %lld: expected the last one",
                       (long long)axis);
    PL_TRY(pl_import_vector(im, 1, "ones", -1, &scale));
    PL_TRY(pl_import_vector(im, 2, "zeros", -1, &shift));
    im->out->node =
        pl_layer_norm(src, scale, shift, pl_import_float(im, "epsilon", 1e-5F));
    return PL_OK;
}

static pl_status global_average(pl_import *im)
{
    pl_node *src;
    PL_TRY(pl_import_in(im, 0, &src));
    im->out->node = pl_graph_unary(&pl_op_global_avg_pool, src);
    return PL_OK;
}

/* The axes of ReduceMean: an attribute up to opset 17, then an input. */
static pl_status mean_axes(const pl_import *im, int64_t *axes, int *count)
{
    const pl_onnx_attribute *list = pl_import_attribute(im, "axes");
    if (list == NULL)
        return pl_import_sizes(im, 1, axes, count);
    *count = list->count <= PL_ONNX_RANK ? (int)list->count : 0;
    if (*count > 0)
        memcpy(axes, list->ints, sizeof *axes * (size_t)*count);
    return PL_OK;
}

/* The rank of the input; for a part of a composed operator, the rank of that
 * operator's input. */
static int rank_of(const pl_import *im)
{
    const pl_import_value *src = im->in[0];
    const pl_node *node = src == NULL                     ? NULL
                          : src->part == PL_IMPORT_SQUARE ? src->of
                                                          : src->node;
    return node != NULL ? node->shape.rank : 0;
}

/* Over height and width, or for a layer normalization over the last axis. */
static pl_status reduce_mean(pl_import *im)
{
    int64_t axes[PL_ONNX_RANK];
    int count, rank = rank_of(im);
    bool over[PL_MAX_RANK] = { false };
    bool kept = pl_import_int(im, "keepdims", 1) != 0;
    PL_TRY(mean_axes(im, axes, &count));
    for (int i = 0; i < count; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis >= 0 && axis < rank)
            over[axis] = true;
    }
    if (count == 1 && rank > 1 && over[rank - 1] && kept)
        return pl_import_mean(im);
    if (count != 2 || rank != 4 || !over[2] || !over[3])
        return PL_FAIL(PL_UNSUPPORTED,
                       "it is supported only over the height and width of "
                       "images, axes 2 and 3, and over the last axis in a "
                       "layer normalization");
    PL_TRY(global_average(im));
    if (!kept)
        im->out->node = pl_flatten(im->out->node);
    return PL_OK;
}

const pl_import_op pl_import_norms[] = {
    { "BatchNormalization", batch_norm },
    { "GlobalAveragePool", global_average },
    { "LayerNormalization", layer_norm },
    { "ReduceMean", reduce_mean },
    { NULL, NULL },
};

/* import_shapes.c - the operators of an ONNX file that only change shapes, and
 * those that compute sizes for them (x.view(x.size(0), -1) of PyTorch is a
 * Shape, a Gather and a Concat): they are evaluated here, with the batch size
 * left open. */
#include "nn/onnx/import.h"

#include "base/error.h"
#include "graph/graph.h"
#include "tensor/shape.h"

#include <string.h>

static pl_status flatten(pl_import *im)
{
    pl_node *src;
    int64_t axis = pl_import_int(im, "axis", 1);
    PL_TRY(pl_import_in(im, 0, &src));
    if (axis != 1)
        return PL_FAIL(PL_UNSUPPORTED, "axis %lld: expected 1",
                       (long long)axis);
    im->out->node = pl_flatten(src);
    return PL_OK;
}

/* The batch stays the first dimension; if the file has its own batch size
 * there, it stands for any. */
static bool is_batch(const pl_import *im, int64_t size, bool rest)
{
    return size == PL_BATCH || size == 0 ||
           (im->batch != PL_BATCH && size == im->batch && rest);
}

/* Replace one size of -1 by the rest of the row. */
static pl_status fill_rest(pl_shape *shape, int rest, int64_t row)
{
    int64_t known = 1;
    for (int d = 1; d < shape->rank; d++)
        if (d != rest && (shape->dim[d] <= 0 ||
                          __builtin_mul_overflow(known, shape->dim[d], &known)))
            return PL_FAIL(PL_UNSUPPORTED,
                           "size %lld of dimension %d: expected a positive one",
                           (long long)shape->dim[d], d);
    if (rest > 0 && row % known != 0)
        return PL_FAIL(PL_SHAPE,
                       "%lld elements of an example do not make rows of %lld",
                       (long long)row, (long long)known);
    if (rest > 0)
        shape->dim[rest] = row / known;
    return PL_OK;
}

static pl_status reshape_to(pl_import *im, pl_node *src, const int64_t *sizes,
                            int count)
{
    pl_shape shape = { .rank = count, .dim = { PL_BATCH } };
    int rest = -1;
    if (count < 2 || count > PL_MAX_RANK || !pl_shape_batched(src->shape))
        return PL_FAIL(PL_UNSUPPORTED,
                       "%d dimensions: expected the batch and 1 to %d of an "
                       "example",
                       count, PL_MAX_RANK - 1);
    for (int d = 1; d < count; d++) {
        shape.dim[d] =
            sizes[d] == 0 && d < src->shape.rank ? src->shape.dim[d] : sizes[d];
        if (sizes[d] == -1)
            rest = d;
    }
    if (!is_batch(im, sizes[0], true))
        return PL_FAIL(PL_UNSUPPORTED,
                       "its first size is %lld, expected the batch: 0, or -1",
                       (long long)sizes[0]);
    PL_TRY(fill_rest(&shape, rest, pl_shape_row(src->shape)));
    im->out->node = pl_reshape(src, shape);
    return PL_OK;
}

static pl_status reshape(pl_import *im)
{
    pl_node *src;
    int64_t sizes[PL_ONNX_RANK];
    int count;
    PL_TRY(pl_import_in(im, 0, &src));
    PL_TRY(pl_import_sizes(im, 1, sizes, &count));
    return reshape_to(im, src, sizes, count);
}

/* --- dimensions of 1 ---------------------------------------------------- */

/* The axes: an input since opset 13. */
static pl_status axes_of(const pl_import *im, int rank, bool *chosen)
{
    int64_t axes[PL_ONNX_RANK];
    int count;
    memset(chosen, 0, PL_ONNX_RANK * sizeof *chosen);
    PL_TRY(pl_import_sizes(im, 1, axes, &count));
    for (int i = 0; i < count; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 1 || axis >= rank || axis >= PL_ONNX_RANK)
            return PL_FAIL(PL_UNSUPPORTED,
                           "axis %lld of %d dimensions: expected one of an "
                           "example's",
                           (long long)axes[i], rank);
        chosen[axis] = true;
    }
    return PL_OK;
}

static pl_status squeeze(pl_import *im)
{
    bool chosen[PL_ONNX_RANK];
    pl_node *src;
    if (pl_import_has(im, 0) && im->in[0]->listed) { /* with one size */
        const char *name = im->out->name;
        *im->out = *im->in[0];
        im->out->name = name;
        return PL_OK;
    }
    PL_TRY(pl_import_in(im, 0, &src));
    PL_TRY(axes_of(im, src->shape.rank, chosen));
    pl_shape shape = { .rank = 0 };
    for (int d = 0; d < src->shape.rank; d++)
        if (!chosen[d])
            shape.dim[shape.rank++] = src->shape.dim[d];
    im->out->node = pl_reshape(src, shape);
    return PL_OK;
}

static pl_status unsqueeze(pl_import *im)
{
    bool chosen[PL_ONNX_RANK];
    int64_t axes[PL_ONNX_RANK];
    int count, from = 0;
    pl_node *src;
    if (pl_import_has(im, 0) && im->in[0]->node == NULL)
        return squeeze(im); /* a size, or a constant: the same as a list */
    PL_TRY(pl_import_in(im, 0, &src));
    PL_TRY(pl_import_sizes(im, 1, axes, &count));
    int rank = src->shape.rank + count;
    PL_TRY(axes_of(im, rank, chosen));
    if (rank > PL_MAX_RANK)
        return PL_FAIL(PL_UNSUPPORTED, "%d dimensions: expected at most %d",
                       rank, PL_MAX_RANK);
    pl_shape shape = { .rank = rank };
    for (int d = 0; d < rank; d++)
        shape.dim[d] =
            chosen[d] || from >= src->shape.rank ? 1 : src->shape.dim[from++];
    im->out->node = pl_reshape(src, shape);
    return PL_OK;
}

/* Moving only dimensions of 1 changes nothing. */
static pl_status transpose(pl_import *im)
{
    const pl_onnx_attribute *perm = pl_import_attribute(im, "perm");
    pl_node *src;
    PL_TRY(pl_import_in(im, 0, &src));
    pl_shape from = src->shape, to = { .rank = from.rank };
    int64_t last = -1;
    bool moves = perm == NULL || perm->type != PL_ONNX_ATTR_INTS ||
                 perm->count != (size_t)from.rank;
    for (int d = 0; d < from.rank && !moves; d++) {
        int64_t axis = perm->ints[d];
        if (axis < 0 || axis >= from.rank)
            return PL_FAIL(PL_FORMAT, "axis %lld of %d dimensions",
                           (long long)axis, from.rank);
        to.dim[d] = from.dim[axis];
        if (from.dim[axis] == 1)
            continue;
        moves = axis < last;
        last = axis;
    }
    if (moves || to.dim[0] != PL_BATCH)
        return PL_FAIL(PL_UNSUPPORTED,
                       "it moves elements: only dimensions of size 1 can be "
                       "moved; export the model with its channels first");
    im->out->node = pl_reshape(src, to);
    return PL_OK;
}

/* A weight is unchanged: it is broadcast where it is combined with the
 * examples. */
static pl_status expand(pl_import *im)
{
    int64_t sizes[PL_ONNX_RANK];
    int count;
    pl_node *src;
    PL_TRY(pl_import_in(im, 0, &src));
    PL_TRY(pl_import_sizes(im, 1, sizes, &count));
    pl_shape shape = src->shape;
    im->out->node = src;
    if (!pl_shape_batched(shape))
        return PL_OK;
    if (count != shape.rank || (sizes[0] != 1 && !is_batch(im, sizes[0], true)))
        return PL_FAIL(PL_UNSUPPORTED,
                       "%d sizes, the first of them %lld: expected 1 and those "
                       "of an example",
                       count, count > 0 ? (long long)sizes[0] : 0);
    for (int d = 1; d < count; d++)
        if (sizes[d] != 1)
            shape.dim[d] = sizes[d];
    im->out->node = pl_broadcast(src, shape);
    return PL_OK;
}

/* --- lists of sizes ----------------------------------------------------- */

static pl_status shape_of(pl_import *im)
{
    pl_node *src;
    PL_TRY(pl_import_in(im, 0, &src));
    im->out->listed = true;
    im->out->count = src->shape.rank;
    memcpy(im->out->sizes, src->shape.dim,
           sizeof *src->shape.dim * (size_t)src->shape.rank);
    return PL_OK;
}

static pl_status gather(pl_import *im)
{
    int64_t sizes[PL_ONNX_RANK], which[PL_ONNX_RANK];
    int count, wanted;
    PL_TRY(pl_import_sizes(im, 0, sizes, &count));
    PL_TRY(pl_import_sizes(im, 1, which, &wanted));
    for (int i = 0; i < wanted; i++) {
        int64_t at = which[i] < 0 ? which[i] + count : which[i];
        if (at < 0 || at >= count)
            return PL_FAIL(PL_FORMAT, "index %lld of %d sizes",
                           (long long)which[i], count);
        im->out->sizes[i] = sizes[at];
    }
    im->out->listed = true;
    im->out->count = wanted;
    return PL_OK;
}

/* Concatenate results. */
static pl_status join(pl_import *im)
{
    int64_t axis = pl_import_int(im, "axis", 0);
    pl_node *all, *next;
    PL_TRY(pl_import_in(im, 0, &all));
    axis += axis < 0 ? all->shape.rank : 0;
    if (axis < 1 || axis >= all->shape.rank)
        return PL_FAIL(PL_UNSUPPORTED,
                       "axis %lld of %d dimensions: expected one of an "
                       "example's",
                       (long long)axis, all->shape.rank);
    for (size_t i = 1; i < im->node->input_count; i++) {
        PL_TRY(pl_import_in(im, (int)i, &next));
        all = pl_concat(all, next, (int)axis);
        PL_TRY(pl_graph_status(im->build->graph));
    }
    im->out->node = all;
    return PL_OK;
}

static pl_status concat(pl_import *im)
{
    int count = 0;
    if (pl_import_has(im, 0) && im->in[0]->node != NULL)
        return join(im);
    for (size_t i = 0; i < im->node->input_count; i++) {
        int64_t sizes[PL_ONNX_RANK];
        int more;
        PL_TRY(pl_import_sizes(im, (int)i, sizes, &more));
        if (count + more > PL_ONNX_RANK)
            return PL_FAIL(PL_UNSUPPORTED, "a list of more than %d sizes",
                           PL_ONNX_RANK);
        memcpy(im->out->sizes + count, sizes, sizeof *sizes * (size_t)more);
        count += more;
    }
    im->out->listed = true;
    im->out->count = count;
    return PL_OK;
}

/* From one of the attributes that can hold it. */
static pl_status constant(pl_import *im)
{
    const pl_onnx_attribute *value = pl_import_attribute(im, "value");
    const pl_onnx_attribute *one = pl_import_attribute(im, "value_int");
    const pl_onnx_attribute *list = pl_import_attribute(im, "value_ints");
    if (value != NULL && value->t != NULL) {
        im->out->tensor = value->t;
        return PL_OK;
    }
    size_t count = one != NULL ? 1 : list != NULL ? list->count : SIZE_MAX;
    if (count > PL_ONNX_RANK)
        return PL_FAIL(PL_UNSUPPORTED,
                       "expected a tensor, or at most %d integers",
                       PL_ONNX_RANK);
    im->out->listed = true;
    im->out->count = (int)count;
    if (one != NULL)
        im->out->sizes[0] = one->i;
    else if (count > 0)
        memcpy(im->out->sizes, list->ints, sizeof *list->ints * count);
    return PL_OK;
}

const pl_import_op pl_import_shapes[] = {
    { "Concat", concat },
    { "Constant", constant },
    { "Expand", expand },
    { "Flatten", flatten },
    { "Gather", gather },
    { "Reshape", reshape },
    { "Shape", shape_of },
    { "Squeeze", squeeze },
    { "Transpose", transpose },
    { "Unsqueeze", unsqueeze },
    { NULL, NULL },
};

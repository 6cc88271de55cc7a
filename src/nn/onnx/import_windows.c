/* import_windows.c - convolutions and pooling of an ONNX file: decides which
 * padding ours support. */
#include "nn/onnx/import.h"

#include "base/error.h"
#include "graph/graph.h"

#include <string.h>

/* Padding on every side by `kernel` sizes; SAME keeps the size of an image, and
 * is equal on all sides if the stride is 1 and the kernel odd. */
static pl_status padding(const pl_import *im, int64_t kernel, int64_t stride,
                         int64_t *out)
{
    const char *mode = pl_import_text(im, "auto_pad", "NOTSET");
    *out = 0;
    if (mode[0] == '\0' || strcmp(mode, "NOTSET") == 0)
        return pl_import_same(im, "pads", 0, out);
    if (strcmp(mode, "VALID") == 0)
        return PL_OK;
    if (strncmp(mode, "SAME_", 5) != 0 || stride != 1 || kernel % 2 != 1)
        return PL_FAIL(PL_UNSUPPORTED,
                       "auto_pad %s with a kernel of %lld and a stride of "
                       "%lld: expected padding that is the same on all sides",
                       mode, (long long)kernel, (long long)stride);
    *out = kernel / 2;
    return PL_OK;
}

/* Reject attributes that ours lack. */
static pl_status check_windows(const pl_import *im)
{
    int64_t dilation;
    PL_TRY(pl_import_same(im, "dilations", 1, &dilation));
    if (dilation == 1 && pl_import_int(im, "group", 1) == 1)
        return PL_OK;
    return PL_FAIL(
        PL_UNSUPPORTED, "dilations of %lld and %lld groups: expected 1 of each",
        (long long)dilation, (long long)pl_import_int(im, "group", 1));
}

static pl_status conv(pl_import *im)
{
    pl_node *src, *weights, *bias = NULL;
    int64_t stride, pad;
    PL_TRY(check_windows(im));
    PL_TRY(pl_import_in(im, 0, &src));
    PL_TRY(pl_import_in(im, 1, &weights));
    if (pl_import_has(im, 2))
        PL_TRY(pl_import_in(im, 2, &bias));
    if (weights->shape.rank != 4)
        return PL_FAIL(PL_UNSUPPORTED,
                       "weights of %d dimensions: expected 4, of images",
                       weights->shape.rank);
    PL_TRY(pl_import_same(im, "strides", 1, &stride));
    PL_TRY(padding(im, weights->shape.dim[2], stride, &pad));
    im->out->node = pl_conv2d(src, weights, bias, stride, pad);
    return PL_OK;
}

/* Ours drop a last window that is not full. */
static pl_status check_ceil(const pl_import *im, pl_shape src, int64_t size,
                            int64_t stride)
{
    if (pl_import_int(im, "ceil_mode", 0) == 0 || src.rank != 4 || stride < 1)
        return PL_OK;
    for (int d = 2; d < 4; d++)
        if ((src.dim[d] - size) % stride != 0)
            return PL_FAIL(PL_UNSUPPORTED,
                           "ceil_mode: windows of %lld every %lld do not fill "
                           "images of %lld",
                           (long long)size, (long long)stride,
                           (long long)src.dim[d]);
    return PL_OK;
}

/* Zero padding is equivalent to that of MaxPool, which never wins, if no
 * element is negative. */
static bool is_never_negative(const pl_node *node)
{
    while (node->op == &pl_op_max_pool || node->op == &pl_op_avg_pool ||
           node->op == &pl_op_dropout || node->op == &pl_op_pad)
        node = node->in[0];
    return node->op == &pl_op_relu || node->op == &pl_op_sigmoid ||
           node->op == &pl_op_softmax;
}

/* Add the zeros, which ours need as a separate step. */
static pl_status pad_for_pool(const pl_import *im, int64_t size, int64_t pad,
                              pl_node **src)
{
    if (pad == 0)
        return PL_OK;
    if (pad < 0 || pad >= size)
        return PL_FAIL(PL_UNSUPPORTED,
                       "padding of %lld: expected less than its windows of "
                       "%lld",
                       (long long)pad, (long long)size);
    if (strcmp(im->node->op, "MaxPool") == 0 && !is_never_negative(*src))
        return PL_FAIL(PL_UNSUPPORTED,
                       "padding of %lld: it is supported only after Relu, "
                       "Sigmoid or Softmax",
                       (long long)pad);
    if (strcmp(im->node->op, "AveragePool") == 0 &&
        pl_import_int(im, "count_include_pad", 0) == 0)
        return PL_FAIL(PL_UNSUPPORTED,
                       "padding of %lld: it is supported only with "
                       "count_include_pad",
                       (long long)pad);
    *src = pl_pad(*src, pad);
    return pl_graph_status(im->build->graph);
}

static pl_status pool(pl_import *im)
{
    bool largest = strcmp(im->node->op, "MaxPool") == 0;
    pl_node *src;
    int64_t size, stride, pad;
    PL_TRY(check_windows(im));
    PL_TRY(pl_import_in(im, 0, &src));
    PL_TRY(pl_import_same(im, "kernel_shape", 0, &size));
    PL_TRY(pl_import_same(im, "strides", 1, &stride));
    PL_TRY(padding(im, size, stride, &pad));
    PL_TRY(pad_for_pool(im, size, pad, &src));
    PL_TRY(check_ceil(im, src->shape, size, stride));
    im->out->node = largest ? pl_max_pool(src, size, stride)
                            : pl_avg_pool(src, size, stride);
    return PL_OK;
}

/* Zeros on all sides of images, as `export` writes them. */
static pl_status pad(pl_import *im)
{
    const char *mode = pl_import_text(im, "mode", "constant");
    int64_t pads[PL_ONNX_RANK];
    int count;
    float value = 0;
    pl_node *src;
    PL_TRY(pl_import_in(im, 0, &src));
    PL_TRY(pl_import_sizes(im, 1, pads, &count));
    if (pl_import_has(im, 2))
        PL_TRY(pl_import_scalar(im, 2, &value));
    bool same = strcmp(mode, "constant") == 0 && value == 0 && count == 8 &&
                !pl_import_has(im, 3);
    for (int d = 0; d < count && same; d++)
        same = pads[d] == (d % 4 >= 2 ? pads[2] : 0);
    if (!same)
        return PL_FAIL(PL_UNSUPPORTED,
                       "expected the same number of zeros on all sides of "
                       "images");
    im->out->node = pl_pad(src, pads[2]);
    return PL_OK;
}

const pl_import_op pl_import_windows[] = {
    { "AveragePool", pool }, { "Conv", conv }, { "MaxPool", pool },
    { "Pad", pad },          { NULL, NULL },
};

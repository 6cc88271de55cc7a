/* import_ops.c - what the operators of an ONNX file become: decides which of
 * their attributes ours can have, and refuses the others by name. */
#include "nn/onnx/import.h"

#include "base/error.h"
#include "graph/graph.h"
#include "tensor/shape.h"

#include <string.h>

static pl_status unary(pl_import *im, pl_node *(*add)(pl_node *))
{
    pl_node *src;
    PL_TRY(pl_import_in(im, 0, &src));
    im->out->node = add(src);
    return PL_OK;
}

static pl_status relu(pl_import *im)
{
    return unary(im, pl_relu);
}

static pl_status sigmoid(pl_import *im)
{
    return unary(im, pl_sigmoid);
}

static pl_status hyperbolic(pl_import *im)
{
    return unary(im, pl_tanh);
}

/* The same value under another name. */
static pl_status same(pl_import *im)
{
    const char *name = im->out->name;
    if (!pl_import_has(im, 0))
        return PL_FAIL(PL_FORMAT, "it has no input");
    *im->out = *im->in[0];
    im->out->name = name;
    return PL_OK;
}

static pl_status cast(pl_import *im)
{
    int64_t to = pl_import_int(im, "to", PL_ONNX_FLOAT);
    bool integers =
        im->in[0] != NULL && (im->in[0]->listed || im->in[0]->node == NULL);
    if (to == PL_ONNX_FLOAT ||
        (integers && (to == PL_ONNX_INT64 || to == PL_ONNX_INT32)))
        return same(im);
    return PL_FAIL(PL_UNSUPPORTED, "it casts to type %lld, expected float",
                   (long long)to);
}

/* In training it drops; a file made for inference says so all the same. */
static pl_status dropout(pl_import *im)
{
    pl_node *src;
    float rate = 0.5F;
    PL_TRY(pl_import_in(im, 0, &src));
    if (pl_import_has(im, 1))
        PL_TRY(pl_import_scalar(im, 1, &rate));
    im->out->node = pl_dropout(src, rate);
    return PL_OK;
}

/* As the last operator, over the classes: the loss begins with it. */
static pl_status softmax(pl_import *im)
{
    int64_t axis = pl_import_int(im, "axis", -1);
    pl_node *src;
    PL_TRY(pl_import_in(im, 0, &src));
    if (strcmp(im->out->name, im->model->outputs[0].name) != 0 ||
        src->shape.rank != 2 || (axis != -1 && axis != 1))
        return PL_FAIL(PL_UNSUPPORTED,
                       "it is expected at the end of the graph, over the "
                       "classes");
    im->last = im->node->op;
    im->out->node = src;
    return PL_OK;
}

/* --- products ----------------------------------------------------------- */

static pl_status gemm(pl_import *im)
{
    pl_node *a, *b, *bias = NULL;
    float alpha = pl_import_float(im, "alpha", 1);
    float beta = pl_import_float(im, "beta", 1);
    bool transposed = pl_import_int(im, "transB", 0) != 0;
    if (pl_import_int(im, "transA", 0) != 0 || alpha != 1 ||
        (pl_import_has(im, 2) && beta != 1))
        return PL_FAIL(PL_UNSUPPORTED,
                       "transA, alpha %g and beta %g: expected 0, 1 and 1",
                       (double)alpha, (double)beta);
    PL_TRY(pl_import_in(im, 0, &a));
    PL_TRY(pl_import_in(im, 1, &b));
    if (pl_import_has(im, 2))
        PL_TRY(pl_import_in(im, 2, &bias));
    if (transposed)
        im->out->node = pl_inner(a, b, bias);
    else if (bias == NULL)
        im->out->node = pl_matmul(a, b);
    else
        im->out->node = pl_bias(pl_matmul(a, b), bias);
    return PL_OK;
}

static pl_status matmul(pl_import *im)
{
    pl_node *a, *b;
    PL_TRY(pl_import_in(im, 0, &a));
    PL_TRY(pl_import_in(im, 1, &b));
    im->out->node = pl_matmul(a, b);
    return PL_OK;
}

/* A vector is added to the last dimension, else the shapes are one. */
static pl_status add(pl_import *im)
{
    pl_node *a, *b;
    PL_TRY(pl_import_in(im, 0, &a));
    PL_TRY(pl_import_in(im, 1, &b));
    if (a->op == &pl_op_parameter && a->shape.rank == 1)
        im->out->node = pl_bias(b, a);
    else if (b->op == &pl_op_parameter && b->shape.rank == 1)
        im->out->node = pl_bias(a, b);
    else
        im->out->node = pl_add(a, b);
    return PL_OK;
}

/* Mul and Div by a constant. */
static pl_status scale(pl_import *im)
{
    bool divides = strcmp(im->node->op, "Div") == 0;
    int constant =
        !divides && pl_import_has(im, 0) && im->in[0]->node == NULL ? 0 : 1;
    float factor;
    pl_node *src;
    PL_TRY(pl_import_scalar(im, constant, &factor));
    PL_TRY(pl_import_in(im, 1 - constant, &src));
    if (divides && factor == 0)
        return PL_FAIL(PL_UNSUPPORTED, "it divides by 0");
    im->out->node = pl_scale(src, divides ? 1 / factor : factor);
    return PL_OK;
}

/* --- windows ------------------------------------------------------------ */

/* Padding on every side by `kernel` sizes; SAME is what keeps the size of an
 * image, which is the same on all sides where the stride is 1 and the kernel
 * odd. */
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

/* What ours has no word for. */
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

/* A last window that is not full is left out by ours. */
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
    if (pad != 0)
        return PL_FAIL(PL_UNSUPPORTED, "padding of %lld: expected 0",
                       (long long)pad);
    PL_TRY(check_ceil(im, src->shape, size, stride));
    im->out->node = largest ? pl_max_pool(src, size, stride)
                            : pl_avg_pool(src, size, stride);
    return PL_OK;
}

static const pl_import_op ops[] = {
    { "Add", add },         { "AveragePool", pool }, { "Cast", cast },
    { "Conv", conv },       { "Div", scale },        { "Dropout", dropout },
    { "Gemm", gemm },       { "Identity", same },    { "LogSoftmax", softmax },
    { "MatMul", matmul },   { "MaxPool", pool },     { "Mul", scale },
    { "Relu", relu },       { "Sigmoid", sigmoid },  { "Softmax", softmax },
    { "Tanh", hyperbolic }, { NULL, NULL },
};

const pl_import_op *pl_import_find(const char *name)
{
    const pl_import_op *const tables[] = { ops, pl_import_shapes };
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const pl_import_op *op = tables[t]; op->name != NULL; op++)
            if (strcmp(op->name, name) == 0)
                return op;
    return NULL;
}

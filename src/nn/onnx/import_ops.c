/* import_ops.c - converts the operators of an ONNX file: decides which of their
 * attributes ours support, and rejects the others by name. */
#include "nn/onnx/import.h"

#include "base/error.h"
#include "graph/graph.h"

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

static pl_status gelu(pl_import *im)
{
    const char *how = pl_import_text(im, "approximate", "none");
    if (strcmp(how, "none") != 0)
        return PL_FAIL(PL_UNSUPPORTED,
                       "approximate \"%.20s\": expected \"none\"", how);
    return unary(im, pl_gelu);
}

static pl_status leaky_relu(pl_import *im)
{
    pl_node *src;
    PL_TRY(pl_import_in(im, 0, &src));
    im->out->node = pl_leaky_relu(src, pl_import_float(im, "alpha", 0.01F));
    return PL_OK;
}

/* The same value under another name. */
static pl_status same(pl_import *im)
{
    const char *name = im->out->name;
    if (im->in[0] == NULL)
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

/* Dropout is active in training, even if the file was made for inference. */
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

/* If it is the last operator, over the classes, it is left out: the loss
 * includes it. */
static pl_status softmax(pl_import *im)
{
    int64_t axis = pl_import_int(im, "axis", -1);
    pl_node *src;
    PL_TRY(pl_import_in(im, 0, &src));
    if (axis != -1 && axis != src->shape.rank - 1)
        return PL_FAIL(PL_UNSUPPORTED,
                       "axis %lld: expected the last one, of the classes",
                       (long long)axis);
    bool ends = strcmp(im->out->name, im->model->outputs[0].name) == 0 &&
                !im->build->numeric;
    if (!ends && strcmp(im->node->op, "Softmax") != 0)
        return PL_FAIL(PL_UNSUPPORTED,
                       "it is expected at the end of the graph");
    im->out->node = ends ? src : pl_softmax(src);
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

/* --- sums and products --------------------------------------------------- */

/* Which input is a constant of one float; -1: none. */
static int constant_of(const pl_import *im)
{
    return pl_import_is_scalar(im, 1) ? 1 : pl_import_is_scalar(im, 0) ? 0 : -1;
}

/* A vector is added to the last dimension; other shapes are broadcast. */
static pl_status add(pl_import *im)
{
    pl_node *a, *b;
    if (pl_import_has_part(im))
        return pl_import_compose(im);
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

static pl_status multiply(pl_import *im)
{
    int constant = constant_of(im);
    float factor;
    pl_node *a, *b;
    if (pl_import_has_part(im))
        return pl_import_compose(im);
    if (constant >= 0) {
        PL_TRY(pl_import_scalar(im, constant, &factor));
        PL_TRY(pl_import_in(im, 1 - constant, &a));
        im->out->node = pl_scale(a, factor);
        return PL_OK;
    }
    PL_TRY(pl_import_in(im, 0, &a));
    PL_TRY(pl_import_in(im, 1, &b));
    im->out->node = pl_multiply(a, b);
    return PL_OK;
}

static pl_status divide(pl_import *im)
{
    float divisor;
    pl_node *src;
    if (pl_import_has_part(im))
        return pl_import_compose(im);
    PL_TRY(pl_import_scalar(im, 1, &divisor));
    PL_TRY(pl_import_in(im, 0, &src));
    if (divisor == 0)
        return PL_FAIL(PL_UNSUPPORTED, "it divides by 0");
    im->out->node = pl_scale(src, 1 / divisor);
    return PL_OK;
}

static const pl_import_op ops[] = {
    { "Add", add },
    { "Cast", cast },
    { "Div", divide },
    { "Dropout", dropout },
    { "Gelu", gelu },
    { "Gemm", gemm },
    { "Identity", same },
    { "LeakyRelu", leaky_relu },
    { "LogSoftmax", softmax },
    { "MatMul", matmul },
    { "Mul", multiply },
    { "Relu", relu },
    { "Sigmoid", sigmoid },
    { "Softmax", softmax },
    { "Tanh", hyperbolic },
    { NULL, NULL },
};

const pl_import_op *pl_import_find(const char *name)
{
    const pl_import_op *const tables[] = { ops, pl_import_composed,
                                           pl_import_norms, pl_import_shapes,
                                           pl_import_windows };
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const pl_import_op *op = tables[t]; op->name != NULL; op++)
            if (strcmp(op->name, name) == 0)
                return op;
    return NULL;
}

/* What differs between oneDNN 2 and 3: version 3 keeps descriptions of memory
 * on the heap, and makes the description of a primitive in one call, which also
 * takes the engine, the attributes and the forward primitive. */
#include "kernels/cpu/dnn_priv.h"

#include "base/error.h"
#include "base/mem.h"

#include <stddef.h>

/* Uses Winograd's algorithm where the library expects it to be faster. */
#define ALGORITHM dnnl_convolution_auto

#if DNNL_VERSION_MAJOR >= 3

pl_status pl_dnn_shape_new(pl_dnn_shape *out, int ndims, const dnnl_dims_t dims,
                           dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    return pl_dnn_check(
        dnnl_memory_desc_create_with_tag(out, ndims, dims, type, tag),
        "describe memory");
}

pl_status pl_dnn_shape_copy(pl_dnn_shape *out, pl_dnn_shape_ref from)
{
    return pl_dnn_check(dnnl_memory_desc_clone(out, from), "describe memory");
}

void pl_dnn_shape_free(pl_dnn_shape shape)
{
    if (shape != NULL)
        dnnl_memory_desc_destroy(shape);
}

dnnl_status_t pl_dnn_append_relu(dnnl_post_ops_t after)
{
    return dnnl_post_ops_append_eltwise(after, dnnl_eltwise_relu, 0, 0);
}

dnnl_status_t pl_dnn_layer_create(dnnl_primitive_desc_t *out,
                                  dnnl_engine_t engine, const pl_dnn_opts *opts,
                                  pl_dnn_kind kind, const pl_dnn_layer *layer,
                                  const_dnnl_primitive_attr_t attr,
                                  const_dnnl_primitive_desc_t forward)
{
    const pl_conv *c = &opts->sizes;
    dnnl_dims_t stride = { c->stride, c->stride }, pad = { c->pad, c->pad };
    dnnl_dims_t dense = { 0 }; /* no dilation */
    pl_dnn_shape_ref bias = opts->bias ? layer->bias : NULL;
    switch (kind) {
    case PL_DNN_CONV_SRC:
        return dnnl_convolution_backward_data_primitive_desc_create(
            out, engine, ALGORITHM, layer->src, layer->weights, layer->dst,
            stride, dense, pad, pad, forward, attr);
    case PL_DNN_CONV_WEIGHTS:
        return dnnl_convolution_backward_weights_primitive_desc_create(
            out, engine, ALGORITHM, layer->src, layer->weights, bias,
            layer->dst, stride, dense, pad, pad, forward, attr);
    case PL_DNN_DENSE:
        return dnnl_inner_product_forward_primitive_desc_create(
            out, engine, dnnl_forward_training, layer->src, layer->weights,
            bias, layer->dst, attr);
    case PL_DNN_DENSE_SRC:
        return dnnl_inner_product_backward_data_primitive_desc_create(
            out, engine, layer->src, layer->weights, layer->dst, forward, attr);
    case PL_DNN_DENSE_WEIGHTS:
        return dnnl_inner_product_backward_weights_primitive_desc_create(
            out, engine, layer->src, layer->weights, NULL, layer->dst, forward,
            attr);
    default:
        break;
    }
    return dnnl_convolution_forward_primitive_desc_create(
        out, engine, dnnl_forward_training, ALGORITHM, layer->src,
        layer->weights, bias, layer->dst, stride, dense, pad, pad, attr);
}

#else

pl_status pl_dnn_shape_new(pl_dnn_shape *out, int ndims, const dnnl_dims_t dims,
                           dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    pl_dnn_shape shape;
    PL_TRY(PL_NEW(shape, 1));
    pl_status status = pl_dnn_check(
        dnnl_memory_desc_init_by_tag(shape, ndims, dims, type, tag),
        "describe memory");
    if (status != PL_OK) {
        pl_mem_free(shape);
        return status;
    }
    *out = shape;
    return PL_OK;
}

pl_status pl_dnn_shape_copy(pl_dnn_shape *out, pl_dnn_shape_ref from)
{
    pl_dnn_shape shape;
    PL_TRY(PL_NEW(shape, 1));
    *shape = *from;
    *out = shape;
    return PL_OK;
}

void pl_dnn_shape_free(pl_dnn_shape shape)
{
    pl_mem_free(shape);
}

dnnl_status_t pl_dnn_append_relu(dnnl_post_ops_t after)
{
    return dnnl_post_ops_append_eltwise(after, 1, dnnl_eltwise_relu, 0, 0);
}

static dnnl_status_t init_conv(dnnl_convolution_desc_t *desc, pl_dnn_kind kind,
                               const pl_dnn_opts *opts,
                               const pl_dnn_layer *layer)
{
    const pl_conv *c = &opts->sizes;
    dnnl_dims_t stride = { c->stride, c->stride }, pad = { c->pad, c->pad };
    pl_dnn_shape_ref bias = opts->bias ? layer->bias : NULL;
    if (kind == PL_DNN_CONV_SRC)
        return dnnl_convolution_backward_data_desc_init(
            desc, ALGORITHM, layer->src, layer->weights, layer->dst, stride,
            pad, pad);
    if (kind == PL_DNN_CONV_WEIGHTS)
        return dnnl_convolution_backward_weights_desc_init(
            desc, ALGORITHM, layer->src, layer->weights, bias, layer->dst,
            stride, pad, pad);
    return dnnl_convolution_forward_desc_init(
        desc, dnnl_forward_training, ALGORITHM, layer->src, layer->weights,
        bias, layer->dst, stride, pad, pad);
}

static dnnl_status_t init_dense(dnnl_inner_product_desc_t *desc,
                                pl_dnn_kind kind, bool bias,
                                const pl_dnn_layer *layer)
{
    if (kind == PL_DNN_DENSE_SRC)
        return dnnl_inner_product_backward_data_desc_init(
            desc, layer->src, layer->weights, layer->dst);
    if (kind == PL_DNN_DENSE_WEIGHTS)
        return dnnl_inner_product_backward_weights_desc_init(
            desc, layer->src, layer->weights, NULL, layer->dst);
    return dnnl_inner_product_forward_desc_init(
        desc, dnnl_forward_training, layer->src, layer->weights,
        bias ? layer->bias : NULL, layer->dst);
}

dnnl_status_t pl_dnn_layer_create(dnnl_primitive_desc_t *out,
                                  dnnl_engine_t engine, const pl_dnn_opts *opts,
                                  pl_dnn_kind kind, const pl_dnn_layer *layer,
                                  const_dnnl_primitive_attr_t attr,
                                  const_dnnl_primitive_desc_t forward)
{
    union {
        dnnl_convolution_desc_t conv;
        dnnl_inner_product_desc_t dense;
    } desc;
    dnnl_status_t s = kind >= PL_DNN_DENSE
                          ? init_dense(&desc.dense, kind, opts->bias, layer)
                          : init_conv(&desc.conv, kind, opts, layer);
    return s != dnnl_success
               ? s
               : dnnl_primitive_desc_create(out, &desc, attr, engine, forward);
}

#endif

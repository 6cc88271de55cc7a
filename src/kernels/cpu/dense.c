/* Dense layers as prepared operations in bfloat16; in float32 they are products
 * (gemm.c).  All matrices are row-major.  oneDNN's own layout of the weights is
 * no faster, and the conversion takes longer than the product (decision
 * 005). */
#include "kernels/cpu/dnn_priv.h"

static pl_status describe_rows(pl_dnn_shape *out, int64_t rows, int64_t columns,
                               dnnl_data_type_t type)
{
    dnnl_dims_t dims = { rows, columns };
    return pl_dnn_shape_new(out, 2, dims, type, dnnl_ab);
}

pl_status pl_dnn_dense_describe(pl_dnn_layer *out, const pl_dnn_opts *opts,
                                pl_dnn_types types)
{
    int64_t batch = opts->batch;
    int64_t channels = opts->sizes.channels, outs = opts->sizes.outs;
    dnnl_dims_t bias = { outs };
    PL_TRY(describe_rows(&out->src, batch, channels, types.src));
    PL_TRY(describe_rows(&out->weights, outs, channels, types.weights));
    PL_TRY(describe_rows(&out->dst, batch, outs, types.dst));
    return pl_dnn_shape_new(&out->bias, 1, bias, dnnl_f32, dnnl_x);
}

/* The kernel table of one instruction set. Like all of simd/, this file is
 * compiled once per set, with PL_ISA as its name. */
#include "kernels/simd/kernels.h"
#include "kernels/tables.h"

#define TEXT2(x) #x
#define TEXT(x)  TEXT2(x)

#define TABLE2(isa) pl_kernels_##isa
#define TABLE(isa)  TABLE2(isa)

#define UPDATE(kind, name) [PL_OPTIM_##kind] = SIMD(update_##name),

const pl_kernels TABLE(PL_ISA) = {
    .name = TEXT(PL_ISA),
    .lanes = LANES,
    .matmul_nt = SIMD(matmul_nt),
    .matmul_nn = SIMD(matmul_nn),
    .matmul_tn = SIMD(matmul_tn),
    .load = SIMD(load),
    .softmax_xent = SIMD(softmax_xent),
    .softmax_xent_grad = SIMD(softmax_xent_grad),
    .softmax = SIMD(softmax),
    .softmax_grad = SIMD(softmax_grad),
    .accuracy = SIMD(accuracy),
    .relu = SIMD(relu),
    .relu_grad = SIMD(relu_grad),
    .tanh = SIMD(tanh),
    .tanh_grad = SIMD(tanh_grad),
    .sigmoid = SIMD(sigmoid),
    .sigmoid_grad = SIMD(sigmoid_grad),
    .leaky_relu = SIMD(leaky_relu),
    .leaky_relu_grad = SIMD(leaky_relu_grad),
    .gelu = SIMD(gelu),
    .gelu_grad = SIMD(gelu_grad),
    .add = SIMD(add),
    .multiply = SIMD(multiply),
    .scale = SIMD(scale),
    .fill = SIMD(fill),
    .dropout = SIMD(dropout),
    .bias = SIMD(bias),
    .sum_rows = SIMD(sum_rows),
    .sum = SIMD(sum),
    .sum_squares = SIMD(sum_squares),
    .sum_parts = SIMD(sum_parts),
    .average = SIMD(average),
    .products = SIMD(products),
    .blend = SIMD(blend),
    .column_products = SIMD(column_products),
    .column_blend = SIMD(column_blend),
    .to_lanes = SIMD(to_lanes),
    .from_lanes = SIMD(from_lanes),
    .conv = SIMD(conv),
    .conv_src = SIMD(conv_src),
    .conv_weights = SIMD(conv_weights),
    .conv_bias = SIMD(conv_bias),
    .conv_block = SIMD(conv_block),
    .unpool = SIMD(unpool),
    .max_pool = SIMD(max_pool),
    .max_pool_grad = SIMD(max_pool_grad),
    .avg_pool = SIMD(avg_pool),
    .avg_pool_grad = SIMD(avg_pool_grad),
    .update = { PL_OPTIM_LIST(UPDATE) },
};

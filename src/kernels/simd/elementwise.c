/* Kernels that treat each element alike, and sums. Tails use the same vector
 * operations on a partial vector, so splitting a range anywhere changes no bit;
 * long sums add blocks in single and blocks' totals in double precision. */
#include "kernels/simd/activation.h"
#include "kernels/simd/kernels.h"

void SIMD(load)(int64_t rows, int64_t row, const pl_view *src, float *dst)
{
    vf scale = v_set(src->scale);
    for (int64_t r = 0; r < rows; r++, dst += row) {
        if (src->dtype == PL_UINT8) {
            const uint8_t *bytes = pl_view_row_u8(src, r);
            EACH_VECTOR(row, {
                vf x = left == LANES ? v_load_u8(bytes + i)
                                     : v_load_u8_part(bytes + i, left);
                STORE(dst, scale * x);
            });
        } else {
            const float *values = pl_view_row_f32(src, r);
            EACH_VECTOR(row, { STORE(dst, scale * LOAD(values)); });
        }
    }
}

void SIMD(relu)(int64_t n, const float *src, float *dst)
{
    EACH_VECTOR(n, { STORE(dst, v_relu(LOAD(src))); });
}

void SIMD(relu_grad)(int64_t n, const float *dst, const float *diff_dst,
                     float *diff_src)
{
    EACH_VECTOR(n, {
        STORE(diff_src,
              v_activation_grad(PL_ACTIVATION_RELU, LOAD(dst), LOAD(diff_dst)));
    });
}

void SIMD(tanh)(int64_t n, const float *src, float *dst)
{
    EACH_VECTOR(n, { STORE(dst, v_tanh(LOAD(src))); });
}

void SIMD(tanh_grad)(int64_t n, const float *dst, const float *diff_dst,
                     float *diff_src)
{
    EACH_VECTOR(n, {
        STORE(diff_src,
              v_activation_grad(PL_ACTIVATION_TANH, LOAD(dst), LOAD(diff_dst)));
    });
}

void SIMD(sigmoid)(int64_t n, const float *src, float *dst)
{
    EACH_VECTOR(n, { STORE(dst, v_sigmoid(LOAD(src))); });
}

void SIMD(sigmoid_grad)(int64_t n, const float *dst, const float *diff_dst,
                        float *diff_src)
{
    EACH_VECTOR(n, {
        STORE(diff_src, v_activation_grad(PL_ACTIVATION_SIGMOID, LOAD(dst),
                                          LOAD(diff_dst)));
    });
}

void SIMD(leaky_relu)(int64_t n, float slope, const float *src, float *dst)
{
    EACH_VECTOR(n, {
        vf x = LOAD(src);
        STORE(dst, v_select(x < v_set(0), v_set(slope) * x, x));
    });
}

void SIMD(leaky_relu_grad)(int64_t n, float slope, const float *dst,
                           const float *diff_dst, float *diff_src)
{
    EACH_VECTOR(n, {
        vf diff = LOAD(diff_dst);
        STORE(diff_src,
              v_select(LOAD(dst) > v_set(0), diff, v_set(slope) * diff));
    });
}

void SIMD(gelu)(int64_t n, const float *src, float *dst)
{
    EACH_VECTOR(n, {
        vf x = LOAD(src);
        STORE(dst, x * v_normal_below(x));
    });
}

void SIMD(gelu_grad)(int64_t n, const float *src, const float *diff_dst,
                     float *diff_src)
{
    const vf density = v_set(0.3989422804014327f); /* the density at 0 */
    EACH_VECTOR(n, {
        vf x = LOAD(src);
        vf bell = density * v_exp(v_set(-0.5f) * x * x);
        STORE(diff_src, LOAD(diff_dst) * v_fma(x, bell, v_normal_below(x)));
    });
}

void SIMD(add)(int64_t n, const float *a, const float *b, float *dst)
{
    EACH_VECTOR(n, { STORE(dst, LOAD(a) + LOAD(b)); });
}

void SIMD(multiply)(int64_t n, const float *a, const float *b, float *dst)
{
    EACH_VECTOR(n, { STORE(dst, LOAD(a) * LOAD(b)); });
}

void SIMD(scale)(int64_t n, float factor, const float *src, float *dst)
{
    EACH_VECTOR(n, { STORE(dst, v_set(factor) * LOAD(src)); });
}

void SIMD(fill)(int64_t n, float value, float *dst)
{
    EACH_VECTOR(n, { STORE(dst, v_set(value)); });
}

void SIMD(bias)(int64_t rows, int64_t row, const float *src, const float *bias,
                float *dst)
{
    for (int64_t r = 0; r < rows; r++, src += row, dst += row)
        SIMD(add)(row, src, bias, dst);
}

void SIMD(sum_rows)(int64_t rows, int64_t row, const float *src, float *dst)
{
    EACH_VECTOR(row, {
        vf total = v_set(0);
        for (int64_t r = 0; r < rows; r++)
            total += LOAD(src + r * row);
        STORE(dst, total);
    });
}

/* Sums of blocks in single precision, the blocks' sums in double. */
#define SUM_BLOCK 1024

double SIMD(sum)(int64_t n, const float *src)
{
    double total = 0;
    for (int64_t first = 0; first < n; first += SUM_BLOCK) {
        int64_t count = n - first < SUM_BLOCK ? n - first : SUM_BLOCK;
        vf part = v_set(0);
        EACH_VECTOR(count, { part += LOAD(src + first); });
        total += (double)v_sum(part);
    }
    return total;
}

double SIMD(sum_squares)(int64_t n, const float *src)
{
    double total = 0;
    for (int64_t first = 0; first < n; first += SUM_BLOCK) {
        int64_t count = n - first < SUM_BLOCK ? n - first : SUM_BLOCK;
        vf part = v_set(0);
        EACH_VECTOR(count, {
            vf x = LOAD(src + first);
            part = v_fma(x, x, part);
        });
        total += (double)v_sum(part);
    }
    return total;
}

void SIMD(sum_parts)(int64_t n, int count, const float *const *parts,
                     float *dst)
{
    EACH_VECTOR(n, {
        vf total = LOAD(parts[0]);
        for (int part = 1; part < count; part++)
            total += LOAD(parts[part]);
        STORE(dst, total);
    });
}

/* Matrix products by oneDNN's sgemm.  A dense layer is computed transposed
 * (weights times source), because the library is faster if the larger matrix
 * comes first; the result is transposed back, and the bias added, in one pass
 * over tiles. */
#include "kernels/cpu/dnn_priv.h"
#include "kernels/cpu/team.h"

#include <stddef.h>

#define TILE 16 /* of a transposition: a cache line in both directions */

bool pl_dnn_gemm(const pl_dnn_product *p, const float *a, const float *b,
                 float *dst)
{
    omp_set_num_threads(pl_dnn_threads(p->threads));
    return dnnl_sgemm(p->a_transposed ? 'T' : 'N', p->b_transposed ? 'T' : 'N',
                      p->n, p->m, p->k, 1, a, p->a_transposed ? p->n : p->k, b,
                      p->b_transposed ? p->k : p->m, p->add ? 1.0f : 0.0f, dst,
                      p->m) == dnnl_success;
}

/* dst[n, m] = src[m, n]^T + bias[m], in stripes of TILE columns */
typedef struct turn {
    int64_t n, m;
    const float *src, *bias;
    float *dst;
} turn;

static void turn_stripe(void *arg, int item, int thread)
{
    (void)thread;
    const turn *t = arg;
    int64_t first = (int64_t)item * TILE;
    int64_t last = first + TILE < t->m ? first + TILE : t->m;
    for (int64_t r = 0; r < t->n; r += TILE) {
        int64_t end = r + TILE < t->n ? r + TILE : t->n;
        for (int64_t i = r; i < end; i++)
            for (int64_t c = first; c < last; c++)
                t->dst[i * t->m + c] = t->src[c * t->n + i] +
                                       (t->bias != NULL ? t->bias[c] : 0.0f);
    }
}

bool pl_dnn_inner(const pl_dnn_product *p, const float *src,
                  const float *weights, const float *bias, float *scratch,
                  float *dst)
{
    pl_dnn_product turned = { .n = p->m,
                              .m = p->n,
                              .k = p->k,
                              .b_transposed = true,
                              .threads = p->threads };
    if (!pl_dnn_gemm(&turned, weights, src, scratch))
        return false;
    turn t = { p->n, p->m, scratch, bias, dst };
    pl_team_run(pl_dnn_threads(p->threads), (int)((p->m + TILE - 1) / TILE),
                turn_stripe, &t);
    return true;
}

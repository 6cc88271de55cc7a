/* Design.
 *
 * Two inner kernels do all three products; both keep a tile of the result in
 * registers and read a batch in place (uint8 or float32 rows, picked by
 * index), converting as they go.
 *
 *   dot    rows of src against rows of weights, vectors along k: matmul_nt.
 *          Bytes are converted once, so their tile is wide (2 x 12); floats
 *          have a squarer one (4 x 6), which reads the weights less often.
 *          The sums are folded at the end, four at a time.
 *   outer  a column of a times a row of b, vectors along m: matmul_nn and
 *          matmul_tn, which differ only in how a is walked.
 *
 * Tile sizes are compile-time constants of forced-inline functions, so the
 * sums live in registers. */
#include "kernels/simd/fold.h"
#include "kernels/simd/kernels.h"

#if LANES == 16
#define COLS      12 /* dot: 2 x 12 or 4 x 6 sums of 32 registers */
#define F32_ROWS  4
#define ROWS      10 /* outer: 10 x 2 sums */
#define OUTER_VEC 2
#else
#define COLS      6 /* 2 x 6 sums of 16 registers */
#define F32_ROWS  2
#define ROWS      6
#define OUTER_VEC 2
#endif

#define F32_COLS  6
#define MOST_ROWS 4 /* of any dot tile */

/* X(kind, name, n) for each tile height or width a kernel supports. */
#define UP_TO_6(X, kind, name)                                                 \
    X(kind, name, 1)                                                           \
    X(kind, name, 2)                                                           \
    X(kind, name, 3)                                                           \
    X(kind, name, 4)                                                           \
    X(kind, name, 5)                                                           \
    X(kind, name, 6)
#if LANES == 16
#define UP_TO_ROWS(X, kind, name)                                              \
    UP_TO_6(X, kind, name)                                                     \
    X(kind, name, 7)                                                           \
    X(kind, name, 8)                                                           \
    X(kind, name, 9)                                                           \
    X(kind, name, 10)
#define UP_TO_COLS(X, kind, name)                                              \
    UP_TO_ROWS(X, kind, name)                                                  \
    X(kind, name, 11)                                                          \
    X(kind, name, 12)
#else
#define UP_TO_ROWS UP_TO_6
#define UP_TO_COLS UP_TO_6
#endif
#define ENTRY(kind, name, n) name##n,

/* Prefetch rows to come while the current ones are summed: the processor cannot
 * predict rows selected by index. */
#define AHEAD 4

typedef enum source_kind {
    SOURCE_U8,
    SOURCE_F32,
} source_kind;

INLINE vf source_load(source_kind kind, const void *row, int64_t i)
{
    return kind == SOURCE_U8 ? v_load_u8((const uint8_t *)row + i)
                             : v_load((const float *)row + i);
}

INLINE vf source_load_part(source_kind kind, const void *row, int64_t i,
                           int64_t left)
{
    return kind == SOURCE_U8 ? v_load_u8_part((const uint8_t *)row + i, left)
                             : v_load_part((const float *)row + i, left);
}

INLINE const void *source_row(source_kind kind, const pl_view *view,
                              int64_t row)
{
    return kind == SOURCE_U8 ? (const void *)pl_view_row_u8(view, row)
                             : (const void *)pl_view_row_f32(view, row);
}

INLINE void prefetch(source_kind kind, const void *row, int64_t i)
{
    __builtin_prefetch((const char *)row + i * (kind == SOURCE_U8 ? 1 : 4));
}

/* dst[0 .. cols-1] = scale * the folded sums + bias */
INLINE void store_sums(const vf *sums, int cols, float scale, const float *bias,
                       float *dst)
{
    UNROLL
    for (int c = 0; c < cols; c += 4) {
        vf zero = v_set(0);
        vf four = v_fold4(sums[c], c + 1 < cols ? sums[c + 1] : zero,
                          c + 2 < cols ? sums[c + 2] : zero,
                          c + 3 < cols ? sums[c + 3] : zero);
        UNROLL
        for (int j = 0; j < 4; j++)
            if (c + j < cols)
                dst[c + j] =
                    scale * four[j] + (bias != NULL ? bias[c + j] : 0.0f);
    }
}

/* `rows` rows of src against `cols` rows of weights. */
INLINE void dot_tile(source_kind kind, int rows, int cols, int64_t k,
                     const void *const *src, const void *const *ahead,
                     const float *weights, vf sums[MOST_ROWS][COLS])
{
    const int64_t line = kind == SOURCE_U8 ? 64 : 16; /* elements */
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int c = 0; c < cols; c++)
        sums[r][c] = v_set(0);
    int64_t i = 0;
    for (; i + LANES <= k; i += LANES) {
        vf x[MOST_ROWS];
        UNROLL
        for (int r = 0; r < rows; r++) {
            x[r] = source_load(kind, src[r], i);
            if (ahead != NULL && i % line == 0)
                prefetch(kind, ahead[r], i);
        }
        UNROLL
        for (int c = 0; c < cols; c++) {
            vf w = v_load_keep(weights + c * k + i);
            UNROLL
            for (int r = 0; r < rows; r++)
                sums[r][c] = v_fma(x[r], w, sums[r][c]);
        }
    }
    if (i < k) {
        vf x[MOST_ROWS];
        UNROLL
        for (int r = 0; r < rows; r++)
            x[r] = source_load_part(kind, src[r], i, k - i);
        UNROLL
        for (int c = 0; c < cols; c++) {
            vf w = v_load_part(weights + c * k + i, k - i);
            UNROLL
            for (int r = 0; r < rows; r++)
                sums[r][c] = v_fma(x[r], w, sums[r][c]);
        }
    }
}

/* All n rows of src against `cols` rows of weights, `rows` at a time. */
INLINE void dot_column(source_kind kind, int rows, int cols, int64_t n,
                       int64_t m, int64_t k, const pl_view *view,
                       const float *weights, const float *bias, float *dst)
{
    float scale = view->scale;
    vf sums[MOST_ROWS][COLS];
    int64_t r = 0;
    for (; r + rows <= n; r += rows) {
        const void *src[MOST_ROWS], *ahead[MOST_ROWS];
        UNROLL
        for (int i = 0; i < rows; i++) {
            int64_t next = r + i + AHEAD < n ? r + i + AHEAD : r + i;
            src[i] = source_row(kind, view, r + i);
            ahead[i] = source_row(kind, view, next);
        }
        if (view->index != NULL)
            dot_tile(kind, rows, cols, k, src, ahead, weights, sums);
        else
            dot_tile(kind, rows, cols, k, src, NULL, weights, sums);
        UNROLL
        for (int i = 0; i < rows; i++)
            store_sums(sums[i], cols, scale, bias, dst + (r + i) * m);
    }
    for (; r < n; r++) {
        const void *src[MOST_ROWS] = { source_row(kind, view, r) };
        dot_tile(kind, 1, cols, k, src, NULL, weights, sums);
        store_sums(sums[0], cols, scale, bias, dst + r * m);
    }
}

typedef void dot_fn(int64_t n, int64_t m, int64_t k, const pl_view *view,
                    const float *weights, const float *bias, float *dst);

#define DOT(kind, name, cols)                                                  \
    static void name##cols(int64_t n, int64_t m, int64_t k,                    \
                           const pl_view *view, const float *weights,          \
                           const float *bias, float *dst)                      \
    {                                                                          \
        dot_column(kind, kind == SOURCE_U8 ? 2 : F32_ROWS, cols, n, m, k,      \
                   view, weights, bias, dst);                                  \
    }
UP_TO_COLS(DOT, SOURCE_U8, dot_u8_)
UP_TO_6(DOT, SOURCE_F32, dot_f32_)

void SIMD(matmul_nt)(int64_t n, int64_t m, int64_t k, const pl_view *src,
                     const float *weights, const float *bias, float *dst)
{
    static dot_fn *const u8[] = { UP_TO_COLS(ENTRY, , dot_u8_) };
    static dot_fn *const f32[] = { UP_TO_6(ENTRY, , dot_f32_) };
    dot_fn *const *dots = src->dtype == PL_UINT8 ? u8 : f32;
    int64_t most = src->dtype == PL_UINT8 ? COLS : F32_COLS;
    /* Blocks of equal size: 14 columns are 7 + 7, not 12 + 2. */
    int64_t blocks = (m + most - 1) / most;
    for (int64_t block = 0, c = 0; block < blocks; block++) {
        int64_t cols = (m - c) / (blocks - block);
        dots[cols - 1](n, m, k, src, weights + c * k,
                       bias != NULL ? bias + c : NULL, dst + c);
        c += cols;
    }
}

/* How a is traversed: element (r, i) is at a[r * row + i * step]. */
typedef struct walk {
    const float *a;
    int64_t row, step;
} walk;

/* dst[rows, vecs vectors at column j] = sum over i < k of a(r, i) b[i, j..];
 * the last vector has `left` lanes. */
INLINE void outer_tile(source_kind kind, int rows, int vecs, int64_t left,
                       int64_t m, int64_t k, int64_t j, walk a,
                       const pl_view *b, float *dst)
{
    vf sums[ROWS][OUTER_VEC];
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int v = 0; v < vecs; v++)
        sums[r][v] = v_set(0);
    const float *column = a.a;
    for (int64_t i = 0; i < k; i++, column += a.step) {
        /* One pointer: gcc would keep one per row and run out of registers. */
        __asm__("" : "+r"(column));
        const void *row = source_row(kind, b, i);
        vf x[OUTER_VEC];
        UNROLL
        for (int v = 0; v < vecs; v++)
            x[v] = left == LANES
                       ? source_load(kind, row, j + v * LANES)
                       : source_load_part(kind, row, j + v * LANES, left);
        UNROLL
        for (int r = 0; r < rows; r++) {
            vf factor = v_set(column[r * a.row]);
            UNROLL
            for (int v = 0; v < vecs; v++)
                sums[r][v] = v_fma(factor, x[v], sums[r][v]);
        }
    }
    if (b->scale != 1.0f)
        UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int v = 0; v < vecs; v++)
        sums[r][v] *= v_set(b->scale);
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int v = 0; v < vecs; v++) {
        float *to = dst + r * m + j + v * LANES;
        if (left == LANES)
            v_store(to, sums[r][v]);
        else
            v_store_part(to, sums[r][v], left);
    }
}

/* All columns of `rows` rows of dst. */
INLINE void outer_rows(source_kind kind, int rows, int64_t m, int64_t k, walk a,
                       const pl_view *b, float *dst)
{
    const int64_t wide = OUTER_VEC * LANES;
    int64_t j = 0;
    for (; j + wide <= m; j += wide)
        outer_tile(kind, rows, OUTER_VEC, LANES, m, k, j, a, b, dst);
    for (; j + LANES <= m; j += LANES)
        outer_tile(kind, rows, 1, LANES, m, k, j, a, b, dst);
    if (j < m)
        outer_tile(kind, rows, 1, m - j, m, k, j, a, b, dst);
}

typedef void outer_fn(int64_t m, int64_t k, walk a, const pl_view *b,
                      float *dst);

#define OUTER(kind, name, rows)                                                \
    static void name##rows(int64_t m, int64_t k, walk a, const pl_view *b,     \
                           float *dst)                                         \
    {                                                                          \
        outer_rows(kind, rows, m, k, a, b, dst);                               \
    }
UP_TO_ROWS(OUTER, SOURCE_U8, outer_u8_)
UP_TO_ROWS(OUTER, SOURCE_F32, outer_f32_)

static void outer(int64_t n, int64_t m, int64_t k, walk a, const pl_view *b,
                  float *dst)
{
    static outer_fn *const u8[] = { UP_TO_ROWS(ENTRY, , outer_u8_) };
    static outer_fn *const f32[] = { UP_TO_ROWS(ENTRY, , outer_f32_) };
    outer_fn *const *outers = b->dtype == PL_UINT8 ? u8 : f32;
    int64_t blocks = (n + ROWS - 1) / ROWS;
    for (int64_t block = 0, r = 0; block < blocks; block++) {
        int64_t rows = (n - r) / (blocks - block);
        walk here = { a.a + r * a.row, a.row, a.step };
        outers[rows - 1](m, k, here, b, dst + r * m);
        r += rows;
    }
}

void SIMD(matmul_nn)(int64_t n, int64_t m, int64_t k, const float *a,
                     const pl_view *b, float *dst)
{
    outer(n, m, k, (walk) { a, k, 1 }, b, dst);
}

void SIMD(matmul_tn)(int64_t n, int64_t m, int64_t k, const float *a,
                     const pl_view *b, float *dst)
{
    outer(n, m, k, (walk) { a, 1, n }, b, dst);
}

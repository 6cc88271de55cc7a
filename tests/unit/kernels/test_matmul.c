/* Every table's matrix products against the reference, over shapes that do
 * not fit the tiles, and every way to read a batch. */
#include "support/kernels.h"

#define MOST_ROWS    100
#define MOST_COLUMNS 40
#define MOST_INNER   784
#define MOST_MATRIX  ((MOST_ROWS + 8) * (MOST_INNER + 3))

/* How a batch is read. */
typedef struct variant {
    bool bytes;   /* uint8 */
    bool indexed; /* rows picked by index, with gaps between them */
    bool scaled;  /* by 1 / 255 */
} variant;
#define VARIANTS 8

static variant variant_of(int number)
{
    return (variant) { (number & 1) != 0, (number & 2) != 0,
                       (number & 4) != 0 };
}

typedef struct fixture {
    guard a, view, bias, dst;
    uint32_t index[MOST_INNER + 8];
    float magnitudes[MOST_MATRIX]; /* |a| or |weights| */
    float plain[MOST_MATRIX];      /* the view's absolute values */
    float zeros[MOST_ROWS];
    float expected[MOST_ROWS * MOST_ROWS];
    float bound[MOST_ROWS * MOST_ROWS]; /* the sum of |products| */
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL)
        return -1;
    f->a = guard_make(MOST_MATRIX);
    f->view = guard_make(MOST_MATRIX);
    f->bias = guard_make(MOST_MATRIX);
    f->dst = guard_make(MOST_MATRIX);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    guard_drop(&f->a);
    guard_drop(&f->view);
    guard_drop(&f->bias);
    guard_drop(&f->dst);
    free(f);
    return 0;
}

/* A view of [rows, columns] random numbers in guarded memory. */
static pl_view make_view(fixture *f, int64_t rows, int64_t columns, variant v)
{
    int64_t sources = v.indexed ? rows + 5 : rows;
    int64_t stride = v.indexed ? columns + 3 : columns;
    int64_t count = (sources - 1) * stride + columns;
    pl_view view = {
        .index = v.indexed ? f->index : NULL,
        .stride = stride,
        .dtype = v.bytes ? PL_UINT8 : PL_FLOAT32,
        .scale = v.scaled ? 1.0f / 255 : 1.0f,
    };
    for (int64_t r = 0; v.indexed && r < rows; r++)
        f->index[r] = (uint32_t)draw_int(0, sources - 1);
    if (v.bytes) {
        uint8_t *data = guard_get(&f->view, count);
        for (int64_t i = 0; i < count; i++)
            data[i] = (uint8_t)draw_int(0, 255);
        view.data = data;
    } else {
        float *data = guard_floats(&f->view, count);
        draw_all(data, count, -1, 1);
        view.data = data;
    }
    return view;
}

static float *make_matrix(fixture *f, guard *g, int64_t count)
{
    float *data = guard_floats(g, count);
    draw_all(data, count, -1, 1);
    for (int64_t i = 0; i < count; i++)
        f->magnitudes[i] = fabsf(data[i]);
    return data;
}

/* The absolute values of a view, as a plain view. */
static pl_view plain_magnitudes(fixture *f, int64_t rows, int64_t columns,
                                const pl_view *view)
{
    reference_table()->load(rows, columns, view, f->plain);
    for (int64_t i = 0; i < rows * columns; i++)
        f->plain[i] = fabsf(f->plain[i]);
    return (pl_view) {
        .data = f->plain, .stride = columns, .dtype = PL_FLOAT32, .scale = 1.0f
    };
}

/* A sum of n products in any order is this near, relative to the sum of the
 * absolute products: the errors of random numbers do not all add up. */
#define NEAR (8 * (double)FLT_EPSILON)

static void compare(const fixture *f, const char *what, const pl_kernels *table,
                    int64_t n, int64_t m, int64_t k, variant v,
                    const float *dst)
{
    for (int64_t i = 0; i < n * m; i++) {
        double limit = NEAR * ((double)f->bound[i] + 1e-6);
        if (!is_near((double)dst[i], (double)f->expected[i], limit))
            fail_msg("%s %s [%lld, %lld] inner %lld%s%s%s: element %lld is %g, "
                     "not %g",
                     table->name, what, (long long)n, (long long)m,
                     (long long)k, v.bytes ? " uint8" : "",
                     v.indexed ? " indexed" : "", v.scaled ? " scaled" : "",
                     (long long)i, (double)dst[i], (double)f->expected[i]);
    }
    guard_check(&f->dst);
}

static void check_nt(fixture *f, int64_t n, int64_t m, int64_t k, variant v)
{
    pl_view src = make_view(f, n, k, v);
    const float *weights = make_matrix(f, &f->a, m * k);
    bool biased = draw_int(0, 1) == 1;
    float *bias = biased ? guard_floats(&f->bias, m) : NULL;
    if (biased)
        draw_all(bias, m, 0, 2);
    pl_view plain = plain_magnitudes(f, n, k, &src);
    const pl_kernels *reference = reference_table();
    reference->matmul_nt(n, m, k, &src, weights, bias, f->expected);
    reference->matmul_nt(n, m, k, &plain, f->magnitudes, bias, f->bound);
    FOR_EACH_TABLE(table)
    {
        float *dst = guard_floats(&f->dst, n * m);
        table->matmul_nt(n, m, k, &src, weights, bias, dst);
        compare(f, "matmul_nt", table, n, m, k, v, dst);
    }
}

static void check_nn(fixture *f, int64_t n, int64_t m, int64_t k, variant v)
{
    const float *a = make_matrix(f, &f->a, n * k);
    pl_view b = make_view(f, k, m, v);
    pl_view plain = plain_magnitudes(f, k, m, &b);
    const pl_kernels *reference = reference_table();
    reference->matmul_nn(n, m, k, a, &b, f->expected);
    reference->matmul_nn(n, m, k, f->magnitudes, &plain, f->bound);
    FOR_EACH_TABLE(table)
    {
        float *dst = guard_floats(&f->dst, n * m);
        table->matmul_nn(n, m, k, a, &b, dst);
        compare(f, "matmul_nn", table, n, m, k, v, dst);
    }
}

static void check_tn(fixture *f, int64_t n, int64_t m, int64_t k, variant v)
{
    const float *a = make_matrix(f, &f->a, k * n);
    pl_view b = make_view(f, k, m, v);
    pl_view plain = plain_magnitudes(f, k, m, &b);
    const pl_kernels *reference = reference_table();
    reference->matmul_tn(n, m, k, a, &b, f->expected);
    reference->matmul_tn(n, m, k, f->magnitudes, &plain, f->bound);
    FOR_EACH_TABLE(table)
    {
        float *dst = guard_floats(&f->dst, n * m);
        table->matmul_tn(n, m, k, a, &b, dst);
        compare(f, "matmul_tn", table, n, m, k, v, dst);
    }
}

typedef void check_product(fixture *f, int64_t n, int64_t m, int64_t k,
                           variant v);

static const int64_t rows[] = { 1, 2, 3, 7, 15, 16, 17, 31, 33, 100 };
#define ROW_COUNTS ((int64_t)(sizeof rows / sizeof *rows))

/* Each number of rows with each number of columns, each inner size, and each
 * way to read a batch; the rest is drawn. */
static void check_shapes(fixture *f, check_product *check)
{
    for (int64_t i = 0; i < ROW_COUNTS; i++)
        for (int64_t m = 1; m <= MOST_COLUMNS; m++)
            check(f, rows[i], m, draw_int(1, 70),
                  variant_of((int)draw_int(0, VARIANTS - 1)));
    for (int64_t k = 1; k <= 70; k++)
        for (int v = 0; v < VARIANTS; v++)
            check(f, rows[draw_int(0, ROW_COUNTS - 1)],
                  draw_int(1, MOST_COLUMNS), k, variant_of(v));
    for (int v = 0; v < VARIANTS; v++) {
        check(f, 33, 10, MOST_INNER, variant_of(v));
        check(f, 7, 29, MOST_INNER - 1, variant_of(v));
    }
}

static void matmul_nt_matches_the_reference(void **state)
{
    check_shapes(*state, check_nt);
}

static void matmul_nn_matches_the_reference(void **state)
{
    check_shapes(*state, check_nn);
}

static void matmul_tn_matches_the_reference(void **state)
{
    check_shapes(*state, check_tn);
}

/* The products of softmax regression on digits: forward, then the gradient
 * of the weights with the pixels as columns. */
static void matmul_reads_a_batch_of_pixels(void **state)
{
    fixture *f = *state;
    for (int v = 0; v < VARIANTS; v++)
        check_nt(f, 100, 10, MOST_INNER, variant_of(v));
    const int64_t n = 10, m = MOST_INNER, k = 50;
    variant v = { true, true, true };
    const float *a = make_matrix(f, &f->a, k * n);
    pl_view b = make_view(f, k, m, v);
    pl_view plain = plain_magnitudes(f, k, m, &b);
    const pl_kernels *reference = reference_table();
    reference->matmul_tn(n, m, k, a, &b, f->expected);
    reference->matmul_tn(n, m, k, f->magnitudes, &plain, f->bound);
    FOR_EACH_TABLE(table)
    {
        float *dst = guard_floats(&f->dst, n * m);
        table->matmul_tn(n, m, k, a, &b, dst);
        compare(f, "matmul_tn", table, n, m, k, v, dst);
    }
}

/* A row's result does not depend on the rows beside it, so a batch may be cut
 * into shards. */
static void matmul_rounds_a_row_equally_in_any_batch(void **state)
{
    fixture *f = *state;
    const int64_t n = 33, m = 10, k = 70;
    pl_view src = make_view(f, n, k, (variant) { false, true, true });
    const float *weights = make_matrix(f, &f->a, m * k);
    FOR_EACH_TABLE(table)
    {
        table->matmul_nt(n, m, k, &src, weights, NULL, f->expected);
        for (int64_t first = 0; first < n; first++) {
            pl_view from = pl_view_from(&src, first);
            int64_t count = draw_int(1, n - first);
            float *dst = guard_floats(&f->dst, count * m);
            table->matmul_nt(count, m, k, &from, weights, NULL, dst);
            assert_memory_equal(f->expected + first * m, dst,
                                (size_t)(count * m) * sizeof *dst);
        }
    }
}

#define WITH_FIXTURE(test)                                                     \
    cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(WITH_FIXTURE(matmul_nt_matches_the_reference),
           WITH_FIXTURE(matmul_nn_matches_the_reference),
           WITH_FIXTURE(matmul_tn_matches_the_reference),
           WITH_FIXTURE(matmul_reads_a_batch_of_pixels),
           WITH_FIXTURE(matmul_rounds_a_row_equally_in_any_batch))

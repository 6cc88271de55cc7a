#include "support/kernels.h"

#define MOST 5000

/* An element-wise kernel as dst = f(a, b). */
typedef struct elementwise {
    const char *name;
    void (*run)(const pl_kernels *table, int64_t n, const float *a,
                const float *b, float *dst);
    double near; /* to the reference, in units of the last place */
    double away; /* or as an amount: differences like 1 - y cancel */
} elementwise;

#define UNARY(kernel)                                                          \
    static void run_##kernel(const pl_kernels *table, int64_t n,               \
                             const float *a, const float *b, float *dst)       \
    {                                                                          \
        (void)b;                                                               \
        table->kernel(n, a, dst);                                              \
    }
#define BINARY(kernel)                                                         \
    static void run_##kernel(const pl_kernels *table, int64_t n,               \
                             const float *a, const float *b, float *dst)       \
    {                                                                          \
        table->kernel(n, a, b, dst);                                           \
    }
UNARY(relu)
UNARY(tanh)
UNARY(sigmoid)
BINARY(relu_grad)
BINARY(tanh_grad)
BINARY(sigmoid_grad)
BINARY(add)

static void run_scale(const pl_kernels *table, int64_t n, const float *a,
                      const float *b, float *dst)
{
    (void)b;
    table->scale(n, -0.37f, a, dst);
}

static void run_fill(const pl_kernels *table, int64_t n, const float *a,
                     const float *b, float *dst)
{
    (void)a, (void)b;
    table->fill(n, 2.5f, dst);
}

static void run_sum_parts(const pl_kernels *table, int64_t n, const float *a,
                          const float *b, float *dst)
{
    const float *parts[] = { a, b, b };
    table->sum_parts(n, 3, parts, dst);
}

static const elementwise kernels[] = {
    { "relu", run_relu, 0, 0 },
    { "relu_grad", run_relu_grad, 0, 0 },
    { "tanh", run_tanh, 4, 0 },
    { "tanh_grad", run_tanh_grad, 2, 2e-7 },
    { "sigmoid", run_sigmoid, 4, 0 },
    { "sigmoid_grad", run_sigmoid_grad, 2, 2e-7 },
    { "add", run_add, 0, 0 },
    { "scale", run_scale, 0, 0 },
    { "fill", run_fill, 0, 0 },
    { "sum_parts", run_sum_parts, 0, 0 },
};
#define KERNELS (sizeof kernels / sizeof *kernels)

typedef struct fixture {
    guard a, b, dst;
    float from_a[MOST], from_b[MOST], expected[MOST];
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL)
        return -1;
    f->a = guard_make(MOST);
    f->b = guard_make(MOST);
    f->dst = guard_make(MOST);
    draw_all(f->from_a, MOST, -1, 1);
    draw_all(f->from_b, MOST, -3, 3);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    guard_drop(&f->a);
    guard_drop(&f->b);
    guard_drop(&f->dst);
    free(f);
    return 0;
}

static void check(fixture *f, const elementwise *kernel, int64_t n)
{
    const float *a = guard_copy(&f->a, f->from_a, n);
    const float *b = guard_copy(&f->b, f->from_b, n);
    kernel->run(reference_table(), n, a, b, f->expected);
    FOR_EACH_TABLE(table)
    {
        float *dst = guard_floats(&f->dst, n);
        kernel->run(table, n, a, b, dst);
        guard_check(&f->dst);
        for (int64_t i = 0; i < n; i++) {
            double exact = (double)f->expected[i];
            if (ulps(dst[i], exact) <= kernel->near ||
                is_near((double)dst[i], exact, kernel->away))
                continue;
            fail_msg("%s %s of %lld: element %lld is %.9g, not %.9g",
                     table->name, kernel->name, (long long)n, (long long)i,
                     (double)dst[i], exact);
        }
    }
}

static void elementwise_matches_the_reference(void **state)
{
    for (size_t k = 0; k < KERNELS; k++) {
        for (int64_t n = 1; n <= 70; n++)
            check(*state, &kernels[k], n);
        check(*state, &kernels[k], 1023);
        check(*state, &kernels[k], MOST);
    }
}

static void elementwise_result_may_be_a_source(void **state)
{
    fixture *f = *state;
    for (size_t k = 0; k < KERNELS; k++)
        for (int64_t n = 1; n <= 70; n++)
            FOR_EACH_TABLE(table)
            {
                kernels[k].run(table, n, f->from_a, f->from_b, f->expected);
                float *a = guard_copy(&f->a, f->from_a, n);
                kernels[k].run(table, n, a, f->from_b, a);
                assert_memory_equal(f->expected, a, (size_t)n * sizeof *a);
                if (kernels[k].run == run_sum_parts)
                    continue; /* there it may be the first only */
                float *b = guard_copy(&f->b, f->from_b, n);
                kernels[k].run(table, n, f->from_a, b, b);
                assert_memory_equal(f->expected, b, (size_t)n * sizeof *b);
            }
}

/* Threads and servers may split ranges anywhere. */
static void elementwise_rounds_equally_for_any_split_of_a_range(void **state)
{
    fixture *f = *state;
    const int64_t n = 1000;
    for (size_t k = 0; k < KERNELS; k++)
        FOR_EACH_TABLE(table)
        {
            kernels[k].run(table, n, f->from_a, f->from_b, f->expected);
            for (int round = 0; round < 20; round++) {
                float *dst = guard_floats(&f->dst, n);
                for (int64_t i = 0, count; i < n; i += count) {
                    count = draw_int(1, round < 10 ? 40 : 400);
                    count = count < n - i ? count : n - i;
                    kernels[k].run(table, count, f->from_a + i, f->from_b + i,
                                   dst + i);
                }
                assert_memory_equal(f->expected, dst, (size_t)n * sizeof *dst);
            }
        }
}

#define SWEEP 200000

/* The largest error of a function over least .. most, against libm. */
static double worst(void (*run)(int64_t n, const float *src, float *dst),
                    double (*exact)(double), double least, double most)
{
    double error = 0;
    for (int64_t first = 0; first < SWEEP; first += MOST) {
        float src[MOST], dst[MOST];
        for (int64_t i = 0; i < MOST; i++)
            src[i] = (float)(least + (most - least) * (double)(first + i) /
                                         (double)(SWEEP - 1));
        run(MOST, src, dst);
        for (int64_t i = 0; i < MOST; i++)
            error = fmax(error, ulps(dst[i], exact((double)src[i])));
    }
    return error;
}

static double exact_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static void tanh_is_exact_to_three_units(void **state)
{
    (void)state;
    FOR_EACH_TABLE(table)
    {
        double near = worst(table->tanh, tanh, -1, 1);
        double far = worst(table->tanh, tanh, -100, 100);
        print_message("%s tanh: %.2f ulp\n", table->name, fmax(near, far));
        assert_true(near <= 3 && far <= 3);
    }
}

static void sigmoid_is_exact_to_four_units(void **state)
{
    (void)state;
    FOR_EACH_TABLE(table)
    {
        double near = worst(table->sigmoid, exact_sigmoid, -5, 5);
        double far = worst(table->sigmoid, exact_sigmoid, -87, 100);
        print_message("%s sigmoid: %.2f ulp\n", table->name, fmax(near, far));
        assert_true(near <= 4 && far <= 4);
    }
}

static void elementwise_handles_the_ends_of_the_range(void **state)
{
    (void)state;
    const float src[] = { INFINITY, -INFINITY, NAN,   FLT_MAX, -FLT_MAX,
                          1e-45f,   -1e-45f,   -1e4f, 1e4f };
    enum {
        COUNT = sizeof src / sizeof *src
    };
    FOR_EACH_TABLE(table)
    {
        float dst[COUNT];
        table->tanh(COUNT, src, dst);
        assert_true(dst[0] == 1 && dst[1] == -1 && isnan(dst[2]));
        assert_true(dst[3] == 1 && dst[4] == -1);
        assert_true(fabsf(dst[5]) <= 1e-38f && fabsf(dst[6]) <= 1e-38f);
        table->sigmoid(COUNT, src, dst);
        assert_true(dst[0] == 1 && dst[1] < 1e-37f && isnan(dst[2]));
        assert_true(dst[7] >= 0 && dst[7] < 1e-37f && dst[8] == 1);
        table->relu(COUNT, src, dst);
        assert_true(dst[0] == INFINITY && dst[1] == 0 && isnan(dst[2]));
    }
}

static void load_reads_every_view(void **state)
{
    fixture *f = *state;
    uint32_t index[7];
    for (int64_t row = 1; row <= 70; row++)
        for (int variant = 0; variant < 8; variant++) {
            const int64_t rows = 7, sources = 9, stride = row + variant % 3;
            int64_t count = (sources - 1) * stride + row;
            pl_view view = {
                .index = (variant & 2) != 0 ? index : NULL,
                .stride = stride,
                .dtype = (variant & 1) != 0 ? PL_UINT8 : PL_FLOAT32,
                .scale = (variant & 4) != 0 ? 1.0f / 255 : 1.0f,
            };
            for (int64_t r = 0; r < rows; r++)
                index[r] = (uint32_t)draw_int(0, sources - 1);
            uint8_t *bytes = guard_get(&f->a, count);
            for (int64_t i = 0; i < count; i++)
                bytes[i] = (uint8_t)draw_int(0, 255);
            view.data = (variant & 1) != 0
                            ? (const void *)bytes
                            : guard_copy(&f->b, f->from_b, count);
            reference_table()->load(rows, row, &view, f->expected);
            FOR_EACH_TABLE(table)
            {
                float *dst = guard_floats(&f->dst, rows * row);
                table->load(rows, row, &view, dst);
                guard_check(&f->dst);
                for (int64_t i = 0; i < rows * row; i++)
                    assert_true(ulps(dst[i], (double)f->expected[i]) <= 1);
            }
        }
}

#define WITH_FIXTURE(test)                                                     \
    cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT_TESTS(WITH_FIXTURE(elementwise_matches_the_reference),
           WITH_FIXTURE(elementwise_result_may_be_a_source),
           WITH_FIXTURE(elementwise_rounds_equally_for_any_split_of_a_range),
           cmocka_unit_test(tanh_is_exact_to_three_units),
           cmocka_unit_test(sigmoid_is_exact_to_four_units),
           cmocka_unit_test(elementwise_handles_the_ends_of_the_range),
           WITH_FIXTURE(load_reads_every_view))

/* Operations of oneDNN against the reference kernels, which work on one
 * example at a time: in lanes of one, images are plain. */
#include "kernels/cpu/dnn.h"

#include "kernels/cpu/team.h"
#include "support/kernels.h"

#include <stdatomic.h>

typedef struct shape {
    int64_t channels, height, width, outs, kernel_h, kernel_w, stride, pad;
    int64_t batch, rows, slice;
} shape;

static const shape shapes[] = {
    { 3, 35, 31, 20, 11, 11, 4, 2, 3, 3, 0 }, /* a first layer */
    { 1, 9, 9, 16, 3, 3, 1, 1, 1, 1, 0 },     /* one example */
    { 32, 13, 13, 48, 3, 3, 1, 1, 5, 5, 0 },  /* Winograd's kind */
    { 64, 12, 12, 64, 3, 3, 1, 1, 4, 3, 0 },  /* and one row less */
    { 17, 10, 7, 33, 5, 3, 1, 2, 7, 7, 0 },   /* odd channels */
    { 17, 10, 7, 33, 3, 5, 2, 0, 7, 2, 0 },   /* what the stride leaves over */
    { 40, 6, 6, 10, 1, 1, 1, 0, 2, 1, 0 },    /* few results: they are plain */
    { 10, 8, 9, 40, 2, 2, 2, 1, 9, 9, 0 },    /* few channels likewise */
    { 16, 11, 11, 80, 5, 5, 1, 2, 2, 2, 0 },  /* many results */
    { 24, 9, 9, 17, 3, 3, 1, 1, 6, 5, 2 },    /* slices, the last not full */
    { 5, 9, 9, 40, 3, 3, 1, 1, 6, 4, 2 },     /* slices, the last not used */
};

#define SHAPES               ((int)(sizeof shapes / sizeof *shapes))
#define SHAPE_ON_TWO_THREADS 4

static pl_conv sizes_of(const shape *s)
{
    return (pl_conv) {
        .channels = s->channels,
        .height = s->height,
        .width = s->width,
        .outs = s->outs,
        .out_height = (s->height + 2 * s->pad - s->kernel_h) / s->stride + 1,
        .out_width = (s->width + 2 * s->pad - s->kernel_w) / s->stride + 1,
        .kernel_h = s->kernel_h,
        .kernel_w = s->kernel_w,
        .stride = s->stride,
        .pad = s->pad,
    };
}

/* Numbers, their absolute values, and room for both kinds of images. */
typedef struct block {
    int64_t count;
    float *plain, *absolute, *given;
} block;

static float *floats(int64_t count)
{
    float *data = aligned_alloc(64, (size_t)(count * 4 + 63) / 64 * 64);
    assert_non_null(data);
    memset(data, 0xff,
           (size_t)count * 4); /* NaN: a read of it shows in the result */
    return data;
}

static block make(int64_t count, int64_t room)
{
    block b = { count, floats(count), floats(count), floats(room) };
    draw_all(b.plain, count, -1, 1);
    for (int64_t i = 0; i < count; i++)
        b.absolute[i] = fabsf(b.plain[i]);
    memcpy(b.given, b.plain, (size_t)count * 4);
    return b;
}

static void drop(block *b)
{
    free(b->plain);
    free(b->absolute);
    free(b->given);
}

typedef struct fixture {
    const pl_kernels *table;
    const shape *s;
    pl_conv c;
    int threads;
    bool relu;
    bool bf16; /* of numbers that it can hold: nothing is rounded */
    block src, weights, bias, dst;
} fixture;

static int64_t blocked_count(const pl_kernels *table, int64_t batch,
                             int64_t channels, int64_t pixels)
{
    int64_t n = table->lanes;
    return batch * ((channels + n - 1) / n * n) * pixels;
}

static void run_op(const fixture *f, pl_dnn_opts opts, float *const *data,
                   int64_t rows)
{
    opts.batch = f->s->batch;
    opts.kernels = f->table;
    opts.threads = f->threads;
    opts.slice = f->s->slice;
    opts.bf16 = f->bf16;
    pl_dnn_op *op;
    pl_dnn_call *call;
    assert_ok(pl_dnn_op_new(&op, &opts));
    float *scratch = floats(pl_dnn_op_scratch(op) + 1);
    assert_ok(pl_dnn_call_new(&call, op, data, scratch));
    pl_dnn_call_run(call, rows);
    pl_dnn_call_free(call);
    pl_dnn_op_free(op);
    free(scratch);
}

/* From plain to what the operations read, or back, in place. */
static void turn(const fixture *f, block *b, int64_t channels, int64_t height,
                 int64_t width, bool back)
{
    if (!pl_dnn_blocked(f->table, channels))
        return;
    float *to =
        floats(blocked_count(f->table, f->s->batch, channels, height * width));
    float *data[PL_DNN_ARGS] = {
        [PL_DNN_FIRST] = b->given, [PL_DNN_RESULT] = to
    };
    run_op(f,
           (pl_dnn_opts) { .kind = back ? PL_DNN_UNBLOCK : PL_DNN_BLOCK,
                           .sizes = { .channels = channels,
                                      .height = height,
                                      .width = width } },
           data, f->s->batch);
    free(b->given);
    b->given = to;
}

static void turn_src(const fixture *f, block *b, bool back)
{
    turn(f, b, f->c.channels, f->c.height, f->c.width, back);
}

static void turn_dst(const fixture *f, block *b, bool back)
{
    turn(f, b, f->c.outs, f->c.out_height, f->c.out_width, back);
}

static void shorten(block *b)
{
    float *lists[] = { b->plain, b->absolute, b->given };
    for (int l = 0; l < 3; l++)
        for (int64_t i = 0; i < b->count; i++) {
            uint32_t bits;
            memcpy(&bits, &lists[l][i], sizeof bits);
            bits &= 0xffff0000;
            memcpy(&lists[l][i], &bits, sizeof bits);
        }
}

static void fixture_init(fixture *f)
{
    const pl_conv *c = &f->c;
    int64_t batch = f->s->batch, in = c->height * c->width,
            out = c->out_height * c->out_width;
    f->src = make(batch * c->channels * in,
                  blocked_count(f->table, batch, c->channels, in));
    f->dst = make(batch * c->outs * out,
                  blocked_count(f->table, batch, c->outs, out));
    f->weights = make(c->outs * c->channels * c->kernel_h * c->kernel_w,
                      c->outs * c->channels * c->kernel_h * c->kernel_w);
    f->bias = make(c->outs, c->outs);
    if (!f->bf16)
        return;
    shorten(&f->src);
    shorten(&f->dst);
    shorten(&f->weights);
}

static void fixture_close(fixture *f)
{
    drop(&f->src);
    drop(&f->weights);
    drop(&f->bias);
    drop(&f->dst);
}

/* Each result is a sum; `bound` is that of the terms' absolute values.
 * Winograd's algorithm loses some digits more than adding in turn. */
static void assert_sums(const float *got, const float *expected,
                        const float *bound, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!is_near((double)got[i], (double)expected[i],
                     1e-5 * (double)bound[i] + 1e-6))
            fail_msg("element %lld is %g, expected %g of %g", (long long)i,
                     (double)got[i], (double)expected[i], (double)bound[i]);
}

static float *scratch_of(const fixture *f)
{
    return floats(pl_conv_scratch(&f->c, 1));
}

static void check_forward(fixture *f)
{
    const pl_kernels *reference = reference_table();
    int64_t out = f->c.outs * f->c.out_height * f->c.out_width;
    int64_t rows = f->s->rows, count = rows * out;
    float *expected = floats(count), *bound = floats(count),
          *scratch = scratch_of(f);
    reference->conv(&f->c, rows, f->src.plain, f->weights.plain, f->bias.plain,
                    scratch, expected);
    reference->conv(&f->c, rows, f->src.absolute, f->weights.absolute,
                    f->bias.absolute, scratch, bound);
    if (f->relu)
        reference->relu(count, expected, expected);
    turn_src(f, &f->src, false);
    float *data[] = { f->src.given, f->weights.given, f->bias.given,
                      f->dst.given };
    run_op(
        f,
        (pl_dnn_opts) {
            .kind = PL_DNN_CONV, .sizes = f->c, .bias = true, .relu = f->relu },
        data, rows);
    turn_dst(f, &f->dst, true);
    assert_sums(f->dst.given, expected, bound, count);
    free(expected);
    free(bound);
    free(scratch);
}

static void check_src(fixture *f)
{
    const pl_kernels *reference = reference_table();
    int64_t in = f->c.channels * f->c.height * f->c.width;
    int64_t rows = f->s->rows, count = rows * in;
    float *expected = floats(count), *bound = floats(count),
          *scratch = scratch_of(f);
    reference->conv_src(&f->c, rows, f->dst.plain, f->weights.plain, scratch,
                        expected);
    reference->conv_src(&f->c, rows, f->dst.absolute, f->weights.absolute,
                        scratch, bound);
    turn_dst(f, &f->dst, false);
    float *data[] = { f->dst.given, f->weights.given, NULL, f->src.given };
    run_op(f, (pl_dnn_opts) { .kind = PL_DNN_CONV_SRC, .sizes = f->c }, data,
           rows);
    turn_src(f, &f->src, true);
    assert_sums(f->src.given, expected, bound, count);
    free(expected);
    free(bound);
    free(scratch);
}

static void check_weights(fixture *f)
{
    const pl_kernels *reference = reference_table();
    int64_t rows = f->s->rows, count = f->weights.count, outs = f->c.outs;
    float *expected = floats(count + outs), *bound = floats(count + outs),
          *scratch = scratch_of(f);
    reference->conv_weights(&f->c, rows, f->dst.plain, f->src.plain, scratch,
                            expected);
    reference->conv_bias(&f->c, rows, f->dst.plain, expected + count);
    reference->conv_weights(&f->c, rows, f->dst.absolute, f->src.absolute,
                            scratch, bound);
    reference->conv_bias(&f->c, rows, f->dst.absolute, bound + count);
    turn_dst(f, &f->dst, false);
    turn_src(f, &f->src, false);
    float *data[] = { f->dst.given, f->src.given, f->bias.given,
                      f->weights.given };
    run_op(f,
           (pl_dnn_opts) {
               .kind = PL_DNN_CONV_WEIGHTS, .sizes = f->c, .bias = true },
           data, rows);
    assert_sums(f->weights.given, expected, bound, count);
    assert_sums(f->bias.given, expected + count, bound + count, outs);
    free(expected);
    free(bound);
    free(scratch);
}

static void check_all_in(void (*check)(fixture *), bool relu, bool bf16)
{
    FOR_EACH_TABLE(table)
    {
        if (!pl_dnn_usable(table) || (bf16 && !pl_dnn_has_bf16(table)))
            continue;
        for (int i = 0; i < SHAPES; i++) {
            /* Two threads for one shape only: when other programs keep the
             * cores busy, each barrier inside oneDNN waits for its turn. */
            fixture f = { .table = table,
                          .s = &shapes[i],
                          .c = sizes_of(&shapes[i]),
                          .threads = i == SHAPE_ON_TWO_THREADS ? 2 : 1,
                          .relu = relu,
                          .bf16 = bf16 };
            fixture_init(&f);
            check(&f);
            fixture_close(&f);
        }
    }
}

static void check_all(void (*check)(fixture *), bool relu)
{
    check_all_in(check, relu, false);
}

static void dnn_convolution_agrees_with_the_reference(void **state)
{
    (void)state;
    check_all(check_forward, false);
    check_all(check_forward, true);
}

static void dnn_source_gradient_agrees_with_the_reference(void **state)
{
    (void)state;
    check_all(check_src, false);
}

static void dnn_weight_gradient_agrees_with_the_reference(void **state)
{
    (void)state;
    check_all(check_weights, false);
}

static void dnn_bf16_convolutions_agree_with_the_reference(void **state)
{
    (void)state;
    if (!pl_dnn_has_bf16(pl_kernels_best()))
        skip();
    check_all_in(check_forward, true, true);
    check_all_in(check_src, false, true);
    check_all_in(check_weights, false, true);
}

/* The place of a pixel in blocks, by hand. */
static void dnn_block_layout_is_as_documented(void **state)
{
    (void)state;
    FOR_EACH_TABLE(table)
    {
        if (!pl_dnn_usable(table))
            continue;
        shape s = { .channels = 2 * table->lanes - 3, .batch = 2, .rows = 2 };
        fixture f = { .table = table, .s = &s, .threads = 1 };
        int64_t n = table->lanes, pixels = 12;
        block b = make(2 * s.channels * pixels,
                       blocked_count(table, 2, s.channels, pixels));
        turn(&f, &b, s.channels, 3, 4, false);
        for (int64_t r = 0; r < 2; r++)
            for (int64_t c = 0; c < 2 * n; c++)
                for (int64_t p = 0; p < pixels; p++) {
                    float got =
                        b.given[((r * 2 + c / n) * pixels + p) * n + c % n];
                    float expected =
                        c < s.channels
                            ? b.plain[(r * s.channels + c) * pixels + p]
                            : 0;
                    assert_true(got == expected);
                }
        turn(&f, &b, s.channels, 3, 4, true);
        assert_memory_equal(b.plain, b.given, (size_t)b.count * 4);
        drop(&b);
    }
}

static void dnn_products_agree_with_the_reference(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {
        { 1, 1, 1 }, { 3, 70, 129 }, { 33, 5, 17 }, { 128, 100, 64 }
    };
    const pl_kernels *reference = reference_table();
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
        int64_t n = sizes[i / 2][0], m = sizes[i / 2][1], k = sizes[i / 2][2];
        block src = make(n * k, n * k), weights = make(m * k, m * k),
              bias = make(m, m), dst = make(n * m, n * m);
        float *scratch = floats(n * m), *bound = floats(n * m);
        pl_view view = {
            .data = src.plain, .stride = k, .dtype = PL_FLOAT32, .scale = 1
        };
        pl_dnn_product p = {
            .n = n, .m = m, .k = k, .threads = i == 0 ? 2 : 1
        };
        reference->matmul_nt(n, m, k, &view, weights.plain, bias.plain,
                             dst.plain);
        view.data = src.absolute;
        reference->matmul_nt(n, m, k, &view, weights.absolute, bias.absolute,
                             bound);
        assert_true(pl_dnn_inner(&p, src.plain, weights.plain, bias.plain,
                                 scratch, dst.given));
        assert_sums(dst.given, dst.plain, bound, n * m);
        p.b_transposed = true;
        view.data = src.plain;
        reference->matmul_nt(n, m, k, &view, weights.plain, NULL, dst.plain);
        assert_true(pl_dnn_gemm(&p, src.plain, weights.plain, dst.given));
        assert_sums(dst.given, dst.plain, bound, n * m);
        free(scratch);
        free(bound);
        drop(&src);
        drop(&weights);
        drop(&bias);
        drop(&dst);
    }
}

/* One operation of a dense layer, and what is expected of it. */
static void check_dense(const fixture *f, pl_dnn_kind kind, float *const *data,
                        block *result, const float *expected,
                        const float *bound)
{
    run_op(f,
           (pl_dnn_opts) {
               .kind = kind, .sizes = f->c, .bias = kind == PL_DNN_DENSE },
           data, f->s->rows);
    assert_sums(result->given, expected, bound,
                kind == PL_DNN_DENSE_WEIGHTS
                    ? result->count
                    : result->count / f->s->batch * f->s->rows);
}

/* src [n, k], weights [m, k], dst [n, m]; each from what the others hold. */
static void check_dense_layer(fixture *f)
{
    const pl_kernels *r = reference_table();
    int64_t n = f->s->rows, m = f->c.outs, k = f->c.channels;
    int64_t most = (n + m) * (n + k) + m * k;
    float *sum = floats(most), *bound = floats(most);
    pl_view view[2];
    const float *src[] = { f->src.plain, f->src.absolute };
    const float *w[] = { f->weights.plain, f->weights.absolute };
    const float *dst[] = { f->dst.plain, f->dst.absolute };
    float *out[] = { sum, bound };
    for (int i = 0; i < 2; i++) {
        view[i] = (pl_view) {
            .data = src[i], .stride = k, .dtype = PL_FLOAT32, .scale = 1
        };
        r->matmul_nt(n, m, k, &view[i], w[i],
                     i == 0 ? f->bias.plain : f->bias.absolute, out[i]);
    }
    check_dense(f, PL_DNN_DENSE,
                (float *[]) { f->src.given, f->weights.given, f->bias.given,
                              f->dst.given },
                &f->dst, sum, bound);
    memcpy(f->dst.given, f->dst.plain, (size_t)f->dst.count * 4);
    for (int i = 0; i < 2; i++)
        r->matmul_tn(m, k, n, dst[i], &view[i], out[i]);
    check_dense(
        f, PL_DNN_DENSE_WEIGHTS,
        (float *[]) { f->dst.given, f->src.given, NULL, f->weights.given },
        &f->weights, sum, bound);
    memcpy(f->weights.given, f->weights.plain, (size_t)f->weights.count * 4);
    for (int i = 0; i < 2; i++) {
        view[i].data = w[i];
        r->matmul_nn(n, k, m, dst[i], &view[i], out[i]);
    }
    check_dense(
        f, PL_DNN_DENSE_SRC,
        (float *[]) { f->dst.given, f->weights.given, NULL, f->src.given },
        &f->src, sum, bound);
    free(sum);
    free(bound);
}

static void dnn_bf16_dense_layers_agree_with_the_reference(void **state)
{
    (void)state;
    static const shape layers[] = {
        { .channels = 70, .outs = 129, .batch = 3, .rows = 3 },
        { .channels = 33, .outs = 10, .batch = 9, .rows = 5 },
        { .channels = 256, .outs = 100, .batch = 64, .rows = 64 },
    };
    if (!pl_dnn_has_bf16(pl_kernels_best()))
        skip();
    for (int i = 0; i < 3; i++) {
        fixture f = { .table = pl_kernels_best(),
                      .s = &layers[i],
                      .c = { .channels = layers[i].channels,
                             .height = 1,
                             .width = 1,
                             .outs = layers[i].outs,
                             .out_height = 1,
                             .out_width = 1,
                             .kernel_h = 1,
                             .kernel_w = 1 },
                      .threads = 1 + i % 2,
                      .bf16 = true };
        fixture_init(&f);
        check_dense_layer(&f);
        fixture_close(&f);
    }
}

static void dnn_product_can_accumulate(void **state)
{
    (void)state;
    const float a[] = { 1, 2, 3, 4 }, b[] = { 5, 6, 7, 8 };
    float dst[] = { 100, 200, 300, 400 };
    pl_dnn_product p = { .n = 2, .m = 2, .k = 2, .add = true, .threads = 1 };
    const float expected[] = { 119, 222, 343, 450 };
    assert_true(pl_dnn_gemm(&p, a, b, dst));
    assert_memory_equal(expected, dst, sizeof dst);
}

static void dnn_op_survives_each_failed_allocation(void **state)
{
    (void)state;
    const pl_kernels *table = pl_kernels_best();
    if (!pl_dnn_usable(table))
        skip();
    pl_dnn_opts opts = { .kind = PL_DNN_CONV,
                         .sizes = sizes_of(&shapes[1]),
                         .batch = 1,
                         .kernels = table };
    float data[4096] = { 0 };
    float *args[] = { data, data, NULL, data };
    long live = pl_mem_live();
    bool failed = true;
    for (long nth = 0; failed; nth++) {
        pl_dnn_op *op = NULL;
        pl_dnn_call *call = NULL;
        pl_mem_fail_at(nth);
        pl_status status = pl_dnn_op_new(&op, &opts);
        if (status == PL_OK)
            status = pl_dnn_call_new(&call, op, args, data);
        failed = pl_mem_fail_off();
        assert_int_equal(failed ? PL_NOMEM : PL_OK, status);
        pl_dnn_call_free(call);
        pl_dnn_op_free(op);
    }
    assert_int_equal(live, pl_mem_live());
}

typedef struct tally {
    atomic_int runs[100];
    atomic_bool strange;
} tally;

static void count(void *arg, int item, int thread)
{
    tally *t = arg;
    atomic_fetch_add(&t->runs[item], 1);
    if (thread < 0 || thread >= 3)
        atomic_store(&t->strange, true);
}

static void team_runs_each_item_once(void **state)
{
    (void)state;
    for (int threads = 1; threads <= pl_dnn_threads(3); threads++) {
        tally t = { .strange = false };
        pl_team_run(threads, 100, count, &t);
        for (int i = 0; i < 100; i++)
            assert_int_equal(1, atomic_load(&t.runs[i]));
        assert_false(atomic_load(&t.strange));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dnn_convolution_agrees_with_the_reference),
        cmocka_unit_test(dnn_source_gradient_agrees_with_the_reference),
        cmocka_unit_test(dnn_weight_gradient_agrees_with_the_reference),
        cmocka_unit_test(dnn_bf16_convolutions_agree_with_the_reference),
        cmocka_unit_test(dnn_bf16_dense_layers_agree_with_the_reference),
        cmocka_unit_test(dnn_block_layout_is_as_documented),
        cmocka_unit_test(dnn_products_agree_with_the_reference),
        cmocka_unit_test(dnn_product_can_accumulate),
        cmocka_unit_test(dnn_op_survives_each_failed_allocation),
        cmocka_unit_test(team_runs_each_item_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The convolutions ask for the scratch memory they use: it ends at a page
 * that may not be touched, and what lies in it does not matter.  (Their
 * results are compared in tests/unit/graph/test_ops.c.) */
#include "support/kernels.h"

#define GROUPS 2

static const pl_conv convs[] = {
    { 3, 12, 11, 7, 12, 11, 5, 5, 1, 2 }, { 2, 9, 9, 5, 7, 7, 3, 3, 1, 0 },
    { 3, 31, 31, 8, 7, 7, 11, 11, 4, 2 }, { 1, 28, 28, 6, 28, 28, 5, 5, 1, 2 },
    { 17, 3, 3, 19, 3, 3, 3, 3, 1, 1 },   { 4, 8, 8, 3, 4, 4, 2, 2, 2, 0 },
};

typedef struct fields {
    int64_t src, dst, weights; /* floats */
    float *source, *result, *kernel;
} fields;

static fields fields_of(const pl_conv *c, int lanes)
{
    fields f = {
        .src = GROUPS * c->channels * c->height * c->width * lanes,
        .dst = GROUPS * c->outs * c->out_height * c->out_width * lanes,
        .weights = c->outs * c->channels * c->kernel_h * c->kernel_w,
    };
    f.source = pl_mem_alloc_aligned((size_t)f.src, sizeof(float));
    f.result = pl_mem_alloc_aligned((size_t)f.dst, sizeof(float));
    f.kernel = pl_mem_alloc_aligned((size_t)f.weights, sizeof(float));
    draw_all(f.source, f.src, -1, 1);
    draw_all(f.result, f.dst, -1, 1);
    draw_all(f.kernel, f.weights, -1, 1);
    return f;
}

static void assert_finite(const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        assert_true(isfinite(x[i]));
}

static void check(const pl_kernels *table, const pl_conv *c)
{
    int64_t own = pl_conv_scratch(c, table->lanes);
    int64_t of_src = pl_conv_src_scratch(c, table->lanes);
    guard g = guard_make(own > of_src ? own : of_src);
    fields f = fields_of(c, table->lanes), out = fields_of(c, table->lanes);
    table->conv(c, GROUPS, f.source, f.kernel, NULL, guard_floats(&g, own),
                out.result);
    guard_check(&g);
    table->conv_weights(c, GROUPS, f.result, f.source, guard_floats(&g, own),
                        out.kernel);
    guard_check(&g);
    table->conv_src(c, GROUPS, f.result, f.kernel, guard_floats(&g, of_src),
                    out.source);
    guard_check(&g);
    assert_finite(out.result, out.dst);
    assert_finite(out.kernel, out.weights);
    assert_finite(out.source, out.src);
    guard_drop(&g);
    const fields all[] = { f, out };
    for (int i = 0; i < 2; i++) {
        pl_mem_free(all[i].source);
        pl_mem_free(all[i].result);
        pl_mem_free(all[i].kernel);
    }
}

static void conv_uses_no_more_scratch_than_it_asks_for(void **state)
{
    (void)state;
    FOR_EACH_TABLE(table)
    {
        for (size_t i = 0; i < sizeof convs / sizeof *convs; i++)
            check(table, &convs[i]);
    }
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(cmocka_unit_test(conv_uses_no_more_scratch_than_it_asks_for))

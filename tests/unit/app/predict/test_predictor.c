#include "app/predict/predictor.h"

#include "support/train.h"

#include <math.h>

static const rig_opts some = { .side = 8, .classes = 5, .examples = 200 };

static pl_status start(pl_predictor **out, const rig *r, int64_t part)
{
    return pl_predictor_new(out, &(pl_predictor_opts) {
                                     .network = r->network,
                                     .pool = r->pool,
                                     .part = part,
                                 });
}

static void predictor_new_survives_each_failed_allocation(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, &some);
    pl_predictor *predictor;
    assert_survives_failed_allocations(start(&predictor, &r, 0),
                                       pl_predictor_free(predictor));
    rig_close(&r);
    assert_int_equal(0, pl_mem_live());
}

static void predictor_logits_do_not_depend_on_the_parts(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, &some);
    pl_predictor *whole, *parts;
    assert_ok(start(&whole, &r, 0));
    assert_ok(start(&parts, &r, 7));
    assert_int_equal(16 * 64, pl_predictor_room(whole));
    assert_int_equal(16 * 7, pl_predictor_room(parts));
    const int64_t rows[] = { 1, 7, 8, 111, 112 };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pl_view view = pl_view_from(&r.train->features, 3);
        const float *a = pl_predictor_run(whole, &view, rows[i]);
        const float *b = pl_predictor_run(parts, &view, rows[i]);
        for (int64_t j = 0; j < rows[i] * some.classes; j++) {
            assert_true(isfinite(a[j]));
            assert_true(fabsf(a[j] - b[j]) < 1e-5f);
        }
    }
    pl_predictor_free(whole);
    pl_predictor_free(parts);
    rig_close(&r);
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(cmocka_unit_test(predictor_new_survives_each_failed_allocation),
           cmocka_unit_test(predictor_logits_do_not_depend_on_the_parts))

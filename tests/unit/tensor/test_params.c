#include "support/unit.h"

#include "tensor/params.h"

static pl_status make_set(pl_params **out)
{
    pl_status status;
    pl_params *params = NULL;
    PL_TRY_OUT(status, pl_params_new(&params));
    PL_TRY_OUT(status, pl_params_add(params, "weights", PL_SHAPE(10, 7)));
    PL_TRY_OUT(status, pl_params_add(params, "bias", PL_SHAPE(10)));
    PL_TRY_OUT(status, pl_params_add(params, "scale", PL_SCALAR));
    PL_TRY_OUT(status, pl_params_seal(params));
    *out = params;
    params = NULL;
out:
    pl_params_free(params);
    return status;
}

static void params_lie_on_cache_lines_in_one_zeroed_block(void **state)
{
    (void)state;
    pl_params *params = NULL;
    assert_ok(make_set(&params));
    assert_int_equal(3, pl_params_count(params));
    assert_int_equal(81, pl_params_elements(params));
    assert_int_equal(80 + 16 + 16, pl_params_block_count(params));

    const pl_params_item *bias = pl_params_get(params, 1);
    assert_string_equal("bias", bias->name);
    assert_true(pl_shape_equal(PL_SHAPE(10), bias->shape));
    assert_int_equal(10, bias->count);
    assert_int_equal(80, bias->offset);

    float *block = pl_params_block(params);
    assert_ptr_equal(block + 80, pl_params_data(params, 1));
    for (int i = 0; i < 3; i++)
        assert_int_equal(0,
                         (uintptr_t)pl_params_data(params, i) % PL_CACHE_LINE);
    for (int64_t i = 0; i < pl_params_block_count(params); i++)
        assert_true(block[i] == 0.0f);
    pl_params_free(params);
    assert_int_equal(0, pl_mem_live());
}

static void params_are_found_by_name(void **state)
{
    (void)state;
    pl_params *params = NULL;
    assert_ok(make_set(&params));
    assert_int_equal(0, pl_params_find(params, "weights"));
    assert_int_equal(2, pl_params_find(params, "scale"));
    assert_int_equal(-1, pl_params_find(params, "Scale"));
    pl_params_free(params);
}

static void params_add_refuses_a_taken_name_and_a_bad_shape(void **state)
{
    (void)state;
    pl_params *params = NULL;
    assert_ok(pl_params_new(&params));
    assert_ok(pl_params_add(params, "w", PL_SHAPE(2)));
    assert_fails(PL_USAGE, "two parameters named 'w'",
                 pl_params_add(params, "w", PL_SHAPE(3)));
    assert_fails(PL_SHAPE, "parameter 'v'",
                 pl_params_add(params, "v", PL_SHAPE(3, 0)));
    assert_int_equal(1, pl_params_count(params));
    pl_params_free(params);
}

static void params_keep_running_averages_after_trained_parameters(void **state)
{
    (void)state;
    pl_params *params = NULL, *twin = NULL;
    assert_ok(pl_params_new(&params));
    assert_ok(pl_params_add(params, "w", PL_SHAPE(20)));
    assert_ok(pl_params_seal(params));
    assert_int_equal(pl_params_block_count(params), pl_params_trained(params));
    pl_params_free(params);
    assert_ok(pl_params_new(&params));
    assert_ok(pl_params_add(params, "w", PL_SHAPE(20)));
    assert_ok(pl_params_add_averaged(params, "mean", PL_SHAPE(3)));
    assert_ok(pl_params_add_averaged(params, "variance", PL_SHAPE(3)));
    assert_ok(pl_params_seal(params));
    assert_ok(pl_params_like(&twin, params));
    for (int i = 0; i < 2; i++) {
        const pl_params *set = i == 0 ? params : twin;
        assert_int_equal(32, pl_params_trained(set));
        assert_int_equal(64, pl_params_block_count(set));
        assert_int_equal(20, pl_params_elements(set));
        assert_false(pl_params_get(set, 0)->averaged);
        assert_true(pl_params_get(set, 2)->averaged);
        assert_int_equal(48, pl_params_get(set, 2)->offset);
    }
    pl_params_free(params);
    pl_params_free(twin);
    assert_int_equal(0, pl_mem_live());
}

static void params_take_any_number_of_tensors(void **state)
{
    (void)state;
    pl_params *params = NULL;
    char name[16];
    assert_ok(pl_params_new(&params));
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "p%d", i);
        assert_ok(pl_params_add(params, name, PL_SHAPE(1)));
    }
    assert_ok(pl_params_seal(params));
    assert_int_equal(99, pl_params_find(params, "p99"));
    assert_int_equal(1600, pl_params_block_count(params));
    pl_params_free(params);
}

static void params_of_an_empty_set_may_be_sealed(void **state)
{
    (void)state;
    pl_params *params = NULL;
    assert_ok(pl_params_new(&params));
    assert_ok(pl_params_seal(params));
    assert_int_equal(0, pl_params_block_count(params));
    pl_params_free(params);
}

static void params_like_has_the_same_layout_and_its_own_memory(void **state)
{
    (void)state;
    pl_params *params = NULL, *twin = NULL;
    assert_ok(make_set(&params));
    pl_params_data(params, 1)[3] = 5.0f;
    assert_ok(pl_params_like(&twin, params));
    assert_int_equal(3, pl_params_count(twin));
    for (int i = 0; i < 3; i++) {
        const pl_params_item *a = pl_params_get(params, i);
        const pl_params_item *b = pl_params_get(twin, i);
        assert_string_equal(a->name, b->name);
        assert_int_equal(a->offset, b->offset);
        assert_true(pl_shape_equal(a->shape, b->shape));
    }
    assert_true(pl_params_data(twin, 1)[3] == 0.0f);
    pl_params_free(params);
    assert_string_equal("bias", pl_params_get(twin, 1)->name);
    pl_params_free(twin);
    pl_params_free(NULL);
}

static void params_survive_each_failed_allocation(void **state)
{
    (void)state;
    pl_params *params = NULL, *twin = NULL;
    assert_survives_failed_allocations(make_set(&params),
                                       pl_params_free(params));
    assert_ok(make_set(&params));
    assert_survives_failed_allocations(pl_params_like(&twin, params),
                                       pl_params_free(twin));
    pl_params_free(params);
}

UNIT_TESTS(
    cmocka_unit_test(params_lie_on_cache_lines_in_one_zeroed_block),
    cmocka_unit_test(params_are_found_by_name),
    cmocka_unit_test(params_add_refuses_a_taken_name_and_a_bad_shape),
    cmocka_unit_test(params_keep_running_averages_after_trained_parameters),
    cmocka_unit_test(params_take_any_number_of_tensors),
    cmocka_unit_test(params_of_an_empty_set_may_be_sealed),
    cmocka_unit_test(params_like_has_the_same_layout_and_its_own_memory),
    cmocka_unit_test(params_survive_each_failed_allocation))

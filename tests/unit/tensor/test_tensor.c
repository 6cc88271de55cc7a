#include "support/unit.h"

#include "base/thread.h"
#include "tensor/tensor.h"

static void tensor_new_gives_zeroed_aligned_memory(void **state)
{
    (void)state;
    pl_tensor *tensor;
    assert_ok(pl_tensor_new(&tensor, PL_FLOAT32, PL_SHAPE(3, 5)));
    assert_int_equal(PL_FLOAT32, pl_tensor_dtype(tensor));
    assert_true(pl_shape_equal(PL_SHAPE(3, 5), pl_tensor_shape(tensor)));
    assert_int_equal(15, pl_tensor_count(tensor));
    assert_int_equal(60, pl_tensor_bytes(tensor));
    assert_ptr_equal(pl_tensor_data(tensor), pl_tensor_f32(tensor));
    assert_int_equal(0, (uintptr_t)pl_tensor_data(tensor) % PL_CACHE_LINE);
    for (int i = 0; i < 15; i++)
        assert_true(pl_tensor_f32(tensor)[i] == 0.0f);
    pl_tensor_unref(tensor);
    assert_int_equal(0, pl_mem_live());
}

static void tensor_new_refuses_a_bad_shape(void **state)
{
    (void)state;
    pl_tensor *tensor = NULL;
    assert_fails(PL_SHAPE, "not positive",
                 pl_tensor_new(&tensor, PL_UINT8, PL_SHAPE(3, 0)));
    assert_null(tensor);
}

static void count_release(void *owner)
{
    ++*(int *)owner;
}

static void tensor_wrap_releases_with_the_last_reference(void **state)
{
    (void)state;
    int released = 0;
    uint8_t bytes[4] = { 1, 2, 3, 4 };
    pl_tensor *tensor;
    assert_ok(pl_tensor_wrap(&tensor, PL_UINT8, PL_SHAPE(4), bytes,
                             count_release, &released));
    assert_ptr_equal(tensor, pl_tensor_ref(tensor));
    pl_tensor_unref(tensor);
    assert_int_equal(0, released);
    assert_ptr_equal(bytes, pl_tensor_data(tensor));
    pl_tensor_unref(tensor);
    assert_int_equal(1, released);

    assert_ok(
        pl_tensor_wrap(&tensor, PL_UINT8, PL_SHAPE(4), bytes, NULL, NULL));
    pl_tensor_unref(tensor);
    pl_tensor_unref(NULL);
    assert_int_equal(0, pl_mem_live());
}

static void share(void *arg, int item, int thread)
{
    (void)item, (void)thread;
    for (int i = 0; i < 10000; i++)
        pl_tensor_unref(pl_tensor_ref(arg));
}

static void tensor_references_count_from_many_threads(void **state)
{
    (void)state;
    int released = 0;
    pl_tensor *tensor;
    assert_ok(pl_tensor_wrap(&tensor, PL_UINT8, PL_SHAPE(1), &released,
                             count_release, &released));
    pl_pool *pool;
    assert_ok(pl_pool_new(&pool, 4));
    pl_pool_run(pool, 4, share, tensor);
    pl_pool_free(pool);
    assert_int_equal(0, released);
    pl_tensor_unref(tensor);
    assert_int_equal(1, released);
}

static void tensor_new_survives_each_failed_allocation(void **state)
{
    (void)state;
    pl_tensor *tensor;
    assert_survives_failed_allocations(
        pl_tensor_new(&tensor, PL_INT32, PL_SHAPE(2, 2)),
        pl_tensor_unref(tensor));
}

UNIT_TESTS(cmocka_unit_test(tensor_new_gives_zeroed_aligned_memory),
           cmocka_unit_test(tensor_new_refuses_a_bad_shape),
           cmocka_unit_test(tensor_wrap_releases_with_the_last_reference),
           cmocka_unit_test(tensor_references_count_from_many_threads),
           cmocka_unit_test(tensor_new_survives_each_failed_allocation))

#include "support/unit.h"

#include "tensor/shape.h"
#include "tensor/view.h"

static void shape_equal_compares_rank_and_every_dimension(void **state)
{
    (void)state;
    assert_true(pl_shape_equal(PL_SHAPE(2, 3), PL_SHAPE(2, 3)));
    assert_true(pl_shape_equal(PL_SCALAR, PL_SCALAR));
    assert_false(pl_shape_equal(PL_SHAPE(2, 3), PL_SHAPE(2, 4)));
    assert_false(pl_shape_equal(PL_SHAPE(2, 3), PL_SHAPE(2, 3, 1)));
}

static void shape_counts_rows_and_elements(void **state)
{
    (void)state;
    pl_shape images = PL_SHAPE(PL_BATCH, 28, 28);
    assert_true(pl_shape_batched(images));
    assert_false(pl_shape_batched(PL_SHAPE(28, 28)));
    assert_false(pl_shape_batched(PL_SCALAR));
    assert_int_equal(784, pl_shape_row(images));
    assert_int_equal(78400, pl_shape_count(images, 100));
    assert_int_equal(784, pl_shape_count(PL_SHAPE(28, 28), 100));
    assert_int_equal(1, pl_shape_count(PL_SCALAR, 100));
}

static void shape_text_names_the_batch(void **state)
{
    (void)state;
    char text[PL_SHAPE_TEXT];
    assert_string_equal("[batch, 28, 28]",
                        pl_shape_text(PL_SHAPE(PL_BATCH, 28, 28), text));
    assert_string_equal("[]", pl_shape_text(PL_SCALAR, text));
}

static void shape_text_of_absurd_sizes_stays_in_its_room(void **state)
{
    (void)state;
    char text[PL_SHAPE_TEXT];
    pl_shape shape = { .rank = PL_MAX_RANK };
    for (int d = 0; d < PL_MAX_RANK; d++)
        shape.dim[d] = INT64_MIN;
    pl_shape_text(shape, text);
    assert_int_equal(PL_SHAPE_TEXT - 1, strlen(text));
    assert_int_equal(']', text[PL_SHAPE_TEXT - 2]);
}

static void shape_check_refuses_invalid_dimensions(void **state)
{
    (void)state;
    assert_ok(pl_shape_check(PL_SHAPE(PL_BATCH, 28, 28)));
    assert_ok(pl_shape_check(PL_SCALAR));
    assert_ok(pl_shape_check(PL_SHAPE(1 << 20, 1 << 20)));
    assert_fails(PL_SHAPE, "not positive", pl_shape_check(PL_SHAPE(3, 0)));
    assert_fails(PL_SHAPE, "dimension 1 of shape [3, -1]",
                 pl_shape_check(PL_SHAPE(3, PL_BATCH)));
    assert_fails(PL_SHAPE, "more than 2^40",
                 pl_shape_check(PL_SHAPE(1 << 20, 1 << 20, 2)));
    assert_fails(PL_SHAPE, "more than 2^40",
                 pl_shape_check(PL_SHAPE(INT64_MAX, INT64_MAX)));
    assert_fails(PL_SHAPE, "7 dimensions",
                 pl_shape_check((pl_shape) { .rank = 7 }));
}

static void dtype_knows_name_and_size(void **state)
{
    (void)state;
    assert_string_equal("float32", pl_dtype_name(PL_FLOAT32));
    assert_int_equal(1, pl_dtype_bytes(PL_UINT8));
    assert_int_equal(8, pl_dtype_bytes(PL_INT64));
}

static void view_reads_labels_of_every_integer_type(void **state)
{
    (void)state;
    const uint8_t bytes[] = { 7, 8, 9 };
    const int32_t words[] = { -7, 8, 9 };
    const int64_t longs[] = { 7, 0, (int64_t)1 << 40, 0 };
    const uint32_t order[] = { 2, 0 };
    pl_view view = { .data = bytes, .stride = 1, .dtype = PL_UINT8 };
    assert_int_equal(9, pl_view_label(&view, 2));
    view.index = order;
    assert_int_equal(9, pl_view_label(&view, 0));
    assert_int_equal(7, pl_view_label(&view, 1));
    view = (pl_view) { .data = words, .stride = 1, .dtype = PL_INT32 };
    assert_int_equal(-7, pl_view_label(&view, 0));
    view = (pl_view) { .data = longs, .stride = 2, .dtype = PL_INT64 };
    assert_true((int64_t)1 << 40 == pl_view_label(&view, 1));
}

static void view_from_skips_rows_with_and_without_an_index(void **state)
{
    (void)state;
    const float values[] = { 0, 1, 2, 3, 4, 5 };
    const uint32_t order[] = { 2, 0, 1 };
    pl_view view = { .data = values, .stride = 2, .dtype = PL_FLOAT32 };
    pl_view rest = pl_view_from(&view, 1);
    assert_ptr_equal(values + 4, pl_view_row_f32(&rest, 1));
    view.index = order;
    rest = pl_view_from(&view, 1);
    assert_ptr_equal(values, pl_view_row_f32(&rest, 0));
    assert_ptr_equal(values + 2, pl_view_row_f32(&rest, 1));
}

UNIT_TESTS(cmocka_unit_test(shape_equal_compares_rank_and_every_dimension),
           cmocka_unit_test(shape_counts_rows_and_elements),
           cmocka_unit_test(shape_text_names_the_batch),
           cmocka_unit_test(shape_text_of_absurd_sizes_stays_in_its_room),
           cmocka_unit_test(shape_check_refuses_invalid_dimensions),
           cmocka_unit_test(dtype_knows_name_and_size),
           cmocka_unit_test(view_reads_labels_of_every_integer_type),
           cmocka_unit_test(view_from_skips_rows_with_and_without_an_index))

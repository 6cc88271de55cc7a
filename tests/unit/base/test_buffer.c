#include "support/folder.h"

#include "base/buffer.h"

static void appended_bytes_stay_in_order(void **state)
{
    (void)state;
    pl_buffer b = { 0 };
    pl_buffer_text(&b, "a");
    pl_buffer_put(&b, "bc", 1);
    pl_buffer_format(&b, "%d-%s", 12, "x");
    pl_buffer_text(&b, "");
    assert_ok(pl_buffer_status(&b));
    assert_string_equal("ab12-x", b.data);
    assert_int_equal(6, b.bytes);
    pl_buffer_close(&b);
    assert_null(b.data);
}

static void buffer_grows(void **state)
{
    (void)state;
    pl_buffer b = { 0 };
    for (int i = 0; i < 10000; i++)
        pl_buffer_format(&b, "%04d", i);
    assert_ok(pl_buffer_status(&b));
    assert_int_equal(40000, b.bytes);
    assert_memory_equal("9999", b.data + 39996, 5);
    pl_buffer_close(&b);
}

static void cleared_buffer_starts_empty_and_grows_in_place(void **state)
{
    (void)state;
    pl_buffer b = { 0 };
    pl_buffer_text(&b, "0123456789");
    const char *memory = b.data;
    pl_buffer_clear(&b);
    assert_int_equal(0, b.bytes);
    memcpy(pl_buffer_grow(&b, 2), "ab", 2);
    assert_string_equal("ab", b.data);
    assert_ptr_equal(memory, b.data);
    assert_null(pl_buffer_grow(&b, SIZE_MAX / 2));
    assert_int_equal(PL_NOMEM, pl_buffer_status(&b));
    pl_buffer_clear(&b);
    assert_ok(pl_buffer_status(&b));
    pl_buffer_close(&b);
}

static pl_status fill(pl_buffer *b)
{
    *b = (pl_buffer) { 0 };
    for (int i = 0; i < 3000; i++)
        pl_buffer_text(b, "0123456789");
    pl_buffer_format(b, "%d", 1);
    pl_status status = pl_buffer_status(b);
    if (status != PL_OK)
        pl_buffer_close(b);
    return status;
}

static void a_failed_allocation_is_remembered(void **state)
{
    (void)state;
    pl_buffer b;
    assert_survives_failed_allocations(fill(&b), pl_buffer_close(&b));
}

static void it_is_saved(void **state)
{
    pl_buffer b = { 0 };
    char *text;
    const char *path = test_path(*state, "file");
    assert_ok(pl_buffer_save(&b, path)); /* an empty file */
    pl_buffer_text(&b, "text");
    assert_ok(pl_buffer_save(&b, path));
    pl_buffer_close(&b);
    assert_ok(pl_file_read_text(&text, path, 100));
    assert_string_equal("text", text);
    pl_mem_free(text);
}

UNIT_TESTS(cmocka_unit_test(appended_bytes_stay_in_order),
           cmocka_unit_test(buffer_grows),
           cmocka_unit_test(cleared_buffer_starts_empty_and_grows_in_place),
           cmocka_unit_test(a_failed_allocation_is_remembered),
           TEST_IN_FOLDER(it_is_saved))

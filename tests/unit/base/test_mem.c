#include "base/mem.h"

#include "base/thread.h"
#include "support/unit.h"

static bool all_zero(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static void mem_alloc_gives_zeroed_memory(void **state)
{
    (void)state;
    for (size_t count = 0; count < 5000; count += 617) {
        unsigned char *memory = pl_mem_alloc(count, 3);
        assert_non_null(memory);
        assert_true(all_zero(memory, 3 * count));
        memset(memory, 0xff, 3 * count); /* the next one may reuse it */
        pl_mem_free(memory);
    }
}

static void mem_alloc_aligned_begins_a_cache_line(void **state)
{
    (void)state;
    static const size_t sizes[] = { 0,  1,    63,      64,
                                    65, 5000, 4 << 20, (5 << 20) + 7 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *memory = pl_mem_alloc_aligned(sizes[i], 1);
        assert_non_null(memory);
        assert_int_equal(0, (uintptr_t)memory % PL_CACHE_LINE);
        assert_true(all_zero(memory, sizes[i]));
        memset(memory, 0xff, sizes[i]);
        pl_mem_free(memory);
    }
}

static void mem_alloc_refuses_a_product_that_overflows(void **state)
{
    (void)state;
    /* Not a constant, or the compiler refuses it before the library does. */
    volatile size_t half = SIZE_MAX / 2 + 1;
    long live = pl_mem_live();
    void *kept = pl_mem_alloc(1, 8);
    assert_null(pl_mem_alloc(half, 2));
    assert_null(pl_mem_alloc_aligned(half, 2));
    assert_null(pl_mem_alloc_aligned(half * 2 - 1, 1));
    assert_null(pl_mem_resize(kept, half, 2));
    pl_mem_free(kept);
    assert_int_equal(live, pl_mem_live());
}

static void mem_resize_keeps_what_was_there(void **state)
{
    (void)state;
    long live = pl_mem_live();
    int *numbers = pl_mem_resize(NULL, 4, sizeof *numbers);
    assert_non_null(numbers);
    assert_int_equal(live + 1, pl_mem_live());
    for (int i = 0; i < 4; i++)
        numbers[i] = i;
    numbers = pl_mem_resize(numbers, 4000, sizeof *numbers);
    assert_non_null(numbers);
    assert_int_equal(live + 1, pl_mem_live());
    for (int i = 0; i < 4; i++)
        assert_int_equal(i, numbers[i]);

    pl_mem_fail_at(0);
    assert_null(pl_mem_resize(numbers, 8000, sizeof *numbers));
    assert_true(pl_mem_fail_off());
    assert_int_equal(3, numbers[3]); /* the old memory stays */
    pl_mem_free(numbers);
    assert_int_equal(live, pl_mem_live());
}

static void mem_grow_makes_room_for_one_more(void **state)
{
    (void)state;
    long live = pl_mem_live();
    int16_t *list = NULL;
    size_t room = 0, grown = 0;
    for (size_t used = 0; used < 100; used++) {
        size_t before = room;
        assert_ok(PL_GROW(list, used, room));
        grown += room != before;
        assert_true(used < room);
        list[used] = (int16_t)used;
    }
    assert_in_range(grown, 1, 5);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(i, list[i]);
    int16_t *same = list;
    size_t full = room;
    pl_mem_fail_at(0);
    assert_fails(PL_NOMEM, "x 2 bytes", PL_GROW(list, room, room));
    assert_true(pl_mem_fail_off());
    assert_ptr_equal(same, list);
    assert_int_equal(full, room);
    assert_ok(PL_RESIZE(list, 100));
    assert_int_equal(99, list[99]);
    pl_mem_free(list);
    assert_int_equal(live, pl_mem_live());
}

static void mem_new_reports_the_size_of_a_failed_allocation(void **state)
{
    (void)state;
    double *values;
    pl_mem_fail_at(0);
    pl_status status = PL_NEW(values, 7);
    assert_true(pl_mem_fail_off());
    assert_int_equal(PL_NOMEM, status);
    assert_null(values);
    assert_non_null(strstr(pl_error_message(), "out of memory: 7 x 8 bytes"));
    assert_ok(PL_NEW_ALIGNED(values, 7));
    pl_mem_free(values);
}

static void mem_live_bytes_follow_each_allocation(void **state)
{
    (void)state;
    int64_t before = pl_mem_live_bytes();
    char *memory = pl_mem_alloc(1000, 1);
    char *aligned = pl_mem_alloc_aligned(5, 1 << 20);
    assert_in_range(pl_mem_live_bytes() - before, 1000 + (5 << 20),
                    1100 + (9 << 20)); /* alignment may cost some */
    memory = pl_mem_resize(memory, 2, 1 << 20);
    assert_in_range(pl_mem_live_bytes() - before, 7 << 20, 12 << 20);
    pl_mem_free(aligned);
    pl_mem_free(memory);
    assert_int_equal(before, pl_mem_live_bytes());
}

static void mem_fail_at_hits_exactly_one_allocation(void **state)
{
    (void)state;
    for (long nth = 0; nth < 4; nth++) {
        void *memory[4];
        pl_mem_fail_at(nth);
        for (int i = 0; i < 4; i++)
            memory[i] = pl_mem_alloc(1, 1);
        assert_true(pl_mem_fail_off());
        for (int i = 0; i < 4; i++) {
            assert_int_equal(i == nth, memory[i] == NULL);
            pl_mem_free(memory[i]);
        }
    }
    pl_mem_fail_at(1);
    void *only = pl_mem_alloc(1, 1);
    assert_false(pl_mem_fail_off());
    pl_mem_free(only);
}

static pl_status allocate_one(void *arg)
{
    (void)arg;
    char *memory;
    PL_TRY(PL_NEW(memory, 1));
    pl_mem_free(memory);
    return PL_OK;
}

static void mem_fail_at_spares_other_threads(void **state)
{
    (void)state;
    pl_thread *thread;
    pl_mem_fail_at(1); /* the first is the thread's own record */
    pl_status started = pl_thread_start(&thread, "other", allocate_one, NULL);
    assert_int_equal(PL_OK, started);
    pl_status joined = pl_thread_join(thread);
    assert_false(pl_mem_fail_off());
    assert_int_equal(PL_OK, joined);
}

static void mem_copy_text_and_format_give_the_text(void **state)
{
    (void)state;
    char *copy = NULL, *formatted = NULL, *empty = NULL;
    assert_ok(pl_mem_copy_text(&copy, "softmax"));
    assert_ok(pl_mem_format(&formatted, "%s-%03d", copy, 7));
    assert_ok(pl_mem_copy_text(&empty, ""));
    assert_string_equal("softmax", copy);
    assert_string_equal("softmax-007", formatted);
    assert_string_equal("", empty);
    pl_mem_free(copy);
    pl_mem_free(formatted);
    pl_mem_free(empty);
    pl_mem_free(NULL);
}

static void mem_texts_survive_each_failed_allocation(void **state)
{
    (void)state;
    char *text = NULL;
    assert_survives_failed_allocations(pl_mem_copy_text(&text, "a"),
                                       pl_mem_free(text));
    assert_survives_failed_allocations(pl_mem_format(&text, "%d", 1),
                                       pl_mem_free(text));
}

UNIT_TESTS(cmocka_unit_test(mem_alloc_gives_zeroed_memory),
           cmocka_unit_test(mem_alloc_aligned_begins_a_cache_line),
           cmocka_unit_test(mem_alloc_refuses_a_product_that_overflows),
           cmocka_unit_test(mem_resize_keeps_what_was_there),
           cmocka_unit_test(mem_grow_makes_room_for_one_more),
           cmocka_unit_test(mem_new_reports_the_size_of_a_failed_allocation),
           cmocka_unit_test(mem_live_bytes_follow_each_allocation),
           cmocka_unit_test(mem_fail_at_hits_exactly_one_allocation),
           cmocka_unit_test(mem_fail_at_spares_other_threads),
           cmocka_unit_test(mem_copy_text_and_format_give_the_text),
           cmocka_unit_test(mem_texts_survive_each_failed_allocation))

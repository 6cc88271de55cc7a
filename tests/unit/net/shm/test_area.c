#include "net/shm/area_priv.h"
#include "support/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void area_starts_as_zeros(void **state)
{
    (void)state;
    pl_area *area = NULL;
    size_t bytes = 5 * 1024 * 1024 + 3;
    assert_ok(pl_area_new(&area, bytes));
    assert_int_equal(bytes, pl_area_bytes(area));
    uint8_t *data = pl_area_data(area);
    assert_int_equal(0, (uintptr_t)data % 4096);
    for (size_t i = 0; i < bytes; i++)
        if (data[i] != 0)
            fail_msg("byte %zu is %u", i, data[i]);
    pl_area_free(area);
    pl_area_free(NULL);
}

static void area_is_the_same_memory_in_another_process(void **state)
{
    (void)state;
    pl_area *area = NULL;
    assert_ok(pl_area_new(&area, 4096));
    uint8_t *data = pl_area_data(area);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        data[4095] = 7;
        _exit(0);
    }
    int status;
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_int_equal(0, status);
    assert_int_equal(7, data[4095]);
    pl_area_free(area);
}

static void area_cannot_be_cut_short(void **state)
{
    (void)state;
    pl_area *area = NULL;
    assert_ok(pl_area_new(&area, 8192));
    assert_int_equal(-1, ftruncate(pl_area_fd(area), 4096));
    assert_int_equal(-1, ftruncate(pl_area_fd(area), 0));
    pl_area_free(area);
}

static void area_recognizes_addresses_inside_it(void **state)
{
    (void)state;
    pl_area *area = NULL;
    size_t offset = 99;
    assert_ok(pl_area_new(&area, 100));
    const uint8_t *data = pl_area_data(area);
    assert_true(pl_area_holds(area, data, 100, &offset));
    assert_int_equal(0, offset);
    assert_true(pl_area_holds(area, data + 40, 60, &offset));
    assert_int_equal(40, offset);
    assert_false(pl_area_holds(area, data + 40, 61, &offset));
    assert_false(pl_area_holds(area, data + 101, 0, &offset));
    assert_false(pl_area_holds(area, data + 40, SIZE_MAX, &offset));
    assert_false(pl_area_holds(area, &offset, 8, &offset));
    pl_area_free(area);
}

static void area_too_large_is_refused(void **state)
{
    (void)state;
    pl_area *area = NULL;
    assert_fails(PL_NOMEM, "18446744073709551615 bytes",
                 pl_area_new(&area, SIZE_MAX));
}

static void area_new_survives_failed_allocations(void **state)
{
    (void)state;
    pl_area *area = NULL;
    assert_survives_failed_allocations(pl_area_new(&area, 100),
                                       pl_area_free(area));
}

UNIT_TESTS(cmocka_unit_test(area_starts_as_zeros),
           cmocka_unit_test(area_is_the_same_memory_in_another_process),
           cmocka_unit_test(area_cannot_be_cut_short),
           cmocka_unit_test(area_recognizes_addresses_inside_it),
           cmocka_unit_test(area_too_large_is_refused),
           cmocka_unit_test(area_new_survives_failed_allocations))

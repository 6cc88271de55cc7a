/* unit.h - what every unit test includes: cmocka and a few helpers. */
#ifndef PL_TESTS_UNIT_H
#define PL_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "paceline/base.h"

/* The call succeeds; otherwise its message is shown. */
#define assert_ok(call)                                                        \
    do {                                                                       \
        pl_status assert_status = (call);                                      \
        if (assert_status != PL_OK)                                            \
            fail_msg("%s: %s: %s", #call, pl_status_text(assert_status),       \
                     pl_error_message());                                      \
    } while (0)

/* The call fails with this status and the message contains `part`. */
#define assert_fails(expected, part, call)                                     \
    do {                                                                       \
        pl_status assert_status = (call);                                      \
        assert_int_equal((expected), assert_status);                           \
        if (strstr(pl_error_message(), (part)) == NULL)                        \
            fail_msg("\"%s\" is not in: %s", (part), pl_error_message());      \
    } while (0)

/* Fail the 1st allocation, then the 2nd, ... until `make` gets through; each
 * time it must return PL_NOMEM and leave nothing behind.  `make` is an
 * expression of type pl_status, `drop` frees what a success made. */
#define assert_survives_failed_allocations(make, drop)                         \
    do {                                                                       \
        long assert_live = pl_mem_live();                                      \
        bool assert_failed = true;                                             \
        for (long nth = 0; assert_failed; nth++) {                             \
            pl_mem_fail_at(nth);                                               \
            pl_status assert_status = (make);                                  \
            assert_failed = pl_mem_fail_off();                                 \
            assert_int_equal(assert_failed ? PL_NOMEM : PL_OK, assert_status); \
            if (assert_status == PL_OK) {                                      \
                drop;                                                          \
            }                                                                  \
            assert_int_equal(assert_live, pl_mem_live());                      \
        }                                                                      \
    } while (0)

#define UNIT_TESTS(...)                                                        \
    int main(void)                                                             \
    {                                                                          \
        const struct CMUnitTest tests[] = { __VA_ARGS__ };                     \
        return cmocka_run_group_tests(tests, NULL, NULL);                      \
    }

#endif

#include "base/error.h"

#include "support/unit.h"

static void status_text_names_every_code(void **state)
{
    (void)state;
    assert_string_equal("no error", pl_status_text(PL_OK));
    assert_string_equal("timed out", pl_status_text(PL_TIMEOUT));
    assert_string_equal("not supported", pl_status_text(PL_UNSUPPORTED));
    assert_string_equal("unknown", pl_status_text((pl_status)1000));
    assert_string_equal("unknown", pl_status_text((pl_status)-1));
}

static void fail_writes_cause_and_location(void **state)
{
    (void)state;
    pl_fail_at("src/data/idx/idx.c", 18, "magic 0x%08x is not IDX",
               0x1f8b0800u);
    assert_string_equal("magic 0x1f8b0800 is not IDX [src/data/idx/idx.c:18]",
                        pl_error_message());
}

static void fail_keeps_the_location_of_a_wrapped_failure(void **state)
{
    (void)state;
    (void)PL_FAIL(PL_IO, "worker 2: %s", "disk full [src/base/file/file.c:12]");
    assert_string_equal("worker 2: disk full [src/base/file/file.c:12]",
                        pl_error_message());
    static const char *const others[] = {
        "a [b]", "[a:1]", "a [b:]", "a [b:1x]", "a [b:1] c", "a [b] c:1]",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_int_equal(strlen(others[i]), pl_error_words(others[i]));
        (void)PL_FAIL(PL_IO, "%s", others[i]);
        assert_non_null(strstr(pl_error_message(), "test_error.c:"));
    }
}

static void error_text_ends_before_the_location(void **state)
{
    (void)state;
    assert_int_equal(4, pl_error_words("full [src/base/file/file.c:12]"));
    assert_int_equal(8, pl_error_words("[a] full [file.c:1]"));
    assert_int_equal(0, pl_error_words(""));
}

static void fail_names_the_file_without_the_folder_it_was_built_in(void **state)
{
    (void)state;
    assert_int_equal(PL_IO, PL_FAIL(PL_IO, "x"));
    assert_non_null(
        strstr(pl_error_message(), "x [tests/unit/base/test_error.c:"));
}

static void context_goes_in_front(void **state)
{
    (void)state;
    pl_fail_at("a.c", 1, "cause");
    assert_int_equal(PL_IO, pl_context(PL_IO, "header"));
    assert_int_equal(PL_IO, pl_context(PL_IO, "file %s", "a.idx"));
    assert_string_equal("file a.idx: header: cause [a.c:1]",
                        pl_error_message());
}

static void fail_may_quote_the_message_before(void **state)
{
    (void)state;
    pl_fail_at("a.c", 1, "first");
    pl_fail_at("b.c", 2, "second after %s", pl_error_message());
    assert_string_equal("second after first [a.c:1]", pl_error_message());
    pl_context(PL_IO, "again %s", pl_error_message());
    assert_string_equal("again second after first [a.c:1]: second after first "
                        "[a.c:1]",
                        pl_error_message());
}

static void fail_cuts_a_long_text_but_keeps_the_location(void **state)
{
    (void)state;
    char text[2 * PL_ERROR_BYTES];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    pl_fail_at("src/a.c", 7, "%s", text);
    size_t length = strlen(pl_error_message());
    assert_int_equal(PL_ERROR_BYTES - 1, length);
    assert_string_equal("x [src/a.c:7]",
                        pl_error_message() + length - strlen("x [src/a.c:7]"));

    pl_fail_at(text, 7, "%s", text); /* a long place is cut, too */
    assert_true(strlen(pl_error_message()) < PL_ERROR_BYTES);
}

static void context_of_any_length_stays_in_bounds(void **state)
{
    (void)state;
    char text[2 * PL_ERROR_BYTES];
    memset(text, 'y', sizeof text);
    for (size_t length = 0; length < sizeof text; length += 61) {
        pl_fail_at("a.c", 1, "cause");
        pl_context(PL_IO, "%.*s", (int)length, text);
        assert_true(strlen(pl_error_message()) < PL_ERROR_BYTES);
        if (length < PL_ERROR_BYTES - 20)
            assert_non_null(strstr(pl_error_message(), ": cause [a.c:1]"));
    }
}

static void error_save_and_raise_carry_status_and_message(void **state)
{
    (void)state;
    pl_error error;
    pl_fail_at("a.c", 1, "gone");
    pl_error_save(&error, PL_PEER);
    pl_fail_at("b.c", 2, "other");
    assert_int_equal(PL_PEER, pl_error_raise(&error));
    assert_string_equal("gone [a.c:1]", pl_error_message());
}

static void error_raise_of_success_leaves_the_message(void **state)
{
    (void)state;
    pl_error error;
    pl_error_save(&error, PL_OK);
    pl_fail_at("a.c", 1, "kept");
    assert_int_equal(PL_OK, pl_error_raise(&error));
    assert_string_equal("kept [a.c:1]", pl_error_message());
}

static pl_status try_it(pl_status inner, int *reached)
{
    PL_TRY(inner);
    *reached = 1;
    return PL_OK;
}

static pl_status try_it_with_out(pl_status inner, int *released)
{
    pl_status status;
    PL_TRY_OUT(status, inner);
    PL_TRY_OUT(status, PL_AGAIN);
out:
    *released = 1;
    return status;
}

static void try_stops_at_the_first_failure(void **state)
{
    (void)state;
    int reached = 0, released = 0;
    assert_int_equal(PL_IO, try_it(PL_IO, &reached));
    assert_int_equal(0, reached);
    assert_int_equal(PL_OK, try_it(PL_OK, &reached));
    assert_int_equal(1, reached);
    assert_int_equal(PL_IO, try_it_with_out(PL_IO, &released));
    assert_int_equal(1, released);
    assert_int_equal(PL_AGAIN, try_it_with_out(PL_OK, &released));
}

static void version_has_three_parts(void **state)
{
    (void)state;
    int major, minor, patch;
    assert_int_equal(3,
                     sscanf(pl_version(), "%d.%d.%d", &major, &minor, &patch));
}

static void untrusted_text_stays_on_one_line(void **state)
{
    (void)state;
    pl_status status = PL_FAIL(PL_PEER, "it says \"%s\"", "a\nb\x1b[2J\xff");
    assert_int_equal(PL_PEER, pl_context(status, "peer %s", "\x9b\r"));
    const char *expected =
        "peer \\x9b\\x0d: it says \"a\\x0ab\\x1b[2J\\xff\" [";
    assert_ptr_equal(pl_error_message(), strstr(pl_error_message(), expected));
}

UNIT_TESTS(
    cmocka_unit_test(untrusted_text_stays_on_one_line),
    cmocka_unit_test(status_text_names_every_code),
    cmocka_unit_test(fail_writes_cause_and_location),
    cmocka_unit_test(fail_keeps_the_location_of_a_wrapped_failure),
    cmocka_unit_test(error_text_ends_before_the_location),
    cmocka_unit_test(fail_names_the_file_without_the_folder_it_was_built_in),
    cmocka_unit_test(context_goes_in_front),
    cmocka_unit_test(fail_may_quote_the_message_before),
    cmocka_unit_test(fail_cuts_a_long_text_but_keeps_the_location),
    cmocka_unit_test(context_of_any_length_stays_in_bounds),
    cmocka_unit_test(error_save_and_raise_carry_status_and_message),
    cmocka_unit_test(error_raise_of_success_leaves_the_message),
    cmocka_unit_test(try_stops_at_the_first_failure),
    cmocka_unit_test(version_has_three_parts))

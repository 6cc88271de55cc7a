#include "base/text/base64.h"
#include "support/unit.h"

#include <stdint.h>
#include <string.h>

/* The examples of RFC 4648, section 10. */
static void base64_matches_the_examples_of_the_rfc(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        { "", "" },
        { "f", "Zg==" },
        { "fo", "Zm8=" },
        { "foo", "Zm9v" },
        { "foob", "Zm9vYg==" },
        { "fooba", "Zm9vYmE=" },
        { "foobar", "Zm9vYmFy" },
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char text[16], back[16];
        size_t bytes, length = strlen(pairs[i][0]);
        pl_base64_encode(text, pairs[i][0], length);
        assert_string_equal(pairs[i][1], text);
        assert_ok(pl_base64_decode(back, sizeof back, &bytes, text));
        assert_int_equal(length, bytes);
        assert_memory_equal(pairs[i][0], back, length);
    }
}

static void base64_returns_all_bytes(void **state)
{
    (void)state;
    uint8_t bytes[256], back[256];
    char text[PL_BASE64_TEXT(256)];
    size_t count;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    pl_base64_encode(text, bytes, sizeof bytes);
    assert_ok(pl_base64_decode(back, sizeof back, &count, text));
    assert_int_equal(sizeof bytes, count);
    assert_memory_equal(bytes, back, sizeof bytes);
}

static void base64_refuses_other_texts_and_too_many_bytes(void **state)
{
    (void)state;
    static const char *const bad[] = { "Z",    "Zg=",  "Zg",       "Zh==",
                                       "Z===", "====", "Zg==Zg==", "Zm9v\n",
                                       "Zm9-", "Zm=v" };
    char room[16];
    size_t count;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(PL_FORMAT, "base64",
                     pl_base64_decode(room, sizeof room, &count, bad[i]));
    assert_fails(PL_FORMAT, "more than 2 bytes",
                 pl_base64_decode(room, 2, &count, "Zm9v"));
}

UNIT_TESTS(cmocka_unit_test(base64_matches_the_examples_of_the_rfc),
           cmocka_unit_test(base64_returns_all_bytes),
           cmocka_unit_test(base64_refuses_other_texts_and_too_many_bytes))

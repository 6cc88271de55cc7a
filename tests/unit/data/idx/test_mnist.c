#include "support/folder.h"

#include "data/idx/mnist.h"

/* SHA-256 of "abc", of FIPS 180-2. */
static const pl_mnist_file abc = {
    "abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
};
/* "abc" by gzip. */
static const uint8_t packed[] = { 0x1f, 0x8b, 8,    0,    0,    0,    0, 0,
                                  0,    3,    0x4b, 0x4c, 0x4a, 0x06, 0, 0xc2,
                                  0x41, 0x24, 0x35, 3,    0,    0,    0 };

static pl_status check(const char *folder, const void *data, size_t bytes)
{
    const char *path = test_path(folder, "file");
    assert_ok(pl_file_replace(path, data, bytes));
    return pl_mnist_check(&abc, path);
}

static void the_right_bytes_pass_compressed_or_not(void **state)
{
    assert_ok(check(*state, "abc", 3));
    assert_ok(check(*state, packed, sizeof packed));
}

static void wrong_bytes_are_named(void **state)
{
    assert_fails(PL_FORMAT, "expected ba7816bf8f01cfea",
                 check(*state, "abd", 3));
    assert_fails(PL_FORMAT, "SHA-256", check(*state, "ab", 2));
    assert_fails(PL_FORMAT, "more than 3 bytes", check(*state, "abcd", 4));
    uint8_t broken[sizeof packed];
    memcpy(broken, packed, sizeof packed);
    broken[17] ^= 1; /* of the checksum */
    assert_fails(PL_FORMAT, "broken gzip",
                 check(*state, broken, sizeof broken));
    assert_fails(PL_FORMAT, "file", check(*state, packed, 12));
}

static void a_missing_file_is_not_found(void **state)
{
    assert_fails(PL_NOTFOUND, "none",
                 pl_mnist_check(&abc, test_path(*state, "none")));
}

UNIT_TESTS(TEST_IN_FOLDER(the_right_bytes_pass_compressed_or_not),
           TEST_IN_FOLDER(wrong_bytes_are_named),
           TEST_IN_FOLDER(a_missing_file_is_not_found))

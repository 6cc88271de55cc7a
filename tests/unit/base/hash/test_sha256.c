#include "base/hash/sha256.h"

#include "support/unit.h"

/* FIPS 180-4's examples, and a million times "a". */
static const struct {
    const char *text;
    int times;
    const char *digest;
} known[] = {
    { "", 1,
      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "abc", 1,
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    { "aaaaaaaaaa", 100000,
      "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
};

/* With the processor's instructions (where it has them), then without. */
static void sha256_gives_the_known_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * (sizeof known / sizeof *known); i++) {
        pl_sha256 sha;
        uint8_t digest[PL_SHA256_BYTES];
        char text[PL_SHA256_TEXT];
        pl_sha256_init(&sha);
        if (i % 2 == 1)
            sha.plain = true;
        for (int n = 0; n < known[i / 2].times; n++)
            pl_sha256_update(&sha, known[i / 2].text,
                             strlen(known[i / 2].text));
        pl_sha256_final(&sha, digest);
        assert_string_equal(known[i / 2].digest, pl_sha256_text(digest, text));
    }
}

static void digest_of(const uint8_t *data, size_t bytes, size_t cut, bool plain,
                      uint8_t digest[PL_SHA256_BYTES])
{
    pl_sha256 sha;
    pl_sha256_init(&sha);
    sha.plain |= plain;
    pl_sha256_update(&sha, data, cut);
    pl_sha256_update(&sha, data + cut, bytes - cut);
    pl_sha256_final(&sha, digest);
}

/* Every length round the ends of blocks, cut at every place. */
static void sha256_does_not_depend_on_the_pieces(void **state)
{
    (void)state;
    uint8_t data[200];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 73 + 5);
    for (size_t bytes = 0; bytes <= sizeof data; bytes++) {
        uint8_t whole[PL_SHA256_BYTES];
        digest_of(data, bytes, 0, true, whole);
        for (size_t cut = 0; cut <= bytes; cut++) {
            uint8_t pieces[PL_SHA256_BYTES];
            digest_of(data, bytes, cut, false, pieces);
            assert_memory_equal(whole, pieces, sizeof whole);
        }
    }
}

UNIT_TESTS(cmocka_unit_test(sha256_gives_the_known_answers),
           cmocka_unit_test(sha256_does_not_depend_on_the_pieces))

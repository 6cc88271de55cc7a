#include "base/hash/crc32c.h"

#include "base/rng.h"
#include "support/unit.h"

/* RFC 3720, B.4, and the check value of the CRC catalogue. */
static void crc32c_gives_the_known_answers(void **state)
{
    (void)state;
    uint8_t zeros[32] = { 0 };
    uint8_t ones[32];
    uint8_t rising[32];
    memset(ones, 0xff, sizeof ones);
    for (uint8_t i = 0; i < 32; i++)
        rising[i] = i;
    uint32_t (*forms[])(uint32_t, const void *, size_t) = { pl_crc32c,
                                                            pl_crc32c_table };
    for (size_t f = 0; f < 2; f++) {
        assert_int_equal(0, forms[f](0, NULL, 0));
        assert_int_equal(0xe3069283, forms[f](0, "123456789", 9));
        assert_int_equal(0x8a9136aa, forms[f](0, zeros, sizeof zeros));
        assert_int_equal(0x62a8ab43, forms[f](0, ones, sizeof ones));
        assert_int_equal(0x46dd794e, forms[f](0, rising, sizeof rising));
    }
}

static void crc32c_of_pieces_is_that_of_the_whole(void **state)
{
    (void)state;
    uint8_t data[100];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 37 + 11);
    uint32_t whole = pl_crc32c_table(0, data, sizeof data);
    for (size_t cut = 0; cut <= sizeof data; cut++) {
        uint32_t crc = pl_crc32c(0, data, cut);
        assert_int_equal(whole, pl_crc32c(crc, data + cut, sizeof data - cut));
    }
}

/* Long data are computed in lanes of 2048 and of 128 bytes, three at once. */
static void crc32c_of_long_data_is_that_of_the_table(void **state)
{
    (void)state;
    static uint8_t data[2 * 3 * 2048 + 3 * 3 * 128 + 17];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)pl_rng_u64(7, i);
    static const size_t sizes[] = {
        383, 384, 385, 768, 1000, 6143, 6144, 6145, 6528, 12289, sizeof data - 5
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t at = 0; at < 3; at++)
            assert_int_equal(pl_crc32c_table(0x12345678, data + at, sizes[i]),
                             pl_crc32c(0x12345678, data + at, sizes[i]));
}

/* Rotated right by 15 bits, then a constant is added. */
static void crc32c_mask_is_that_of_tfrecord(void **state)
{
    (void)state;
    assert_int_equal(0xa282ead8, pl_crc32c_mask(0));
    assert_int_equal(0xa282ead8 + 0x00020000, pl_crc32c_mask(1));
    assert_int_equal(0xa282ead8 + 1, pl_crc32c_mask(0x8000));
}

UNIT_TESTS(cmocka_unit_test(crc32c_gives_the_known_answers),
           cmocka_unit_test(crc32c_of_pieces_is_that_of_the_whole),
           cmocka_unit_test(crc32c_of_long_data_is_that_of_the_table),
           cmocka_unit_test(crc32c_mask_is_that_of_tfrecord))

/* CRC-32C by table or by the SSE4.2 instruction, for long data in three lanes;
 * all give the same values (tests compare them). */
#include "base/hash/crc32c.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* 0x1EDC6F41 bit-reversed */

/* table[k][b]: the effect of byte b on the checksum k bytes later. */
static uint32_t table[8][256];

static void fill_table(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ ((crc & 1) ? POLYNOMIAL : 0);
        table[0][byte] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t before = table[k - 1][byte];
            table[k][byte] = (before >> 8) ^ table[0][before & 0xff];
        }
}

uint32_t pl_crc32c_table(uint32_t crc, const void *data, size_t bytes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_table);

    const uint8_t *at = data;
    crc = ~crc;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint32_t low = crc ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 |
                              (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
        crc = table[7][low & 0xff] ^ table[6][(low >> 8) & 0xff] ^
              table[5][(low >> 16) & 0xff] ^ table[4][low >> 24] ^
              table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]] ^
              table[0][at[7]];
    }
    for (; bytes > 0; bytes--, at++)
        crc = (crc >> 8) ^ table[0][(crc ^ *at) & 0xff];
    return ~crc;
}

#if defined(__x86_64__)

#include <nmmintrin.h>

/* The instruction takes three cycles, but one can start in each: three lanes of
 * a block are computed at once, the last two from 0, and combined.  A checksum
 * is linear: appending `lane` zero bytes maps each of its bytes separately, and
 * the results are added. */
typedef struct lanes {
    size_t lane;            /* bytes, a multiple of 8 */
    uint32_t zeros[4][256]; /* image of a byte of a checksum */
} lanes;

static lanes wide_lanes = { .lane = 2048 }, narrow_lanes = { .lane = 128 };

#define SSE42 __attribute__((target("sse4.2")))

SSE42 static void fill_lanes(lanes *l)
{
    for (int b = 0; b < 4; b++)
        for (int bit = 0; bit < 8; bit++) {
            uint64_t crc = UINT64_C(1) << (8 * b + bit);
            for (size_t i = 0; i < l->lane; i += 8)
                crc = _mm_crc32_u64(crc, 0);
            uint32_t *zeros = l->zeros[b];
            for (int low = 0; low < 1 << bit; low++)
                zeros[low | 1 << bit] = zeros[low] ^ (uint32_t)crc;
        }
}

static void fill_all_lanes(void)
{
    fill_lanes(&wide_lanes);
    fill_lanes(&narrow_lanes);
}

static uint64_t behind_zeros(const lanes *l, uint64_t crc)
{
    return l->zeros[0][crc & 0xff] ^ l->zeros[1][(crc >> 8) & 0xff] ^
           l->zeros[2][(crc >> 16) & 0xff] ^ l->zeros[3][(crc >> 24) & 0xff];
}

static uint64_t word_at(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Process all whole blocks of three lanes; advances *data and *bytes. */
SSE42 static uint64_t add_lanes(const lanes *l, uint64_t crc,
                                const uint8_t **data, size_t *bytes)
{
    size_t lane = l->lane;
    for (; *bytes >= 3 * lane; *bytes -= 3 * lane, *data += 3 * lane) {
        const uint8_t *at = *data;
        uint64_t second = 0, third = 0;
        for (size_t i = 0; i < lane; i += 8) {
            crc = _mm_crc32_u64(crc, word_at(at + i));
            second = _mm_crc32_u64(second, word_at(at + lane + i));
            third = _mm_crc32_u64(third, word_at(at + 2 * lane + i));
        }
        crc = behind_zeros(l, behind_zeros(l, crc) ^ second) ^ third;
    }
    return crc;
}

SSE42 static uint32_t crc32c_sse42(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    uint64_t wide = (uint32_t)~crc;
    if (bytes >= 3 * narrow_lanes.lane) {
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        pthread_once(&once, fill_all_lanes);
        wide = add_lanes(&wide_lanes, wide, &at, &bytes);
        wide = add_lanes(&narrow_lanes, wide, &at, &bytes);
    }
    for (; bytes >= 8; bytes -= 8, at += 8)
        wide = _mm_crc32_u64(wide, word_at(at));
    crc = (uint32_t)wide;
    for (; bytes > 0; bytes--, at++)
        crc = _mm_crc32_u8(crc, *at);
    return ~crc;
}

uint32_t pl_crc32c(uint32_t crc, const void *data, size_t bytes)
{
    if (__builtin_cpu_supports("sse4.2"))
        return crc32c_sse42(crc, data, bytes);
    return pl_crc32c_table(crc, data, bytes);
}

#else

uint32_t pl_crc32c(uint32_t crc, const void *data, size_t bytes)
{
    return pl_crc32c_table(crc, data, bytes);
}

#endif

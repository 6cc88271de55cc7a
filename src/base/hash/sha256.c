/* SHA-256 in plain C and by the SHA instructions, chosen at run time; both
 * give the same digests. */
#include "base/hash/sha256.h"

#include <stdio.h>
#include <string.h>

#define BLOCK 64

/* FIPS 180-4, 4.2.2. */
static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int n)
{
    return (x >> n) | (x << (32 - n));
}

/* FIPS 180-4, 6.2.2, step 1. */
static void schedule(uint32_t w[64], const uint8_t *block)
{
    for (int t = 0; t < 16; t++, block += 4)
        w[t] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 |
               (uint32_t)block[2] << 8 | (uint32_t)block[3];
    for (int t = 16; t < 64; t++) {
        uint32_t a = w[t - 15];
        uint32_t b = w[t - 2];
        w[t] = w[t - 16] + w[t - 7] +
               (rotate(a, 7) ^ rotate(a, 18) ^ (a >> 3)) +
               (rotate(b, 17) ^ rotate(b, 19) ^ (b >> 10));
    }
}

/* The names a .. h are the standard's (6.2.2, steps 2 to 4). */
static void hash_plain(uint32_t state[8], const uint8_t *data, size_t blocks)
{
    for (; blocks > 0; blocks--, data += BLOCK) {
        uint32_t w[64];
        schedule(w, data);
        uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
        uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
        for (int t = 0; t < 64; t++) {
            uint32_t t1 = h + k[t] + w[t] + ((e & f) ^ (~e & g)) +
                          (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25));
            uint32_t t2 = ((a & b) ^ (a & c) ^ (b & c)) +
                          (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22));
            h = g, g = f, f = e, e = d + t1;
            d = c, c = b, b = a, a = t1 + t2;
        }
        state[0] += a, state[1] += b, state[2] += c, state[3] += d;
        state[4] += e, state[5] += f, state[6] += g, state[7] += h;
    }
}

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

/* The compiler's builtin test lacks this feature: CPUID leaf 7, EBX. */
static bool has_sha(void)
{
    unsigned a, b, c, d;
    return __builtin_cpu_supports("sse4.1") &&
           __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1);
}

/* Four rounds per pair of instructions.  They take the state as ABEF and CDGH,
 * highest word first; four registers, used in turn, hold four words of the
 * schedule each. */
__attribute__((target("sha,sse4.1"))) static void hash_sha_ni(
    uint32_t state[8], const uint8_t *data, size_t blocks)
{
    const __m128i swap =
        _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
    __m128i dcba = _mm_loadu_si128((const __m128i *)(const void *)state);
    __m128i hgfe = _mm_loadu_si128((const __m128i *)(const void *)(state + 4));
    __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1);
    __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1b);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
    __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);

    for (; blocks > 0; blocks--, data += BLOCK) {
        __m128i abef_before = abef;
        __m128i cdgh_before = cdgh;
        __m128i w[4];
        for (int i = 0; i < 4; i++) {
            const void *piece = data + 16 * i;
            w[i] = _mm_shuffle_epi8(_mm_loadu_si128(piece), swap);
        }
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            __m128i round_k = _mm_loadu_si128(
                (const __m128i *)(const void *)(k + (size_t)(4 * i)));
            __m128i sum = _mm_add_epi32(w[i & 3], round_k);
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            sum = _mm_shuffle_epi32(sum, 0x0e);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, sum);
            if (i >= 12)
                continue;
            /* Words t .. t+3 of round group i + 4, in place of group i. */
            __m128i last = w[(i + 3) & 3];
            __m128i next = _mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]);
            next =
                _mm_add_epi32(next, _mm_alignr_epi8(last, w[(i + 2) & 3], 4));
            w[i & 3] = _mm_sha256msg2_epu32(next, last);
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }

    __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
    __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    dcba = _mm_blend_epi16(feba, dchg, 0xf0);
    hgfe = _mm_alignr_epi8(dchg, feba, 8);
    _mm_storeu_si128((__m128i *)(void *)state, dcba);
    _mm_storeu_si128((__m128i *)(void *)(state + 4), hgfe);
}

#else

static bool has_sha(void)
{
    return false;
}

static void hash_sha_ni(uint32_t state[8], const uint8_t *data, size_t blocks)
{
    hash_plain(state, data, blocks);
}

#endif

void pl_sha256_init(pl_sha256 *sha)
{
    *sha = (pl_sha256) { .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                    0xa54ff53a, 0x510e527f, 0x9b05688c,
                                    0x1f83d9ab, 0x5be0cd19 },
                         .plain = !has_sha() };
}

static void hash(pl_sha256 *sha, const uint8_t *data, size_t blocks)
{
    if (sha->plain)
        hash_plain(sha->state, data, blocks);
    else
        hash_sha_ni(sha->state, data, blocks);
}

void pl_sha256_update(pl_sha256 *sha, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    size_t used = (size_t)(sha->bytes % BLOCK);
    sha->bytes += bytes;
    if (used + bytes >= BLOCK) {
        if (used > 0) {
            memcpy(sha->block + used, at, BLOCK - used);
            hash(sha, sha->block, 1);
            at += BLOCK - used;
            bytes -= BLOCK - used;
            used = 0;
        }
        hash(sha, at, bytes / BLOCK);
        at += bytes / BLOCK * BLOCK;
        bytes %= BLOCK;
    }
    if (bytes > 0)
        memcpy(sha->block + used, at, bytes);
}

void pl_sha256_final(pl_sha256 *sha, uint8_t digest[PL_SHA256_BYTES])
{
    static const uint8_t padding[BLOCK] = { 0x80 };
    uint64_t bits = sha->bytes * 8;
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    /* Pad to 8 bytes before the end of a block. */
    size_t used = (size_t)(sha->bytes % BLOCK);
    pl_sha256_update(sha, padding, (used < 56 ? 56 : 120) - used);
    pl_sha256_update(sha, length, sizeof length);
    for (size_t i = 0; i < PL_SHA256_BYTES; i++)
        digest[i] = (uint8_t)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
}

const char *pl_sha256_text(const uint8_t digest[PL_SHA256_BYTES],
                           char text[PL_SHA256_TEXT])
{
    for (int i = 0; i < PL_SHA256_BYTES; i++)
        snprintf(text + 2 * (size_t)i, 3, "%02x", digest[i]);
    return text;
}

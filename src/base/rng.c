/* Counter-based random numbers (a mix of key and counter) and keyed
 * permutations (a Feistel network with cycle walking): any element can be
 * computed alone, in any order, by any thread. */
#include "base/rng.h"

#include "base/assert.h"

#include <math.h>

#define ROUNDS 4

/* Every input bit changes every output bit. */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= PL_RNG_MIX_1;
    x ^= x >> 27;
    x *= PL_RNG_MIX_2;
    x ^= x >> 31;
    return x;
}

uint64_t pl_rng_key(uint64_t seed, uint64_t purpose)
{
    return mix(seed + PL_RNG_STEP * (purpose + 1));
}

uint64_t pl_rng_key_text(uint64_t seed, const char *purpose)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (const char *c = purpose; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    return pl_rng_key(seed, hash);
}

uint64_t pl_rng_u64(uint64_t key, uint64_t counter)
{
    return mix(mix(key + PL_RNG_STEP * counter) ^ key);
}

uint32_t pl_rng_below(uint64_t key, uint64_t counter, uint32_t bound)
{
    return (uint32_t)(((pl_rng_u64(key, counter) >> 32) * bound) >> 32);
}

double pl_rng_uniform(uint64_t key, uint64_t counter)
{
    return (double)(pl_rng_u64(key, counter) >> 11) * 0x1p-53;
}

double pl_rng_normal(uint64_t key, uint64_t counter)
{
    /* Box-Muller; the two uniforms come from two keys. */
    double u = 1.0 - pl_rng_uniform(key, counter); /* never 0 */
    double v = pl_rng_uniform(~key, counter);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

/* One pass of a balanced Feistel network over 2 x `half` bits.  The round
 * function needs no quality beyond good mixing of a half. */
static inline uint32_t feistel(const uint32_t keys[ROUNDS], unsigned half,
                               uint32_t x)
{
    uint32_t mask = half == 16 ? 0xffffu : (1u << half) - 1;
    uint32_t left = x >> half, right = x & mask;
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t f = (right ^ keys[round]) * 0x9e3779b1u;
        f ^= f >> 15;
        f *= 0x85ebca77u;
        f ^= f >> 13;
        uint32_t next = left ^ (f & mask);
        left = right;
        right = next;
    }
    return left << half | right;
}

/* The network permutes 4^half >= n numbers.  Following a cycle until it comes
 * back below n gives a permutation of 0 .. n-1.  The first pass has no branch
 * and vectorizes. */
static inline __attribute__((always_inline)) void permute(
    const uint32_t keys[ROUNDS], unsigned half, uint64_t n, uint64_t first,
    uint32_t count, uint32_t *out)
{
    for (uint32_t i = 0; i < count; i++)
        out[i] = feistel(keys, half, (uint32_t)(first + i));
    for (uint32_t i = 0; i < count; i++)
        while (out[i] >= n)
            out[i] = feistel(keys, half, out[i]);
}

#if defined(__x86_64__)
/* Multiplying 32-bit lanes is slow before SSE4.1: 2.7 times as fast. */
__attribute__((target("avx2"))) static void permute_avx2(
    const uint32_t keys[ROUNDS], unsigned half, uint64_t n, uint64_t first,
    uint32_t count, uint32_t *out)
{
    permute(keys, half, n, first, count, out);
}
#endif

void pl_rng_permute(uint64_t key, uint64_t n, uint64_t first, uint32_t count,
                    uint32_t *out)
{
    PL_ASSERT(n >= 1 && n <= (uint64_t)1 << 32 && first <= n &&
              count <= n - first);
    unsigned half = 4; /* four rounds mix smaller halves too little */
    while (half < 16 && (uint64_t)1 << (2 * half) < n)
        half++;
    uint32_t keys[ROUNDS];
    for (unsigned round = 0; round < ROUNDS; round++)
        keys[round] = (uint32_t)pl_rng_u64(key, round);

#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        permute_avx2(keys, half, n, first, count, out);
        return;
    }
#endif
    permute(keys, half, n, first, count, out);
}

/* Dropout: the mask is computed where it is used, 32 elements at a time. */
#include "base/rng.h"
#include "kernels/simd/kernels.h"

#define BLOCK 32              /* elements that share numbers, see pl_mask */
#define WORDS (BLOCK / 2)     /* of 32 bits */
#define PARTS (WORDS / LANES) /* vectors of words in a block */
#define PAIRS (LANES / 2)     /* numbers of 64 bits in a vector */

typedef uint64_t vu __attribute__((vector_size(LANES * 4)));
typedef uint32_t vw __attribute__((vector_size(LANES * 4)));

INLINE vu mix(vu x)
{
    x ^= x >> 30;
    x *= PL_RNG_MIX_1;
    x ^= x >> 27;
    x *= PL_RNG_MIX_2;
    x ^= x >> 31;
    return x;
}

/* key + PL_RNG_STEP * counter for the first numbers of a block. */
INLINE vu block_start(uint64_t key, int64_t block)
{
    vu start;
    for (int i = 0; i < PAIRS; i++)
        start[i] =
            key + PL_RNG_STEP * ((uint64_t)block * (WORDS / 2) + (uint64_t)i);
    return start;
}

/* All bits set for elements of one half of the words that are kept, else 0. */
INLINE vi kept(vw halves, uint32_t least)
{
    return (vi)halves >= vi_set((int32_t)least);
}

/* Part p of a block: its words, for elements p * LANES on and WORDS beyond. */
INLINE vw words_of(vu start, uint64_t key, int p)
{
    return (vw)mix(mix(start + (uint64_t)p * PAIRS * PL_RNG_STEP) ^ key);
}

/* Elements `from` .. `to` of a block, one at a time. */
static void part_of_block(const pl_mask *mask, int64_t block, int64_t from,
                          int64_t to, const float *src, float *dst)
{
    int32_t keep[BLOCK];
    vu start = block_start(mask->key, block);
    for (int p = 0; p < PARTS; p++) {
        vw words = words_of(start, mask->key, p);
        vi low = kept(words & 0xffff, mask->least);
        vi high = kept(words >> 16, mask->least);
        memcpy(keep + p * LANES, &low, sizeof low);
        memcpy(keep + WORDS + p * LANES, &high, sizeof high);
    }
    for (int64_t i = from; i < to; i++)
        dst[i - from] = keep[i] != 0 ? src[i - from] * mask->scale : 0;
}

static void whole_blocks(const pl_mask *mask, int64_t block, int64_t count,
                         const float *src, float *dst)
{
    const vf scale = v_set(mask->scale);
    vu start = block_start(mask->key, block);
    for (int64_t b = 0; b < count; b++, src += BLOCK, dst += BLOCK) {
        UNROLL for (int p = 0; p < PARTS; p++)
        {
            vw words = words_of(start, mask->key, p);
            vi low = kept(words & 0xffff, mask->least);
            vi high = kept(words >> 16, mask->least);
            const float *from = src + p * LANES;
            float *to = dst + p * LANES;
            v_store(to, (vf)(low & (vi)(scale * v_load(from))));
            v_store(to + WORDS,
                    (vf)(high & (vi)(scale * v_load(from + WORDS))));
        }
        start += (uint64_t)(WORDS / 2) * PL_RNG_STEP;
    }
}

void SIMD(dropout)(int64_t n, const pl_mask *mask, const float *src, float *dst)
{
    int64_t block = mask->first / BLOCK, skip = mask->first % BLOCK;
    if (skip > 0) {
        int64_t to = skip + n < BLOCK ? skip + n : BLOCK;
        part_of_block(mask, block++, skip, to, src, dst);
        src += to - skip;
        dst += to - skip;
        n -= to - skip;
    }
    whole_blocks(mask, block, n / BLOCK, src, dst);
    int64_t done = n / BLOCK * BLOCK;
    if (done < n)
        part_of_block(mask, block + n / BLOCK, 0, n - done, src + done,
                      dst + done);
}

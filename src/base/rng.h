/* rng.h - randomness keyed by its purpose, never by time or thread.
 *
 * Everything random is a pure function of a key (made from the seed and the
 * purpose) and a counter, so it can be recomputed at any point by any thread:
 * a resumed run draws what the uninterrupted one would have drawn.
 *
 * Threads: all pure functions. */
#ifndef PL_BASE_RNG_H
#define PL_BASE_RNG_H

#include <stdint.h>

/* Mix a seed with the purpose of the numbers; chain calls for several parts. */
uint64_t pl_rng_key(uint64_t seed, uint64_t purpose);
uint64_t pl_rng_key_text(uint64_t seed, const char *purpose);

/* The counter-th number of the key's sequence: with mix() the finalizer of
 * SplitMix64 (Steele, Lea, Flood 2014) and its constants,
 * mix(mix(key + PL_RNG_STEP * counter) ^ key).  Kernels compute it in
 * vectors. */
#define PL_RNG_STEP  0x9e3779b97f4a7c15u
#define PL_RNG_MIX_1 0xbf58476d1ce4e5b9u
#define PL_RNG_MIX_2 0x94d049bb133111ebu
uint64_t pl_rng_u64(uint64_t key, uint64_t counter);
uint32_t pl_rng_below(uint64_t key, uint64_t counter, uint32_t bound);
double pl_rng_uniform(uint64_t key, uint64_t counter); /* in [0, 1) */
double pl_rng_normal(uint64_t key, uint64_t counter);  /* mean 0, variance 1 */

/* A keyed permutation of 0 .. n-1 that needs no memory.  Writes where
 * positions first .. first+count-1 go; 1 <= n <= 2^32. */
void pl_rng_permute(uint64_t key, uint64_t n, uint64_t first, uint32_t count,
                    uint32_t *out);

#endif

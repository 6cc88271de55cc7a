/* key_list.c - packs rising keys as bit-packed differences in blocks of 32, and
 * checks every count when it unpacks them. */
#include "sync/ps/messages/key_list.h"

#include "base/assert.h"

#include <string.h>

#define BLOCK      32
#define WIDTH_MOST 48 /* a difference and 7 bits of offset fit a word */
#define BLOCK_MOST (1 + BLOCK * WIDTH_MOST / 8)
/* A word is read or written where a difference begins. */
#define PADDING sizeof(uint64_t)

size_t pl_key_list_room(int64_t count)
{
    return (size_t)((count + BLOCK - 1) / BLOCK) * BLOCK_MOST + PADDING;
}

static uint64_t get_word(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static int width_of(uint64_t most)
{
    return most > 0 ? 64 - __builtin_clzll(most) : 0;
}

static size_t packed_bytes(int64_t count, int width)
{
    return (size_t)((count * width + 7) / 8);
}

/* Pack the differences of one block after its width; returns its bytes. */
static size_t write_block(int64_t count, const uint64_t *keys, uint64_t before,
                          uint8_t *out)
{
    uint64_t gaps[BLOCK], all = 0;
    for (int64_t i = 0; i < count; i++) {
        gaps[i] = keys[i] - before;
        before = keys[i] + 1;
        all |= gaps[i];
    }
    int width = width_of(all);
    PL_ASSERT(width <= WIDTH_MOST);
    size_t bytes = packed_bytes(count, width);
    *out++ = (uint8_t)width;
    /* Bits are collected in a word and written as whole bytes. */
    uint64_t word = 0;
    int used = 0;
    uint8_t *at = out;
    for (int64_t i = 0; i < count; i++) {
        word |= gaps[i] << used;
        used += width;
        memcpy(at, &word, sizeof word);
        at += used / 8;
        word >>= used / 8 * 8;
        used %= 8;
    }
    return 1 + bytes;
}

size_t pl_key_list_write(int64_t count, const uint64_t *keys, uint64_t first,
                         uint8_t *out)
{
    uint8_t *at = out;
    uint64_t before = first;
    for (int64_t k = 0; k < count; k += BLOCK) {
        int64_t n = count - k < BLOCK ? count - k : BLOCK;
        at += write_block(n, keys + k, before, at);
        before = keys[k + n - 1] + 1;
    }
    return (size_t)(at - out);
}

/* `in` may be read a word beyond the block. */
static uint64_t read_block(int64_t count, int width, const uint8_t *in,
                           uint64_t before, uint64_t *keys)
{
    uint64_t mask = ((uint64_t)1 << width) - 1;
    int64_t bit = 0;
    for (int64_t i = 0; i < count; i++, bit += width) {
        before += get_word(in + bit / 8) >> bit % 8 & mask;
        keys[i] = before++;
    }
    return before;
}

pl_status pl_key_list_read(int64_t count, const uint8_t *in, size_t bytes,
                           uint64_t limit, uint64_t *keys, size_t *used)
{
    PL_ASSERT(limit <= PL_KEY_LIST_MOST);
    size_t at = 0;
    uint64_t before = 0;
    for (int64_t k = 0; k < count; k += BLOCK) {
        int64_t n = count - k < BLOCK ? count - k : BLOCK;
        uint8_t last[BLOCK_MOST + PADDING];
        if (at == bytes)
            return PL_FAIL(PL_FORMAT, "%lld of %lld keys in %zu bytes",
                           (long long)k, (long long)count, bytes);
        int width = in[at++];
        size_t packed = packed_bytes(n, width);
        if (width > WIDTH_MOST || packed > bytes - at)
            return PL_FAIL(PL_FORMAT,
                           "key %lld of %lld: %lld differences of %d bits in "
                           "%zu bytes",
                           (long long)k, (long long)count, (long long)n, width,
                           bytes - at);
        const uint8_t *from = in + at;
        if (bytes - at < packed + PADDING)
            from = memcpy(last, from, packed);
        before = read_block(n, width, from, before, keys + k);
        at += packed;
        /* Keys only rise: the last one shows whether all are in range. */
        if (before > limit)
            return PL_FAIL(PL_FORMAT, "key %llu; there are %llu here",
                           (unsigned long long)(before - 1),
                           (unsigned long long)limit);
    }
    *used = at;
    return PL_OK;
}

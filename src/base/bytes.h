/* bytes.h - little-endian numbers and varints in memory.
 *
 * Threads: any. */
#ifndef PL_BASE_BYTES_H
#define PL_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t pl_get_u32(const uint8_t *from)
{
    return (uint32_t)from[0] | (uint32_t)from[1] << 8 |
           (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

static inline uint64_t pl_get_u64(const uint8_t *from)
{
    return pl_get_u32(from) | (uint64_t)pl_get_u32(from + 4) << 32;
}

static inline void pl_put_u32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

static inline void pl_put_u64(uint8_t *to, uint64_t value)
{
    pl_put_u32(to, (uint32_t)value);
    pl_put_u32(to + 4, (uint32_t)(value >> 32));
}

#define PL_VARINT_MOST 10 /* bytes */

static inline size_t pl_put_varint(uint8_t *to, uint64_t value)
{
    size_t used = 0;
    for (; value >= 0x80; value >>= 7)
        to[used++] = (uint8_t)(value | 0x80);
    to[used++] = (uint8_t)value;
    return used;
}

/* The end of the varint at `at`, or NULL when it does not end before `end` or
 * has more than 64 bits. */
static inline const uint8_t *pl_get_varint(const uint8_t *at,
                                           const uint8_t *end, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; at < end && shift < 64; shift += 7) {
        uint64_t byte = *at++;
        if (shift == 63 && byte > 1)
            return NULL;
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return at;
        }
    }
    return NULL;
}

#endif

/* text.h - shared code of the text formats: lines, places, numbers.
 *
 * A block of text is whole lines, the last one ended by '\n' too, followed by
 * PL_TEXT_PAD bytes that may be read: so a parser finds '\n' before the end and
 * may read eight bytes ahead.
 *
 * Threads: any; a pl_text belongs to one. */
#ifndef PL_DATA_SPARSE_FORMATS_TEXT_H
#define PL_DATA_SPARSE_FORMATS_TEXT_H

#include "data/sparse/formats/format.h"

#define PL_TEXT_PAD 32

typedef struct pl_text {
    const char *begin, *end;
    char *copy; /* when the file's end is too near */
} pl_text;

pl_status pl_text_init(pl_text *text, const pl_decode *decode) PL_MUST_CHECK;
void pl_text_close(pl_text *text);

/* pl_sparse_format.split and .count of formats with one example per line; empty
 * lines and those that begin with # have none. */
pl_status pl_text_split(pl_sparse_blocks *blocks, const pl_decode *decode,
                        int32_t index, uint64_t target) PL_MUST_CHECK;
pl_status pl_text_count(const pl_decode *decode, int64_t *rows) PL_MUST_CHECK;

/* "FILE:LINE:COLUMN: ..." as PL_FORMAT. */
pl_status pl_text_fail(const pl_decode *decode, const pl_text *text,
                       const char *at, const char *format, ...) PL_PRINTF(4, 5);

/* The text at `at`, for a message: up to the next blank, at most 24 characters,
 * unusual characters as '?'. */
const char *pl_text_word(const char *at, char word[32]);

/* Read a number that the fast path cannot; returns its end, NULL when it is not
 * a number. */
const char *pl_text_real_slow(const char *at, double *out);

static inline const char *pl_text_line_end(const char *at)
{
    while (*at != '\n')
        at++;
    return at;
}

static inline const char *pl_text_skip_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t')
        at++;
    return at;
}

/* Digits among the next eight bytes, from the first on; *digits gets the bytes
 * minus '0'. */
static inline unsigned pl_text_digits(const char *at, uint64_t *digits)
{
    uint64_t word;
    __builtin_memcpy(&word, at, 8);
    word ^= 0x3030303030303030u;
    uint64_t other =
        (((word & 0x7f7f7f7f7f7f7f7fu) + 0x7676767676767676u) | word) &
        0x8080808080808080u;
    *digits = word;
    return other == 0 ? 8 : (unsigned)__builtin_ctzll(other) / 8;
}

/* The number that the first `count` (1 to 8) of these digits make. */
static inline uint64_t pl_text_combine(uint64_t digits, unsigned count)
{
    digits <<= 64 - 8 * count;
    digits = digits * 10 + (digits >> 8);
    return (((digits & 0x000000ff000000ffu) * 0x000f424000000064u) +
            (((digits >> 16) & 0x000000ff000000ffu) * 0x0000271000000001u)) >>
           32;
}

/* Digits from `at` on; returns their end: `at` itself when there are none,
 * NULL when the number is 2^63 or more. */
static inline const char *pl_text_integer(const char *at, uint64_t *out)
{
    uint64_t digits;
    unsigned count = pl_text_digits(at, &digits);
    if (__builtin_expect(count == 0, 0))
        return at;
    uint64_t value = pl_text_combine(digits, count);
    at += count;
    if (count == 8) {
        while (*at >= '0' && *at <= '9') {
            if (value > ((uint64_t)INT64_MAX - 9) / 10)
                return NULL;
            value = value * 10 + (uint64_t)(*at++ - '0');
        }
    }
    *out = value;
    return at;
}

/* A finite number; NULL when there is none.  Rounded once, to double. */
const char *pl_text_real(const char *at, double *out);

#endif

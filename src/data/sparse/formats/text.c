/* text.c - shared code of the text formats: dividing a file into blocks of
 * whole lines, naming line and column of an error, and a fast decimal parser
 * that falls back to strtod when it could round differently. */
#include "data/sparse/formats/text.h"

#include "base/mem.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD_MOST 24
#define REAL_MOST 128 /* characters of a number on the slow path */

pl_status pl_text_init(pl_text *text, const pl_decode *decode)
{
    const pl_sparse_block *block = decode->block;
    const char *begin = (const char *)decode->data;
    bool ended = block->bytes > 0 && begin[block->bytes - 1] == '\n';
    *text = (pl_text) { begin, begin + block->bytes, NULL };
    if (ended && decode->spare >= PL_TEXT_PAD)
        return PL_OK;
    PL_TRY(PL_NEW(text->copy, block->bytes + 1 + PL_TEXT_PAD));
    memcpy(text->copy, begin, block->bytes);
    text->begin = text->copy;
    text->end = text->copy + block->bytes;
    if (!ended) {
        text->copy[block->bytes] = '\n';
        text->end++;
    }
    return PL_OK;
}

void pl_text_close(pl_text *text)
{
    pl_mem_free(text->copy);
}

pl_status pl_text_split(pl_sparse_blocks *blocks, const pl_decode *decode,
                        int32_t index, uint64_t target)
{
    const uint8_t *data = decode->file->data;
    uint64_t bytes = decode->file->bytes;
    for (uint64_t at = 0; at < bytes;) {
        uint64_t end = bytes;
        if (bytes - at > target) {
            const uint8_t *last =
                memchr(data + at + target - 1, '\n', bytes - at - target + 1);
            end = last != NULL ? (uint64_t)(last - data) + 1 : bytes;
        }
        PL_TRY(pl_sparse_blocks_add(
            blocks, (pl_sparse_block) {
                        .file = index, .offset = at, .bytes = end - at }));
        at = end;
    }
    return PL_OK;
}

/* True for a line that holds an example. */
static bool is_full(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
        at++;
    return at < end && *at != '#' && *at != '\n';
}

pl_status pl_text_count(const pl_decode *decode, int64_t *rows)
{
    const char *at = (const char *)decode->file->data + decode->block->offset;
    const char *end = at + decode->block->bytes;
    int64_t count = 0;
    while (at < end) {
        count += is_full(at, end);
        const char *next = memchr(at, '\n', (size_t)(end - at));
        at = next != NULL ? next + 1 : end;
    }
    *rows = count;
    return PL_OK;
}

/* Lines before byte `offset` of a file, and the start of the last one. */
static int64_t lines_before(const pl_sparse_file *file, uint64_t offset,
                            uint64_t *begin)
{
    int64_t lines = 0;
    *begin = 0;
    while (*begin < offset) {
        const uint8_t *next =
            memchr(file->data + *begin, '\n', offset - *begin);
        if (next == NULL)
            break;
        *begin = (uint64_t)(next - file->data) + 1;
        lines++;
    }
    return lines;
}

pl_status pl_text_fail(const pl_decode *decode, const pl_text *text,
                       const char *at, const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    uint64_t begin;
    uint64_t offset = decode->block->offset + (uint64_t)(at - text->begin);
    int64_t lines = lines_before(decode->file, offset, &begin);
    return PL_FAIL(PL_FORMAT, "%s:%lld:%llu: %s", decode->file->path,
                   (long long)lines + 1,
                   (unsigned long long)(offset - begin + 1), message);
}

const char *pl_text_word(const char *at, char word[32])
{
    int used = 0;
    if (*at == '\n' || *at == '\r')
        return "the end of the line";
    word[used++] = '\'';
    for (; used <= WORD_MOST && (unsigned char)*at > ' '; at++)
        word[used++] = (unsigned char)*at < 127 ? *at : '?';
    if (used == 1)
        word[used++] = '?';
    word[used++] = '\'';
    word[used] = '\0';
    return word;
}

/* Ten to the power of 0 .. 22: all exact. */
static const double powers[] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
};
#define MOST_POWER 22

const char *pl_text_real_slow(const char *at, double *out)
{
    char copy[REAL_MOST + 1];
    size_t length = strspn(at, "+-.0123456789eE");
    if (length == 0 || length > REAL_MOST)
        return NULL;
    memcpy(copy, at, length);
    copy[length] = '\0';
    char *end;
    *out = strtod(copy, &end);
    return end == copy || !isfinite(*out) ? NULL : at + (end - copy);
}

/* Clinger's fast path: a mantissa below 2^53 and a small power of ten give the
 * nearest double by one multiplication or division. */
const char *pl_text_real(const char *at, double *out)
{
    const char *begin = at;
    bool minus = *at == '-';
    uint64_t whole = 0, part = 0, digits;
    at += minus || *at == '+';
    unsigned before = pl_text_digits(at, &digits), behind = 0;
    if (before > 0)
        whole = pl_text_combine(digits, before);
    at += before;
    if (*at == '.') {
        behind = pl_text_digits(at + 1, &digits);
        if (behind > 0)
            part = pl_text_combine(digits, behind);
        at += 1 + behind;
    }
    bool more = (*at >= '0' && *at <= '9') || *at == 'e' || *at == 'E';
    if (more || before + behind == 0 || before + behind > 15)
        return pl_text_real_slow(begin, out);
    double scale = powers[behind <= MOST_POWER ? behind : MOST_POWER];
    double value = ((double)whole * scale + (double)part) / scale;
    *out = minus ? -value : value;
    return at;
}

/* base64.c - decides which texts are refused: any that an encoder would not
 * have written, including unused bits that are set. */
#include "base/text/base64.h"

#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                             "abcdefghijklmnopqrstuvwxyz0123456789+/";

void pl_base64_encode(char *out, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    for (size_t i = 0; i < bytes; i += 3) {
        size_t left = bytes - i;
        uint32_t word = (uint32_t)at[i] << 16;
        word |= left > 1 ? (uint32_t)at[i + 1] << 8 : 0;
        word |= left > 2 ? at[i + 2] : 0;
        *out++ = digits[word >> 18];
        *out++ = digits[word >> 12 & 63];
        *out++ = left > 1 ? digits[word >> 6 & 63] : '=';
        *out++ = left > 2 ? digits[word & 63] : '=';
    }
    *out = '\0';
}

static int value_of(char digit)
{
    if (digit >= 'A' && digit <= 'Z')
        return digit - 'A';
    if (digit >= 'a' && digit <= 'z')
        return digit - 'a' + 26;
    if (digit >= '0' && digit <= '9')
        return digit - '0' + 52;
    return digit == '+' ? 62 : digit == '/' ? 63 : -1;
}

/* Four digits, the last of which may be padding; the bytes they stand for, 0:
 * none. */
static size_t decode_group(const char *text, uint8_t out[3])
{
    size_t used = text[3] != '=' ? 4 : text[2] != '=' ? 3 : 2;
    uint32_t word = 0;
    for (size_t i = 0; i < 4; i++) {
        int value = i < used ? value_of(text[i]) : 0;
        if (value < 0)
            return 0;
        word = word << 6 | (uint32_t)value;
    }
    if ((used == 3 && (word & 0xff) != 0) ||
        (used == 2 && (word & 0xffff) != 0))
        return 0;
    out[0] = (uint8_t)(word >> 16);
    out[1] = (uint8_t)(word >> 8);
    out[2] = (uint8_t)word;
    return used - 1;
}

pl_status pl_base64_decode(void *out, size_t room, size_t *bytes,
                           const char *text)
{
    size_t length = strlen(text), count = 0;
    if (length % 4 != 0)
        return PL_FAIL(PL_FORMAT, "not base64: %zu digits", length);
    for (size_t i = 0; i < length; i += 4) {
        uint8_t group[3];
        size_t got = decode_group(text + i, group);
        if (got == 0 || (got < 3 && i + 4 < length))
            return PL_FAIL(PL_FORMAT, "not base64 at character %zu", i);
        if (got > room - count)
            return PL_FAIL(PL_FORMAT, "base64 of more than %zu bytes", room);
        memcpy((char *)out + count, group, got);
        count += got;
    }
    *bytes = count;
    return PL_OK;
}

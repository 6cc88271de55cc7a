/* Converts a reader's position to hexadecimal text and back.  The text comes
 * from a file, so length and digits are checked. */
#include "base/position.h"

#include <string.h>

void pl_position_text(const pl_position *position, char text[PL_POSITION_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    for (uint32_t i = 0; i < position->used; i++) {
        text[2 * i] = digits[position->bytes[i] >> 4];
        text[2 * i + 1] = digits[position->bytes[i] & 15];
    }
    text[2 * position->used] = '\0';
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

pl_status pl_position_parse(pl_position *out, const char *text)
{
    size_t length = strlen(text);
    if (length % 2 != 0 || length > PL_POSITION_TEXT - 1)
        return PL_FAIL(PL_FORMAT, "position: %zu hexadecimal digits", length);
    out->used = (uint32_t)(length / 2);
    for (size_t i = 0; i < out->used; i++) {
        int high = digit_value(text[2 * i]);
        int low = digit_value(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return PL_FAIL(PL_FORMAT, "position: not hexadecimal");
        out->bytes[i] = (uint8_t)(high << 4 | low);
    }
    return PL_OK;
}

/* quote.c - decides, for each output language, which characters of a foreign
 * text are kept and how the others are escaped.
 *
 * All functions walk the text by UTF-8 characters: a control character is
 * known by its code point, however it is encoded, and a byte that belongs to
 * no character never reaches a reader that would guess at it. */
#include "base/text/quote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Bytes of the character at `text` and its code point; 0 when none is well
 * formed there (overlong forms, surrogates and the end included). */
static size_t character(const char *text, uint32_t *code)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char *at = (const unsigned char *)text;
    size_t bytes = at[0] < 0x80    ? 1
                   : at[0] < 0xc2  ? 0
                   : at[0] < 0xe0  ? 2
                   : at[0] < 0xf0  ? 3
                   : at[0] <= 0xf4 ? 4
                                   : 0;
    if (bytes <= 1) {
        *code = at[0];
        return bytes;
    }
    *code = at[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (at[i] & 0x3fu);
    }
    bool fits = *code >= least[bytes] && *code <= 0x10ffff &&
                (*code < 0xd800 || *code > 0xdfff);
    return fits ? bytes : 0;
}

/* A character that a terminal interprets or a line reader takes for a line
 * end. */
static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 ||
           code == 0x2029;
}

static bool is_one_of(uint32_t code, const char *set)
{
    return code < 0x80 && strchr(set, (int)code) != NULL;
}

/* The next part of a line, at most 16 bytes, into `part`; the bytes of `text`
 * it stands for go to *used. */
static size_t line_part(const char *text, size_t *used, char part[17])
{
    uint32_t code;
    size_t bytes = character(text, &code);
    *used = bytes == 0 ? 1 : bytes;
    if (bytes > 0 && !is_control(code)) {
        memcpy(part, text, bytes);
        return bytes;
    }
    size_t length = 0;
    for (size_t i = 0; i < *used; i++)
        length += (size_t)snprintf(part + length, 17 - length, "\\x%02x",
                                   (unsigned)(unsigned char)text[i]);
    return length;
}

char *pl_quote_line(char *to, size_t room, const char *text)
{
    size_t length = 0, used;
    char part[17];
    while (*text != '\0') {
        size_t more = line_part(text, &used, part);
        if (length + more + 1 > room)
            break;
        memcpy(to + length, part, more);
        length += more;
        text += used;
    }
    to[length] = '\0';
    return to;
}

void pl_quote_terminal(pl_buffer *out, const char *text)
{
    size_t used;
    char part[17];
    for (; *text != '\0'; text += used)
        pl_buffer_put(out, part, line_part(text, &used, part));
}

void pl_quote_html(pl_buffer *out, const char *text)
{
    uint32_t code;
    size_t bytes;
    for (; *text != '\0'; text += bytes == 0 ? 1 : bytes) {
        bytes = character(text, &code);
        bool shown = bytes > 0 && (code == '\n' || code == '\t' ||
                                   code == '\r' || !is_control(code));
        if (!shown)
            pl_buffer_text(out, REPLACEMENT);
        else if (code == '&')
            pl_buffer_text(out, "&amp;");
        else if (code == '<')
            pl_buffer_text(out, "&lt;");
        else if (code == '>')
            pl_buffer_text(out, "&gt;");
        else if (code == '"')
            pl_buffer_text(out, "&quot;");
        else if (code == '\'')
            pl_buffer_text(out, "&#39;");
        else
            pl_buffer_put(out, text, bytes);
    }
}

/* "<", ">" and "&" could end the script element that holds the string. */
void pl_quote_json(pl_buffer *out, const char *text)
{
    uint32_t code;
    size_t bytes;
    pl_buffer_text(out, "\"");
    for (; *text != '\0'; text += bytes == 0 ? 1 : bytes) {
        bytes = character(text, &code);
        if (bytes == 0)
            pl_buffer_text(out, "\\ufffd");
        else if (is_control(code) || is_one_of(code, "\"\\<>&"))
            pl_buffer_format(out, "\\u%04x", (unsigned)code);
        else
            pl_buffer_put(out, text, bytes);
    }
    pl_buffer_text(out, "\"");
}

void pl_quote_label(pl_buffer *out, const char *text)
{
    uint32_t code;
    size_t bytes;
    pl_buffer_text(out, "\"");
    for (; *text != '\0'; text += bytes == 0 ? 1 : bytes) {
        bytes = character(text, &code);
        if (bytes == 0 || (is_control(code) && code != '\n'))
            pl_buffer_text(out, REPLACEMENT);
        else if (code == '\n')
            pl_buffer_text(out, "\\n");
        else if (is_one_of(code, "\"\\"))
            pl_buffer_format(out, "\\%c", (char)code);
        else
            pl_buffer_put(out, text, bytes);
    }
    pl_buffer_text(out, "\"");
}

bool pl_quote_is_number(const char *text)
{
    char *end;
    if (text[strspn(text, "+-.0123456789eE")] != '\0')
        return false;
    strtod(text, &end);
    return end != text && *end == '\0';
}

void pl_quote_csv(pl_buffer *out, const char *text)
{
    bool quoted = strpbrk(text, ",\"") != NULL;
    bool formula = text[0] != '\0' && strchr("=+-@", text[0]) != NULL;
    size_t used;
    char part[17];
    pl_buffer_text(out, quoted ? "\"" : "");
    pl_buffer_text(out, formula && !pl_quote_is_number(text) ? "'" : "");
    for (; *text != '\0'; text += used) {
        if (*text == '"')
            pl_buffer_text(out, "\"");
        pl_buffer_put(out, part, line_part(text, &used, part));
    }
    pl_buffer_text(out, quoted ? "\"" : "");
}

void pl_quote_gnuplot(pl_buffer *out, const char *text)
{
    uint32_t code;
    size_t bytes;
    pl_buffer_text(out, "'");
    for (; *text != '\0'; text += bytes == 0 ? 1 : bytes) {
        bytes = character(text, &code);
        if (bytes == 0 || is_control(code) || is_one_of(code, "'`\\"))
            pl_buffer_text(out, "_");
        else
            pl_buffer_put(out, text, bytes);
    }
    pl_buffer_text(out, "'");
}

static bool is_odd(char c)
{
    return (unsigned char)c < ' ' || (unsigned char)c > '~';
}

void pl_quote_shell(pl_buffer *out, const char *word)
{
    bool odd = false;
    for (const char *c = word; *c != '\0'; c++)
        odd = odd || is_odd(*c);
    if (!odd && word[0] != '\0' &&
        word[strcspn(word, " '\"\\$&|;<>()*?[]#~`!")] == '\0') {
        pl_buffer_text(out, word);
        return;
    }
    pl_buffer_text(out, odd ? "$'" : "'");
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            pl_buffer_text(out, odd ? "\\'" : "'\\''");
        else if (odd && *word == '\\')
            pl_buffer_text(out, "\\\\");
        else if (is_odd(*word))
            pl_buffer_format(out, "\\x%02x", (unsigned)(unsigned char)*word);
        else
            pl_buffer_put(out, word, 1);
    }
    pl_buffer_text(out, "'");
}

void pl_quote_file_name(char *text)
{
    if (text[0] == '.')
        text[0] = '-';
    for (; *text != '\0'; text++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                   "0123456789.-_",
                   *text) == NULL)
            *text = '-';
}

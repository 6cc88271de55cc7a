/* json_text.c - JSON values as text.
 *
 * The library can print too, but its digits of a real number differ from one
 * version to the next, and files we write must have the same bytes every time.
 * It does print strings and integers. */
#include "base/json/json.h"

#include "base/json/json_priv.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    char *bytes;
    size_t used;
    size_t room;
    size_t indent; /* blanks a level; 0: one line */
};

static pl_status add(struct text *text, const char *bytes, size_t count)
{
    if (text->bytes == NULL || text->room - text->used < count) {
        size_t room = (text->room + count) * 2;
        PL_TRY(PL_RESIZE(text->bytes, room));
        text->room = room;
    }
    memcpy(text->bytes + text->used, bytes, count);
    text->used += count;
    return PL_OK;
}

/* Bytes of a character that JSON allows unescaped, but a terminal interprets
 * (DEL, C1) or a script takes for the end of a line (U+2028, U+2029); otherwise
 * 0. */
static size_t obeyed(const char *bytes, size_t count, unsigned *code)
{
    const unsigned char *at = (const unsigned char *)bytes;
    *code = at[0];
    if (at[0] == 0x7f)
        return 1;
    if (count >= 2 && at[0] == 0xc2 && at[1] < 0xa0) {
        *code = at[1];
        return 2;
    }
    if (count >= 3 && at[0] == 0xe2 && at[1] == 0x80 &&
        (at[2] == 0xa8 || at[2] == 0xa9)) {
        *code = 0x2000u + (at[2] & 0x3fu);
        return 3;
    }
    return 0;
}

/* Part of a string, or the text around one, in whole characters. */
static pl_status add_escaped(struct text *text, const char *bytes, size_t count)
{
    size_t begin = 0, length;
    for (size_t i = 0; i < count; i += length == 0 ? 1 : length) {
        char escape[8];
        unsigned code;
        length = obeyed(bytes + i, count - i, &code);
        if (length == 0)
            continue;
        snprintf(escape, sizeof escape, "\\u%04x", code & 0xffffu);
        PL_TRY(add(text, bytes + begin, i - begin));
        PL_TRY(add(text, escape, 6));
        begin = i + length;
    }
    return add(text, bytes + begin, count - begin);
}

/* The library's callback: 0 to continue, -1 to stop. */
static int add_piece(const char *bytes, size_t count, void *text)
{
    return add_escaped(text, bytes, count) == PL_OK ? 0 : -1;
}

static pl_status add_new_line(struct text *text, size_t level)
{
    if (text->indent == 0)
        return PL_OK;
    PL_TRY(add(text, "\n", 1));
    for (size_t i = 0; i < level * text->indent; i++)
        PL_TRY(add(text, " ", 1));
    return PL_OK;
}

/* The fewest digits that read back as the same number. */
static pl_status add_real(struct text *text, double value)
{
    char digits[32];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    PL_TRY(add(text, digits, strlen(digits)));
    if (strpbrk(digits, ".e") == NULL) /* stays a real when read again */
        return add(text, ".0", 2);
    return PL_OK;
}

static pl_status add_leaf(struct text *text, const json_t *value)
{
    if (json_is_real(value))
        return add_real(text, json_real_value(value));
    pl_json_begin();
    int result = json_dump_callback(value, add_piece, text, JSON_ENCODE_ANY);
    return result == 0 ? PL_OK : PL_FAIL(PL_NOMEM, "JSON text: out of memory");
}

static pl_status add_key(struct text *text, const char *key)
{
    pl_json_begin();
    json_t *string = json_string(key);
    PL_TRY(pl_json_end(string != NULL, key));
    pl_status status = add_leaf(text, string);
    json_decref(string);
    if (status != PL_OK)
        return status;
    return text->indent == 0 ? add(text, ":", 1) : add(text, ": ", 2);
}

static pl_status add_value(struct text *text, const json_t *value,
                           size_t level);

/* The text before the index-th member of an object or array. */
static pl_status add_separator(struct text *text, size_t index, size_t level)
{
    if (index > 0)
        PL_TRY(add(text, ",", 1));
    return add_new_line(text, level);
}

static pl_status add_object(struct text *text, const json_t *object,
                            size_t level)
{
    void *walk = NULL;
    const char *key;
    const pl_json *value;
    PL_TRY(add(text, "{", 1));
    for (size_t i = 0; pl_json_next(as_ours(object), &walk, &key, &value);
         i++) {
        PL_TRY(add_separator(text, i, level + 1));
        PL_TRY(add_key(text, key));
        PL_TRY(add_value(text, as_theirs(value), level + 1));
    }
    if (json_object_size(object) > 0)
        PL_TRY(add_new_line(text, level));
    return add(text, "}", 1);
}

static pl_status add_array(struct text *text, const json_t *array, size_t level)
{
    PL_TRY(add(text, "[", 1));
    for (size_t i = 0; i < json_array_size(array); i++) {
        PL_TRY(add_separator(text, i, level + 1));
        PL_TRY(add_value(text, json_array_get(array, i), level + 1));
    }
    if (json_array_size(array) > 0)
        PL_TRY(add_new_line(text, level));
    return add(text, "]", 1);
}

static pl_status add_value(struct text *text, const json_t *value, size_t level)
{
    if (json_is_object(value))
        return add_object(text, value, level);
    if (json_is_array(value))
        return add_array(text, value, level);
    return add_leaf(text, value);
}

pl_status pl_json_text(const pl_json *json, int indent, char **out)
{
    struct text text = { .indent = indent > 0 ? (size_t)indent : 0 };
    pl_status status = add_value(&text, as_theirs(json), 0);
    if (status == PL_OK)
        status = add(&text, "", 1); /* the NUL */
    if (status != PL_OK) {
        pl_mem_free(text.bytes);
        return status;
    }
    *out = text.bytes;
    return PL_OK;
}

pl_status pl_json_print(const pl_json *json, FILE *file)
{
    char *text;
    PL_TRY(pl_json_text(json, 0, &text));
    fprintf(file, "%s\n", text);
    pl_mem_free(text);
    return PL_OK;
}

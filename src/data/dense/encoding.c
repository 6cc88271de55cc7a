/* encoding.c - keeps the encoding as JSON, as it is written to run.json and
 * read from there: untrusted input, checked where it is read. */
#include "data/dense/encoding.h"

#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHAT "what the run learned from its data"

void pl_encoding_close(pl_encoding *encoding)
{
    pl_json_free(encoding->learned);
    *encoding = (pl_encoding) { .learned = NULL };
}

pl_status pl_encoding_init(pl_encoding *encoding, const pl_json *learned)
{
    *encoding = (pl_encoding) { .fixed = true };
    return learned != NULL ? pl_json_copy(&encoding->learned, learned)
                           : pl_json_new_object(&encoding->learned);
}

pl_status pl_encoding_text(const pl_encoding *encoding, char **out)
{
    if (encoding->learned == NULL || pl_json_length(encoding->learned) == 0)
        return PL_OK;
    return pl_json_text(encoding->learned, 0, out);
}

static pl_status open_object(pl_encoding *encoding)
{
    return encoding->learned != NULL ? PL_OK
                                     : pl_json_new_object(&encoding->learned);
}

/* "classes" is a member of its own; columns are in the object "columns", which
 * is replaced by one with the new column. */
static pl_status set_list(pl_encoding *encoding, const char *column,
                          pl_json *list)
{
    pl_json *columns = NULL;
    const pl_json *before;
    if (strcmp(column, "classes") == 0)
        return pl_json_set_take(encoding->learned, column, list);
    pl_status status = PL_OK;
    if (pl_json_has(encoding->learned, "columns")) {
        status = pl_json_get_object(encoding->learned, "columns", &before);
        if (status == PL_OK)
            status = pl_json_copy(&columns, before);
    } else {
        status = pl_json_new_object(&columns);
    }
    if (status != PL_OK) {
        pl_json_free(list);
        return status;
    }
    status = pl_json_set_take(columns, column, list);
    if (status == PL_OK)
        return pl_json_set_take(encoding->learned, "columns", columns);
    pl_json_free(columns);
    return status;
}

pl_status pl_encoding_set_texts(pl_encoding *encoding, const char *column,
                                char *const *texts, size_t count)
{
    pl_json *list;
    PL_TRY(open_object(encoding));
    PL_TRY(pl_json_new_array(&list));
    for (size_t i = 0; i < count; i++) {
        pl_status status = pl_json_append_text(list, texts[i]);
        if (status != PL_OK) {
            pl_json_free(list);
            return pl_context(status, "column %s: value %zu", column, i + 1);
        }
    }
    return set_list(encoding, column, list);
}

/* The list under a name; NULL: none. */
static pl_status find_list(const pl_encoding *encoding, const char *column,
                           const pl_json **out)
{
    const pl_json *in = encoding->learned;
    *out = NULL;
    if (in == NULL)
        return PL_OK;
    if (strcmp(column, "classes") != 0 && strcmp(column, "mean") != 0 &&
        strcmp(column, "deviation") != 0) {
        if (!pl_json_has(in, "columns"))
            return PL_OK;
        PL_TRY(pl_json_get_object(in, "columns", &in));
    }
    return pl_json_has(in, column) ? pl_json_get_array(in, column, out) : PL_OK;
}

pl_status pl_encoding_texts(const pl_encoding *encoding, const char *column,
                            const char ***out, size_t *count)
{
    const pl_json *list;
    const char **texts;
    *count = 0;
    *out = NULL;
    pl_status status = find_list(encoding, column, &list);
    if (status != PL_OK)
        return pl_context(status, WHAT);
    if (list == NULL)
        return PL_OK;
    size_t length = pl_json_length(list);
    PL_TRY(PL_NEW(texts, length));
    for (size_t i = 0; i < length && status == PL_OK; i++)
        status = pl_json_as_text(pl_json_at(list, i), column, &texts[i]);
    if (status != PL_OK) {
        pl_mem_free(texts);
        return pl_context(status, WHAT);
    }
    *out = texts;
    *count = length;
    return PL_OK;
}

/* Numbers are texts of the fewest digits that read back the same: JSON's own
 * would lose infinities, and these are compared as texts. */
pl_status pl_encoding_set_numbers(pl_encoding *encoding, const char *name,
                                  const double *numbers, size_t count)
{
    pl_json *list;
    PL_TRY(open_object(encoding));
    PL_TRY(pl_json_new_array(&list));
    for (size_t i = 0; i < count; i++) {
        char text[32];
        snprintf(text, sizeof text, "%.9g", numbers[i]);
        pl_status status = pl_json_append_text(list, text);
        if (status != PL_OK) {
            pl_json_free(list);
            return status;
        }
    }
    return pl_json_set_take(encoding->learned, name, list);
}

static pl_status read_number(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(*out))
        return PL_FAIL(PL_FORMAT, WHAT ": \"%.40s\", expected a number", text);
    return PL_OK;
}

pl_status pl_encoding_numbers(const pl_encoding *encoding, const char *name,
                              double **out, size_t *count)
{
    const char **texts;
    double *numbers = NULL;
    *out = NULL;
    PL_TRY(pl_encoding_texts(encoding, name, &texts, count));
    if (texts == NULL)
        return PL_OK;
    pl_status status = PL_NEW(numbers, *count);
    for (size_t i = 0; i < *count && status == PL_OK; i++)
        status = read_number(texts[i], &numbers[i]);
    pl_mem_free(texts);
    if (status == PL_OK)
        *out = numbers;
    else
        pl_mem_free(numbers);
    return status;
}

const char *pl_encoding_class(const pl_encoding *encoding, int64_t index)
{
    const pl_json *list;
    const char *name;
    if (find_list(encoding, "classes", &list) != PL_OK || list == NULL ||
        index < 0 || (size_t)index >= pl_json_length(list) ||
        pl_json_as_text(pl_json_at(list, (size_t)index), "class", &name) !=
            PL_OK)
        return NULL;
    return name;
}

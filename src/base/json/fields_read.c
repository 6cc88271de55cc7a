/* fields_read.c - JSON to a struct, every value checked against its table.
 *
 * Decides the value of a missing field, what is refused and with which message.
 * Input from a file or a peer cannot make it allocate more entries than a table
 * allows. */
#include "base/json/fields.h"

#include "base/assert.h"
#include "base/json/fields_priv.h"
#include "base/json/json_priv.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

bool pl_field_is_unset(const pl_field *field, const void *at)
{
    switch (field->kind) {
    case PL_KIND_BOOL:
        return !*(const bool *)at;
    case PL_KIND_INT:
        return pl_field_int(field, at) == (field->or_null ? -1 : 0);
    case PL_KIND_REAL:
        return field->or_null ? !isfinite(*(const double *)at)
                              : *(const double *)at == 0;
    case PL_KIND_HEX:
        return pl_field_hex(field, at) == 0;
    case PL_KIND_CHARS:
        return *(const char *)at == '\0';
    case PL_KIND_CHOICE:
        return *(const int *)at == (field->or_null ? -1 : 0);
    case PL_KIND_TEXT:
    case PL_KIND_OWN_TEXT:
    case PL_KIND_ANY_OBJECT:
    case PL_KIND_ANY_LIST:
        return *(const void *const *)at == NULL;
    case PL_KIND_OBJECT:
    case PL_KIND_INLINE:
    case PL_KIND_LIST:
        break;
    }
    return false;
}

static const char *name_of(const pl_field *field)
{
    return field->name != NULL ? field->name : "value";
}

static pl_status wrong_kind(const pl_field *field, const char *expected,
                            const json_t *found)
{
    return PL_FAIL(PL_FORMAT, "%s: expected %s%s, found %s", name_of(field),
                   expected, field->or_null ? " or null" : "",
                   pl_json_kind(as_ours(found)));
}

static pl_status read_int(const pl_field *field, const json_t *value, void *at)
{
    bool small = field->size == sizeof(int32_t);
    bool ranged = field->least != 0 || field->most != 0;
    int64_t least = ranged ? field->least : 0;
    int64_t most = ranged ? field->most : small ? INT32_MAX : INT64_MAX;
    if (!json_is_integer(value))
        return wrong_kind(field, "an integer", value);
    int64_t number = json_integer_value(value);
    if (number < least || number > most)
        return PL_FAIL(PL_FORMAT, "%s: %lld is not in %lld .. %lld",
                       name_of(field), (long long)number, (long long)least,
                       (long long)most);
    if (small)
        *(int32_t *)at = (int32_t)number;
    else
        *(int64_t *)at = number;
    return PL_OK;
}

/* Accept exactly the digits that are written: each value has one text. */
static pl_status read_hex(const pl_field *field, const json_t *value, void *at)
{
    static const char digits[] = "0123456789abcdef";
    size_t count = 2 * field->size;
    const char *text = json_string_value(value);
    uint64_t number = 0;
    if (text == NULL)
        return wrong_kind(field, "a string", value);
    if (strlen(text) != count || strspn(text, digits) != count)
        return PL_FAIL(PL_FORMAT,
                       "%s: expected %zu hexadecimal digits, found %.40s",
                       name_of(field), count, text);
    for (size_t i = 0; i < count; i++)
        number = number << 4 | (uint64_t)(strchr(digits, text[i]) - digits);
    if (field->size == sizeof(uint32_t))
        *(uint32_t *)at = (uint32_t)number;
    else
        *(uint64_t *)at = number;
    return PL_OK;
}

static pl_status read_chars(const pl_field *field, const json_t *value,
                            char *at)
{
    if (!json_is_string(value))
        return wrong_kind(field, "a string", value);
    size_t bytes = json_string_length(value);
    if (bytes >= field->size)
        return PL_FAIL(PL_FORMAT, "%s: %zu bytes, expected at most %zu",
                       name_of(field), bytes, field->size - 1);
    memcpy(at, json_string_value(value), bytes + 1);
    return PL_OK;
}

/* "waiting, running or done" */
static void list_choices(const char *const *choices, char *text, size_t room)
{
    size_t used = 0;
    for (size_t i = 0; choices[i] != NULL && used < room; i++) {
        const char *before = i == 0                   ? ""
                             : choices[i + 1] == NULL ? " or "
                                                      : ", ";
        used += (size_t)snprintf(text + used, room - used, "%s%s", before,
                                 choices[i]);
    }
}

static pl_status read_choice(const pl_field *field, const json_t *value,
                             int *at)
{
    char expected[256];
    if (!json_is_string(value))
        return wrong_kind(field, "a string", value);
    const char *text = json_string_value(value);
    for (int i = 0; field->choices[i] != NULL; i++)
        if (strcmp(field->choices[i], text) == 0) {
            *at = i;
            return PL_OK;
        }
    list_choices(field->choices, expected, sizeof expected);
    return PL_FAIL(PL_FORMAT, "%s: expected %s, found %.200s", name_of(field),
                   expected, text);
}

static pl_status read_scalar(const pl_field *field, const json_t *value,
                             void *at)
{
    switch (field->kind) {
    case PL_KIND_BOOL:
        *(bool *)at = json_is_true(value);
        return json_is_boolean(value)
                   ? PL_OK
                   : wrong_kind(field, "true or false", value);
    case PL_KIND_INT:
        return read_int(field, value, at);
    case PL_KIND_REAL:
        *(double *)at = json_number_value(value);
        return json_is_number(value) ? PL_OK
                                     : wrong_kind(field, "a number", value);
    case PL_KIND_HEX:
        return read_hex(field, value, at);
    case PL_KIND_CHARS:
        return read_chars(field, value, at);
    case PL_KIND_TEXT:
        *(const char **)at = json_string_value(value);
        return json_is_string(value) ? PL_OK
                                     : wrong_kind(field, "a string", value);
    case PL_KIND_OWN_TEXT:
        return json_is_string(value)
                   ? pl_mem_copy_text(at, json_string_value(value))
                   : wrong_kind(field, "a string", value);
    case PL_KIND_CHOICE:
        return read_choice(field, value, at);
    case PL_KIND_ANY_OBJECT:
        *(const pl_json **)at = as_ours(value);
        return json_is_object(value) ? PL_OK
                                     : wrong_kind(field, "an object", value);
    case PL_KIND_ANY_LIST:
        *(const pl_json **)at = as_ours(value);
        return json_is_array(value) ? PL_OK
                                    : wrong_kind(field, "an array", value);
    case PL_KIND_OBJECT:
    case PL_KIND_INLINE:
    case PL_KIND_LIST:
        break;
    }
    PL_ASSERT(false);
    return PL_FORMAT;
}

/* Set the values of missing fields; the struct is already zeroed. */
static void set_unset(const pl_fields *fields, void *to)
{
    for (size_t i = 0; i < fields->count; i++) {
        const pl_field *field = &fields->list[i];
        void *at = pl_field_member(to, field->offset);
        if (field->kind == PL_KIND_OBJECT || field->kind == PL_KIND_INLINE)
            set_unset(field->fields, at);
        else if (!field->or_null)
            continue;
        else if (field->kind == PL_KIND_REAL)
            *(double *)at = NAN;
        else if (field->kind == PL_KIND_INT && field->size == sizeof(int64_t))
            *(int64_t *)at = -1;
        else if (field->kind == PL_KIND_INT || field->kind == PL_KIND_CHOICE)
            *(int32_t *)at = -1;
    }
}

static pl_status read_members(const pl_fields *fields, const json_t *json,
                              void *to);

static pl_status read_value(const pl_field *field, const json_t *value,
                            void *to);

static pl_status read_list(const pl_field *field, const json_t *value, void *to)
{
    const pl_fields *fields = field->fields;
    size_t *done = pl_field_member(to, field->count);
    char *entries;
    if (!json_is_array(value))
        return wrong_kind(field, "an array", value);
    size_t count = json_array_size(value);
    PL_ASSERT(field->most > 0);
    if (count < (size_t)field->least || count > (size_t)field->most)
        return PL_FAIL(PL_FORMAT, "%s: %zu entries, expected %lld .. %lld",
                       name_of(field), count, (long long)field->least,
                       (long long)field->most);
    PL_TRY(pl_mem_check(entries = pl_mem_alloc(count, fields->size), count,
                        fields->size));
    *(void **)pl_field_member(to, field->offset) = entries;
    for (*done = 0; *done < count; ++*done) {
        const json_t *entry = json_array_get(value, *done);
        void *at = entries + *done * fields->size;
        set_unset(fields, at);
        pl_status status = pl_fields_are_bare(fields)
                               ? read_value(fields->list, entry, at)
                               : read_members(fields, entry, at);
        if (status != PL_OK) {
            pl_fields_close(fields, at);
            return pl_context(status, "%s: index %zu", name_of(field), *done);
        }
    }
    return PL_OK;
}

static pl_status read_value(const pl_field *field, const json_t *value,
                            void *to)
{
    void *at = pl_field_member(to, field->offset);
    if (field->or_null && json_is_null(value))
        return PL_OK;
    if (field->kind == PL_KIND_LIST)
        return read_list(field, value, to);
    if (field->kind != PL_KIND_OBJECT)
        return read_scalar(field, value, at);
    pl_status status = read_members(field->fields, value, at);
    return status == PL_OK ? PL_OK : pl_context(status, "%s", name_of(field));
}

static pl_status read_member(const pl_field *field, const json_t *json,
                             void *to)
{
    if (field->kind == PL_KIND_INLINE)
        return read_members(field->fields, json,
                            pl_field_member(to, field->offset));
    const json_t *value = json_object_get(json, field->name);
    bool null = field->or_null && json_is_null(value);
    if (value != NULL && field->when == PL_WHEN_GIVEN && !null)
        *(bool *)pl_field_member(to, field->given) = true;
    if (value != NULL)
        return read_value(field, value, to);
    return field->when == PL_WHEN_ALWAYS
               ? PL_FAIL(PL_FORMAT, "%s: missing", field->name)
               : PL_OK;
}

static pl_status read_members(const pl_fields *fields, const json_t *json,
                              void *to)
{
    if (!json_is_object(json))
        return PL_FAIL(PL_FORMAT, "expected an object, found %s",
                       pl_json_kind(as_ours(json)));
    for (size_t i = 0; i < fields->count; i++)
        PL_TRY(read_member(&fields->list[i], json, to));
    return PL_OK;
}

void pl_fields_clear(const pl_fields *fields, void *of)
{
    memset(of, 0, fields->size);
    set_unset(fields, of);
}

pl_status pl_fields_read(const pl_fields *fields, const pl_json *json, void *to)
{
    pl_fields_clear(fields, to);
    pl_status status = read_members(fields, as_theirs(json), to);
    if (status != PL_OK)
        pl_fields_close(fields, to);
    return status;
}

/* Does the struct point into the JSON it was read from? */
static bool borrows(const pl_fields *fields)
{
    for (size_t i = 0; i < fields->count; i++) {
        const pl_field *field = &fields->list[i];
        if (field->kind == PL_KIND_TEXT || field->kind == PL_KIND_ANY_OBJECT ||
            field->kind == PL_KIND_ANY_LIST ||
            (field->fields != NULL && borrows(field->fields)))
            return true;
    }
    return false;
}

pl_status pl_fields_parse(const pl_fields *fields, const char *text,
                          size_t bytes, const char *what, void *to)
{
    pl_json *json;
    PL_ASSERT(!borrows(fields));
    PL_TRY(pl_json_parse(&json, text, bytes, what));
    pl_status status = pl_fields_read(fields, json, to);
    pl_json_free(json);
    return status == PL_OK ? PL_OK : pl_context(status, "%s", what);
}

static void free_member(const pl_field *field, void *of)
{
    void *at = pl_field_member(of, field->offset);
    if (field->kind == PL_KIND_OWN_TEXT)
        pl_mem_free(*(char **)at);
    if (field->kind == PL_KIND_OBJECT || field->kind == PL_KIND_INLINE)
        pl_fields_close(field->fields, at);
    if (field->kind != PL_KIND_LIST)
        return;
    char *entries = *(char **)at;
    size_t count = *(size_t *)pl_field_member(of, field->count);
    for (size_t i = 0; i < count; i++)
        pl_fields_close(field->fields, entries + i * field->fields->size);
    pl_mem_free(entries);
}

void pl_fields_close(const pl_fields *fields, void *of)
{
    for (size_t i = 0; i < fields->count; i++)
        free_member(&fields->list[i], of);
    memset(of, 0, fields->size);
}

double pl_fields_number(const pl_fields *fields, const void *of,
                        const char *name)
{
    for (size_t i = 0; i < fields->count; i++) {
        const pl_field *field = &fields->list[i];
        const void *at = pl_field_member(of, field->offset);
        bool found = field->name != NULL && strcmp(field->name, name) == 0;
        if (field->kind == PL_KIND_INLINE) {
            double value = pl_fields_number(field->fields, at, name);
            if (!isnan(value))
                return value;
        } else if (found && field->or_null && pl_field_is_unset(field, at)) {
            return NAN;
        } else if (found && field->kind == PL_KIND_INT) {
            return (double)pl_field_int(field, at);
        } else if (found && field->kind == PL_KIND_REAL) {
            return *(const double *)at;
        }
    }
    return NAN;
}

/* fields_write.c - a struct to JSON, field by field in the order of its table.
 *
 * Decides what is left out (pl_field_when) and what becomes null. */
#include "base/json/fields.h"

#include "base/assert.h"
#include "base/json/fields_priv.h"
#include "base/json/json_priv.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static pl_status make_value(const pl_field *field, const void *from,
                            json_t **out);

static json_t *make_hex(const pl_field *field, const void *at)
{
    char digits[PL_FIELD_HEX_ROOM];
    uint64_t value = pl_field_hex(field, at);
    snprintf(digits, sizeof digits, "%0*" PRIx64, (int)(2 * field->size),
             value);
    return json_string(digits);
}

static json_t *make_choice(const pl_field *field, int value)
{
    int count = 0;
    while (field->choices[count] != NULL)
        count++;
    PL_ASSERT(value >= 0 && value < count);
    return json_string(field->choices[value]);
}

static json_t *make_scalar(const pl_field *field, const void *at)
{
    if (field->or_null && pl_field_is_unset(field, at))
        return json_null();
    switch (field->kind) {
    case PL_KIND_BOOL:
        return json_boolean(*(const bool *)at);
    case PL_KIND_INT:
        return json_integer(pl_field_int(field, at));
    case PL_KIND_REAL:
        return isfinite(*(const double *)at) ? json_real(*(const double *)at)
                                             : json_null();
    case PL_KIND_HEX:
        return make_hex(field, at);
    case PL_KIND_CHARS:
        return json_string(at);
    case PL_KIND_TEXT:
    case PL_KIND_OWN_TEXT:
        PL_ASSERT(*(const char *const *)at != NULL);
        return json_string(*(const char *const *)at);
    case PL_KIND_CHOICE:
        return make_choice(field, *(const int *)at);
    case PL_KIND_ANY_OBJECT:
    case PL_KIND_ANY_LIST:
        PL_ASSERT(*(const pl_json *const *)at != NULL);
        return json_deep_copy(as_theirs(*(const pl_json *const *)at));
    case PL_KIND_OBJECT:
    case PL_KIND_INLINE:
    case PL_KIND_LIST:
        break;
    }
    PL_ASSERT(false);
    return NULL;
}

static pl_status make_object(const pl_fields *fields, const void *from,
                             json_t **out)
{
    pl_json *object;
    PL_TRY(pl_json_new_object(&object));
    pl_status status = pl_fields_add(fields, from, object);
    if (status != PL_OK) {
        pl_json_free(object);
        return status;
    }
    *out = as_theirs(object);
    return PL_OK;
}

static pl_status make_entry(const pl_fields *fields, const void *from,
                            json_t **out)
{
    return pl_fields_are_bare(fields) ? make_value(fields->list, from, out)
                                      : make_object(fields, from, out);
}

static pl_status make_list(const pl_field *field, const void *from,
                           json_t **out)
{
    const char *entries =
        *(const char *const *)pl_field_member(from, field->offset);
    size_t count = *(const size_t *)pl_field_member(from, field->count);
    pl_json *list;
    json_t *entry = NULL;
    PL_TRY(pl_json_new_array(&list));
    for (size_t i = 0; i < count; i++) {
        pl_status status = make_entry(
            field->fields, entries + i * field->fields->size, &entry);
        if (status == PL_OK)
            status = pl_json_append_take(list, as_ours(entry));
        if (status != PL_OK) {
            pl_json_free(list);
            return pl_context(status, "index %zu", i);
        }
    }
    *out = as_theirs(list);
    return PL_OK;
}

static pl_status make_value(const pl_field *field, const void *from,
                            json_t **out)
{
    const void *at = pl_field_member(from, field->offset);
    if (field->kind == PL_KIND_OBJECT)
        return make_object(field->fields, at, out);
    if (field->kind == PL_KIND_LIST)
        return make_list(field, from, out);
    pl_json_begin();
    *out = make_scalar(field, at);
    return pl_json_end(*out != NULL, field->name != NULL ? field->name : "");
}

static bool is_written(const pl_field *field, const void *from)
{
    if (field->when == PL_WHEN_GIVEN)
        return *(const bool *)pl_field_member(from, field->given);
    if (field->when != PL_WHEN_SET)
        return true;
    return field->kind == PL_KIND_LIST
               ? *(const size_t *)pl_field_member(from, field->count) > 0
               : !pl_field_is_unset(field,
                                    pl_field_member(from, field->offset));
}

pl_status pl_fields_add(const pl_fields *fields, const void *from,
                        pl_json *object)
{
    for (size_t i = 0; i < fields->count; i++) {
        const pl_field *field = &fields->list[i];
        json_t *value;
        if (!is_written(field, from)) {
            if (field->when == PL_WHEN_GIVEN && field->or_null)
                PL_TRY(pl_json_set_null(object, field->name));
            continue;
        }
        if (field->kind == PL_KIND_INLINE) {
            PL_TRY(pl_fields_add(field->fields,
                                 pl_field_member(from, field->offset), object));
            continue;
        }
        PL_TRY(make_value(field, from, &value));
        PL_TRY(pl_json_set_take(object, field->name, as_ours(value)));
    }
    return PL_OK;
}

pl_status pl_fields_write(const pl_fields *fields, const void *from,
                          pl_json **out)
{
    json_t *object;
    PL_TRY(make_object(fields, from, &object));
    *out = as_ours(object);
    return PL_OK;
}

pl_status pl_fields_text(const pl_fields *fields, const void *from, int indent,
                         char **out)
{
    pl_json *json;
    PL_TRY(pl_fields_write(fields, from, &json));
    pl_status status = pl_json_text(json, indent, out);
    pl_json_free(json);
    return status;
}

/* The only code that sees the JSON library: values are checked when read,
 * and its silent allocation failures are detected through our own allocator. */
#include "base/json/json.h"

#include "base/assert.h"
#include "base/file/file.h"
#include "base/json/json_priv.h"
#include "base/mem.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

/* The library does not always report that an allocation failed: its scanner
 * drops the character it could not store and continues.  So the allocator
 * remembers it, and the flag is checked even after a success. */
static _Thread_local bool out_of_memory;
static _Thread_local bool parsing;

static void *allocate(size_t bytes)
{
    void *memory = pl_mem_alloc(bytes, 1);
    if (memory != NULL)
        return memory;
    /* Without that character the scanner can run past the end of the text, so
     * the allocation is retried; the call fails nevertheless. */
    out_of_memory = true;
    return parsing ? pl_mem_alloc(bytes, 1) : NULL;
}

static void set_allocator(void)
{
    json_set_alloc_funcs(allocate, pl_mem_free);
}

void pl_json_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_allocator);
    out_of_memory = false;
}

pl_status pl_json_end(bool worked, const char *key)
{
    if (out_of_memory)
        return PL_FAIL(PL_NOMEM, "%s: out of memory", key);
    if (!worked)
        return PL_FAIL(PL_FORMAT, "%s: not UTF-8 text", key);
    return PL_OK;
}

pl_status pl_json_parse(pl_json **out, const char *text, size_t bytes,
                        const char *what)
{
    pl_json_begin();
    json_error_t error = { 0 };
    parsing = true;
    json_t *json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    parsing = false;
    if (out_of_memory) {
        json_decref(json);
        return PL_FAIL(PL_NOMEM, "%s: out of memory", what);
    }
    if (json == NULL)
        return PL_FAIL(PL_FORMAT, "%s: line %d, column %d: %s", what,
                       error.line, error.column, error.text);
    *out = as_ours(json);
    return PL_OK;
}

pl_status pl_json_read_file(pl_json **out, const char *path, size_t most)
{
    char *text;
    PL_TRY(pl_file_read_text(&text, path, most));
    pl_status status = pl_json_parse(out, text, strlen(text), path);
    pl_mem_free(text);
    return status;
}

static pl_status give(pl_json **out, json_t *json, const char *what)
{
    PL_TRY(pl_json_end(json != NULL, what));
    *out = as_ours(json);
    return PL_OK;
}

pl_status pl_json_new_object(pl_json **out)
{
    pl_json_begin();
    return give(out, json_object(), "JSON object");
}

pl_status pl_json_new_array(pl_json **out)
{
    pl_json_begin();
    return give(out, json_array(), "JSON array");
}

pl_status pl_json_copy(pl_json **out, const pl_json *json)
{
    pl_json_begin();
    return give(out, json_deep_copy(as_theirs(json)), "copy of JSON");
}

void pl_json_free(pl_json *json)
{
    json_decref(as_theirs(json));
}

/* Store a new value (NULL: creating it failed) under `key`. */
static pl_status set(pl_json *object, const char *key, json_t *value)
{
    PL_ASSERT(json_is_object(as_theirs(object)));
    bool worked = value != NULL &&
                  json_object_set_new(as_theirs(object), key, value) == 0;
    return pl_json_end(worked, key);
}

pl_status pl_json_set_text(pl_json *object, const char *key, const char *value)
{
    pl_json_begin();
    return set(object, key, json_string(value));
}

pl_status pl_json_set_int(pl_json *object, const char *key, int64_t value)
{
    pl_json_begin();
    return set(object, key, json_integer(value));
}

pl_status pl_json_set_real(pl_json *object, const char *key, double value)
{
    pl_json_begin();
    return set(object, key, isfinite(value) ? json_real(value) : json_null());
}

pl_status pl_json_set_bool(pl_json *object, const char *key, bool value)
{
    pl_json_begin();
    return set(object, key, json_boolean(value));
}

pl_status pl_json_set_null(pl_json *object, const char *key)
{
    pl_json_begin();
    return set(object, key, json_null());
}

pl_status pl_json_set_take(pl_json *object, const char *key, pl_json *value)
{
    PL_ASSERT(value != NULL && value != object);
    pl_json_begin();
    return set(object, key, as_theirs(value));
}

static pl_status append(pl_json *array, json_t *value)
{
    PL_ASSERT(json_is_array(as_theirs(array)));
    bool worked =
        value != NULL && json_array_append_new(as_theirs(array), value) == 0;
    return pl_json_end(worked, "JSON array");
}

pl_status pl_json_append_take(pl_json *array, pl_json *value)
{
    PL_ASSERT(value != NULL && value != array);
    pl_json_begin();
    return append(array, as_theirs(value));
}

pl_status pl_json_append_int(pl_json *array, int64_t value)
{
    pl_json_begin();
    return append(array, json_integer(value));
}

pl_status pl_json_append_real(pl_json *array, double value)
{
    pl_json_begin();
    return append(array, isfinite(value) ? json_real(value) : json_null());
}

pl_status pl_json_append_text(pl_json *array, const char *value)
{
    pl_json_begin();
    return append(array, json_string(value));
}

static pl_status wrong_kind(const char *what, const char *expected,
                            const json_t *found)
{
    return PL_FAIL(PL_FORMAT, "%s: expected %s, found %s", what, expected,
                   pl_json_kind(as_ours(found)));
}

/* The member `key`, which must exist. */
static pl_status get(const json_t **out, const pl_json *object, const char *key)
{
    if (!json_is_object(as_theirs(object)))
        return wrong_kind(key, "an object around it", as_theirs(object));
    *out = json_object_get(as_theirs(object), key);
    return *out == NULL ? PL_FAIL(PL_FORMAT, "%s: missing", key) : PL_OK;
}

pl_status pl_json_get_text(const pl_json *object, const char *key,
                           const char **out)
{
    const json_t *value = NULL;
    PL_TRY(get(&value, object, key));
    return pl_json_as_text(as_ours(value), key, out);
}

static pl_status as_int(const json_t *value, const char *what, int64_t least,
                        int64_t most, int64_t *out)
{
    if (!json_is_integer(value))
        return wrong_kind(what, "an integer", value);
    int64_t number = json_integer_value(value);
    if (number < least || number > most)
        return PL_FAIL(PL_FORMAT, "%s: %lld is not in %lld .. %lld", what,
                       (long long)number, (long long)least, (long long)most);
    *out = number;
    return PL_OK;
}

pl_status pl_json_get_int(const pl_json *object, const char *key, int64_t least,
                          int64_t most, int64_t *out)
{
    const json_t *value = NULL;
    PL_TRY(get(&value, object, key));
    return as_int(value, key, least, most, out);
}

pl_status pl_json_get_real(const pl_json *object, const char *key, double *out)
{
    const json_t *value = NULL;
    PL_TRY(get(&value, object, key));
    if (!json_is_number(value))
        return wrong_kind(key, "a number", value);
    *out = json_number_value(value);
    return PL_OK;
}

pl_status pl_json_get_bool(const pl_json *object, const char *key, bool *out)
{
    const json_t *value = NULL;
    PL_TRY(get(&value, object, key));
    if (!json_is_boolean(value))
        return wrong_kind(key, "true or false", value);
    *out = json_is_true(value);
    return PL_OK;
}

pl_status pl_json_get_object(const pl_json *object, const char *key,
                             const pl_json **out)
{
    const json_t *value = NULL;
    PL_TRY(get(&value, object, key));
    if (!json_is_object(value))
        return wrong_kind(key, "an object", value);
    *out = as_ours(value);
    return PL_OK;
}

pl_status pl_json_get_array(const pl_json *object, const char *key,
                            const pl_json **out)
{
    const json_t *value = NULL;
    PL_TRY(get(&value, object, key));
    if (!json_is_array(value))
        return wrong_kind(key, "an array", value);
    *out = as_ours(value);
    return PL_OK;
}

bool pl_json_has(const pl_json *object, const char *key)
{
    return json_object_get(as_theirs(object), key) != NULL;
}

bool pl_json_equal(const pl_json *a, const pl_json *b)
{
    return json_equal(as_theirs(a), as_theirs(b)) != 0;
}

size_t pl_json_length(const pl_json *array_or_object)
{
    const json_t *json = as_theirs(array_or_object);
    return json_is_array(json) ? json_array_size(json) : json_object_size(json);
}

const pl_json *pl_json_at(const pl_json *array, size_t index)
{
    return as_ours(json_array_get(as_theirs(array), index));
}

pl_status pl_json_int_at(const pl_json *array, size_t index, int64_t least,
                         int64_t most, int64_t *out)
{
    const json_t *value = json_array_get(as_theirs(array), index);
    pl_status status = value == NULL
                           ? PL_FAIL(PL_FORMAT, "missing")
                           : as_int(value, "number", least, most, out);
    return status == PL_OK ? PL_OK : pl_context(status, "index %zu", index);
}

/* The index-th place in an object, or NULL. */
static void *iterator_at(const pl_json *object, size_t index)
{
    json_t *json = as_theirs(object);
    void *at = json_object_iter(json);
    while (at != NULL && index-- > 0)
        at = json_object_iter_next(json, at);
    return at;
}

const char *pl_json_key_at(const pl_json *object, size_t index)
{
    void *at = iterator_at(object, index);
    return at == NULL ? NULL : json_object_iter_key(at);
}

const pl_json *pl_json_value_at(const pl_json *object, size_t index)
{
    void *at = iterator_at(object, index);
    return at == NULL ? NULL : as_ours(json_object_iter_value(at));
}

bool pl_json_next(const pl_json *object, void **walk, const char **key,
                  const pl_json **value)
{
    json_t *json = as_theirs(object);
    *walk = *walk == NULL ? json_object_iter(json)
                          : json_object_iter_next(json, *walk);
    if (*walk == NULL)
        return false;
    *key = json_object_iter_key(*walk);
    *value = as_ours(json_object_iter_value(*walk));
    return true;
}

pl_status pl_json_as_text(const pl_json *json, const char *what,
                          const char **out)
{
    if (!json_is_string(as_theirs(json)))
        return wrong_kind(what, "a string", as_theirs(json));
    *out = json_string_value(as_theirs(json));
    return PL_OK;
}

const char *pl_json_kind(const pl_json *json)
{
    if (json == NULL)
        return "nothing";
    switch (json_typeof(as_theirs(json))) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a real number";
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    case JSON_NULL:
        return "null";
    }
    return "something else";
}

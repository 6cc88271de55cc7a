/* json.h - JSON values: read with checks, written in order.
 *
 * A thin wrapper of the JSON library, which no other module uses.  Objects keep
 * the order of insertion.  Readers fail with a sentence that names the path:
 * "manifest.json: step: expected an integer, found a string".
 *
 * Threads: a value belongs to one thread at a time. */
#ifndef PL_BASE_JSON_JSON_H
#define PL_BASE_JSON_JSON_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct pl_json pl_json;

/* Parse `bytes` of text, an object or an array; `what` (a file name) goes into
 * the message.  PL_FORMAT also for a duplicate key, a NUL inside a string,
 * nesting deeper than 2048, and integers beyond 64 bits. */
pl_status pl_json_parse(pl_json **out, const char *text, size_t bytes,
                        const char *what) PL_MUST_CHECK;
pl_status pl_json_read_file(pl_json **out, const char *path,
                            size_t most) PL_MUST_CHECK;

pl_status pl_json_new_object(pl_json **out) PL_MUST_CHECK;
pl_status pl_json_new_array(pl_json **out) PL_MUST_CHECK;
pl_status pl_json_copy(pl_json **out, const pl_json *json) PL_MUST_CHECK;
void pl_json_free(pl_json *json); /* NULL is fine */

/* Set a member of an object, replacing an earlier value; a number that is not
 * finite becomes null.  PL_FORMAT when a text is not UTF-8. */
pl_status pl_json_set_text(pl_json *object, const char *key,
                           const char *value) PL_MUST_CHECK;
pl_status pl_json_set_int(pl_json *object, const char *key,
                          int64_t value) PL_MUST_CHECK;
pl_status pl_json_set_real(pl_json *object, const char *key,
                           double value) PL_MUST_CHECK;
pl_status pl_json_set_bool(pl_json *object, const char *key,
                           bool value) PL_MUST_CHECK;
pl_status pl_json_set_null(pl_json *object, const char *key) PL_MUST_CHECK;
/* The object (or array) takes ownership of `value`, also on failure. */
pl_status pl_json_set_take(pl_json *object, const char *key,
                           pl_json *value) PL_MUST_CHECK;
pl_status pl_json_append_take(pl_json *array, pl_json *value) PL_MUST_CHECK;
pl_status pl_json_append_int(pl_json *array, int64_t value) PL_MUST_CHECK;
pl_status pl_json_append_real(pl_json *array, double value) PL_MUST_CHECK;
pl_status pl_json_append_text(pl_json *array, const char *value) PL_MUST_CHECK;

/* Read from an object; PL_FORMAT when the key is missing or of another type.
 * Returned values are borrowed until the object is freed. */
pl_status pl_json_get_text(const pl_json *object, const char *key,
                           const char **out) PL_MUST_CHECK;
pl_status pl_json_get_int(const pl_json *object, const char *key, int64_t least,
                          int64_t most, int64_t *out) PL_MUST_CHECK;
pl_status pl_json_get_real(const pl_json *object, const char *key,
                           double *out) PL_MUST_CHECK;
pl_status pl_json_get_bool(const pl_json *object, const char *key,
                           bool *out) PL_MUST_CHECK;
pl_status pl_json_get_object(const pl_json *object, const char *key,
                             const pl_json **out) PL_MUST_CHECK;
pl_status pl_json_get_array(const pl_json *object, const char *key,
                            const pl_json **out) PL_MUST_CHECK;
bool pl_json_has(const pl_json *object, const char *key);
bool pl_json_equal(const pl_json *a, const pl_json *b);

size_t pl_json_length(const pl_json *array_or_object);
const pl_json *pl_json_at(const pl_json *array, size_t index);
pl_status pl_json_int_at(const pl_json *array, size_t index, int64_t least,
                         int64_t most, int64_t *out) PL_MUST_CHECK;
/* The index-th member of an object in order; takes `index` steps. */
const char *pl_json_key_at(const pl_json *object, size_t index);
const pl_json *pl_json_value_at(const pl_json *object, size_t index);
/* Walk an object of any size: *walk starts as NULL, false is the end. */
bool pl_json_next(const pl_json *object, void **walk, const char **key,
                  const pl_json **value);
/* The value as text, or PL_FORMAT; `what` names it in the message. */
pl_status pl_json_as_text(const pl_json *json, const char *what,
                          const char **out) PL_MUST_CHECK;
/* "an object", "an array", "a string", ...: for messages. */
const char *pl_json_kind(const pl_json *json);

/* As text; the caller frees *out (pl_mem_free).  indent 0: one line without
 * blanks.  Real numbers get the fewest digits that read back the same and
 * always a point or an exponent, so the same value gives the same bytes. */
pl_status pl_json_text(const pl_json *json, int indent,
                       char **out) PL_MUST_CHECK;
/* Write it as one line of such text; check ferror(file) for write errors. */
pl_status pl_json_print(const pl_json *json, FILE *file) PL_MUST_CHECK;

#endif

/* json_priv.h - what json.c and json_text.c share: the library's own type.
 *
 * Threads: as in json.h. */
#ifndef PL_BASE_JSON_JSON_PRIV_H
#define PL_BASE_JSON_JSON_PRIV_H

#include "base/json/json.h"

#include <jansson.h>

/* A pl_json is the library's json_t under another name. */
static inline json_t *as_theirs(const pl_json *json)
{
    return (json_t *)json;
}

static inline pl_json *as_ours(const json_t *json)
{
    return (pl_json *)json;
}

/* Around every call of the library that may allocate.  pl_json_end returns
 * PL_NOMEM when an allocation failed in between, whatever the library reports,
 * and PL_FORMAT when it only refused the text under `key`. */
void pl_json_begin(void);
pl_status pl_json_end(bool worked, const char *key) PL_MUST_CHECK;

#endif

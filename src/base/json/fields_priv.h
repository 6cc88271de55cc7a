/* fields_priv.h - what the two directions of a field table share.
 *
 * Threads: as in fields.h. */
#ifndef PL_BASE_JSON_FIELDS_PRIV_H
#define PL_BASE_JSON_FIELDS_PRIV_H

#include "base/json/fields.h"

#define PL_FIELD_HEX_ROOM 17 /* 16 digits */

static inline void *pl_field_member(const void *from, size_t offset)
{
    return (char *)from + offset;
}

static inline int64_t pl_field_int(const pl_field *field, const void *at)
{
    return field->size == sizeof(int32_t) ? *(const int32_t *)at
                                          : *(const int64_t *)at;
}

static inline uint64_t pl_field_hex(const pl_field *field, const void *at)
{
    return field->size == sizeof(uint32_t) ? *(const uint32_t *)at
                                           : *(const uint64_t *)at;
}

/* A table whose only field has no name: its struct is a bare value. */
static inline bool pl_fields_are_bare(const pl_fields *fields)
{
    return fields->count == 1 && fields->list[0].name == NULL &&
           fields->list[0].kind != PL_KIND_INLINE;
}

/* Does the member have the value of a missing field?  Not for a LIST. */
bool pl_field_is_unset(const pl_field *field, const void *at);

#endif

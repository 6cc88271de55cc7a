/* field.h - read protocol buffer messages, field by field.
 *
 * Threads: any. */
#ifndef PL_PROTO_FIELD_H
#define PL_PROTO_FIELD_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stdint.h>

/* Wire types. */
#define PL_PROTO_VARINT  0
#define PL_PROTO_FIXED64 1
#define PL_PROTO_LENGTH  2
#define PL_PROTO_FIXED32 5

/* The rest of a message. */
typedef struct pl_proto_span {
    const uint8_t *at, *end;
} pl_proto_span;

/* A field: its number, wire type, value of a VARINT, bytes of all others. */
typedef struct pl_proto_field {
    uint64_t number;
    uint64_t value;
    unsigned wire;
    pl_proto_span body;
} pl_proto_field;

/* A varint of more than one byte; false when the message ends within it, or it
 * has more than 64 bits. */
bool pl_proto_long(pl_proto_span *in, uint64_t *out);

/* Inline, so that the compiler sees the status (see PL_FAIL). */
static inline pl_status pl_proto_cut_short(void)
{
    return PL_FAIL(PL_FORMAT, "the message ends inside a field");
}

/* Fast path: most are tags and lengths of one byte. */
static inline bool pl_proto_varint(pl_proto_span *in, uint64_t *out)
{
    if (in->at < in->end && *in->at < 0x80) {
        *out = *in->at++;
        return true;
    }
    return pl_proto_long(in, out);
}

static inline PL_MUST_CHECK pl_status pl_proto_next(pl_proto_span *in,
                                                    pl_proto_field *out)
{
    uint64_t tag, length = 0;
    if (!pl_proto_varint(in, &tag))
        return pl_proto_cut_short();
    out->number = tag >> 3;
    out->wire = (unsigned)(tag & 7);
    out->body.at = in->at;
    switch (out->wire) {
    case PL_PROTO_VARINT:
        if (!pl_proto_varint(in, &out->value))
            return pl_proto_cut_short();
        break;
    case PL_PROTO_FIXED64:
        length = 8;
        break;
    case PL_PROTO_FIXED32:
        length = 4;
        break;
    case PL_PROTO_LENGTH:
        if (!pl_proto_varint(in, &length))
            return pl_proto_cut_short();
        out->body.at = in->at;
        break;
    default:
        return PL_FAIL(PL_FORMAT, "wire type %u, expected 0, 1, 2 or 5",
                       out->wire);
    }
    if (out->number == 0 || length > (uint64_t)(in->end - in->at))
        return pl_proto_cut_short();
    in->at += length;
    out->body.end = in->at;
    return PL_OK;
}

static inline bool pl_proto_holds(const pl_proto_field *f, uint64_t number)
{
    return f->wire == PL_PROTO_LENGTH && f->number == number;
}

#endif

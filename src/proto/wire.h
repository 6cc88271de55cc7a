/* wire.h - write protocol buffer messages, field by field.
 *
 * A message grows in one buffer that is used again for the next one.  Lengths
 * are as short as they can be, so the bytes are those the protocol buffer
 * libraries write when fields are put in the order of their numbers.
 *
 * What fails for want of memory is remembered: the calls after it do nothing,
 * and pl_wire_status tells.
 *
 * Threads: one. */
#ifndef PL_PROTO_WIRE_H
#define PL_PROTO_WIRE_H

#include "paceline/base.h"

typedef struct pl_wire {
    uint8_t *data; /* the message so far; NULL: nothing was put */
    size_t bytes;
    size_t room;
    pl_status status;
} pl_wire;

void pl_wire_close(pl_wire *wire); /* a zeroed one is fine */
void pl_wire_clear(pl_wire *wire); /* empty, with the memory kept */
/* PL_OK, or PL_NOMEM with a message. */
pl_status pl_wire_status(const pl_wire *wire) PL_MUST_CHECK;

/* int32, int64, bool, enum */
void pl_wire_int(pl_wire *wire, unsigned field, int64_t value);
void pl_wire_float(pl_wire *wire, unsigned field, float value);
void pl_wire_double(pl_wire *wire, unsigned field, double value);
void pl_wire_text(pl_wire *wire, unsigned field, const char *text);
/* A packed list. */
void pl_wire_doubles(pl_wire *wire, unsigned field, const double *values,
                     size_t count);

/* A message inside: put its fields between the two; `begin` gives what `end`
 * wants. */
size_t pl_wire_begin(pl_wire *wire, unsigned field);
void pl_wire_end(pl_wire *wire, size_t begin);

/* Leave room for what is no field: the frame around a message. */
void pl_wire_skip(pl_wire *wire, size_t bytes);

#endif

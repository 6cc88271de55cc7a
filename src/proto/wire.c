#include "proto/wire.h"

#include "base/bytes.h"
#include "base/mem.h"

#include <string.h>

#define ROOM_FIRST 256

/* Wire types. */
enum {
    VARINT = 0,
    FIXED64 = 1,
    LENGTH = 2,
    FIXED32 = 5
};

void pl_wire_close(pl_wire *wire)
{
    pl_mem_free(wire->data);
    *wire = (pl_wire) { 0 };
}

void pl_wire_clear(pl_wire *wire)
{
    wire->bytes = 0;
    wire->status = PL_OK;
}

pl_status pl_wire_status(const pl_wire *wire)
{
    return wire->status;
}

/* Room for `bytes` more, which are the message's from here on; NULL when
 * there is none. */
static uint8_t *grow(pl_wire *wire, size_t bytes)
{
    if (wire->status != PL_OK)
        return NULL;
    if (bytes > wire->room - wire->bytes) {
        size_t room = wire->room > 0 ? 2 * wire->room : ROOM_FIRST;
        while (room - wire->bytes < bytes)
            room *= 2;
        uint8_t *data = pl_mem_resize(wire->data, room, 1);
        wire->status = pl_mem_check(data, room, 1);
        if (wire->status != PL_OK)
            return NULL;
        wire->data = data;
        wire->room = room;
    }
    uint8_t *at = wire->data + wire->bytes;
    wire->bytes += bytes;
    return at;
}

static void put_varint(pl_wire *wire, uint64_t value)
{
    uint8_t text[PL_VARINT_MOST];
    size_t bytes = pl_put_varint(text, value);
    uint8_t *at = grow(wire, bytes);
    if (at != NULL)
        memcpy(at, text, bytes);
}

static void put_key(pl_wire *wire, unsigned field, unsigned type)
{
    put_varint(wire, (uint64_t)field << 3 | type);
}

void pl_wire_int(pl_wire *wire, unsigned field, int64_t value)
{
    put_key(wire, field, VARINT);
    put_varint(wire, (uint64_t)value);
}

void pl_wire_float(pl_wire *wire, unsigned field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(wire, field, FIXED32);
    uint8_t *at = grow(wire, sizeof bits);
    if (at != NULL)
        pl_put_u32(at, bits);
}

static void put_double(pl_wire *wire, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint8_t *at = grow(wire, sizeof bits);
    if (at != NULL)
        pl_put_u64(at, bits);
}

void pl_wire_double(pl_wire *wire, unsigned field, double value)
{
    put_key(wire, field, FIXED64);
    put_double(wire, value);
}

void pl_wire_text(pl_wire *wire, unsigned field, const char *text)
{
    size_t bytes = strlen(text);
    put_key(wire, field, LENGTH);
    put_varint(wire, bytes);
    uint8_t *at = grow(wire, bytes);
    if (at != NULL)
        for (size_t i = 0; i < bytes; i++) /* not a text any more: no NUL */
            at[i] = (uint8_t)text[i];
}

void pl_wire_doubles(pl_wire *wire, unsigned field, const double *values,
                     size_t count)
{
    put_key(wire, field, LENGTH);
    put_varint(wire, count * sizeof *values);
    for (size_t i = 0; i < count; i++)
        put_double(wire, values[i]);
}

size_t pl_wire_begin(pl_wire *wire, unsigned field)
{
    put_key(wire, field, LENGTH);
    return wire->bytes;
}

/* The length goes before what it is the length of, which moves. */
void pl_wire_end(pl_wire *wire, size_t begin)
{
    uint8_t text[PL_VARINT_MOST];
    size_t inside = wire->bytes - begin;
    size_t bytes = pl_put_varint(text, inside);
    if (grow(wire, bytes) == NULL)
        return;
    memmove(wire->data + begin + bytes, wire->data + begin, inside);
    memcpy(wire->data + begin, text, bytes);
}

void pl_wire_skip(pl_wire *wire, size_t bytes)
{
    uint8_t *at = grow(wire, bytes);
    if (at != NULL)
        memset(at, 0, bytes);
}

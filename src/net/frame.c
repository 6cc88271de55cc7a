/* The bytes of the header of every message: the offset of each field, and which
 * headers are refused (docs/formats/wire.md).  Payloads are opaque here. */
#include "net/frame.h"

#include "base/assert.h"

#include <stdbool.h>
#include <string.h>

static const uint8_t magic[4] = { 'P', 'L', 'N', '1' };

/* The offset of each field; docs/formats/wire.md has the same table. */
enum {
    AT_VERSION = 4,
    AT_KIND = 6,
    AT_FLAGS = 7,
    AT_GENERATION = 8,
    AT_INCARNATION = 12,
    AT_SEQUENCE = 16,
    AT_STEP = 24,
    AT_FIRST = 32,
    AT_COUNT = 40,
    AT_KEY_COUNT = 44,
    AT_VALUE = 48,
    AT_PAYLOAD_BYTES = 64,
    AT_RESERVED = 68,
};

static void put(uint8_t *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *in, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)in[i] << 8 * i;
    return value;
}

static uint32_t get32(const uint8_t *in)
{
    return (uint32_t)get(in, 4);
}

static int64_t get_signed(const uint8_t *in)
{
    return (int64_t)get(in, 8);
}

const char *pl_frame_kind_text(pl_frame_kind kind)
{
#define KIND_TEXT(name, text) text,
    static const char *const texts[] = { "none",
                                         PL_FRAME_KIND_LIST(KIND_TEXT) };
#undef KIND_TEXT
    return kind < PL_FRAME_KINDS ? texts[kind] : "unknown";
}

void pl_frame_write(const pl_frame *frame, uint8_t out[PL_FRAME_BYTES])
{
    PL_ASSERT(frame->kind > PL_FRAME_NONE && frame->kind < PL_FRAME_KINDS);
    memcpy(out, magic, sizeof magic);
    put(out + AT_VERSION, PL_FRAME_VERSION, 2);
    put(out + AT_KIND, frame->kind, 1);
    put(out + AT_FLAGS, frame->flags, 1);
    put(out + AT_GENERATION, frame->generation, 4);
    put(out + AT_INCARNATION, frame->incarnation, 4);
    put(out + AT_SEQUENCE, frame->sequence, 8);
    put(out + AT_STEP, (uint64_t)frame->step, 8);
    put(out + AT_FIRST, (uint64_t)frame->first, 8);
    put(out + AT_COUNT, frame->count, 4);
    put(out + AT_KEY_COUNT, frame->key_count, 4);
    put(out + AT_VALUE, (uint64_t)frame->value[0], 8);
    put(out + AT_VALUE + 8, (uint64_t)frame->value[1], 8);
    put(out + AT_PAYLOAD_BYTES, frame->payload_bytes, 4);
    put(out + AT_RESERVED, 0, 4);
}

/* Is this a header of our version at all? */
static pl_status check_head(const uint8_t *in, size_t size)
{
    if (size < sizeof magic + 2 || memcmp(in, magic, sizeof magic) != 0)
        return PL_FAIL(PL_FORMAT,
                       "message of %zu bytes does not begin with PLN1", size);
    unsigned version = (unsigned)get(in + AT_VERSION, 2);
    if (version != PL_FRAME_VERSION)
        return PL_FAIL(PL_UNSUPPORTED,
                       "message in version %u of the protocol, but this "
                       "program uses version %d: run the same paceline "
                       "everywhere",
                       version, PL_FRAME_VERSION);
    if (size != PL_FRAME_BYTES)
        return PL_FAIL(PL_FORMAT, "message header of %zu bytes, expected %d",
                       size, PL_FRAME_BYTES);
    return PL_OK;
}

/* Does the length match the bytes received?  The payload's content is checked
 * by the decoder of its kind. */
static pl_status check_size(const pl_frame *frame, size_t payload_bytes)
{
    const char *kind = pl_frame_kind_text(frame->kind);
    if (frame->payload_bytes != payload_bytes)
        return PL_FAIL(PL_FORMAT,
                       "%s message announces %u bytes of payload, but has %zu",
                       kind, (unsigned)frame->payload_bytes, payload_bytes);
    if (payload_bytes > PL_FRAME_PAYLOAD_MAX)
        return PL_FAIL(PL_FORMAT,
                       "%s message with %zu bytes of payload, at most %u", kind,
                       payload_bytes, (unsigned)PL_FRAME_PAYLOAD_MAX);
    return PL_OK;
}

pl_status pl_frame_read(pl_frame *out, const void *bytes, size_t size,
                        size_t payload_bytes)
{
    const uint8_t *in = bytes;
    PL_TRY(check_head(in, size));
    unsigned kind = in[AT_KIND];
    if (kind == PL_FRAME_NONE || kind >= PL_FRAME_KINDS)
        return PL_FAIL(PL_FORMAT, "message of kind %u, expected 1 to %d", kind,
                       PL_FRAME_KINDS - 1);
    if (get(in + AT_RESERVED, 4) != 0)
        return PL_FAIL(PL_FORMAT, "reserved bytes of a message are not zero");
    pl_frame frame = {
        .kind = (pl_frame_kind)kind,
        .flags = in[AT_FLAGS],
        .generation = get32(in + AT_GENERATION),
        .incarnation = get32(in + AT_INCARNATION),
        .sequence = get(in + AT_SEQUENCE, 8),
        .step = get_signed(in + AT_STEP),
        .first = get_signed(in + AT_FIRST),
        .count = get32(in + AT_COUNT),
        .key_count = get32(in + AT_KEY_COUNT),
        .value = { get_signed(in + AT_VALUE), get_signed(in + AT_VALUE + 8) },
        .payload_bytes = get32(in + AT_PAYLOAD_BYTES),
    };
    PL_TRY(check_size(&frame, payload_bytes));
    *out = frame;
    return PL_OK;
}

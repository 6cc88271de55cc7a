/* Where a message begins and ends, and where its bytes are put.
 *
 * S1  `start` is a multiple of 8 whenever a message or record begins there, so
 *     payloads in the input are aligned: all lengths on the wire are padded.
 * S2  The input holds at most twice what one record or small message needs; a
 *     body grows by doubling, after its bytes have arrived. */
#include "net/tcp/decoder.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"

#include <stdbool.h>
#include <string.h>

#define INPUT_FIRST ((size_t)8 << 10)
#define INPUT_MOST  ((size_t)256 << 10)
#define BODY_FIRST  ((size_t)64 << 10)
#define SPARE_LARGE ((size_t)4 << 20)
#define TOTAL_MOST  ((size_t)PL_FRAME_BYTES + PL_FRAME_PAYLOAD_MAX)
/* Messages up to this length are delivered from the input. */
#define INLINE_MOST (PL_SMALL_BYTES + PL_FRAME_BYTES)

static const uint8_t message_magic[4] = { 'P', 'L', 'M', '1' };
static const uint8_t record_magic[4] = { 'P', 'L', 'R', '1' };

void pl_decoder_message_prefix(uint8_t out[PL_PREFIX_BYTES], size_t bytes)
{
    memcpy(out, message_magic, sizeof message_magic);
    pl_put_u32(out + 4, (uint32_t)bytes);
}

void pl_decoder_record_prefix(uint8_t out[PL_PREFIX_BYTES], size_t bytes)
{
    memcpy(out, record_magic, sizeof record_magic);
    pl_put_u32(out + 4, (uint32_t)bytes);
}

void pl_spares_give(pl_spares *spares, pl_body *body)
{
    /* Only the first may be large, so that not all hold 64 MB unused. */
    size_t smallest = 0;
    size_t places = body->bytes > SPARE_LARGE ? 1 : PL_SPARES;
    for (size_t i = 1; i < places; i++)
        if (spares->bodies[i].bytes < spares->bodies[smallest].bytes)
            smallest = i;
    pl_body *place = &spares->bodies[smallest];
    if (body->bytes > place->bytes) {
        pl_body other = *place;
        *place = *body;
        *body = other;
    }
    pl_mem_free(body->memory);
    *body = (pl_body) { NULL, 0 };
}

void pl_spares_close(pl_spares *spares)
{
    for (size_t i = 0; i < PL_SPARES; i++)
        pl_mem_free(spares->bodies[i].memory);
    *spares = (pl_spares) { .bodies = { { NULL, 0 } } };
}

/* The smallest that suffices, otherwise the largest. */
static pl_body take_spare(pl_spares *spares, size_t bytes)
{
    pl_body *best = &spares->bodies[0];
    for (size_t i = 1; i < PL_SPARES; i++) {
        pl_body *other = &spares->bodies[i];
        bool enough = other->bytes >= bytes;
        if (best->bytes < bytes ? other->bytes > best->bytes
                                : enough && other->bytes < best->bytes)
            best = other;
    }
    pl_body body = *best;
    *best = (pl_body) { NULL, 0 };
    return body;
}

/* Make room in the body for at least one more byte, or `least`. */
static pl_status grow_body(pl_decoder *s, size_t least)
{
    size_t bytes = s->body.bytes;
    while (bytes < s->arrived + least)
        bytes = bytes == 0 ? BODY_FIRST : 2 * bytes;
    if (bytes == s->body.bytes)
        return PL_OK;
    uint8_t *memory = pl_mem_resize(s->body.memory, bytes, 1);
    PL_TRY(pl_mem_check(memory, bytes, 1));
    s->body = (pl_body) { memory, bytes };
    return PL_OK;
}

void pl_decoder_init(pl_decoder *s, pl_spares *spares, pl_cipher *cipher)
{
    *s = (pl_decoder) { .spares = spares, .cipher = cipher };
}

void pl_decoder_close(pl_decoder *s)
{
    pl_mem_free(s->input);
    pl_mem_free(s->body.memory);
    pl_cipher_free(s->cipher);
    *s = (pl_decoder) { .spares = s->spares };
}

/* Room for `bytes` from `start` on. */
static pl_status need_input(pl_decoder *s, size_t bytes)
{
    if (s->start == s->end)
        s->start = s->end = 0;
    bool wider = s->filled && s->size < INPUT_MOST;
    if (s->start + bytes <= s->size && s->end < s->size && !wider)
        return PL_OK;
    if (s->start > 0) {
        memmove(s->input, s->input + s->start, s->end - s->start);
        s->end -= s->start;
        s->start = 0;
    }
    size_t size = s->size == 0 ? INPUT_FIRST : s->size;
    while (size < bytes || size == s->end || (wider && size == s->size))
        size *= 2;
    PL_ASSERT(size <= INPUT_MOST);
    s->filled = false;
    if (size == s->size)
        return PL_OK;
    PL_TRY(PL_RESIZE(s->input, size));
    s->size = size;
    return PL_OK;
}

/* Bytes from `start` that the next step needs, as far as they are known. */
static size_t needed(const pl_decoder *s)
{
    size_t have = s->end - s->start;
    if (have < PL_PREFIX_BYTES)
        return PL_HEAD_BYTES;
    size_t bytes = pl_get_u32(s->input + s->start + 4);
    if (s->cipher != NULL)
        return PL_PREFIX_BYTES + bytes + PL_CIPHER_TAG;
    return bytes <= INLINE_MOST ? PL_PREFIX_BYTES + PL_PADDED(bytes)
                                : PL_HEAD_BYTES;
}

pl_status pl_decoder_room(pl_decoder *s, struct iovec room[2], int *count)
{
    *count = 0;
    bool body = s->expected > 0 && s->cipher == NULL;
    if (body) {
        PL_TRY(grow_body(s, 1));
        size_t left = s->expected - s->arrived;
        size_t fits = s->body.bytes - s->arrived;
        room[(*count)++] = (struct iovec) { s->body.memory + s->arrived,
                                            fits < left ? fits : left };
        if (fits < left)
            return PL_OK;
    }
    PL_TRY(need_input(s, body ? PL_HEAD_BYTES : needed(s)));
    room[(*count)++] = (struct iovec) { s->input + s->end, s->size - s->end };
    return PL_OK;
}

void pl_decoder_arrived(pl_decoder *s, size_t bytes)
{
    if (s->expected > 0 && s->cipher == NULL) {
        size_t left = s->expected - s->arrived;
        size_t fits = s->body.bytes - s->arrived;
        size_t into = fits < left ? fits : left;
        into = bytes < into ? bytes : into;
        s->arrived += into;
        bytes -= into;
    }
    s->end += bytes;
    s->filled = s->end == s->size;
}

/* The length that a prefix gives. */
static pl_status read_prefix(const uint8_t *prefix, const uint8_t magic[4],
                             size_t most, size_t *bytes)
{
    *bytes = pl_get_u32(prefix + 4);
    if (memcmp(prefix, magic, 4) != 0)
        return PL_FAIL(PL_FORMAT, "bytes that do not begin a message; the "
                                  "connection is closed");
    if (*bytes > most)
        return PL_FAIL(PL_FORMAT,
                       "a message of %zu bytes is announced, at most %zu "
                       "are taken; the connection is closed",
                       *bytes, most);
    return PL_OK;
}

/* Deliver a message that is complete at `at`. */
static void hand_out(pl_decoder_message *out, const uint8_t *at, size_t bytes)
{
    size_t head = bytes < PL_FRAME_BYTES ? bytes : PL_FRAME_BYTES;
    *out = (pl_decoder_message) { .head = at,
                                  .head_bytes = head,
                                  .payload = at + head,
                                  .payload_bytes = bytes - head };
}

/* Begin a body whose first `have` bytes are at `at`. */
static pl_status begin_body(pl_decoder *s, const uint8_t *head, size_t bytes,
                            const uint8_t *at, size_t have)
{
    memcpy(s->head, head, PL_FRAME_BYTES);
    s->payload_bytes = bytes - PL_FRAME_BYTES;
    s->expected = PL_PADDED(s->payload_bytes);
    s->arrived = 0;
    s->body = take_spare(s->spares, s->expected);
    PL_TRY(grow_body(s, have));
    if (have > 0)
        memcpy(s->body.memory, at, have);
    s->arrived = have;
    return PL_OK;
}

static void end_body(pl_decoder *s, pl_decoder_message *out)
{
    *out = (pl_decoder_message) { .head = s->head,
                                  .head_bytes = PL_FRAME_BYTES,
                                  .payload = s->body.memory,
                                  .payload_bytes = s->payload_bytes,
                                  .body = s->body };
    s->body = (pl_body) { NULL, 0 };
    s->expected = s->arrived = 0;
}

static pl_status next_plain(pl_decoder *s, pl_decoder_message *out)
{
    size_t bytes, have = s->end - s->start;
    if (s->expected == 0) {
        if (have < PL_PREFIX_BYTES)
            return PL_AGAIN;
        const uint8_t *at = s->input + s->start;
        PL_TRY(read_prefix(at, message_magic, TOTAL_MOST, &bytes));
        if (bytes <= INLINE_MOST) {
            if (have < PL_PREFIX_BYTES + PL_PADDED(bytes))
                return PL_AGAIN;
            hand_out(out, at + PL_PREFIX_BYTES, bytes);
            s->skip = PL_PREFIX_BYTES + PL_PADDED(bytes);
            return PL_OK;
        }
        if (have < PL_HEAD_BYTES)
            return PL_AGAIN;
        have -= PL_HEAD_BYTES;
        size_t all = PL_PADDED(bytes - PL_FRAME_BYTES);
        have = have < all ? have : all;
        PL_TRY(begin_body(s, at + PL_PREFIX_BYTES, bytes, at + PL_HEAD_BYTES,
                          have));
        s->start += PL_HEAD_BYTES + have;
    }
    if (s->arrived < s->expected)
        return PL_AGAIN;
    end_body(s, out);
    return PL_OK;
}

/* Open the record at `start` into `to`; PL_AGAIN: it is incomplete. */
static pl_status open_record(pl_decoder *s, size_t bytes, uint8_t *to)
{
    uint8_t *at = s->input + s->start, tag[PL_CIPHER_TAG];
    memcpy(tag, at + PL_PREFIX_BYTES + bytes, sizeof tag);
    if (!pl_cipher_begin(s->cipher, at, PL_PREFIX_BYTES, to) ||
        !pl_cipher_add(s->cipher, at + PL_PREFIX_BYTES, bytes) ||
        !pl_cipher_end(s->cipher, tag))
        return PL_FAIL(PL_FORMAT, "a record that this connection's key does "
                                  "not open; the connection is closed");
    return PL_OK;
}

/* A record that begins a message. */
static pl_status first_record(pl_decoder *s, size_t record,
                              pl_decoder_message *out)
{
    uint8_t *at = s->input + s->start + PL_PREFIX_BYTES;
    size_t bytes;
    PL_TRY(open_record(s, record, at));
    PL_TRY(read_prefix(at, message_magic, TOTAL_MOST, &bytes));
    size_t all = PL_PREFIX_BYTES + PL_PADDED(bytes);
    size_t whole = PL_PREFIX_BYTES + record + PL_CIPHER_TAG;
    if (record == all) {
        hand_out(out, at + PL_PREFIX_BYTES, bytes);
        s->skip = whole;
        return PL_OK;
    }
    if (record > all || record < PL_HEAD_BYTES)
        return PL_FAIL(PL_FORMAT,
                       "a record of %zu bytes for a message of %zu; the "
                       "connection is closed",
                       record, all);
    PL_TRY(begin_body(s, at + PL_PREFIX_BYTES, bytes, at + PL_HEAD_BYTES,
                      record - PL_HEAD_BYTES));
    s->start += whole;
    return PL_AGAIN;
}

static pl_status further_record(pl_decoder *s, size_t record,
                                pl_decoder_message *out)
{
    if (record > s->expected - s->arrived)
        return PL_FAIL(PL_FORMAT,
                       "a record of %zu bytes for the last %zu of a message; "
                       "the connection is closed",
                       record, s->expected - s->arrived);
    PL_TRY(grow_body(s, record));
    PL_TRY(open_record(s, record, s->body.memory + s->arrived));
    s->arrived += record;
    s->start += PL_PREFIX_BYTES + record + PL_CIPHER_TAG;
    if (s->arrived < s->expected)
        return PL_AGAIN;
    end_body(s, out);
    return PL_OK;
}

static pl_status next_sealed(pl_decoder *s, pl_decoder_message *out)
{
    for (;;) {
        size_t record, have = s->end - s->start;
        if (have < PL_PREFIX_BYTES)
            return PL_AGAIN;
        const uint8_t *at = s->input + s->start;
        PL_TRY(read_prefix(at, record_magic, PL_RECORD_BYTES, &record));
        if (record == 0 || record % 8 != 0)
            return PL_FAIL(PL_FORMAT,
                           "a record of %zu bytes; the connection is closed",
                           record);
        if (have < PL_PREFIX_BYTES + record + PL_CIPHER_TAG)
            return PL_AGAIN;
        pl_status status = s->expected == 0 ? first_record(s, record, out)
                                            : further_record(s, record, out);
        if (status != PL_AGAIN)
            return status;
    }
}

pl_status pl_decoder_next(pl_decoder *s, pl_decoder_message *out)
{
    s->start += s->skip;
    s->skip = 0;
    return s->cipher == NULL ? next_plain(s, out) : next_sealed(s, out);
}

bool pl_decoder_holds(const pl_decoder *s)
{
    size_t start = s->start + s->skip, have = s->end - start;
    if (have < PL_PREFIX_BYTES || (s->expected > 0 && s->cipher == NULL))
        return false;
    size_t bytes = pl_get_u32(s->input + start + 4);
    if (s->cipher != NULL)
        return bytes > PL_RECORD_BYTES ||
               have >= PL_PREFIX_BYTES + bytes + PL_CIPHER_TAG;
    if (bytes > INLINE_MOST)
        return have >= PL_HEAD_BYTES || bytes > TOTAL_MOST;
    return have >= PL_PREFIX_BYTES + PL_PADDED(bytes);
}

size_t pl_decoder_memory(const pl_decoder *s)
{
    return s->size + s->body.bytes;
}

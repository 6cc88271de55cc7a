/* decoder.h - decodes the bytes of a connection into messages.
 *
 * A message on the wire is a prefix of 8 bytes (magic, length), a frame header
 * and its payload, padded to a multiple of 8 bytes.  When encrypted it consists
 * of records, each a prefix of the same form, the sealed bytes and a tag; a
 * message begins with a record and ends with one.
 *
 * Lengths are checked before anything is allocated, and memory grows with the
 * bytes that arrive, never with those announced.  Small messages are delivered
 * in the input buffer, large payloads are received (or decrypted) directly into
 * memory of their own.
 *
 * It does no I/O.  Threads: one at a time. */
#ifndef PL_NET_TCP_DECODER_H
#define PL_NET_TCP_DECODER_H

#include "net/frame.h"
#include "net/tcp/cipher.h"

#include <sys/uio.h>

#define PL_PREFIX_BYTES 8
#define PL_HEAD_BYTES   (PL_PREFIX_BYTES + PL_FRAME_BYTES)
/* Payloads up to this size travel in one record and are written at once. */
#define PL_SMALL_BYTES ((size_t)64 << 10)
/* The most a record holds. */
#define PL_RECORD_BYTES ((size_t)128 << 10)

#define PL_PADDED(bytes) (((size_t)(bytes) + 7) & ~(size_t)7)

/* The prefix of a message, or of a record. */
void pl_decoder_message_prefix(uint8_t out[PL_PREFIX_BYTES], size_t bytes);
void pl_decoder_record_prefix(uint8_t out[PL_PREFIX_BYTES], size_t bytes);

/* Memory for large payloads, reused. */
typedef struct pl_body {
    uint8_t *memory;
    size_t bytes;
} pl_body;

#define PL_SPARES 4
typedef struct pl_spares {
    pl_body bodies[PL_SPARES];
} pl_spares;

void pl_spares_give(pl_spares *spares, pl_body *body); /* empties it */
void pl_spares_close(pl_spares *spares);

typedef struct pl_decoder {
    pl_spares *spares;
    pl_cipher *cipher; /* opens; NULL: no encryption; owned */
    uint8_t *input;    /* [start, end) is not decoded yet */
    size_t size, start, end;
    bool filled; /* the last read left no room: read more at once */
    size_t skip; /* bytes of the last delivered message in the input */
    uint8_t head[PL_FRAME_BYTES]; /* of the message whose body is being
                                     received */
    pl_body body;
    size_t expected, arrived; /* bytes of the body, padded; 0: none */
    size_t payload_bytes;
} pl_decoder;

typedef struct pl_decoder_message {
    const uint8_t *head;
    size_t head_bytes; /* PL_FRAME_BYTES, unless the message is malformed */
    const uint8_t *payload; /* 8-byte aligned */
    size_t payload_bytes;
    pl_body body; /* of the payload, if not in the input; owned by the caller:
                     return it to the spares */
} pl_decoder_message;

/* Takes ownership of `cipher`. */
void pl_decoder_init(pl_decoder *s, pl_spares *spares, pl_cipher *cipher);
void pl_decoder_close(pl_decoder *s);

/* Where to put the next bytes; at least one byte, in at most two places. */
pl_status pl_decoder_room(pl_decoder *s, struct iovec room[2],
                          int *count) PL_MUST_CHECK;
void pl_decoder_arrived(pl_decoder *s, size_t bytes);

/* The next message, valid until the next call.  PL_AGAIN, without a text: more
 * bytes are needed.  PL_FORMAT: this is not a stream of messages, and nothing
 * more can be read from it. */
pl_status pl_decoder_next(pl_decoder *s, pl_decoder_message *out) PL_MUST_CHECK;

/* Memory held for incomplete messages. */
size_t pl_decoder_memory(const pl_decoder *s);

/* Whether pl_decoder_next may deliver a message without more bytes. */
bool pl_decoder_holds(const pl_decoder *s);

#endif

/* outbox.h - messages to send over one connection.
 *
 * Messages wait in order, bounded in number and in copied bytes.  Two threads
 * use it: the endpoint's owner puts messages in, and the holder of the right to
 * write (pump.h) takes them out.
 *
 * Threads: the list is guarded by the lock of the pump; everything else
 * belongs to the writer. */
#ifndef PL_NET_TCP_OUTBOX_H
#define PL_NET_TCP_OUTBOX_H

#include "base/thread.h"
#include "net/tcp/decoder.h"

typedef struct pl_parcel pl_parcel;

typedef struct pl_outbox {
    pl_parcel *first, *last;
    int32_t count;
    size_t copied; /* bytes of payload copies */
    /* Used by the writer. */
    pl_cipher *cipher; /* seals; NULL: plain; owned */
    size_t sent;       /* bytes of the first message sent (plain) or sealed */
    uint8_t *sealed;   /* [sealed_at, sealed_end) is to be sent */
    size_t sealed_size, sealed_at, sealed_end;
} pl_outbox;

/* A message to send. */
typedef struct pl_outgoing {
    uint8_t head[PL_HEAD_BYTES];
    const uint8_t *payload;
    size_t payload_bytes;
} pl_outgoing;

void pl_outgoing_init(pl_outgoing *out, const pl_frame *frame,
                      const void *payload);

typedef enum pl_write_result {
    PL_WRITE_DRAINED, /* nothing is left */
    PL_WRITE_BLOCKED, /* the kernel accepts no more for now */
    PL_WRITE_MORE,    /* it would accept more: others may go first */
    PL_WRITE_BROKEN,  /* the connection is lost */
} pl_write_result;

/* Under the lock.  PL_AGAIN, without a text: it is full.  `sent` bytes of the
 * message were sent already; if any were, the rest must follow. */
pl_status pl_outbox_put(pl_outbox *outbox, const pl_outgoing *message,
                        bool lasting, size_t sent) PL_MUST_CHECK;
bool pl_outbox_empty(const pl_outbox *outbox);

/* The writer, without the lock, when the outbox is empty: write one small
 * message at once.  *sent: its bytes that were sent or sealed; fewer than all
 * when the kernel accepted no more. */
pl_write_result pl_outbox_write_now(pl_outbox *outbox, int fd,
                                    const pl_outgoing *message, size_t *sent);
size_t pl_outgoing_bytes(const pl_outgoing *message); /* padded */

/* The writer, without the lock: write what the kernel accepts, up to a turn. */
pl_write_result pl_outbox_write(pl_outbox *outbox, int fd, pl_mutex *lock);

/* Under the lock, without a writer: the connection was lost.  A message that
 * was sent in part is lost (returns how many), the rest keeps waiting. */
int32_t pl_outbox_restart(pl_outbox *outbox);
/* The writer: seal with this from now on; NULL: send plainly. */
void pl_outbox_use(pl_outbox *outbox, pl_cipher *cipher);
/* Returns how many messages were lost with it. */
int32_t pl_outbox_close(pl_outbox *outbox);

#endif

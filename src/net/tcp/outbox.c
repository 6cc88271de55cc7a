/* How messages become bytes on a socket: plain ones are gathered in place,
 * encrypted ones are sealed into one buffer, record by record, and sent from
 * there. */
#include "net/tcp/outbox.h"

#include "base/assert.h"
#include "base/mem.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define MESSAGES_MOST  1024
#define COPIED_MOST    ((size_t)64 << 20)
#define TURN_BYTES     ((size_t)1 << 20)
#define GATHERED       16 /* messages in one call */
#define PARTS          3  /* head, payload, padding */
#define RECORD_OUTSIDE (PL_PREFIX_BYTES + PL_CIPHER_TAG)
/* Sealed at once: one large record, or small ones up to that. */
#define SEALED_MOST (PL_RECORD_BYTES + RECORD_OUTSIDE)

struct pl_parcel {
    pl_parcel *next;
    pl_outgoing message;
    size_t copied;
    uint64_t copy[]; /* of a payload that does not last */
};

void pl_outgoing_init(pl_outgoing *out, const pl_frame *frame,
                      const void *payload)
{
    pl_decoder_message_prefix(out->head,
                              PL_FRAME_BYTES + (size_t)frame->payload_bytes);
    pl_frame_write(frame, out->head + PL_PREFIX_BYTES);
    out->payload = payload;
    out->payload_bytes = frame->payload_bytes;
}

size_t pl_outgoing_bytes(const pl_outgoing *message)
{
    return PL_HEAD_BYTES + PL_PADDED(message->payload_bytes);
}

/* Locate the bytes [from, from + bytes) of a message; returns the number of
 * parts. */
static int parts_of(const pl_outgoing *message, size_t from, size_t bytes,
                    struct iovec out[PARTS])
{
    static const uint8_t filling[8];
    const struct {
        const uint8_t *at;
        size_t bytes;
    } all[PARTS] = {
        { message->head, PL_HEAD_BYTES },
        { message->payload, message->payload_bytes },
        { filling, PL_PADDED(message->payload_bytes) - message->payload_bytes },
    };
    int count = 0;
    for (int i = 0; i < PARTS && bytes > 0; i++) {
        if (from >= all[i].bytes) {
            from -= all[i].bytes;
            continue;
        }
        size_t part = all[i].bytes - from;
        part = part < bytes ? part : bytes;
        out[count++] = (struct iovec) { (void *)(all[i].at + from), part };
        bytes -= part;
        from = 0;
    }
    return count;
}

pl_status pl_outbox_put(pl_outbox *outbox, const pl_outgoing *message,
                        bool lasting, size_t sent)
{
    size_t copied = lasting ? 0 : message->payload_bytes;
    if (outbox->first != NULL && sent == 0 &&
        (outbox->count >= MESSAGES_MOST ||
         outbox->copied + copied > COPIED_MOST))
        return PL_AGAIN;
    pl_parcel *parcel = pl_mem_alloc(1, sizeof *parcel + PL_PADDED(copied));
    PL_TRY(pl_mem_check(parcel, 1, sizeof *parcel + copied));
    parcel->message = *message;
    parcel->copied = copied;
    if (copied > 0) {
        memcpy(parcel->copy, message->payload, copied);
        parcel->message.payload = (const uint8_t *)parcel->copy;
    }
    if (outbox->first == NULL) {
        outbox->first = parcel;
        outbox->sent = sent;
    } else {
        PL_ASSERT(sent == 0);
        outbox->last->next = parcel;
    }
    outbox->last = parcel;
    outbox->count++;
    outbox->copied += copied;
    return PL_OK;
}

bool pl_outbox_empty(const pl_outbox *outbox)
{
    return outbox->first == NULL && outbox->sealed_at == outbox->sealed_end;
}

/* Under the lock; the caller frees it. */
static pl_parcel *pop(pl_outbox *outbox)
{
    pl_parcel *parcel = outbox->first;
    outbox->first = parcel->next;
    if (outbox->first == NULL)
        outbox->last = NULL;
    outbox->count--;
    outbox->copied -= parcel->copied;
    outbox->sent = 0;
    return parcel;
}

/* Bytes sent, 0 when the kernel accepts none, -1 when the connection is
 * lost. */
static ssize_t send_parts(int fd, struct iovec *parts, int count)
{
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = (size_t)count };
    for (;;) {
        ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0)
            return sent;
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)
            return 0;
        if (errno != EINTR)
            return -1;
    }
}

/* --- encrypted ------------------------------------------------------------ */

static bool need_sealed(pl_outbox *outbox, size_t bytes)
{
    if (outbox->sealed_at == outbox->sealed_end)
        outbox->sealed_at = outbox->sealed_end = 0;
    if (outbox->sealed_end + bytes <= outbox->sealed_size)
        return true;
    size_t size = outbox->sealed_size == 0 ? 1024 : outbox->sealed_size;
    while (size < outbox->sealed_end + bytes)
        size *= 2;
    uint8_t *sealed = pl_mem_resize(outbox->sealed, size, 1);
    if (sealed == NULL)
        return false;
    outbox->sealed = sealed;
    outbox->sealed_size = size;
    return true;
}

/* Bytes of a message in its next record, from `from` on.  The head of a large
 * message is a record of its own: its payload is then opened directly into
 * place. */
static size_t next_record(const pl_outgoing *message, size_t from)
{
    size_t left = pl_outgoing_bytes(message) - from;
    if (from == 0 && message->payload_bytes > PL_SMALL_BYTES)
        return PL_HEAD_BYTES;
    return left < PL_RECORD_BYTES ? left : PL_RECORD_BYTES;
}

static bool seal(pl_outbox *outbox, const pl_outgoing *message, size_t from,
                 size_t bytes)
{
    struct iovec parts[PARTS];
    if (!need_sealed(outbox, bytes + RECORD_OUTSIDE))
        return false;
    uint8_t *to = outbox->sealed + outbox->sealed_end;
    pl_decoder_record_prefix(to, bytes);
    if (!pl_cipher_begin(outbox->cipher, to, PL_PREFIX_BYTES,
                         to + PL_PREFIX_BYTES))
        return false;
    int count = parts_of(message, from, bytes, parts);
    for (int i = 0; i < count; i++)
        if (!pl_cipher_add(outbox->cipher, parts[i].iov_base, parts[i].iov_len))
            return false;
    outbox->sealed_end += bytes + RECORD_OUTSIDE;
    return pl_cipher_end(outbox->cipher, to + PL_PREFIX_BYTES + bytes);
}

static pl_write_result send_sealed(pl_outbox *outbox, int fd)
{
    while (outbox->sealed_at < outbox->sealed_end) {
        struct iovec part = { outbox->sealed + outbox->sealed_at,
                              outbox->sealed_end - outbox->sealed_at };
        ssize_t sent = send_parts(fd, &part, 1);
        if (sent < 0)
            return PL_WRITE_BROKEN;
        if (sent == 0)
            return PL_WRITE_BLOCKED;
        outbox->sealed_at += (size_t)sent;
    }
    return PL_WRITE_DRAINED;
}

/* Seal up to one buffer of waiting messages; false: out of memory. */
static bool seal_some(pl_outbox *outbox, pl_mutex *lock)
{
    for (;;) {
        pl_mutex_lock(lock);
        const pl_parcel *parcel = outbox->first;
        pl_mutex_unlock(lock);
        if (parcel == NULL)
            return true;
        const pl_outgoing *message = &parcel->message;
        size_t bytes = next_record(message, outbox->sent);
        size_t filled = outbox->sealed_end - outbox->sealed_at;
        if (filled > 0 && filled + bytes + RECORD_OUTSIDE > SEALED_MOST + 256)
            return true;
        if (!seal(outbox, message, outbox->sent, bytes))
            return false;
        outbox->sent += bytes;
        if (outbox->sent < pl_outgoing_bytes(message))
            continue;
        pl_mutex_lock(lock);
        pl_parcel *done = pop(outbox);
        pl_mutex_unlock(lock);
        pl_mem_free(done);
    }
}

static pl_write_result write_sealed(pl_outbox *outbox, int fd, pl_mutex *lock)
{
    for (size_t turn = 0; turn < TURN_BYTES;) {
        pl_write_result result = send_sealed(outbox, fd);
        if (result != PL_WRITE_DRAINED)
            return result;
        if (!seal_some(outbox, lock))
            return PL_WRITE_BROKEN;
        if (outbox->sealed_at == outbox->sealed_end)
            return PL_WRITE_DRAINED;
        turn += outbox->sealed_end - outbox->sealed_at;
    }
    return PL_WRITE_MORE;
}

/* --- plain ---------------------------------------------------------------- */

/* The parts of the waiting messages, at most one turn's; under the lock. */
static int gather(const pl_outbox *outbox, struct iovec *parts)
{
    size_t from = outbox->sent, bytes = 0;
    int count = 0;
    const pl_parcel *parcel = outbox->first;
    for (int i = 0; i < GATHERED && parcel != NULL && bytes < TURN_BYTES; i++) {
        size_t left = pl_outgoing_bytes(&parcel->message) - from;
        count += parts_of(&parcel->message, from, left, parts + count);
        bytes += left;
        from = 0;
        parcel = parcel->next;
    }
    return count;
}

/* Remove what was sent; returns the messages to free. */
static pl_parcel *advance(pl_outbox *outbox, size_t sent)
{
    pl_parcel *done = NULL;
    sent += outbox->sent;
    while (outbox->first != NULL &&
           sent >= pl_outgoing_bytes(&outbox->first->message)) {
        sent -= pl_outgoing_bytes(&outbox->first->message);
        pl_parcel *parcel = pop(outbox);
        parcel->next = done;
        done = parcel;
    }
    outbox->sent = sent;
    return done;
}

static void free_parcels(pl_parcel *parcel)
{
    while (parcel != NULL) {
        pl_parcel *next = parcel->next;
        pl_mem_free(parcel);
        parcel = next;
    }
}

static pl_write_result write_plain(pl_outbox *outbox, int fd, pl_mutex *lock)
{
    struct iovec parts[GATHERED * PARTS];
    for (size_t turn = 0; turn < TURN_BYTES;) {
        pl_mutex_lock(lock);
        int count = gather(outbox, parts);
        pl_mutex_unlock(lock);
        if (count == 0)
            return PL_WRITE_DRAINED;
        ssize_t sent = send_parts(fd, parts, count);
        if (sent < 0)
            return PL_WRITE_BROKEN;
        if (sent == 0)
            return PL_WRITE_BLOCKED;
        pl_mutex_lock(lock);
        pl_parcel *done = advance(outbox, (size_t)sent);
        pl_mutex_unlock(lock);
        free_parcels(done);
        turn += (size_t)sent;
    }
    return PL_WRITE_MORE;
}

pl_write_result pl_outbox_write_now(pl_outbox *outbox, int fd,
                                    const pl_outgoing *message, size_t *sent)
{
    size_t all = pl_outgoing_bytes(message);
    *sent = 0;
    if (outbox->cipher != NULL) {
        if (!seal(outbox, message, 0, all))
            return PL_WRITE_BROKEN;
        *sent = all;
        return send_sealed(outbox, fd);
    }
    struct iovec parts[PARTS];
    ssize_t left = send_parts(fd, parts, parts_of(message, 0, all, parts));
    if (left < 0)
        return PL_WRITE_BROKEN;
    *sent = (size_t)left;
    return *sent == all ? PL_WRITE_DRAINED : PL_WRITE_BLOCKED;
}

pl_write_result pl_outbox_write(pl_outbox *outbox, int fd, pl_mutex *lock)
{
    return outbox->cipher != NULL ? write_sealed(outbox, fd, lock)
                                  : write_plain(outbox, fd, lock);
}

int32_t pl_outbox_restart(pl_outbox *outbox)
{
    int32_t lost = 0;
    if (outbox->sent > 0) {
        pl_mem_free(pop(outbox));
        lost = 1;
    }
    outbox->sealed_at = outbox->sealed_end = 0;
    return lost;
}

void pl_outbox_use(pl_outbox *outbox, pl_cipher *cipher)
{
    pl_cipher_free(outbox->cipher);
    outbox->cipher = cipher;
}

int32_t pl_outbox_close(pl_outbox *outbox)
{
    int32_t lost = outbox->count;
    free_parcels(outbox->first);
    pl_mem_free(outbox->sealed);
    pl_cipher_free(outbox->cipher);
    *outbox = (pl_outbox) { .count = 0 };
    return lost;
}

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/endpoint_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* Parts of a message: the identity (server), the header, the payload. */
#define PARTS_MOST 3

static pl_status zmq_failed(const char *what)
{
    return PL_FAIL(PL_IO, "%s: %s", what, zmq_strerror(zmq_errno()));
}

/* Queue one part; PL_AGAIN when the queue is full or the peer gone. */
static pl_status send_bytes(pl_endpoint *e, const void *bytes, size_t size,
                            int flags)
{
    while (zmq_send(e->socket.handle, bytes, size, flags | ZMQ_DONTWAIT) < 0) {
        int error = zmq_errno();
        if (error == EAGAIN || error == EHOSTUNREACH)
            return PL_AGAIN;
        if (error != EINTR)
            return zmq_failed("send");
    }
    return PL_OK;
}

static pl_status send_part(pl_endpoint *e, zmq_msg_t *part)
{
    while (zmq_msg_send(part, e->socket.handle, ZMQ_DONTWAIT) < 0) {
        int error = zmq_errno();
        if (error == EINTR)
            continue;
        zmq_msg_close(part);
        return error == EAGAIN || error == EHOSTUNREACH ? PL_AGAIN
                                                        : zmq_failed("send");
    }
    return PL_OK;
}

/* A payload that lasts is not copied; without a function to free it ZeroMQ
 * allocates nothing for it either. */
static pl_status make_payload(zmq_msg_t *part, const void *payload,
                              size_t bytes, bool lasting)
{
    if (lasting) {
        zmq_msg_init_data(part, (void *)payload, bytes, NULL, NULL);
        return PL_OK;
    }
    if (zmq_msg_init_size(part, bytes) != 0)
        return PL_FAIL(PL_NOMEM, "message of %zu bytes: %s", bytes,
                       zmq_strerror(zmq_errno()));
    memcpy(zmq_msg_data(part), payload, bytes);
    return PL_OK;
}

pl_status pl_tcp_send(pl_endpoint *e, pl_peer to, const pl_frame *frame,
                      const void *payload, bool lasting)
{
    uint8_t header[PL_FRAME_BYTES];
    pl_frame_write(frame, header);
    bool with_payload = frame->payload_bytes > 0;
    zmq_msg_t part;
    if (with_payload)
        PL_TRY(make_payload(&part, payload, frame->payload_bytes, lasting));
    pl_status status = PL_OK;
    if (e->server)
        status = send_bytes(e, e->peers.entries[to].identity, PL_IDENTITY_BYTES,
                            ZMQ_SNDMORE);
    if (status == PL_OK)
        status = send_bytes(e, header, sizeof header,
                            with_payload ? ZMQ_SNDMORE : 0);
    if (status != PL_OK && with_payload)
        zmq_msg_close(&part);
    if (status == PL_OK && with_payload)
        status = send_part(e, &part);
    return status;
}

/* "10.0.0.7:40112" of a connected descriptor. */
static bool fd_text(char out[PL_PEER_TEXT], int fd)
{
    struct sockaddr_storage address = { .ss_family = AF_UNSPEC };
    socklen_t size = sizeof address;
    char host[INET6_ADDRSTRLEN], port[8];
    if (fd < 0 || getpeername(fd, (struct sockaddr *)&address, &size) != 0 ||
        getnameinfo((struct sockaddr *)&address, size, host, sizeof host, port,
                    sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return false;
    bool ipv6 = address.ss_family == AF_INET6;
    snprintf(out, PL_PEER_TEXT, ipv6 ? "[%s]:%s" : "%s:%s", host, port);
    return true;
}

/* Where a message came from.  The connection may be gone by now, and its
 * descriptor another's: then ZeroMQ still knows the host. */
static void sender_text(char out[PL_PEER_TEXT], zmq_msg_t *part)
{
    const char *host = zmq_msg_gets(part, "Peer-Address");
    if (host == NULL)
        host = "unknown";
    if (!fd_text(out, zmq_msg_get(part, ZMQ_SRCFD)) ||
        strstr(out, host) == NULL)
        snprintf(out, PL_PEER_TEXT, "%s", host);
}

/* Receive all parts of one message; those beyond PARTS_MOST are only counted.
 * All parts[] need a close.  PL_AGAIN when there is none. */
static pl_status take_parts(pl_endpoint *e, zmq_msg_t parts[PARTS_MOST],
                            int *count)
{
    for (int i = 0; i < PARTS_MOST; i++)
        zmq_msg_init(&parts[i]);
    *count = 0;
    for (bool more = true; more; ++*count) {
        zmq_msg_t spare;
        bool keep = *count < PARTS_MOST;
        zmq_msg_t *part = keep ? &parts[*count] : &spare;
        if (!keep)
            zmq_msg_init(&spare);
        while (zmq_msg_recv(part, e->socket.handle, ZMQ_DONTWAIT) < 0) {
            if (zmq_errno() == EINTR)
                continue;
            return zmq_errno() == EAGAIN ? PL_AGAIN : zmq_failed("receive");
        }
        more = zmq_msg_more(part) != 0;
        if (!keep)
            zmq_msg_close(&spare);
    }
    return PL_OK;
}

/* The number of the sender, a new one if need be; -1 when it is refused. */
static pl_peer sender_of(pl_endpoint *e, zmq_msg_t *identity, zmq_msg_t *header)
{
    char who[PL_PEER_TEXT];
    const uint8_t *bytes = zmq_msg_data(identity);
    if (zmq_msg_size(identity) != PL_IDENTITY_BYTES) {
        sender_text(who, header);
        pl_endpoint_refuse(e, who, "no paceline task is there");
        return -1;
    }
    pl_peer peer = pl_peers_find(&e->peers, bytes);
    if (peer < 0) {
        peer = pl_peers_add(&e->peers, bytes);
        sender_text(who, header);
        if (peer < 0)
            pl_endpoint_refuse(e, who, "too many connections");
        else
            memcpy(e->peers.entries[peer].address, who, sizeof who);
    }
    if (peer >= 0 && e->peers.entries[peer].dropped) {
        e->counts.refused_messages++;
        return -1;
    }
    return peer;
}

/* ZeroMQ hands out small messages where they lie in what it read. */
static pl_status align_kept(pl_endpoint *e, pl_message *out)
{
    size_t bytes = zmq_msg_size(&e->kept);
    out->payload = zmq_msg_data(&e->kept);
    if ((uintptr_t)out->payload % 8 == 0)
        return PL_OK;
    if (bytes > e->aligned_bytes) {
        uint64_t *memory = NULL;
        size_t words = (bytes + 8191) / 8192 * 1024;
        PL_TRY(PL_NEW(memory, words));
        pl_mem_free(e->aligned);
        e->aligned = memory;
        e->aligned_bytes = words * 8;
    }
    memcpy(e->aligned, out->payload, bytes);
    out->payload = e->aligned;
    return PL_OK;
}

/* Is this a message of ours?  PL_AGAIN when not: it was counted. */
static pl_status judge(pl_endpoint *e, zmq_msg_t *parts, int count,
                       pl_message *out)
{
    int head = e->server ? 1 : 0;
    zmq_msg_t *header = &parts[head], *payload = &parts[head + 1];
    char who[PL_PEER_TEXT], why[64];
    if (count <= head || count > head + 2) {
        sender_text(who, &parts[count <= head ? 0 : head]);
        snprintf(why, sizeof why, "a message of %d parts, expected 1 or 2",
                 count - head);
        pl_endpoint_refuse(e, who, why);
        return PL_AGAIN;
    }
    size_t bytes = count == head + 2 ? zmq_msg_size(payload) : 0;
    if (pl_frame_read(&out->frame, zmq_msg_data(header), zmq_msg_size(header),
                      bytes) != PL_OK) {
        sender_text(who, header);
        pl_endpoint_refuse(e, who, pl_error_message());
        return PL_AGAIN;
    }
    out->from = e->server ? sender_of(e, &parts[0], header) : 0;
    if (out->from < 0)
        return PL_AGAIN;
    out->lasting = false;
    out->payload = NULL;
    return PL_OK;
}

/* Keep the payload until the next receive. */
static pl_status keep(pl_endpoint *e, zmq_msg_t *part, pl_message *out)
{
    pl_endpoint_received(e, &out->frame);
    if (out->frame.payload_bytes == 0)
        return PL_OK;
    zmq_msg_init(&e->kept);
    zmq_msg_move(&e->kept, part);
    e->has_kept = true;
    return align_kept(e, out);
}

pl_status pl_tcp_take(pl_endpoint *e, pl_message *out)
{
    for (;;) {
        zmq_msg_t parts[PARTS_MOST];
        int count;
        pl_status status = take_parts(e, parts, &count);
        bool came = status == PL_OK;
        if (came)
            status = judge(e, parts, count, out);
        if (status == PL_OK)
            status = keep(e, &parts[count - 1], out);
        for (int i = 0; i < PARTS_MOST; i++)
            zmq_msg_close(&parts[i]);
        if (status != PL_AGAIN || !came)
            return status;
    }
}

void pl_tcp_release(pl_endpoint *e)
{
    if (e->has_kept)
        zmq_msg_close(&e->kept);
    e->has_kept = false;
}

/* The events of one connection come in this order: accepted (with its
 * descriptor), handshake failed (without), disconnected (with). */
static void watch_event(pl_endpoint *e, int event, int fd)
{
    char *who = e->accepted[(unsigned)fd % PL_OFFENDERS];
    switch (event) {
    case ZMQ_EVENT_ACCEPTED:
        if (!fd_text(who, fd))
            snprintf(who, PL_PEER_TEXT, "unknown");
        break;
    case ZMQ_EVENT_DISCONNECTED:
        if (e->handshake_failed)
            pl_endpoint_refuse(e, who, "no paceline task is there");
        e->handshake_failed = false;
        break;
    default:
        e->handshake_failed = true;
        break;
    }
}

void pl_tcp_watch(pl_endpoint *e)
{
    for (;;) {
        uint8_t event[6]; /* uint16_t what, uint32_t value */
        char address[PL_ADDRESS_BYTES];
        int size =
            zmq_recv(e->socket.monitor, event, sizeof event, ZMQ_DONTWAIT);
        if (size < 0)
            return;
        zmq_recv(e->socket.monitor, address, sizeof address, 0);
        uint16_t what;
        int32_t value;
        PL_ASSERT(size == sizeof event);
        memcpy(&what, event, sizeof what);
        memcpy(&value, event + sizeof what, sizeof value);
        watch_event(e, what, value);
    }
}

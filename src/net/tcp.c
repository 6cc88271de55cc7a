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
/* Messages that are none from a peer that is known; then it is dropped. */
#define OFFENCES_MOST 8

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

/* Who the sender of a message was proved to be: the door told ZeroMQ, and no
 * word of the peer itself takes its place. */
static pl_principal proved(const pl_endpoint *e, zmq_msg_t *part)
{
    pl_principal who = { PL_PRINCIPAL_NONE, 0 };
    const char *user = e->socket.mechanism == PL_MECHANISM_NONE
                           ? NULL
                           : zmq_msg_gets(part, "User-Id");
    if (user == NULL || !pl_principal_parse(&who, user))
        who.role = PL_PRINCIPAL_NONE;
    return who;
}

/* A number for who is new, at the cost of another where all are taken; -1:
 * there is none. */
static pl_peer number_for(pl_endpoint *e, const uint8_t *identity)
{
    pl_peer number = pl_peers_add(&e->peers, identity);
    if (number >= 0)
        return number;
    pl_peer idle = pl_peers_idle(&e->peers);
    if (idle < 0)
        return -1;
    /* A flood is named once, by its host. */
    char host[PL_PEER_TEXT];
    snprintf(host, sizeof host, "%s", e->peers.entries[idle].address);
    char *port = strrchr(host, ':');
    if (port != NULL)
        *port = '\0';
    if (!e->peers.entries[idle].kept)
        pl_endpoint_refuse(e, host,
                           "too many connections, this was heard longest ago");
    pl_endpoint_drop(e, idle);
    return pl_peers_add(&e->peers, identity);
}

/* Why no number is given or used; NULL: it is. */
static const char *admit(pl_endpoint *e, const uint8_t *identity,
                         pl_principal who, zmq_msg_t *header, pl_peer *out)
{
    if (who.role == PL_PRINCIPAL_NONE &&
        e->socket.mechanism != PL_MECHANISM_NONE)
        return "it has not proved who it is";
    *out = pl_peers_find(&e->peers, identity);
    if (*out >= 0)
        return pl_principal_equal(e->peers.entries[*out].who, who)
                   ? NULL
                   : "it speaks for another task";
    *out = number_for(e, identity);
    if (*out < 0)
        return "too many connections";
    e->peers.entries[*out].who = who;
    sender_text(e->peers.entries[*out].address, header);
    return NULL;
}

/* The number of the sender, a new one if need be; -1 when it is refused. */
static pl_peer sender_of(pl_endpoint *e, zmq_msg_t *identity, zmq_msg_t *header)
{
    pl_peer peer = -1;
    const char *why = "no paceline task is there";
    if (zmq_msg_size(identity) == PL_IDENTITY_BYTES)
        why =
            admit(e, zmq_msg_data(identity), proved(e, header), header, &peer);
    if (why != NULL) {
        char who[PL_PEER_TEXT];
        sender_text(who, header);
        pl_endpoint_refuse(e, who, why);
        return -1;
    }
    if (e->peers.entries[peer].dropped) {
        e->counts.refused_messages++;
        return -1;
    }
    e->peers.entries[peer].heard_at = ++e->peers.messages;
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

/* Count and name what is no message.  A peer that goes on sending such is not
 * listened to any more. */
static void offend(pl_endpoint *e, zmq_msg_t *identity, zmq_msg_t *part,
                   const char *why)
{
    char who[PL_PEER_TEXT], task[PL_PRINCIPAL_TEXT];
    sender_text(who, part);
    pl_endpoint_refuse(e, who, why);
    pl_peer peer = e->server && zmq_msg_size(identity) == PL_IDENTITY_BYTES
                       ? pl_peers_find(&e->peers, zmq_msg_data(identity))
                       : -1;
    if (peer < 0 || e->peers.entries[peer].dropped ||
        ++e->peers.entries[peer].offences < OFFENCES_MOST)
        return;
    pl_principal_text(e->peers.entries[peer].who, task);
    pl_log(PL_LOG_WARN,
           "%s (%s): %s at %s is dropped: %d of its messages were none",
           e->name, e->socket.address, task, who, OFFENCES_MOST);
    pl_endpoint_drop(e, peer);
}

/* Is this a message of ours?  PL_AGAIN when not: it was counted. */
static pl_status judge(pl_endpoint *e, zmq_msg_t *parts, int count,
                       pl_message *out)
{
    int head = e->server ? 1 : 0;
    zmq_msg_t *header = &parts[head], *payload = &parts[head + 1];
    char why[64];
    if (count <= head || count > head + 2) {
        snprintf(why, sizeof why, "a message of %d parts, expected 1 or 2",
                 count - head);
        offend(e, &parts[0], &parts[count <= head ? 0 : head], why);
        return PL_AGAIN;
    }
    size_t bytes = count == head + 2 ? zmq_msg_size(payload) : 0;
    if (pl_frame_read(&out->frame, zmq_msg_data(header), zmq_msg_size(header),
                      bytes) != PL_OK) {
        offend(e, &parts[0], header, pl_error_message());
        return PL_AGAIN;
    }
    out->from = e->server ? sender_of(e, &parts[0], header) : 0;
    if (out->from < 0)
        return PL_AGAIN;
    out->first = !e->peers.entries[out->from].met;
    e->peers.entries[out->from].met = true;
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

/* Why a handshake failed, as a server sees it.  Where the two ends have no
 * mechanism in common, the first to notice ends the connection, and the other
 * may learn no more than that. */
static const char *why_failed(const pl_endpoint *e, int event, int value)
{
    bool keys = e->socket.mechanism != PL_MECHANISM_NONE;
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
        return "it did not prove to be a task of this job: is it of another "
               "job, or has it another key file?";
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL &&
        value == ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC)
        return "it did not prove to be a task of this job: its keys are of "
               "another; has it another key file?";
    return keys ? "it did not prove to be a task of this job: was it started "
                  "without --keys, or is it no paceline task?"
                : "no paceline task is there, or one with keys, which this one "
                  "does not have";
}

/* The events of one connection come in this order: accepted (with its
 * descriptor), handshake failed or succeeded (without), disconnected (with).
 * What was too old for a handshake has none of the middle. */
static void watch_server(pl_endpoint *e, int event, int value)
{
    unsigned place = (unsigned)value % PL_OFFENDERS;
    char *who = e->accepted[place];
    switch (event) {
    case ZMQ_EVENT_ACCEPTED:
        if (!fd_text(who, value))
            snprintf(who, PL_PEER_TEXT, "unknown");
        e->before[place] = e->succeeded;
        break;
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
        e->succeeded++;
        break;
    case ZMQ_EVENT_DISCONNECTED:
        if (e->failed != NULL || e->before[place] == e->succeeded)
            pl_endpoint_refuse(e, who,
                               e->failed != NULL ? e->failed
                                                 : "no paceline task is there");
        e->failed = NULL;
        break;
    default:
        e->failed = why_failed(e, event, value);
        break;
    }
}

/* ZeroMQ connects again by itself, but not after these two: then the server
 * has said no. */
static void watch_client(pl_endpoint *e, int event, int value)
{
    bool keys = e->socket.mechanism != PL_MECHANISM_NONE;
    if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
        e->refused = "turned this task away: it did not prove to be of that "
                     "job; have both the same key file?";
    else if (event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL &&
             value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH)
        e->refused = keys ? "does not prove who it is: was it started without "
                            "--keys, or is it no paceline task?"
                          : "wants the keys of its job: start this task with "
                            "--keys FILE, too";
    else if (event == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL)
        pl_endpoint_refuse(e, e->socket.address,
                           "it ended the connection before both had proved who "
                           "they are; have both the same key file, or none?");
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
        if (e->server)
            watch_server(e, what, value);
        else
            watch_client(e, what, value);
    }
}

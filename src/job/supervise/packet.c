/* Decides how a control message becomes a packet and back, and what the
 * errors of the socket mean. */
#include "job/supervise/packet.h"

#include "base/mem.h"
#include "net/keys.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

pl_status pl_packet_pair(int *ours, int *theirs)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return PL_FAIL(PL_IO, "make a socket pair: %s", strerror(errno));
    *ours = ends[0];
    *theirs = ends[1];
    return PL_OK;
}

static pl_status send_text(int fd, const char *text)
{
    size_t bytes = strlen(text);
    ssize_t sent;
    if (bytes > PL_PACKET_MOST)
        return PL_FAIL(PL_UNSUPPORTED,
                       "a message of %zu bytes, at most %d can be sent", bytes,
                       PL_PACKET_MOST);
    do
        sent = send(fd, text, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0)
        return PL_OK;
    return PL_FAIL(errno == EAGAIN || errno == EWOULDBLOCK ? PL_AGAIN
                                                           : PL_CLOSED,
                   "send a control message: %s", strerror(errno));
}

pl_status pl_packet_send(int fd, const pl_control_message *message)
{
    pl_json *json;
    char *text;
    PL_TRY(pl_control_encode(message, &json));
    pl_status status = pl_json_text(json, 0, &text);
    pl_json_free(json);
    PL_TRY(status);
    status = send_text(fd, text);
    if (message->secret != NULL)
        pl_keys_wipe(text, strlen(text));
    pl_mem_free(text);
    return status;
}

static pl_status parse(pl_control_message *out, const char *text, size_t bytes)
{
    pl_json *json;
    pl_status status = pl_json_parse(&json, text, bytes, "message");
    if (status == PL_OK)
        return pl_control_decode(out, json);
    return status == PL_NOMEM
               ? status
               : PL_FAIL(PL_PEER, "expected a message, found \"%.*s\"",
                         (int)(bytes < 80 ? bytes : 80), text);
}

pl_status pl_packet_receive(int fd, pl_control_message *out)
{
    char text[PL_PACKET_MOST + 1];
    ssize_t got;
    do
        got = recv(fd, text, sizeof text, MSG_DONTWAIT | MSG_TRUNC);
    /* A task that ended without reading a message of ours resets the
     * connection: this is reported once, and its earlier messages can still be
     * read. */
    while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return PL_AGAIN;
    if (got <= 0)
        return PL_FAIL(PL_CLOSED, "the control socket is closed");
    if (got > PL_PACKET_MOST)
        return PL_FAIL(PL_PEER, "a message of %zd bytes, expected at most %d",
                       got, PL_PACKET_MOST);
    pl_status status = parse(out, text, (size_t)got);
    if (status == PL_OK && out->secret != NULL)
        pl_keys_wipe(text, (size_t)got);
    return status;
}

/* The descriptor of a connection: its options, reading, the bytes of its
 * handshake, what the kernel counts. */
#include "net/tcp/connection.h"

#include "net/tcp/owner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h> /* more complete than netinet/tcp.h, which it excludes */
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define KEEPALIVE_IDLE  5 /* seconds until a silent peer is probed */
#define KEEPALIVE_EVERY 2 /* seconds between probes */
#define KEEPALIVE_TRIES 3
#define UNACKED_MS      10000 /* sent bytes that the peer's host ignores */

void pl_connection_tune(int fd)
{
    const int options[][3] = {
        { IPPROTO_TCP, TCP_NODELAY, 1 },
        { SOL_SOCKET, SO_KEEPALIVE, 1 },
        { IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE },
        { IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_EVERY },
        { IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_TRIES },
        { IPPROTO_TCP, TCP_USER_TIMEOUT, UNACKED_MS },
    };
    /* None of them can fail for a TCP socket, nor is any needed for the bytes
     * to arrive. */
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        setsockopt(fd, options[i][0], options[i][1], &options[i][2],
                   sizeof(int));
}

void pl_connection_name(char out[PL_PEER_TEXT], int fd)
{
    struct sockaddr_storage address = { .ss_family = AF_UNSPEC };
    socklen_t size = sizeof address;
    char host[INET6_ADDRSTRLEN], port[8];
    if (getpeername(fd, (struct sockaddr *)&address, &size) != 0 ||
        getnameinfo((struct sockaddr *)&address, size, host, sizeof host, port,
                    sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        snprintf(out, PL_PEER_TEXT, "unknown");
    else
        snprintf(out, PL_PEER_TEXT,
                 address.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host,
                 port);
}

bool pl_connection_judge_user(int fd, pl_verdict *out)
{
    uid_t uid;
    pl_status status = pl_owner_of_peer(fd, &uid);
    *out = PL_VERDICT_USER;
    if (status == PL_OK && uid == geteuid())
        *out = PL_VERDICT_WELCOME;
    else if (status != PL_OK && status != PL_NOTFOUND)
        *out = PL_VERDICT_NO_USER;
    return status != PL_NOTFOUND;
}

/* Set up the agreed ciphers; stream and outbox are usable from now on. */
static pl_status open_stream(pl_connection *c,
                             const pl_handshake_config *config,
                             pl_spares *spares)
{
    pl_cipher *opens = NULL, *seals = NULL;
    if (config->mechanism == PL_MECHANISM_ENCRYPTED) {
        int in = config->server ? 0 : 1;
        PL_TRY(pl_cipher_new(&opens, c->handshake.session[in], false));
        pl_status status =
            pl_cipher_new(&seals, c->handshake.session[1 - in], true);
        if (status != PL_OK) {
            pl_cipher_free(opens);
            return status;
        }
    }
    pl_handshake_wipe(&c->handshake);
    pl_decoder_init(&c->decoder, spares, opens);
    pl_outbox_use(&c->outbox, seals);
    return PL_OK;
}

static pl_handshake_result refuse(pl_connection *c, const char *why)
{
    snprintf(c->handshake.why, sizeof c->handshake.why, "%s", why);
    return PL_HANDSHAKE_REFUSED;
}

/* Read the rest of one message; PL_CLOSED when the peer has closed. */
static pl_status read_message(pl_connection *c)
{
    while (c->have < PL_HANDSHAKE_BYTES) {
        ssize_t got = recv(c->fd, c->in + c->have,
                           (size_t)(PL_HANDSHAKE_BYTES - c->have), 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return PL_AGAIN;
        if (got <= 0)
            return PL_CLOSED;
        c->have = (uint8_t)(c->have + got);
        if (!pl_handshake_plausible(&c->handshake, c->in, c->have))
            return PL_FORMAT;
    }
    return PL_OK;
}

pl_handshake_result pl_connection_shake(pl_connection *c,
                                        const pl_handshake_config *config,
                                        pl_verdict verdict, pl_spares *spares,
                                        bool *closed)
{
    uint8_t out[PL_HANDSHAKE_BYTES];
    pl_handshake_result result;
    *closed = false;
    do {
        bool answer;
        switch (read_message(c)) {
        case PL_OK:
            break;
        case PL_AGAIN:
            return PL_HANDSHAKE_MORE;
        case PL_FORMAT:
            return refuse(c, "no paceline task is there");
        default:
            *closed = true;
            return refuse(c, "it ended the connection before authentication "
                             "was complete; do both have the same key file, "
                             "or none?");
        }
        c->have = 0;
        result = pl_handshake_take(&c->handshake, config, verdict, c->in, out,
                                   &answer);
        /* A connection that has sent nothing yet has room for 72 bytes. */
        if (answer &&
            send(c->fd, out, sizeof out, MSG_NOSIGNAL | MSG_DONTWAIT) !=
                (ssize_t)sizeof out &&
            result != PL_HANDSHAKE_REFUSED) {
            *closed = true;
            return refuse(c, "it ended the connection during the handshake");
        }
    } while (result == PL_HANDSHAKE_MORE);
    if (result == PL_HANDSHAKE_DONE && open_stream(c, config, spares) != PL_OK)
        return refuse(c, "there is no memory for its connection");
    return result;
}

pl_status pl_connection_read(pl_connection *c)
{
    struct iovec room[2];
    int count;
    PL_TRY(pl_decoder_room(&c->decoder, room, &count));
    size_t bytes = room[0].iov_len + (count > 1 ? room[1].iov_len : 0);
    for (;;) {
        ssize_t got = readv(c->fd, room, count);
        if (got > 0) {
            c->drained = (size_t)got < bytes;
            pl_decoder_arrived(&c->decoder, (size_t)got);
            return PL_OK;
        }
        if (got == 0)
            return PL_CLOSED;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return PL_AGAIN;
        if (errno != EINTR)
            return PL_CLOSED;
    }
}

int64_t pl_connection_busy_ns(const pl_connection *c)
{
    struct tcp_info info = { 0 };
    socklen_t bytes = sizeof info;
    size_t needed = offsetof(struct tcp_info, tcpi_rwnd_limited) +
                    sizeof info.tcpi_rwnd_limited;
    if (getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0 ||
        bytes < needed || info.tcpi_busy_time < info.tcpi_rwnd_limited)
        return -1;
    return (int64_t)(info.tcpi_busy_time - info.tcpi_rwnd_limited) * 1000;
}

void pl_connection_hang_up(pl_connection *c)
{
    char rest[4096];
    if (c->fd < 0)
        return;
    /* Closed with bytes unread, the kernel would reset the connection and
     * discard what it has not sent yet. */
    shutdown(c->fd, SHUT_WR);
    for (int i = 0; i < 64; i++)
        if (recv(c->fd, rest, sizeof rest, MSG_DONTWAIT) <= 0)
            break;
    close(c->fd);
    c->fd = -1;
}

/* wire.h - a peer that is not ours: raw sockets that send what a test wants. */
#ifndef PL_TESTS_WIRE_H
#define PL_TESTS_WIRE_H

#include "net/tcp/decoder.h"
#include "net/tcp/handshake.h"
#include "support/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>

static inline int wire_connect(const char *address)
{
    struct sockaddr_in to = { .sin_family = AF_INET };
    to.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(0, connect(fd, (struct sockaddr *)&to, sizeof to));
    return fd;
}

static inline void wire_send(int fd, const void *bytes, size_t count)
{
    assert_int_equal(count, send(fd, bytes, count, MSG_NOSIGNAL));
}

/* Serve for a moment; nothing that counts as a message comes. */
static inline void wire_turn(pl_endpoint *server)
{
    pl_message none;
    assert_int_equal(
        PL_TIMEOUT, pl_endpoint_receive(server, &none,
                                        pl_deadline_in_ms(pl_clock_real(), 1)));
}

/* What the server answers, while it serves; false: it closed instead. */
static inline bool wire_read(pl_endpoint *server, int fd, void *out,
                             size_t count)
{
    pl_deadline deadline = net_soon();
    for (size_t have = 0; have < count;) {
        ssize_t got =
            recv(fd, (uint8_t *)out + have, count - have, MSG_DONTWAIT);
        assert_false(pl_deadline_passed(deadline));
        if (got == 0 || (got < 0 && errno != EAGAIN))
            return false;
        if (got > 0)
            have += (size_t)got;
        else
            wire_turn(server);
    }
    return true;
}

/* Shake hands by `config`; the result at this end. */
static inline pl_handshake_result wire_shake(pl_endpoint *server, int fd,
                                             const pl_handshake_config *config,
                                             pl_handshake *handshake)
{
    uint8_t in[PL_HANDSHAKE_BYTES], out[PL_HANDSHAKE_BYTES];
    assert_ok(pl_handshake_begin(handshake, config, out));
    wire_send(fd, out, sizeof out);
    for (;;) {
        bool answer;
        if (!wire_read(server, fd, in, sizeof in))
            return PL_HANDSHAKE_REFUSED;
        pl_handshake_result result = pl_handshake_take(
            handshake, config, PL_VERDICT_WELCOME, in, out, &answer);
        if (answer)
            wire_send(fd, out, sizeof out);
        if (result != PL_HANDSHAKE_MORE)
            return result;
    }
}

/* A connection without keys, whose handshake is done. */
static inline int wire_join(pl_endpoint *server, const char *identity)
{
    pl_handshake_config config = { .server = false };
    pl_handshake handshake;
    memcpy(config.identity, identity, PL_IDENTITY_BYTES);
    int fd = wire_connect(pl_endpoint_address(server));
    assert_int_equal(PL_HANDSHAKE_DONE,
                     wire_shake(server, fd, &config, &handshake));
    return fd;
}

/* Bytes as one message, whatever they are. */
static inline void wire_message(int fd, const void *bytes, size_t count)
{
    uint8_t message[1024] = { 0 };
    assert_true(PL_PREFIX_BYTES + PL_PADDED(count) <= sizeof message);
    pl_decoder_message_prefix(message, count);
    if (count > 0)
        memcpy(message + PL_PREFIX_BYTES, bytes, count);
    wire_send(fd, message, PL_PREFIX_BYTES + PL_PADDED(count));
}

#endif

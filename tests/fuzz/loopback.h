/* loopback.h - connections to a server of this process, many a second. */
#ifndef PL_TESTS_FUZZ_LOOPBACK_H
#define PL_TESTS_FUZZ_LOOPBACK_H

#include "base/assert.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Each connection comes from another address of this host: the system keeps
 * the port of one that was closed for a minute. */
static inline int fuzz_connect(uint16_t port)
{
    static uint32_t count;
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in from = { .sin_family = AF_INET }, to = from;
    from.sin_addr.s_addr =
        htonl(INADDR_LOOPBACK + (1u << 16) + count++ % (1u << 16));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(port);
    PL_ASSERT(fd >= 0);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    PL_ASSERT(bind(fd, (struct sockaddr *)&from, sizeof from) == 0);
    /* An interrupted connect continues by itself. */
    while (connect(fd, (struct sockaddr *)&to, sizeof to) != 0 &&
           errno != EISCONN)
        PL_ASSERT(errno == EINTR || errno == EALREADY);
    return fd;
}

/* Send all of it; false: the server has closed. */
static inline bool fuzz_send(int fd, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue; /* the fuzzer has a timer */
        if (sent <= 0)
            return false;
        at += sent;
        bytes -= (size_t)sent;
    }
    return true;
}

/* Receive at most `room` bytes; 0: the server has closed. */
static inline size_t fuzz_receive(int fd, void *to, size_t room)
{
    ssize_t got;
    do
        got = recv(fd, to, room, 0);
    while (got < 0 && errno == EINTR);
    return got > 0 ? (size_t)got : 0;
}

#endif

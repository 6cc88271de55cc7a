/* loopback.h - connections to a server of this process, many a second. */
#ifndef PL_TESTS_FUZZ_LOOPBACK_H
#define PL_TESTS_FUZZ_LOOPBACK_H

#include "base/assert.h"

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

#define FUZZ_WAIT_S 120

/* Each connection comes from another address of this host: the system keeps
 * the port of one that was closed for a minute. */
static inline int fuzz_connect(uint16_t port)
{
    static uint32_t count;
    struct timeval limit = { .tv_sec = FUZZ_WAIT_S };
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in from = { .sin_family = AF_INET }, to = from;
    from.sin_addr.s_addr =
        htonl(INADDR_LOOPBACK + (1u << 16) + count++ % (1u << 16));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(port);
    PL_ASSERT(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    PL_ASSERT(bind(fd, (struct sockaddr *)&from, sizeof from) == 0);
    PL_ASSERT(connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    return fd;
}

#endif

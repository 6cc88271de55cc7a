/* port.c - finds free ports outside the system's ephemeral range, so that no
 * other process takes one in between. */
#include "net/port.h"

#include "base/clock.h"
#include "base/rng.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIRST 20000
#define COUNT 12000
#define TRIES 1000

/* 0, or errno. */
static int try_port(const struct addrinfo *address, int port)
{
    struct sockaddr_storage place;
    memcpy(&place, address->ai_addr, address->ai_addrlen);
    if (address->ai_family == AF_INET6)
        ((struct sockaddr_in6 *)&place)->sin6_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in *)&place)->sin_port = htons((uint16_t)port);
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    int error = bind(fd, (struct sockaddr *)&place, address->ai_addrlen) == 0
                    ? 0
                    : errno;
    close(fd);
    return error;
}

static bool is_taken(const int *ports, int count, int port)
{
    for (int i = 0; i < count; i++)
        if (ports[i] == port)
            return true;
    return false;
}

static pl_status find(const char *host, const struct addrinfo *address,
                      int count, int *ports)
{
    uint64_t key = pl_rng_key((uint64_t)pl_clock_wall_ns(), (uint64_t)getpid());
    int found = 0, error = 0;
    for (uint64_t n = 0; n < TRIES && found < count; n++) {
        int port = FIRST + (int)pl_rng_below(key, n, COUNT);
        if (is_taken(ports, found, port))
            continue;
        error = try_port(address, port);
        if (error == EADDRNOTAVAIL)
            return PL_FAIL(PL_IO,
                           "%s is not an address of this host: give the name "
                           "that the other hosts know it by",
                           host);
        if (error == 0)
            ports[found++] = port;
    }
    if (found < count)
        return PL_FAIL(PL_IO, "no free port at %s: %s", host, strerror(error));
    return PL_OK;
}

pl_status pl_port_find(const char *host, int count, int *ports)
{
    struct addrinfo hints = { .ai_family = AF_INET,
                              .ai_socktype = SOCK_STREAM };
    struct addrinfo *address = NULL;
    int error = getaddrinfo(host, NULL, &hints, &address);
    if (error != 0) {
        hints.ai_family = AF_INET6; /* as pl_address_resolve */
        error = getaddrinfo(host, NULL, &hints, &address);
    }
    if (error != 0)
        return PL_FAIL(PL_IO, "host %s: %s", host, gai_strerror(error));
    pl_status status = find(host, address, count, ports);
    freeaddrinfo(address);
    return status;
}

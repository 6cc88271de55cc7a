#include "raw_tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER ((size_t)4 << 20)
#define HEADER 72 /* the size of a frame's header */

typedef struct request {
    int64_t count;
    uint64_t out, in;
} request;

static bool all(int fd, uint8_t *bytes, size_t count, bool writing)
{
    while (count > 0) {
        ssize_t done = writing ? send(fd, bytes, count, MSG_NOSIGNAL)
                               : recv(fd, bytes, count, 0);
        if (done <= 0)
            return false;
        bytes += done;
        count -= (size_t)done;
    }
    return true;
}

/* One side of `count` turns; a size of 0 means no turn in that direction,
 * except the last. */
static bool turns(int fd, uint8_t *buffer, int64_t count, size_t out, size_t in,
                  bool begins)
{
    bool streams = (out == 0) != (in == 0);
    for (int64_t i = 0; i < count; i++)
        for (int half = 0; half < 2; half++) {
            bool outward = half == 0;
            size_t bytes = outward ? out : in;
            bool skip = streams && bytes == 0 && i + 1 < count;
            if (!skip && !all(fd, buffer, HEADER + bytes, outward == begins))
                return false;
        }
    return true;
}

static void answer(int fd, uint8_t *buffer)
{
    request r;
    while (all(fd, (uint8_t *)&r, sizeof r, false) &&
           turns(fd, buffer, r.count, r.out, r.in, false))
        ;
}

static int no_delay(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

pl_status raw_tcp_open(raw_tcp *raw, pid_t *child)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    raw->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    raw->buffer = calloc(1, BUFFER + HEADER);
    if (listener < 0 || raw->fd < 0 || raw->buffer == NULL ||
        bind(listener, (struct sockaddr *)&address, size) != 0 ||
        listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0 ||
        connect(raw->fd, (struct sockaddr *)&address, size) != 0)
        return PL_FAIL(PL_IO, "raw TCP: %s", strerror(errno));
    *child = fork();
    if (*child == 0) {
        close(raw->fd);
        answer(no_delay(accept(listener, NULL, NULL)), raw->buffer);
        _exit(0);
    }
    close(listener);
    no_delay(raw->fd);
    return *child > 0 ? PL_OK : PL_FAIL(PL_IO, "fork: %s", strerror(errno));
}

void raw_tcp_close(raw_tcp *raw)
{
    if (raw->fd > 0)
        close(raw->fd);
    free(raw->buffer);
}

pl_status raw_tcp_exchange(raw_tcp *raw, int64_t count, size_t out, size_t in)
{
    request r = { count, out, in };
    if (!all(raw->fd, (uint8_t *)&r, sizeof r, true) ||
        !turns(raw->fd, raw->buffer, count, out, in, true))
        return PL_FAIL(PL_IO, "raw TCP: %s", strerror(errno));
    return PL_OK;
}

/* Design.  A connection begins with a greeting, the token and a letter:
 *
 *   e  the server echoes each 8 bytes
 *   s  the server reads until the end, then sends two numbers of 8 bytes,
 *      little-endian: bytes and ns, both from WARM_NS after the first byte on,
 *      when the window of TCP has opened and the burst of a traffic shaper is
 *      used up; or from the start when no byte arrived that late
 *
 * Greetings are read from several connections at once, so a stranger that sends
 * nothing, or a byte now and then, delays no other: its connection is closed
 * after LIMIT_S, or when GUESTS others have connected since.  Measurements are
 * served one at a time, and each of their waits has a limit, which the sockets
 * keep (SO_RCVTIMEO). */
#include "net/probe/probe_priv.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "net/address.h"
#include "net/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WARM_NS    ((int64_t)300 * 1000 * 1000)
#define LIMIT_S    5 /* for a silent peer */
#define GREETING   (PL_PROBE_TOKEN + 1)
#define GUESTS     16     /* connections with an incomplete greeting */
#define LOOK_MS    100    /* interval at which the server checks for its stop */
#define CHUNK      262144 /* bytes of a write or read */
#define PINGS      50
#define CONNECT_MS 5000
#define MOST_NS    ((int64_t)60 * 1000 * 1000 * 1000) /* of one measurement */

/* A connection whose greeting is incomplete. */
typedef struct guest {
    int fd;
    size_t got;
    char greeting[GREETING];
    pl_deadline deadline;
} guest;

struct pl_probe {
    int fd, port;
    char token[PL_PROBE_TOKEN];
    char *room;           /* [CHUNK] */
    guest guests[GUESTS]; /* the oldest first */
    int guest_count;
    pl_thread *thread;
    atomic_bool stop;
};

static int64_t now_ns(void)
{
    return pl_clock_now_ns(pl_clock_real());
}

static void set_limits(int fd)
{
    struct timeval limit = { .tv_sec = LIMIT_S };
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* Read all `bytes`; false: the peer is gone or silent. */
static bool read_all(int fd, void *to, size_t bytes)
{
    char *at = to;
    while (bytes > 0) {
        ssize_t got = recv(fd, at, bytes, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        bytes -= (size_t)got;
    }
    return true;
}

static bool write_all(int fd, const void *from, size_t bytes)
{
    const char *at = from;
    while (bytes > 0) {
        ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        at += sent;
        bytes -= (size_t)sent;
    }
    return true;
}

static void put(uint8_t *to, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t *from)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)from[i] << (8 * i);
    return value;
}

/* --- the server ------------------------------------------------------- */

static void echo(pl_probe *p, int fd)
{
    uint8_t ping[8];
    while (!atomic_load(&p->stop) && read_all(fd, ping, sizeof ping) &&
           write_all(fd, ping, sizeof ping))
        continue;
}

static void sink(pl_probe *p, int fd)
{
    int64_t open_ns = now_ns(), first_ns = 0, begin_ns = 0, last_ns = 0;
    uint64_t bytes = 0, all = 0;
    uint8_t answer[PL_PROBE_ANSWER];
    for (;;) {
        ssize_t got = recv(fd, p->room, CHUNK, 0);
        int64_t now = now_ns();
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || atomic_load(&p->stop))
            break;
        all += (uint64_t)got;
        if (first_ns == 0)
            first_ns = now;
        if (begin_ns == 0 && now - first_ns >= WARM_NS) {
            begin_ns = now; /* these bytes arrived before */
            continue;
        }
        if (begin_ns != 0) {
            bytes += (uint64_t)got;
            last_ns = now;
        }
        if (now - first_ns > MOST_NS)
            break;
    }
    if (last_ns <= begin_ns) { /* the host was delayed for a while */
        bytes = all;
        begin_ns = open_ns;
        last_ns = now_ns();
    }
    put(answer, bytes);
    put(answer + 8, (uint64_t)(last_ns - begin_ns));
    if (!write_all(fd, answer, sizeof answer))
        return; /* the peer is gone */
}

static void serve(pl_probe *p, const guest *g)
{
    if (!pl_keys_same(g->greeting, p->token, PL_PROBE_TOKEN))
        return;
    if (g->greeting[PL_PROBE_TOKEN] == 'e')
        echo(p, g->fd);
    else if (g->greeting[PL_PROBE_TOKEN] == 's')
        sink(p, g->fd);
}

/* Read what has arrived of the greeting, and serve its request when complete;
 * false: finished with this guest. */
static bool hear(pl_probe *p, guest *g)
{
    ssize_t got =
        recv(g->fd, g->greeting + g->got, GREETING - g->got, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return !pl_deadline_passed(g->deadline);
    if (got <= 0)
        return false;
    g->got += (size_t)got;
    if (g->got < GREETING)
        return !pl_deadline_passed(g->deadline);
    serve(p, g);
    return false;
}

static void hear_guests(pl_probe *p)
{
    int kept = 0;
    for (int i = 0; i < p->guest_count; i++) {
        guest g = p->guests[i];
        if (hear(p, &g))
            p->guests[kept++] = g;
        else
            close(g.fd);
    }
    p->guest_count = kept;
}

/* Accept a connection; when full, the oldest guest is closed. */
static void welcome(pl_probe *p)
{
    int fd = accept4(p->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    set_limits(fd);
    if (p->guest_count == GUESTS) {
        close(p->guests[0].fd);
        memmove(p->guests, p->guests + 1, (GUESTS - 1) * sizeof *p->guests);
        p->guest_count--;
    }
    p->guests[p->guest_count++] = (guest) {
        .fd = fd,
        .deadline = pl_deadline_in_ms(pl_clock_real(), LIMIT_S * 1000),
    };
}

static pl_status run(void *arg)
{
    pl_probe *p = arg;
    while (!atomic_load(&p->stop)) {
        struct pollfd ready[1 + GUESTS] = { { .fd = p->fd, .events = POLLIN } };
        for (int i = 0; i < p->guest_count; i++)
            ready[1 + i] =
                (struct pollfd) { .fd = p->guests[i].fd, .events = POLLIN };
        poll(ready, 1 + (nfds_t)p->guest_count, LOOK_MS);
        if ((ready[0].revents & POLLIN) != 0)
            welcome(p);
        hear_guests(p);
    }
    for (int i = 0; i < p->guest_count; i++)
        close(p->guests[i].fd);
    return PL_OK;
}

/* Resolve "host:port"; the caller frees *out. */
static pl_status look_up(struct addrinfo **out, const char *text)
{
    pl_address address;
    PL_TRY(pl_address_split(&address, text));
    PL_TRY(pl_address_resolve(&address));
    struct addrinfo hints = { .ai_family = address.ipv6 ? AF_INET6 : AF_INET,
                              .ai_socktype = SOCK_STREAM };
    int error = getaddrinfo(address.host, address.port, &hints, out);
    if (error != 0)
        return PL_FAIL(PL_IO, "%s: %s", text, gai_strerror(error));
    return PL_OK;
}

static pl_status listen_at(pl_probe *p, const struct addrinfo *place,
                           const char *text)
{
    int on = 1;
    struct sockaddr_storage bound;
    socklen_t bytes = sizeof bound;
    char port[8];
    p->fd = socket(place->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (p->fd < 0 ||
        setsockopt(p->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(p->fd, place->ai_addr, place->ai_addrlen) != 0 ||
        listen(p->fd, 16) != 0 ||
        getsockname(p->fd, (struct sockaddr *)&bound, &bytes) != 0 ||
        getnameinfo((struct sockaddr *)&bound, bytes, NULL, 0, port,
                    sizeof port, NI_NUMERICSERV) != 0)
        return PL_FAIL(PL_IO, "listen at %s: %s", text, strerror(errno));
    p->port = atoi(port);
    return PL_OK;
}

static pl_status start(pl_probe *p, const char *address)
{
    struct addrinfo *place;
    PL_TRY(PL_NEW(p->room, CHUNK));
    PL_TRY(look_up(&place, address));
    pl_status status = listen_at(p, place, address);
    freeaddrinfo(place);
    PL_TRY(status);
    return pl_thread_start(&p->thread, "probe", run, p);
}

pl_status pl_probe_new(pl_probe **out, const char *address, const char *token)
{
    pl_probe *p;
    PL_TRY(PL_NEW(p, 1));
    p->fd = -1;
    memcpy(p->token, token, PL_PROBE_TOKEN);
    pl_status status = start(p, address);
    if (status != PL_OK) {
        pl_probe_free(p);
        return status;
    }
    *out = p;
    return PL_OK;
}

void pl_probe_free(pl_probe *p)
{
    if (p == NULL)
        return;
    atomic_store(&p->stop, true);
    if (p->thread != NULL && pl_thread_join(p->thread) != PL_OK)
        p->thread = NULL; /* it never fails */
    if (p->fd >= 0)
        close(p->fd);
    pl_mem_free(p->room);
    pl_mem_free(p);
}

int pl_probe_port(const pl_probe *p)
{
    return p->port;
}

/* --- measuring -------------------------------------------------------- */

static pl_status refused(const char *address, int error)
{
    const char *hint =
        error == ECONNREFUSED ? "nothing listens there"
        : error == ETIMEDOUT || error == EHOSTUNREACH || error == EINPROGRESS
            ? "a firewall, or no route"
            : "";
    return PL_FAIL(PL_IO, "connect to %s: %s%s%s", address,
                   error == EINPROGRESS ? "no answer" : strerror(error),
                   hint[0] != '\0' ? "; " : "", hint);
}

static pl_status wait_connected(int fd, const char *address)
{
    struct pollfd ready = { .fd = fd, .events = POLLOUT };
    int error = 0;
    socklen_t bytes = sizeof error;
    if (poll(&ready, 1, CONNECT_MS) <= 0)
        return refused(address, EINPROGRESS);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0)
        error = errno;
    return error == 0 ? PL_OK : refused(address, error);
}

/* Connect and send the greeting. */
static pl_status connect_to(int *out, const struct addrinfo *place,
                            const char *address, const char *token, char what)
{
    char begin[GREETING];
    int fd =
        socket(place->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return PL_FAIL(PL_IO, "make a socket: %s", strerror(errno));
    pl_status status = PL_OK;
    if (connect(fd, place->ai_addr, place->ai_addrlen) != 0)
        status = errno == EINPROGRESS ? wait_connected(fd, address)
                                      : refused(address, errno);
    if (status == PL_OK) {
        int flags = fcntl(fd, F_GETFL);
        fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
        set_limits(fd);
        memcpy(begin, token, PL_PROBE_TOKEN);
        begin[PL_PROBE_TOKEN] = what;
        if (!write_all(fd, begin, sizeof begin))
            status = PL_FAIL(PL_PEER, "%s hung up", address);
    }
    if (status != PL_OK)
        close(fd);
    else
        *out = fd;
    return status;
}

static pl_status measure_trips(pl_probe_result *out,
                               const struct addrinfo *place,
                               const char *address, const char *token)
{
    int fd;
    uint8_t ping[8];
    int64_t best_ns = INT64_MAX;
    PL_TRY(connect_to(&fd, place, address, token, 'e'));
    for (int i = 0; i < PINGS; i++) {
        int64_t begin_ns = now_ns();
        put(ping, (uint64_t)i);
        if (!write_all(fd, ping, sizeof ping) ||
            !read_all(fd, ping, sizeof ping) || get(ping) != (uint64_t)i) {
            close(fd);
            return PL_FAIL(PL_PEER,
                           "%s does not answer: something else "
                           "listens there",
                           address);
        }
        int64_t took_ns = now_ns() - begin_ns;
        best_ns = took_ns < best_ns ? took_ns : best_ns;
    }
    close(fd);
    out->round_trip_us = (double)best_ns * 1e-3;
    return PL_OK;
}

static pl_status send_for(int fd, const char *chunk, int64_t ms,
                          const char *address, uint64_t *sent)
{
    pl_deadline deadline =
        pl_deadline_in_ms(pl_clock_real(), ms + WARM_NS / 1000000);
    do {
        if (!write_all(fd, chunk, CHUNK))
            return PL_FAIL(PL_IO, "%s no longer accepts data", address);
        *sent += CHUNK;
    } while (!pl_deadline_passed(deadline));
    if (shutdown(fd, SHUT_WR) != 0)
        return PL_FAIL(PL_IO, "%s: %s", address, strerror(errno));
    return PL_OK;
}

pl_status pl_probe_speed(double *bytes_per_s,
                         const uint8_t answer[PL_PROBE_ANSWER], uint64_t sent,
                         const char *address)
{
    uint64_t bytes = get(answer), ns = get(answer + 8);
    if (bytes > sent || ns == 0)
        return PL_FAIL(PL_PEER,
                       "%s reports that %llu of %llu bytes arrived in %llu "
                       "ns: something else listens there",
                       address, (unsigned long long)bytes,
                       (unsigned long long)sent, (unsigned long long)ns);
    *bytes_per_s = (double)bytes / (double)ns * 1e9;
    return PL_OK;
}

static pl_status measure_speed(pl_probe_result *out,
                               const struct addrinfo *place,
                               const char *address, const char *token,
                               int64_t ms)
{
    int fd;
    char *chunk;
    uint8_t answer[PL_PROBE_ANSWER];
    uint64_t sent = 0;
    PL_TRY(PL_NEW(chunk, CHUNK));
    pl_status status = connect_to(&fd, place, address, token, 's');
    if (status == PL_OK) {
        status = send_for(fd, chunk, ms, address, &sent);
        if (status == PL_OK && !read_all(fd, answer, sizeof answer))
            status =
                PL_FAIL(PL_PEER, "%s does not report what arrived", address);
        close(fd);
    }
    pl_mem_free(chunk);
    PL_TRY(status);
    return pl_probe_speed(&out->bytes_per_s, answer, sent, address);
}

pl_status pl_probe_measure(pl_probe_result *out, const char *address,
                           const char *token, int64_t ms)
{
    struct addrinfo *place;
    PL_TRY(look_up(&place, address));
    pl_status status = measure_trips(out, place, address, token);
    if (status == PL_OK)
        status = measure_speed(out, place, address, token, ms);
    freeaddrinfo(place);
    return status;
}

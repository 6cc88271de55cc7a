/* A server's connections: which are accepted, which get a number, which are
 * closed.
 *
 * L1  A connection without a number (it has not sent a well-formed message yet)
 *     is in the list from `oldest` to `newest`; there are at most PENDING_MOST,
 *     and for a new one the oldest is closed.
 * L2  A connection with a number is in `links`, at that number.
 * L3  While events are left, only the connection of the current event can hold
 *     a complete message that was not delivered.
 * L4  Without keys, peers that are not known to be tasks hold at most
 *     STRANGERS_MOST bytes together, plus one read.
 * L5  A few descriptors are kept free for the task's files; when no more are
 *     available, accepting pauses. */
#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/endpoint_priv.h"
#include "net/tcp/tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG        1024
#define PENDING_MOST   128
#define HANDSHAKE_NS   5000000000ll
#define PAUSE_NS       200000000ll
#define ACCEPTED_MOST  16 /* at once */
#define STRANGERS_MOST ((size_t)40 << 20)
#define LOOKS_MOST     4
#define RESERVED_FDS   16
#define OFFENCES_MOST  8 /* malformed messages; then a peer is dropped */

static pl_status bind_failed(const char *address, int error)
{
    switch (error) {
    case EADDRINUSE:
        return PL_FAIL(PL_IO,
                       "listen on %s: the port is in use by another program; "
                       "stop that program or choose another port",
                       address);
    case EADDRNOTAVAIL:
    case ENODEV:
        return PL_FAIL(PL_IO,
                       "listen on %s: this host does not have that address; "
                       "give one of its own or 0.0.0.0",
                       address);
    case EACCES:
        return PL_FAIL(PL_IO,
                       "listen on %s: not permitted; choose a port from 1024",
                       address);
    default:
        return PL_FAIL(PL_IO, "listen on %s: %s", address, strerror(error));
    }
}

static pl_status bind_socket(pl_tcp *tcp, const pl_endpoint_opts *opts,
                             const pl_address *parts)
{
    struct sockaddr_storage at;
    socklen_t size;
    int one = 1;
    pl_address_socket(parts, &at, &size);
    tcp->listener =
        socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (tcp->listener < 0)
        return PL_FAIL(PL_IO, "socket: %s", strerror(errno));
    setsockopt(tcp->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(tcp->listener, (struct sockaddr *)&at, size) != 0 ||
        listen(tcp->listener, BACKLOG) != 0 ||
        getsockname(tcp->listener, (struct sockaddr *)&at, &size) != 0)
        return bind_failed(opts->address, errno);
    in_port_t port = at.ss_family == AF_INET6
                         ? ((struct sockaddr_in6 *)&at)->sin6_port
                         : ((struct sockaddr_in *)&at)->sin_port;
    tcp->config.port = ntohs(port);
    snprintf(tcp->route.endpoint->address, PL_ADDRESS_BYTES, "%s:%u",
             parts->numeric, (unsigned)tcp->config.port);
    return PL_OK;
}

/* NULL: the listening socket. */
static pl_status watch(pl_tcp *tcp, int fd, pl_connection *connection)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = connection };
    if (epoll_ctl(tcp->epoll, EPOLL_CTL_ADD, fd, &event) == 0)
        return PL_OK;
    return PL_FAIL(PL_IO, "epoll: %s", strerror(errno));
}

pl_status pl_listener_open(pl_tcp *tcp, const pl_endpoint_opts *opts)
{
    pl_address parts;
    PL_TRY(pl_address_split(&parts, opts->address));
    pl_status status = pl_address_resolve(&parts);
    if (status != PL_OK)
        return pl_context(status, "listen on %s", opts->address);
    bool proof = pl_address_is_loopback(&parts) && !opts->encrypt;
    tcp->own_user = !tcp->has_keys && pl_address_is_loopback(&parts);
    if (tcp->has_keys)
        tcp->config.mechanism =
            proof ? PL_MECHANISM_PROOF : PL_MECHANISM_ENCRYPTED;
    tcp->links_most = tcp->route.endpoint->peers.most;
    PL_TRY(PL_NEW(tcp->links, (size_t)tcp->links_most));
    tcp->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (tcp->epoll < 0)
        return PL_FAIL(PL_IO, "epoll: %s", strerror(errno));
    PL_TRY(bind_socket(tcp, opts, &parts));
    return watch(tcp, tcp->listener, NULL);
}

/* --- connections without a number --------------------------------------- */

static void append_pending(pl_tcp *tcp, pl_connection *c)
{
    c->before = tcp->newest;
    c->after = NULL;
    *(c->before != NULL ? &c->before->after : &tcp->oldest) = c;
    tcp->newest = c;
    tcp->pending++;
}

static void unlink_pending(pl_tcp *tcp, pl_connection *c)
{
    *(c->before != NULL ? &c->before->after : &tcp->oldest) = c->after;
    *(c->after != NULL ? &c->after->before : &tcp->newest) = c->before;
    tcp->pending--;
}

/* Afterwards nothing points to it. */
void pl_listener_drop(pl_tcp *tcp, pl_connection *c)
{
    pl_endpoint *e = tcp->route.endpoint;
    pl_pump_withdraw(tcp->user.pump, c);
    if (c->peer < 0)
        unlink_pending(tcp, c);
    else if (tcp->links[c->peer] == c)
        tcp->links[c->peer] = NULL;
    for (int i = tcp->event_at; i < tcp->event_count; i++)
        if (tcp->events[i].data.ptr == c)
            tcp->events[i].events = 0;
    tcp->charged -= c->charged;
    epoll_ctl(tcp->epoll, EPOLL_CTL_DEL, c->fd, NULL);
    pl_connection_hang_up(c);
    pl_decoder_close(&c->decoder);
    e->counts.dropped_messages += pl_outbox_close(&c->outbox);
    pl_handshake_wipe(&c->handshake);
    pl_mem_free(c);
}

void pl_listener_close(pl_tcp *tcp)
{
    while (tcp->oldest != NULL)
        pl_listener_drop(tcp, tcp->oldest);
    for (int32_t i = 0; tcp->links != NULL && i < tcp->links_most; i++)
        if (tcp->links[i] != NULL)
            pl_listener_drop(tcp, tcp->links[i]);
    pl_mem_free(tcp->links);
    if (tcp->listener >= 0)
        close(tcp->listener);
    if (tcp->epoll >= 0)
        close(tcp->epoll);
}

/* --- accepting ------------------------------------------------------------ */

/* The host of an address, so that a flood from it is logged once. */
static void host_of(char out[PL_PEER_TEXT], const char *address)
{
    snprintf(out, PL_PEER_TEXT, "%s", address);
    char *port = strrchr(out, ':');
    if (port != NULL)
        *port = '\0';
}

/* Pause accepting: the remaining descriptors are needed. */
static void pause_accepting(pl_tcp *tcp)
{
    pl_endpoint *e = tcp->route.endpoint;
    tcp->paused_ns = pl_clock_now_ns(pl_clock_real()) + PAUSE_NS;
    epoll_ctl(tcp->epoll, EPOLL_CTL_DEL, tcp->listener, NULL);
    if (!tcp->told_full)
        pl_log(PL_LOG_WARN,
               "%s (%s): no file descriptor is left for another connection; "
               "raise the limit (ulimit -n)",
               e->name, e->address);
    tcp->told_full = true;
}

static bool is_reserved(int fd)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
           limit.rlim_cur != RLIM_INFINITY &&
           (rlim_t)fd + RESERVED_FDS >= limit.rlim_cur;
}

/* Close the oldest connection that has not sent a valid message. */
static void evict_oldest(pl_tcp *tcp)
{
    pl_endpoint *e = tcp->route.endpoint;
    char host[PL_PEER_TEXT];
    host_of(host, tcp->oldest->address);
    pl_endpoint_refuse(e, host,
                       "too many connections that have sent nothing valid; "
                       "the oldest was closed");
    pl_listener_drop(tcp, tcp->oldest);
}

/* Few descriptors are left: close an unproved connection, otherwise pause
 * accepting and return false. */
static bool make_room(pl_tcp *tcp)
{
    if (tcp->oldest == NULL) {
        pause_accepting(tcp);
        return false;
    }
    evict_oldest(tcp);
    return true;
}

/* A new connection; false when there is no memory for it. */
static bool adopt(pl_tcp *tcp, int fd)
{
    pl_connection *c = pl_mem_alloc(1, sizeof *c);
    if (c == NULL)
        return false;
    c->fd = fd;
    c->peer = -1;
    c->deadline_ns = pl_clock_now_ns(pl_clock_real()) + HANDSHAKE_NS;
    pl_connection_tune(fd);
    pl_connection_name(c->address, fd);
    if (watch(tcp, fd, c) != PL_OK) {
        pl_mem_free(c);
        return false;
    }
    if (tcp->pending >= PENDING_MOST)
        evict_oldest(tcp);
    append_pending(tcp, c);
    return true;
}

/* Descriptors near the limit stay free: close another connection and move this
 * one to its descriptor. */
static bool move_down(pl_tcp *tcp, int *fd)
{
    if (!make_room(tcp))
        return false;
    int lower = fcntl(*fd, F_DUPFD_CLOEXEC, 0);
    if (lower < 0 || is_reserved(lower)) {
        if (lower >= 0)
            close(lower);
        return false;
    }
    close(*fd);
    *fd = lower;
    return true;
}

static void accept_some(pl_tcp *tcp)
{
    for (int i = 0; i < ACCEPTED_MOST; i++) {
        int fd =
            accept4(tcp->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
                       errno == ENOMEM)) {
            if (!make_room(tcp))
                return;
            continue;
        }
        if (fd < 0) /* none is waiting, or it has closed again */
            return;
        if (is_reserved(fd) && !move_down(tcp, &fd)) {
            close(fd);
            return;
        }
        if (!adopt(tcp, fd)) {
            close(fd);
            return;
        }
    }
}

/* --- handshakes ----------------------------------------------------------- */

static void refuse(pl_tcp *tcp, pl_connection *c, const char *why)
{
    pl_endpoint *e = tcp->route.endpoint;
    pl_endpoint_refuse(e, c->address, why);
    pl_listener_drop(tcp, c);
}

static void shake(pl_tcp *tcp, pl_connection *c)
{
    static const char gone[] =
        "it ended the connection before it had proved who it is";
    bool closed;
    pl_verdict verdict = PL_VERDICT_WELCOME;
    if (tcp->own_user && !pl_connection_judge_user(c->fd, &verdict)) {
        refuse(tcp, c, gone);
        return;
    }
    switch (
        pl_connection_shake(c, &tcp->config, verdict, &tcp->spares, &closed)) {
    case PL_HANDSHAKE_MORE:
        break;
    case PL_HANDSHAKE_DONE:
        c->ready = true;
        break;
    case PL_HANDSHAKE_REFUSED:
        refuse(tcp, c, closed ? gone : c->handshake.why);
        break;
    }
}

/* Check for handshakes that have timed out, and the end of a pause. */
static void look_at_time(pl_tcp *tcp)
{
    if (tcp->oldest == NULL && tcp->paused_ns == 0)
        return;
    int64_t now = pl_clock_now_ns(pl_clock_real());
    if (tcp->paused_ns != 0 && now >= tcp->paused_ns) {
        tcp->paused_ns = 0;
        if (watch(tcp, tcp->listener, NULL) != PL_OK)
            tcp->paused_ns = now + PAUSE_NS;
    }
    for (pl_connection *c = tcp->oldest, *after; c != NULL; c = after) {
        after = c->after;
        if (now < c->deadline_ns)
            break; /* they are in the order of their deadlines */
        if (c->ready)
            continue;
        shake(tcp, c); /* its bytes may have arrived while we computed */
    }
    for (pl_connection *c = tcp->oldest, *after; c != NULL; c = after) {
        after = c->after;
        if (now < c->deadline_ns)
            break;
        if (!c->ready)
            refuse(tcp, c, "it did not prove who it is in time");
    }
}

/* --- messages ------------------------------------------------------------- */

static void cut(pl_tcp *tcp, pl_peer peer)
{
    if (tcp->links[peer] != NULL)
        pl_listener_drop(tcp, tcp->links[peer]);
}

/* A number for a new identity, taken from another when all are used; -1: there
 * is none. */
static pl_peer number_for(pl_tcp *tcp, const uint8_t *identity)
{
    pl_endpoint *e = tcp->route.endpoint;
    pl_peer number = pl_peers_add(&e->peers, identity);
    if (number < 0) {
        pl_peer idle = pl_peers_idle(&e->peers);
        if (idle < 0)
            return -1;
        char host[PL_PEER_TEXT];
        host_of(host, e->peers.entries[idle].address);
        if (!e->peers.entries[idle].kept)
            pl_endpoint_refuse(e, host,
                               "too many connections, this one was silent "
                               "longest");
        pl_endpoint_drop(e, idle);
        number = pl_peers_add(&e->peers, identity);
    }
    if (number >= 0)
        cut(tcp, number); /* the connection that had it before */
    return number;
}

/* Give the connection its number; NULL, or why it has none. */
static const char *admit(pl_tcp *tcp, pl_connection *c)
{
    pl_endpoint *e = tcp->route.endpoint;
    const pl_handshake *shaken = &c->handshake;
    pl_peer peer = pl_peers_find(&e->peers, shaken->identity);
    if (peer >= 0 &&
        !pl_principal_equal(e->peers.entries[peer].who, shaken->who))
        return "it uses the identity of another task";
    if (peer < 0) {
        peer = number_for(tcp, shaken->identity);
        if (peer < 0)
            return "too many connections";
        e->peers.entries[peer].who = shaken->who;
    } else {
        cut(tcp, peer); /* the same client, on a new connection */
    }
    snprintf(e->peers.entries[peer].address, PL_PEER_TEXT, "%s", c->address);
    unlink_pending(tcp, c);
    c->peer = peer;
    tcp->links[peer] = c;
    return NULL;
}

/* Count and name a malformed message.  A peer that keeps sending such is
 * dropped; false: the connection is closed. */
static bool offend(pl_tcp *tcp, pl_connection *c, const char *why)
{
    pl_endpoint *e = tcp->route.endpoint;
    char task[PL_PRINCIPAL_TEXT];
    pl_endpoint_refuse(e, c->address, why);
    int32_t *offences =
        c->peer >= 0 ? &e->peers.entries[c->peer].offences : &c->offences;
    if (++*offences < OFFENCES_MOST)
        return true;
    pl_principal_text(c->handshake.who, task);
    if (c->peer >= 0 && !e->peers.entries[c->peer].dropped) {
        pl_log(PL_LOG_WARN,
               "%s (%s): %s at %s is dropped after %d malformed messages",
               e->name, e->address, task, c->address, OFFENCES_MOST);
        pl_endpoint_drop(e, c->peer);
    }
    pl_listener_drop(tcp, c);
    return false;
}

/* PL_OK: the next valid message of a connection.  PL_AGAIN: it needs more
 * bytes.  PL_CLOSED: it was closed. */
static pl_status take_from(pl_tcp *tcp, pl_connection *c, pl_message *out)
{
    pl_endpoint *e = tcp->route.endpoint;
    for (;;) {
        pl_decoder_message raw;
        pl_status status = pl_decoder_next(&c->decoder, &raw);
        if (status == PL_FORMAT) {
            if (offend(tcp, c, pl_error_message()))
                pl_listener_drop(tcp, c);
            return PL_CLOSED;
        }
        if (status != PL_OK)
            return status;
        if (pl_tcp_judge(tcp, &raw, out) != PL_OK) {
            if (!offend(tcp, c, pl_error_message()))
                return PL_CLOSED;
            continue;
        }
        const char *why = c->peer < 0 ? admit(tcp, c) : NULL;
        if (why != NULL) {
            pl_tcp_release(tcp);
            refuse(tcp, c, why);
            return PL_CLOSED;
        }
        if (e->peers.entries[c->peer].dropped) {
            pl_tcp_release(tcp);
            e->counts.refused_messages++;
            continue;
        }
        out->from = c->peer;
        return PL_OK;
    }
}

/* Without keys any process can connect: those not confirmed as tasks of the job
 * (pl_endpoint_keep) share a bounded amount of memory.  False: this connection
 * exceeds it. */
static bool charge(pl_tcp *tcp, pl_connection *c)
{
    pl_endpoint *e = tcp->route.endpoint;
    if (tcp->has_keys)
        return true;
    bool task = c->peer >= 0 && e->peers.entries[c->peer].kept;
    size_t memory = task ? 0 : pl_decoder_memory(&c->decoder);
    tcp->charged = tcp->charged - c->charged + memory;
    c->charged = memory;
    return memory == 0 || tcp->charged <= STRANGERS_MOST;
}

/* Handle an event of a connection: a message (PL_OK), nothing more for now
 * (PL_AGAIN), or a local failure. */
static pl_status serve(pl_tcp *tcp, pl_connection *c, pl_message *out)
{
    if (!c->ready) {
        shake(tcp, c);
        return PL_AGAIN;
    }
    for (;;) {
        pl_status status = take_from(tcp, c, out);
        if (status == PL_CLOSED)
            return PL_AGAIN;
        charge(tcp, c); /* less than before: a message was delivered */
        if (status != PL_AGAIN || tcp->has_read)
            return status;
        /* One read for each event: then others get their turn. */
        tcp->has_read = true;
        status = pl_connection_read(c);
        if (status == PL_CLOSED)
            pl_listener_drop(tcp, c);
        if (status != PL_OK)
            return status == PL_CLOSED ? PL_AGAIN : status;
        if (!charge(tcp, c)) {
            refuse(tcp, c,
                   "peers that are not tasks of the job have sent too much");
            return PL_AGAIN;
        }
    }
}

/* Ask the kernel which connections are readable; false: none is. */
static bool look(pl_tcp *tcp)
{
    tcp->event_at = 0;
    tcp->has_read = false;
    int count = epoll_wait(tcp->epoll, tcp->events, PL_TCP_EVENTS, 0);
    tcp->event_count = count > 0 ? count : 0;
    return count > 0;
}

pl_status pl_listener_take(pl_tcp *tcp, pl_message *out)
{
    look_at_time(tcp);
    int looks = 0;
    /* Bounded, so that a peer sending only garbage cannot keep us here. */
    while (tcp->event_at < tcp->event_count ||
           (looks++ < LOOKS_MOST && look(tcp))) {
        const struct epoll_event *event = &tcp->events[tcp->event_at];
        if (event->events != 0 && event->data.ptr == NULL) {
            accept_some(tcp);
        } else if (event->events != 0) {
            pl_status status = serve(tcp, event->data.ptr, out);
            if (status != PL_AGAIN)
                return status;
        }
        tcp->event_at++;
        tcp->has_read = false;
    }
    return PL_AGAIN;
}

bool pl_listener_sleep(pl_tcp *tcp, struct pollfd *poll_out, int64_t *until_ns)
{
    *poll_out = (struct pollfd) { tcp->epoll, POLLIN, 0 };
    for (const pl_connection *c = tcp->oldest; c != NULL; c = c->after)
        if (!c->ready) {
            if (c->deadline_ns < *until_ns)
                *until_ns = c->deadline_ns;
            break;
        }
    if (tcp->paused_ns != 0 && tcp->paused_ns < *until_ns)
        *until_ns = tcp->paused_ns;
    return tcp->event_at >= tcp->event_count;
}

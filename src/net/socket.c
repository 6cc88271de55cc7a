#include "net/socket.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/thread.h"
#include "net/frame.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#define QUEUE_MESSAGES  1024 /* per peer and way; bytes have credits above */
#define HANDSHAKE_MS    5000
#define RECONNECT_MS    50
#define RECONNECT_MAX   1000
#define BACKLOG         1024
#define KEEPALIVE_IDLE  5 /* seconds until a silent peer is asked */
#define KEEPALIVE_EVERY 2 /* seconds between questions */
#define KEEPALIVE_TRIES 3
#define UNACKED_MS      10000 /* sent bytes without an answer of the host */

#define CURVE_EXTRA       64 /* bytes that encryption adds to a message */
#define IO_THREADS_MOST   4
#define TCP_ADDRESS_BYTES (PL_ADDRESS_BYTES + 8) /* with "tcp://" */

#define MONITOR_NAME "inproc://monitor"

static pl_status set(pl_socket *socket, int option, int value)
{
    if (zmq_setsockopt(socket->handle, option, &value, sizeof value) == 0)
        return PL_OK;
    return PL_FAIL(PL_IO, "ZeroMQ option %d: %s", option,
                   zmq_strerror(zmq_errno()));
}

static pl_status set_options(pl_socket *socket, bool ipv6)
{
    const int options[][2] = {
        { ZMQ_LINGER, 0 },
        { ZMQ_SNDHWM, QUEUE_MESSAGES },
        { ZMQ_RCVHWM, QUEUE_MESSAGES },
        { ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS },
        { ZMQ_RECONNECT_IVL, RECONNECT_MS },
        { ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX },
        { ZMQ_BACKLOG, BACKLOG },
        { ZMQ_TCP_KEEPALIVE, 1 },
        { ZMQ_TCP_KEEPALIVE_IDLE, KEEPALIVE_IDLE },
        { ZMQ_TCP_KEEPALIVE_INTVL, KEEPALIVE_EVERY },
        { ZMQ_TCP_KEEPALIVE_CNT, KEEPALIVE_TRIES },
        { ZMQ_TCP_MAXRT, UNACKED_MS },
        { ZMQ_IPV6, ipv6 },
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        PL_TRY(set(socket, options[i][0], options[i][1]));
    int64_t most = PL_FRAME_PAYLOAD_MAX;
    if (socket->mechanism == PL_MECHANISM_CURVE)
        most += CURVE_EXTRA;
    if (zmq_setsockopt(socket->handle, ZMQ_MAXMSGSIZE, &most, sizeof most) != 0)
        return PL_FAIL(PL_IO, "ZeroMQ message size: %s",
                       zmq_strerror(zmq_errno()));
    return PL_OK;
}

static pl_status get_fd(int *out, void *handle)
{
    size_t size = sizeof *out;
    if (zmq_getsockopt(handle, ZMQ_FD, out, &size) == 0)
        return PL_OK;
    return PL_FAIL(PL_IO, "ZeroMQ descriptor: %s", zmq_strerror(zmq_errno()));
}

static pl_mechanism choose_mechanism(const pl_endpoint_opts *opts,
                                     const pl_address *parts)
{
    if (opts->keys == NULL)
        return PL_MECHANISM_NONE;
    return pl_address_is_loopback(parts) && !opts->encrypt ? PL_MECHANISM_PLAIN
                                                           : PL_MECHANISM_CURVE;
}

static pl_status set_bytes(pl_socket *socket, int option, const void *bytes,
                           size_t size)
{
    if (zmq_setsockopt(socket->handle, option, bytes, size) == 0)
        return PL_OK;
    return PL_FAIL(PL_IO, "ZeroMQ key, option %d: %s", option,
                   zmq_strerror(zmq_errno()));
}

static pl_status set_password(pl_socket *socket, const pl_endpoint_opts *opts)
{
    char name[PL_PRINCIPAL_TEXT], password[PL_PASSWORD_TEXT];
    pl_principal_text(opts->self, name);
    pl_keys_password(&opts->keys->secret, opts->self, password);
    pl_status status =
        set_bytes(socket, ZMQ_PLAIN_USERNAME, name, strlen(name));
    if (status == PL_OK)
        status = set_bytes(socket, ZMQ_PLAIN_PASSWORD, password,
                           sizeof password - 1);
    pl_keys_wipe(password, sizeof password);
    return status;
}

pl_principal pl_socket_server(const pl_endpoint_opts *opts)
{
    return (pl_principal) { opts->to_worker ? PL_PRINCIPAL_WORKER
                                            : PL_PRINCIPAL_PS,
                            opts->server };
}

static pl_status set_curve(pl_socket *socket, const pl_endpoint_opts *opts,
                           bool server)
{
    pl_curve_pair own, theirs;
    pl_status status;
    if (zmq_has("curve") != 1)
        return PL_FAIL(PL_UNSUPPORTED, "this ZeroMQ cannot encrypt (CURVE)");
    pl_keys_curve(&opts->keys->secret, opts->self, &own);
    pl_keys_curve(&opts->keys->secret, pl_socket_server(opts), &theirs);
    if (server) {
        PL_TRY_OUT(status, set(socket, ZMQ_CURVE_SERVER, 1));
    } else {
        PL_TRY_OUT(status, set_bytes(socket, ZMQ_CURVE_SERVERKEY,
                                     theirs.public_key, PL_CURVE_BYTES));
        PL_TRY_OUT(status, set_bytes(socket, ZMQ_CURVE_PUBLICKEY,
                                     own.public_key, PL_CURVE_BYTES));
    }
    status =
        set_bytes(socket, ZMQ_CURVE_SECRETKEY, own.secret_key, PL_CURVE_BYTES);
out:
    pl_keys_wipe(&own, sizeof own);
    pl_keys_wipe(&theirs, sizeof theirs);
    return status;
}

static pl_status set_mechanism(pl_socket *socket, const pl_endpoint_opts *opts,
                               bool server)
{
    switch (socket->mechanism) {
    case PL_MECHANISM_NONE:
        break;
    case PL_MECHANISM_PLAIN:
        return server ? set(socket, ZMQ_PLAIN_SERVER, 1)
                      : set_password(socket, opts);
    case PL_MECHANISM_CURVE:
        return set_curve(socket, opts, server);
    }
    return PL_OK;
}

/* The door is there before anyone can knock, and as long as the socket: where
 * there is none, ZeroMQ lets in whoever has any key at all. */
static pl_status open_door(pl_socket *socket, const pl_endpoint_opts *opts)
{
    PL_TRY(set_bytes(socket, ZMQ_ZAP_DOMAIN, PL_DOOR_DOMAIN,
                     strlen(PL_DOOR_DOMAIN)));
    return pl_door_open(&socket->door, socket->context, opts->keys);
}

static int io_threads(const pl_socket *socket, const pl_endpoint_opts *opts,
                      bool server)
{
    if (opts->io_threads > 0)
        return opts->io_threads;
    if (!server || socket->mechanism != PL_MECHANISM_CURVE)
        return 1;
    int quarter = pl_thread_cores() / 4;
    return quarter < 1                 ? 1
           : quarter > IO_THREADS_MOST ? IO_THREADS_MOST
                                       : quarter;
}

static pl_status open_socket(pl_socket *socket, const pl_endpoint_opts *opts,
                             const pl_address *parts, bool server)
{
    PL_ASSERT(opts->keys == NULL || opts->self.role != PL_PRINCIPAL_NONE);
    socket->mechanism = choose_mechanism(opts, parts);
    socket->context = zmq_ctx_new();
    if (socket->context == NULL)
        return PL_FAIL(PL_NOMEM, "ZeroMQ context: %s",
                       zmq_strerror(zmq_errno()));
    zmq_ctx_set(socket->context, ZMQ_IO_THREADS,
                io_threads(socket, opts, server));
    socket->handle =
        zmq_socket(socket->context, server ? ZMQ_ROUTER : ZMQ_DEALER);
    if (socket->handle == NULL)
        return PL_FAIL(PL_IO, "ZeroMQ socket: %s", zmq_strerror(zmq_errno()));
    PL_TRY(set_options(socket, parts->ipv6));
    PL_TRY(set_mechanism(socket, opts, server));
    return get_fd(&socket->fd, socket->handle);
}

/* Events are read when the owner next waits, however late that is: a limit
 * here would make ZeroMQ's own thread wait for us. */
static pl_status open_monitor(pl_socket *socket)
{
    int events =
        ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED |
        ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
        ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
    int no_limit = 0;
    socket->monitor = zmq_socket(socket->context, ZMQ_PAIR);
    if (socket->monitor == NULL ||
        zmq_socket_monitor(socket->handle, MONITOR_NAME, events) != 0 ||
        zmq_setsockopt(socket->monitor, ZMQ_RCVHWM, &no_limit,
                       sizeof no_limit) != 0 ||
        zmq_setsockopt(socket->monitor, ZMQ_LINGER, &no_limit,
                       sizeof no_limit) != 0 ||
        zmq_connect(socket->monitor, MONITOR_NAME) != 0)
        return PL_FAIL(PL_IO, "ZeroMQ monitor: %s", zmq_strerror(zmq_errno()));
    return get_fd(&socket->monitor_fd, socket->monitor);
}

static pl_status bind_failed(const char *address, int error)
{
    switch (error) {
    case EADDRINUSE:
        return PL_FAIL(PL_IO,
                       "listen on %s: the port is in use by another program; "
                       "stop that or choose another port (0: any free one)",
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
        return PL_FAIL(PL_IO, "listen on %s: %s", address, zmq_strerror(error));
    }
}

static pl_status bind_socket(pl_socket *socket, const char *address,
                             const pl_address *parts)
{
    char endpoint[PL_ADDRESS_BYTES];
    snprintf(endpoint, sizeof endpoint, "tcp://%s:%s", parts->numeric,
             parts->port);
    if (zmq_bind(socket->handle, endpoint) != 0)
        return bind_failed(address, zmq_errno());
    size_t size = sizeof endpoint;
    if (zmq_getsockopt(socket->handle, ZMQ_LAST_ENDPOINT, endpoint, &size) != 0)
        return PL_FAIL(PL_IO, "ZeroMQ address: %s", zmq_strerror(zmq_errno()));
    snprintf(socket->address, sizeof socket->address, "%s",
             endpoint + strlen("tcp://"));
    return PL_OK;
}

pl_status pl_socket_listen(pl_socket *socket, const pl_endpoint_opts *opts)
{
    *socket = (pl_socket) { .fd = -1, .monitor_fd = -1 };
    pl_address parts;
    PL_TRY(pl_address_split(&parts, opts->address));
    pl_status status = pl_address_resolve(&parts);
    if (status != PL_OK)
        return pl_context(status, "listen on %s", opts->address);
    PL_TRY_OUT(status, open_socket(socket, opts, &parts, true));
    PL_TRY_OUT(status, set(socket, ZMQ_ROUTER_MANDATORY, 1));
    PL_TRY_OUT(status, set(socket, ZMQ_ROUTER_HANDOVER, 1));
    PL_TRY_OUT(status, open_monitor(socket));
    PL_TRY_OUT(status, open_door(socket, opts));
    PL_TRY_OUT(status, bind_socket(socket, opts->address, &parts));
    return PL_OK;
out:
    pl_socket_close(socket, 0);
    return status;
}

/* A name that means nothing yet may do so later: ZeroMQ asks again each time
 * it connects.  But a password goes to nobody else than who was asked about:
 * then the number stands for the name. */
static void connect_text(char out[TCP_ADDRESS_BYTES], const pl_socket *socket,
                         const pl_address *parts)
{
    if (socket->mechanism == PL_MECHANISM_PLAIN)
        snprintf(out, TCP_ADDRESS_BYTES, "tcp://%s:%s", parts->numeric,
                 parts->port);
    else
        snprintf(out, TCP_ADDRESS_BYTES, "tcp://%s", socket->address);
}

pl_status pl_socket_connect(pl_socket *socket, const pl_endpoint_opts *opts,
                            const uint8_t identity[PL_IDENTITY_BYTES])
{
    *socket = (pl_socket) { .fd = -1, .monitor_fd = -1 };
    pl_address parts;
    PL_TRY(pl_address_split(&parts, opts->address));
    if (strtol(parts.port, NULL, 10) == 0)
        return PL_FAIL(PL_USAGE, "connect to %s: port 0 is no port",
                       opts->address);
    if (pl_address_resolve(&parts) != PL_OK)
        parts.numeric[0] = '\0';
    snprintf(socket->address, sizeof socket->address, "%s", opts->address);
    char endpoint[TCP_ADDRESS_BYTES];
    pl_status status;
    PL_TRY_OUT(status, open_socket(socket, opts, &parts, false));
    PL_TRY_OUT(status, open_monitor(socket));
    connect_text(endpoint, socket, &parts);
    if (zmq_setsockopt(socket->handle, ZMQ_ROUTING_ID, identity,
                       PL_IDENTITY_BYTES) != 0 ||
        zmq_connect(socket->handle, endpoint) != 0) {
        status = PL_FAIL(PL_IO, "connect to %s: %s", opts->address,
                         zmq_strerror(zmq_errno()));
        goto out;
    }
    return PL_OK;
out:
    pl_socket_close(socket, 0);
    return status;
}

void pl_socket_close(pl_socket *socket, int linger_ms)
{
    if (socket->handle != NULL) {
        zmq_setsockopt(socket->handle, ZMQ_LINGER, &linger_ms,
                       sizeof linger_ms);
        zmq_socket_monitor(socket->handle, NULL, 0);
        zmq_close(socket->handle);
    }
    if (socket->monitor != NULL)
        zmq_close(socket->monitor);
    if (socket->door != NULL) {
        zmq_ctx_shutdown(socket->context); /* ends its wait */
        pl_door_close(socket->door);
    }
    if (socket->context != NULL)
        while (zmq_ctx_term(socket->context) != 0 && zmq_errno() == EINTR)
            ;
    *socket = (pl_socket) { .fd = -1, .monitor_fd = -1 };
}

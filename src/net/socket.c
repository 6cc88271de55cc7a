#include "net/socket.h"

#include "base/mem.h"
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

static pl_status open_socket(pl_socket *socket, int type, bool ipv6)
{
    socket->context = zmq_ctx_new();
    if (socket->context == NULL)
        return PL_FAIL(PL_NOMEM, "ZeroMQ context: %s",
                       zmq_strerror(zmq_errno()));
    socket->handle = zmq_socket(socket->context, type);
    if (socket->handle == NULL)
        return PL_FAIL(PL_IO, "ZeroMQ socket: %s", zmq_strerror(zmq_errno()));
    PL_TRY(set_options(socket, ipv6));
    return get_fd(&socket->fd, socket->handle);
}

/* Events are read when the owner next waits, however late that is: a limit
 * here would make ZeroMQ's own thread wait for us. */
static pl_status open_monitor(pl_socket *socket)
{
    int events = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED |
                 ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                 ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                 ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
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

pl_status pl_socket_listen(pl_socket *socket, const char *address)
{
    *socket = (pl_socket) { .fd = -1, .monitor_fd = -1 };
    pl_address parts;
    PL_TRY(pl_address_split(&parts, address));
    pl_status status = pl_address_resolve(&parts);
    if (status != PL_OK)
        return pl_context(status, "listen on %s", address);
    PL_TRY_OUT(status, open_socket(socket, ZMQ_ROUTER, parts.ipv6));
    PL_TRY_OUT(status, set(socket, ZMQ_ROUTER_MANDATORY, 1));
    PL_TRY_OUT(status, set(socket, ZMQ_ROUTER_HANDOVER, 1));
    PL_TRY_OUT(status, open_monitor(socket));
    PL_TRY_OUT(status, bind_socket(socket, address, &parts));
    return PL_OK;
out:
    pl_socket_close(socket, 0);
    return status;
}

pl_status pl_socket_connect(pl_socket *socket, const char *address,
                            const uint8_t identity[PL_IDENTITY_BYTES])
{
    *socket = (pl_socket) { .fd = -1, .monitor_fd = -1 };
    pl_address parts;
    PL_TRY(pl_address_split(&parts, address));
    if (strtol(parts.port, NULL, 10) == 0)
        return PL_FAIL(PL_USAGE, "connect to %s: port 0 is no port", address);
    /* A name that means nothing yet may do so later: ZeroMQ asks again each
     * time it connects. */
    bool known = pl_address_resolve(&parts) == PL_OK;
    char endpoint[PL_ADDRESS_BYTES];
    snprintf(endpoint, sizeof endpoint, "tcp://%s", address);
    snprintf(socket->address, sizeof socket->address, "%s", address);
    pl_status status;
    PL_TRY_OUT(status, open_socket(socket, ZMQ_DEALER, known && parts.ipv6));
    if (zmq_setsockopt(socket->handle, ZMQ_ROUTING_ID, identity,
                       PL_IDENTITY_BYTES) != 0 ||
        zmq_connect(socket->handle, endpoint) != 0) {
        status = PL_FAIL(PL_IO, "connect to %s: %s", address,
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
    if (socket->context != NULL)
        while (zmq_ctx_term(socket->context) != 0 && zmq_errno() == EINTR)
            ;
    *socket = (pl_socket) { .fd = -1, .monitor_fd = -1 };
}

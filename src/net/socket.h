/* socket.h - a ZeroMQ socket with its context, its door and what watches it.
 *
 * A server is a ROUTER, a client a DEALER.  Nothing here blocks: the caller
 * polls `fd` (and `monitor_fd`) after a try to receive found nothing, as
 * ZeroMQ signals a change only once.
 *
 * Threads: one. */
#ifndef PL_NET_SOCKET_H
#define PL_NET_SOCKET_H

#include "net/address.h"
#include "net/door.h"
#include "net/endpoint.h"
#include "net/peers.h"
#include "paceline/base.h"

#include <stdint.h>

/* How the two ends prove who they are. */
typedef enum pl_mechanism {
    PL_MECHANISM_NONE,
    PL_MECHANISM_PLAIN, /* the client, by its password */
    PL_MECHANISM_CURVE, /* both, and what is said is encrypted */
} pl_mechanism;

typedef struct pl_socket {
    void *context, *handle;
    void *monitor; /* tells of refused connections */
    pl_door *door; /* server */
    pl_mechanism mechanism;
    int fd, monitor_fd;
    char address[PL_ADDRESS_BYTES]; /* "127.0.0.1:4711" */
} pl_socket;

pl_status pl_socket_listen(pl_socket *socket,
                           const pl_endpoint_opts *opts) PL_MUST_CHECK;
pl_status pl_socket_connect(pl_socket *socket, const pl_endpoint_opts *opts,
                            const uint8_t identity[PL_IDENTITY_BYTES])
    PL_MUST_CHECK;
/* Who a client with keys expects. */
pl_principal pl_socket_server(const pl_endpoint_opts *opts);
void pl_socket_close(pl_socket *socket, int linger_ms);

#endif

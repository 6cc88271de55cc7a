/* owner.h - the user at the other end of a connection within this host.
 *
 * The kernel is queried for the owner of the peer's socket, by the two
 * addresses of the connection.
 *
 * Threads: any. */
#ifndef PL_NET_TCP_OWNER_H
#define PL_NET_TCP_OWNER_H

#include "paceline/base.h"

#include <sys/types.h>

/* The owner of the peer of a connected socket.  PL_NOTFOUND: the peer has
 * closed it; PL_UNSUPPORTED: this system cannot report it. */
pl_status pl_owner_of_peer(int fd, uid_t *out) PL_MUST_CHECK;

/* The same by reading /proc/net/tcp or tcp6, for kernels without sock_diag. */
pl_status pl_owner_from_proc(int fd, const char *folder,
                             uid_t *out) PL_MUST_CHECK;

#endif

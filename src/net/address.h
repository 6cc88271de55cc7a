/* address.h - "host:port" split, and its host resolved.
 *
 * Threads: any. */
#ifndef PL_NET_ADDRESS_H
#define PL_NET_ADDRESS_H

#include "paceline/base.h"

#include <stdbool.h>
#include <sys/socket.h>

#define PL_ADDRESS_BYTES 320 /* a host name of 255, brackets and a port */

typedef struct pl_address {
    char host[256], port[8]; /* "[::1]:80" is host "::1", port "80" */
    char numeric[300];       /* "10.0.0.7", "[::1]"; "": not known */
    bool ipv6;
} pl_address;

/* PL_USAGE when it is not HOST:PORT. */
pl_status pl_address_split(pl_address *out, const char *text) PL_MUST_CHECK;

/* Resolve the host.  A name may have an IPv4 and an IPv6 address; both ends of
 * a connection try IPv4 first, so they agree.  PL_IO when the name cannot be
 * resolved, or not yet. */
pl_status pl_address_resolve(pl_address *address) PL_MUST_CHECK;

/* Whether it is on this host; false when the name cannot be resolved. */
bool pl_address_is_loopback(const pl_address *address);

/* Of a resolved address, for connect() and bind(). */
void pl_address_socket(const pl_address *address, struct sockaddr_storage *out,
                       socklen_t *bytes);

#endif

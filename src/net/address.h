/* address.h - "host:port" in parts, and what its host stands for.
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

/* Find the number of the host.  Names may stand for an IPv4 and an IPv6
 * address; IPv4 is tried first, at either end of a connection, so they meet.
 * PL_IO when the name means nothing, or nothing yet. */
pl_status pl_address_resolve(pl_address *address) PL_MUST_CHECK;

/* Only this host can be there; false when the name means nothing. */
bool pl_address_is_loopback(const pl_address *address);

/* Of a resolved address, for connect() and bind(). */
void pl_address_socket(const pl_address *address, struct sockaddr_storage *out,
                       socklen_t *bytes);

#endif

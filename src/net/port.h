/* port.h - ports of this host that are free to listen on.
 *
 * Threads: any. */
#ifndef PL_NET_PORT_H
#define PL_NET_PORT_H

#include "paceline/base.h"

/* `count` different ones at the address of `host`, which must be this host's.
 * They are below the ephemeral ports of outgoing connections and are not
 * reserved: bind them soon.  PL_IO when the name cannot be resolved or is
 * another host's. */
pl_status pl_port_find(const char *host, int count, int *ports) PL_MUST_CHECK;

#endif

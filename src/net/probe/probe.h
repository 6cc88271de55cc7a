/* probe.h - the speed of the link between two hosts, over plain TCP.
 *
 * One host listens, another measures: the round trip of a few bytes, and the
 * bytes that arrive in a while, as the receiver counts them.  A peer that does
 * not know the token is disconnected.
 *
 * Threads: the server has one of its own; measuring is the caller's. */
#ifndef PL_NET_PROBE_PROBE_H
#define PL_NET_PROBE_PROBE_H

#include "paceline/base.h"

#include <stdint.h>

#define PL_PROBE_TOKEN 32 /* characters */

typedef struct pl_probe pl_probe;

/* Listen at "host:port"; port 0 is any free one.  `token` has PL_PROBE_TOKEN
 * characters. */
pl_status pl_probe_new(pl_probe **out, const char *address,
                       const char *token) PL_MUST_CHECK;
void pl_probe_free(pl_probe *probe); /* NULL is fine */
int pl_probe_port(const pl_probe *probe);

typedef struct pl_probe_result {
    double round_trip_us; /* the shortest of several */
    double bytes_per_s;
} pl_probe_result;

/* Measure the link to a probe for `ms`.  PL_IO: it cannot be reached, with the
 * reason; PL_PEER: the listener is not a probe. */
pl_status pl_probe_measure(pl_probe_result *out, const char *address,
                           const char *token, int64_t ms) PL_MUST_CHECK;

#endif

/* probe_priv.h - decoding of a probe's answer.
 *
 * Threads: pure functions. */
#ifndef PL_NET_PROBE_PROBE_PRIV_H
#define PL_NET_PROBE_PROBE_PRIV_H

#include "net/probe/probe.h"

#define PL_PROBE_ANSWER 16 /* bytes: what arrived, and in how many ns */

/* The speed, from the answer to `sent` bytes.  PL_PEER when no probe can have
 * sent it. */
pl_status pl_probe_speed(double *bytes_per_s,
                         const uint8_t answer[PL_PROBE_ANSWER], uint64_t sent,
                         const char *address) PL_MUST_CHECK;

#endif

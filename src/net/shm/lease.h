/* lease.h - memory of another process, mapped as long as anyone reads it.
 *
 * The channel to a peer maps the peer's area and has one hold on it; whoever
 * keeps a pointer into it beyond the next message takes another.  When the
 * last one lets go it is unmapped: neither the end of the peer nor that of the
 * channel takes memory away from under a reader.
 *
 * Threads: one. */
#ifndef PL_NET_SHM_LEASE_H
#define PL_NET_SHM_LEASE_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct pl_lease pl_lease;

/* Takes the mapping, also when it fails; the caller has the first hold. */
pl_status pl_lease_new_take(pl_lease **out, void *data,
                            size_t bytes) PL_MUST_CHECK;
pl_lease *pl_lease_hold(pl_lease *lease); /* returns it; NULL is fine */
void pl_lease_release(pl_lease *lease);   /* NULL is fine */

const void *pl_lease_data(const pl_lease *lease);
size_t pl_lease_bytes(const pl_lease *lease);
/* Whether [data, data + bytes) lies in it; of NULL nothing does. */
bool pl_lease_covers(const pl_lease *lease, const void *data, size_t bytes);

#endif

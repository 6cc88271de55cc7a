/* lease.h - memory of another process, mapped while it is read.
 *
 * The channel to a peer maps the peer's area and has one hold on it; code that
 * keeps a pointer into it beyond the next message takes another.  Releasing the
 * last hold unmaps it: a reader keeps its memory when the peer or the channel
 * ends.
 *
 * Threads: one. */
#ifndef PL_NET_SHM_LEASE_H
#define PL_NET_SHM_LEASE_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct pl_lease pl_lease;

/* Takes ownership of the mapping, also on failure; the caller has the first
 * hold. */
pl_status pl_lease_new_take(pl_lease **out, void *data,
                            size_t bytes) PL_MUST_CHECK;
pl_lease *pl_lease_hold(pl_lease *lease); /* returns it; NULL is fine */
void pl_lease_release(pl_lease *lease);   /* NULL is fine */

const void *pl_lease_data(const pl_lease *lease);
size_t pl_lease_bytes(const pl_lease *lease);
/* Whether [data, data + bytes) lies in it; false for NULL. */
bool pl_lease_covers(const pl_lease *lease, const void *data, size_t bytes);

#endif

/* area_priv.h - what a channel needs of an area besides its memory.
 *
 * Threads: as area.h. */
#ifndef PL_NET_SHM_AREA_PRIV_H
#define PL_NET_SHM_AREA_PRIV_H

#include "net/shm/area.h"

#include <stdbool.h>

/* The descriptor of the area, which owns it. */
int pl_area_fd(const pl_area *area);

/* A memory file of `bytes` zeros that can never shrink: no other process can
 * truncate it under a mapping.  The caller closes *fd. */
pl_status pl_area_make_file(int *fd, size_t bytes) PL_MUST_CHECK;

/* Whether [data, data + bytes) lies in the area; where, in *offset. */
bool pl_area_holds(const pl_area *area, const void *data, size_t bytes,
                   size_t *offset);

#endif

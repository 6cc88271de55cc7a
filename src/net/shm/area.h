/* area.h - memory that tasks of one host can share.
 *
 * An area has no name in the file system and disappears with the last process
 * that maps it, however that ends.  It starts as zeros.
 *
 * Threads: as plain memory. */
#ifndef PL_NET_SHM_AREA_H
#define PL_NET_SHM_AREA_H

#include "paceline/base.h"

#include <stddef.h>

typedef struct pl_area pl_area;

pl_status pl_area_new(pl_area **out, size_t bytes) PL_MUST_CHECK;
void pl_area_free(pl_area *area);        /* NULL is fine */
void *pl_area_data(const pl_area *area); /* page-aligned */
size_t pl_area_bytes(const pl_area *area);

#endif

/* spill.h - an unnamed temporary file: written once, then mapped.
 *
 * For data that is needed in another form than on disk, such as unpacked, and
 * may be too large for memory.  It disappears when the process ends, however it
 * ends.
 *
 * Threads: one at a time. */
#ifndef PL_BASE_FILE_SPILL_H
#define PL_BASE_FILE_SPILL_H

#include "base/file/file.h"

typedef struct pl_spill {
    int file;
    const char *folder; /* borrowed; for messages */
} pl_spill;

/* In `folder`, which is made when missing; NULL: in memory. */
pl_status pl_spill_init(pl_spill *spill, const char *folder) PL_MUST_CHECK;
void pl_spill_close(pl_spill *spill); /* a mapping stays valid */

pl_status pl_spill_put(pl_spill *spill, const void *data,
                       size_t bytes) PL_MUST_CHECK;

/* What was written so far; close it by pl_map_close. */
pl_status pl_spill_map(const pl_spill *spill, pl_map *map) PL_MUST_CHECK;

#endif

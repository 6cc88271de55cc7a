/* map.h - the bytes of a file that its owner may change meanwhile.
 *
 * By default a file is read into memory, where no other process can change it.
 * A program that called pl_map_allow gets its pages instead: they cost no
 * memory of their own and are shared with other processes, but whoever owns
 * the file can overwrite them at any time, and truncating it would end the
 * process by SIGBUS.  The handler that pl_map_allow installs puts zeros where
 * the file has no bytes any more and remembers that it did; whoever used the
 * bytes asks pl_map_check before it believes what came of them.
 *
 * So of a file that may change (pl_map_shared): copy what is parsed, by
 * pl_map_copy, or read every byte once and check it where it is used.
 *
 * Threads: any; a map may be read by all until it is closed. */
#ifndef PL_BASE_FILE_MAP_H
#define PL_BASE_FILE_MAP_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pl_map {
    const uint8_t *data; /* NULL when the file is empty */
    size_t bytes;
    struct pl_map_watch *watch; /* NULL: no other can change the bytes */
} pl_map;

/* From here on files are mapped: for a program, not a library, since the
 * handler of SIGBUS is the whole process's.  Other faults go to the handler
 * that was there before.  To be called before there are other threads, and
 * again when something else took the signal. */
void pl_map_allow(void);

/* Only regular files. */
pl_status pl_map_init(pl_map *map, const char *path) PL_MUST_CHECK;
/* The same, but read in any case; PL_FORMAT when it has more than `most`
 * bytes. */
pl_status pl_map_read(pl_map *map, const char *path, size_t most) PL_MUST_CHECK;
void pl_map_close(pl_map *map); /* a zeroed one is fine */

static inline bool pl_map_shared(const pl_map *map)
{
    return map->watch != NULL;
}

/* False when bytes were missing as they were read: costs one load. */
bool pl_map_intact(const pl_map *map);

/* PL_IO, "FILE changed while it was read: ...", when it is not intact or the
 * file is shorter now than it was; costs a system call. */
pl_status pl_map_check(const pl_map *map) PL_MUST_CHECK;

/* Copy some bytes, then check. */
pl_status pl_map_copy(const pl_map *map, size_t offset, void *to,
                      size_t bytes) PL_MUST_CHECK;

#endif

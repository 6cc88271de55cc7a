/* map.h - the bytes of a file that may change while they are used.
 *
 * By default a file is read into memory, where no other process can change it.
 * A program that called pl_map_allow gets its pages instead: they need no
 * memory of their own and are shared with other processes, but the file's owner
 * can overwrite them at any time, and truncating the file would kill the
 * process with SIGBUS.  The handler that pl_map_allow installs maps zeros where
 * the file no longer has bytes and records that; call pl_map_check before using
 * any result of these bytes.
 *
 * When a file may change (pl_map_shared), copy what is parsed with pl_map_copy,
 * or read every byte once and check it where it is used.
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
    struct pl_map_watch *watch; /* NULL: the bytes cannot change */
} pl_map;

/* Map files from now on: for programs, not libraries, since the SIGBUS handler
 * serves the whole process.  Other faults go to the previous handler.  Call it
 * before starting threads, and again when other code has replaced the
 * handler. */
void pl_map_allow(void);

/* Regular files only. */
pl_status pl_map_init(pl_map *map, const char *path) PL_MUST_CHECK;
/* The same, but always read into memory; PL_FORMAT when it has more than `most`
 * bytes. */
pl_status pl_map_read(pl_map *map, const char *path, size_t most) PL_MUST_CHECK;
void pl_map_close(pl_map *map); /* a zeroed one is fine */

static inline bool pl_map_shared(const pl_map *map)
{
    return map->watch != NULL;
}

/* False when bytes were missing when they were read; costs one load. */
bool pl_map_intact(const pl_map *map);

/* PL_IO, "FILE changed while it was read: ...", when it is not intact or the
 * file has become shorter; costs a system call. */
pl_status pl_map_check(const pl_map *map) PL_MUST_CHECK;

/* Copy some bytes, then check. */
pl_status pl_map_copy(const pl_map *map, size_t offset, void *to,
                      size_t bytes) PL_MUST_CHECK;

#endif

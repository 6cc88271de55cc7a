/* zip.h - the members of a zip archive, as numpy.savez writes them: stored or
 * deflated, also beyond 4 GiB.
 *
 * The central directory at the end of the file lists them.  It is not trusted:
 * a member must lie inside the file and unpack to exactly the stated length and
 * checksum.
 *
 * Threads: any. */
#ifndef PL_DATA_NPY_ZIP_H
#define PL_DATA_NPY_ZIP_H

#include "base/file/map.h"

#define PL_ZIP_NAME 128

typedef struct pl_zip_member {
    char name[PL_ZIP_NAME]; /* longer ones are cut */
    uint64_t offset;        /* of its bytes in the file */
    uint64_t packed;        /* bytes in the file */
    uint64_t bytes;         /* unpacked */
    uint32_t crc;           /* of the unpacked bytes */
    bool deflated;
} pl_zip_member;

/* All members in *out (pl_mem_free). */
pl_status pl_zip_list(pl_zip_member **out, size_t *count,
                      const pl_map *file) PL_MUST_CHECK;

/* Unpack a deflated member into *out (pl_mem_free), aligned. */
pl_status pl_zip_unpack(uint8_t **out, const pl_map *file,
                        const pl_zip_member *member) PL_MUST_CHECK;

#endif

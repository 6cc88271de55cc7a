/* manifest.h - manifest.json, the commit point of a checkpoint.
 *
 * It describes the run of the checkpoint and lists its files with their sizes
 * and checksums, and ends with a checksum of itself.  The bytes are in
 * docs/formats/checkpoint.md.
 *
 * Threads: a pl_manifest belongs to one thread at a time. */
#ifndef PL_STATE_MANIFEST_H
#define PL_STATE_MANIFEST_H

#include "base/json/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PL_MANIFEST_NAME      "manifest.json"
#define PL_MANIFEST_VERSION   2
#define PL_MANIFEST_MAX       ((size_t)64 << 20) /* bytes of the file */
#define PL_MANIFEST_SHARD_MAX 99999
#define PL_MANIFEST_STEP_MAX  9999999999 /* the folder has 10 digits */

#define PL_SHARD_NAME 40

typedef struct pl_manifest_shard {
    char name[PL_SHARD_NAME]; /* "shard-00000-of-00001.safetensors" */
    int64_t bytes;
    uint32_t crc32c; /* of the whole file */
} pl_manifest_shard;

typedef struct pl_manifest {
    const char *model;
    int64_t step;
    bool sliced;             /* tensors are split across shards: version 2 */
    const pl_json *settings; /* object: what must not change on resume */
    const pl_json *state;    /* object: data positions and the like */
    const pl_manifest_shard *shards; /* in the order of their index */
    size_t shard_count;

    /* Parsed manifests only: the memory that the fields above point into. */
    pl_json *own_json;
    pl_manifest_shard *own_shards;
} pl_manifest;

/* "shard-00000-of-00001.safetensors"; returns `name`. */
const char *pl_manifest_shard_name(char name[PL_SHARD_NAME], int32_t index,
                                   int32_t of);

/* The file's text; the caller frees *out (pl_mem_free). */
pl_status pl_manifest_text(char **out,
                           const pl_manifest *manifest) PL_MUST_CHECK;

/* PL_FORMAT when anything is damaged or missing, PL_UNSUPPORTED when a newer
 * program wrote it; `what` names the file. */
pl_status pl_manifest_init(pl_manifest *manifest, const char *text,
                           size_t bytes, const char *what) PL_MUST_CHECK;
void pl_manifest_close(pl_manifest *manifest); /* a zeroed one is fine */

#endif

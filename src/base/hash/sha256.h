/* sha256.h - SHA-256 (FIPS 180-4), in pieces.
 *
 * By the processor's SHA instructions where it has them.
 *
 * Threads: a pl_sha256 belongs to one thread at a time. */
#ifndef PL_BASE_HASH_SHA256_H
#define PL_BASE_HASH_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PL_SHA256_BYTES 32
#define PL_SHA256_TEXT  65 /* hexadecimal and a NUL */

typedef struct pl_sha256 {
    uint32_t state[8];
    uint64_t bytes;    /* hashed so far, those in `block` included */
    uint8_t block[64]; /* the last bytes % 64 of them */
    bool plain;        /* set after init: not the SHA instructions (tests) */
} pl_sha256;

/* There is nothing to close. */
void pl_sha256_init(pl_sha256 *sha);
void pl_sha256_update(pl_sha256 *sha, const void *data, size_t bytes);

/* The digest of all updates; *sha must be initialised again before use. */
void pl_sha256_final(pl_sha256 *sha, uint8_t digest[PL_SHA256_BYTES]);

/* "e3b0c442..."; returns `text`. */
const char *pl_sha256_text(const uint8_t digest[PL_SHA256_BYTES],
                           char text[PL_SHA256_TEXT]);

#endif

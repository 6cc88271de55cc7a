/* keys.h - the secret of a job and the keys derived from it.
 *
 * A job has one secret of 32 random bytes.  Each of its tasks is a principal, a
 * role with an index, and has a key of its own, with which it proves its
 * identity (tcp/handshake.h):
 *
 *   BLAKE2b-256, keyed with the secret, of "paceline/1/proof/worker/3"
 *
 * So a holder of the secret knows all keys of the job, and no key reveals
 * another.  docs/formats/key.md has the file.
 *
 * Threads: any. */
#ifndef PL_NET_KEYS_H
#define PL_NET_KEYS_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stdint.h>

#define PL_SECRET_BYTES    32
#define PL_SECRET_TEXT     (2 * PL_SECRET_BYTES + 1)
#define PL_PROOF_BYTES     32
#define PL_PRINCIPAL_TEXT  24
#define PL_SECRET_FILE_MAX 256 /* bytes; a key file is shorter */

typedef struct pl_secret {
    uint8_t bytes[PL_SECRET_BYTES];
} pl_secret;

typedef enum pl_principal_role {
    PL_PRINCIPAL_NONE, /* no identity was proved */
    PL_PRINCIPAL_WORKER,
    PL_PRINCIPAL_PS,
    PL_PRINCIPAL_EVALUATOR,
} pl_principal_role;

typedef struct pl_principal {
    pl_principal_role role;
    int32_t index;
} pl_principal;

/* What all tasks of a job share. */
typedef struct pl_job_keys {
    pl_secret secret;
    int32_t workers, ps;
    bool evaluator; /* one may join */
} pl_job_keys;

/* Generate a random one. */
pl_status pl_secret_make(pl_secret *out) PL_MUST_CHECK;
/* 64 hexadecimal digits, and back; PL_FORMAT without showing the text. */
void pl_secret_text(const pl_secret *secret, char out[PL_SECRET_TEXT]);
pl_status pl_secret_parse(pl_secret *out, const char *text) PL_MUST_CHECK;

/* A key file: readable only by its owner; an existing file is never
 * overwritten. */
pl_status pl_secret_write(const pl_secret *secret,
                          const char *path) PL_MUST_CHECK;
/* The same into an open file, which `path` names in messages. */
pl_status pl_secret_put(const pl_secret *secret, int fd,
                        const char *path) PL_MUST_CHECK;
/* PL_USAGE when other users can read or write it, or own it. */
pl_status pl_secret_read(pl_secret *out, const char *path) PL_MUST_CHECK;
/* The part of pl_secret_read after reading the file. */
pl_status pl_secret_parse_file(pl_secret *out, const void *bytes,
                               size_t count) PL_MUST_CHECK;

/* "worker 3", and back. */
void pl_principal_text(pl_principal who, char out[PL_PRINCIPAL_TEXT]);
bool pl_principal_equal(pl_principal a, pl_principal b);
/* May a peer that proved to be `who` speak for this task?  A proved task may
 * speak only for itself; without keys nothing is proved. */
bool pl_principal_permits(pl_principal who, pl_principal task);
/* Whether the job has such a task. */
bool pl_job_keys_has(const pl_job_keys *keys, pl_principal who);

/* The key of one task. */
void pl_keys_proof(const pl_secret *secret, pl_principal who,
                   uint8_t out[PL_PROOF_BYTES]);
/* Zero a secret or a key, in a way the compiler keeps. */
void pl_keys_wipe(void *memory, size_t bytes);
/* Compare in constant time. */
bool pl_keys_same(const void *a, const void *b, size_t bytes);

#endif

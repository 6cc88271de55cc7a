/* cipher.h - authenticated encryption for one direction of one connection.
 *
 * AES-128-OCB (RFC 7253).  The nonce counts records from 0, under a key that is
 * used for nothing else: it never repeats.  A record is sealed or opened in
 * parts, so that data in two places needs no copy: begin, any number of adds,
 * end.  The output is contiguous from `out` on.
 *
 * Threads: one at a time. */
#ifndef PL_NET_TCP_CIPHER_H
#define PL_NET_TCP_CIPHER_H

#include "net/tcp/handshake.h"
#include "paceline/base.h"

#define PL_CIPHER_TAG 16

typedef struct pl_cipher pl_cipher;

/* The key is copied.  PL_UNSUPPORTED: libcrypto has no AES-128-OCB. */
pl_status pl_cipher_new(pl_cipher **out,
                        const uint8_t key[PL_SESSION_KEY_BYTES],
                        bool seals) PL_MUST_CHECK;
void pl_cipher_free(pl_cipher *cipher); /* NULL is fine */

/* All return false when libcrypto fails; when opening, `end` also when the
 * record was not sealed with this key, at this position, with this prefix. */
bool pl_cipher_begin(pl_cipher *cipher, const void *prefix, size_t bytes,
                     void *out);
bool pl_cipher_add(pl_cipher *cipher, const void *in, size_t bytes);
bool pl_cipher_end(pl_cipher *cipher, uint8_t tag[PL_CIPHER_TAG]);

#endif

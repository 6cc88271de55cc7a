/* Sealing and opening by libcrypto's EVP, which uses the processor's AES.
 * Unlike GCM, OCB needs no field multiplication and is more than twice as fast;
 * docs/decisions/017-our-own-tcp.md has the figures. */
#include "net/tcp/cipher.h"

#include "base/bytes.h"
#include "base/mem.h"

#include <openssl/evp.h>

#define NONCE_BYTES 12

struct pl_cipher {
    EVP_CIPHER_CTX *context;
    uint64_t records; /* so far: the next nonce */
    uint8_t *out;     /* where the next bytes go */
    bool seals;
};

pl_status pl_cipher_new(pl_cipher **out,
                        const uint8_t key[PL_SESSION_KEY_BYTES], bool seals)
{
    pl_cipher *cipher;
    PL_TRY(PL_NEW(cipher, 1));
    cipher->seals = seals;
    cipher->context = EVP_CIPHER_CTX_new();
    if (cipher->context == NULL ||
        EVP_CipherInit_ex(cipher->context, EVP_aes_128_ocb(), NULL, key, NULL,
                          seals) != 1) {
        pl_cipher_free(cipher);
        return PL_FAIL(PL_UNSUPPORTED, "libcrypto cannot use AES-128-OCB");
    }
    *out = cipher;
    return PL_OK;
}

void pl_cipher_free(pl_cipher *cipher)
{
    if (cipher == NULL)
        return;
    EVP_CIPHER_CTX_free(cipher->context); /* wipes the key */
    pl_mem_free(cipher);
}

bool pl_cipher_begin(pl_cipher *cipher, const void *prefix, size_t bytes,
                     void *out)
{
    uint8_t nonce[NONCE_BYTES] = { 0 };
    int ignored;
    pl_put_u64(nonce, cipher->records++);
    cipher->out = out;
    return EVP_CipherInit_ex(cipher->context, NULL, NULL, NULL, nonce, -1) ==
               1 &&
           EVP_CipherUpdate(cipher->context, NULL, &ignored, prefix,
                            (int)bytes) == 1;
}

bool pl_cipher_add(pl_cipher *cipher, const void *in, size_t bytes)
{
    int written = 0;
    if (bytes == 0)
        return true;
    if (EVP_CipherUpdate(cipher->context, cipher->out, &written, in,
                         (int)bytes) != 1)
        return false;
    cipher->out += written; /* part of a block may follow later */
    return true;
}

bool pl_cipher_end(pl_cipher *cipher, uint8_t tag[PL_CIPHER_TAG])
{
    int written = 0;
    if (!cipher->seals &&
        EVP_CIPHER_CTX_ctrl(cipher->context, EVP_CTRL_AEAD_SET_TAG,
                            PL_CIPHER_TAG, tag) != 1)
        return false;
    if (EVP_CipherFinal_ex(cipher->context, cipher->out, &written) != 1)
        return false;
    return !cipher->seals ||
           EVP_CIPHER_CTX_ctrl(cipher->context, EVP_CTRL_AEAD_GET_TAG,
                               PL_CIPHER_TAG, tag) == 1;
}

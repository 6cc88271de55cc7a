/* handshake.h - how the two ends of a connection agree and authenticate.
 *
 * Every message has 72 bytes, so that a stranger costs one small struct
 * whatever it sends:
 *
 *   client  hello: version, mechanism, its task, the task it wants, identity
 *   server  hello: version, mechanism, a verdict
 *   client  proof  (with keys: its MAC; encrypted: a fresh X25519 key, too)
 *   server  proof  (likewise)
 *
 * Each proof is a MAC, keyed for the client's principal from the job's secret,
 * over all messages before it: it is useless on another connection.  The client
 * proves first, so that no stranger makes the server compute X25519.
 * docs/formats/wire.md has the bytes.
 *
 * It does no I/O: bytes in, bytes out.
 *
 * Threads: one at a time. */
#ifndef PL_NET_TCP_HANDSHAKE_H
#define PL_NET_TCP_HANDSHAKE_H

#include "net/keys.h"
#include "net/peers.h"

#define PL_HANDSHAKE_BYTES   72
#define PL_SESSION_KEY_BYTES 16

typedef enum pl_mechanism {
    PL_MECHANISM_NONE,
    PL_MECHANISM_PROOF,     /* both ends prove that they know the secret */
    PL_MECHANISM_ENCRYPTED, /* ... and everything after it is encrypted */
    PL_MECHANISMS
} pl_mechanism;

/* A server's answer to a client's hello. */
typedef enum pl_verdict {
    PL_VERDICT_WELCOME,
    PL_VERDICT_VERSION,
    PL_VERDICT_MECHANISM,
    PL_VERDICT_STRANGER, /* the proof is wrong, or the job has no such task */
    PL_VERDICT_OTHER,    /* the server is not the task that the client wants */
    PL_VERDICT_USER,     /* the client runs as another user of this host */
    PL_VERDICT_NO_USER,  /* the system does not report the client's user */
    PL_VERDICTS
} pl_verdict;

typedef struct pl_handshake_config {
    bool server;
    pl_mechanism mechanism;
    const pl_job_keys *keys; /* NULL with PL_MECHANISM_NONE */
    pl_principal self;
    pl_principal wanted; /* client: the task it must reach */
    uint16_t port;       /* of the server; compared on loopback */
    uint8_t identity[PL_IDENTITY_BYTES]; /* client */
} pl_handshake_config;

typedef enum pl_handshake_result {
    PL_HANDSHAKE_MORE, /* another message is expected */
    PL_HANDSHAKE_DONE,
    PL_HANDSHAKE_REFUSED, /* with the reason in `why`; client: and `final` */
} pl_handshake_result;

typedef struct pl_handshake {
    uint8_t said[4][PL_HANDSHAKE_BYTES]; /* both hellos, both proofs */
    uint8_t ephemeral[32];               /* our X25519 secret key */
    uint8_t psk[32];
    uint8_t step;     /* messages complete so far */
    bool final;       /* client: the server refused, a retry is useless */
    pl_principal who; /* the other end, when done */
    uint8_t identity[PL_IDENTITY_BYTES];      /* server: the client's */
    uint8_t session[2][PL_SESSION_KEY_BYTES]; /* to the server, to the client */
    char why[128];
} pl_handshake;

/* Client: the first message, in `out`. */
pl_status pl_handshake_begin(pl_handshake *handshake,
                             const pl_handshake_config *config,
                             uint8_t out[PL_HANDSHAKE_BYTES]) PL_MUST_CHECK;

/* Whether the first `count` bytes can start the expected message: other
 * programs are recognised before they have sent 72 bytes. */
bool pl_handshake_plausible(const pl_handshake *handshake, const uint8_t *bytes,
                            size_t count);

/* Take the next message.  *answer: `out` is to be sent, also when the result is
 * PL_HANDSHAKE_REFUSED.  `verdict`, of a server: refuse the client's hello with
 * it unless it is PL_VERDICT_WELCOME. */
pl_handshake_result pl_handshake_take(pl_handshake *handshake,
                                      const pl_handshake_config *config,
                                      pl_verdict verdict,
                                      const uint8_t in[PL_HANDSHAKE_BYTES],
                                      uint8_t out[PL_HANDSHAKE_BYTES],
                                      bool *answer);

/* Wipe the keys only. */
void pl_handshake_wipe(pl_handshake *handshake);

#endif

/* The messages before the first frame, and how they are verified.
 *
 * H1  A MAC covers every byte that both ends sent before it, labelled by the
 *     direction: no proof can be replayed, reflected or moved to another task.
 * H2  The server does no public-key arithmetic before the client has proved
 *     that it knows the secret.
 * H3  Session keys follow from a fresh X25519 exchange, the secret and the
 *     transcript: a key file found later opens nothing recorded before. */
#include "net/tcp/handshake.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "net/frame.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* Offsets; docs/formats/wire.md has the same tables. */
enum {
    AT_VERSION = 4,
    AT_MECHANISM = 6,
    AT_VERDICT = 7,
    AT_ROLE = 8,
    AT_WANTED_ROLE = 9,
    AT_PORT = 10,
    AT_INDEX = 12,
    AT_WANTED_INDEX = 16,
    AT_RESERVED = 20,
    AT_IDENTITY = 24,
    AT_NONCE = 40,
    /* a proof */
    AT_PROOF_VERDICT = 4,
    AT_KEY = 8,
    AT_MAC = 40,
};

enum {
    CLIENT_HELLO,
    SERVER_HELLO,
    CLIENT_PROOF,
    SERVER_PROOF,
    STEPS
};

static const uint8_t hello_magic[4] = { 'P', 'L', 'H', '1' };
static const uint8_t proof_magic[4] = { 'P', 'L', 'P', '1' };

static pl_status fill_random(void *out, size_t bytes)
{
    if (getrandom(out, bytes, 0) == (ssize_t)bytes)
        return PL_OK;
    return PL_FAIL(PL_IO, "getrandom: %s", strerror(errno));
}

static pl_handshake_result refuse(pl_handshake *h, const char *why)
{
    snprintf(h->why, sizeof h->why, "%s", why);
    return PL_HANDSHAKE_REFUSED;
}

static pl_status write_hello(pl_handshake *h, const pl_handshake_config *config,
                             pl_verdict verdict,
                             uint8_t out[PL_HANDSHAKE_BYTES])
{
    memset(out, 0, PL_HANDSHAKE_BYTES);
    memcpy(out, hello_magic, sizeof hello_magic);
    out[AT_VERSION] = PL_FRAME_VERSION & 0xff;
    out[AT_VERSION + 1] = PL_FRAME_VERSION >> 8;
    out[AT_MECHANISM] = (uint8_t)config->mechanism;
    out[AT_VERDICT] = (uint8_t)verdict;
    if (config->keys != NULL) {
        out[AT_ROLE] = (uint8_t)config->self.role;
        pl_put_u32(out + AT_INDEX, (uint32_t)config->self.index);
    }
    out[AT_PORT] = (uint8_t)config->port;
    out[AT_PORT + 1] = (uint8_t)(config->port >> 8);
    if (!config->server) {
        out[AT_WANTED_ROLE] = (uint8_t)config->wanted.role;
        pl_put_u32(out + AT_WANTED_INDEX, (uint32_t)config->wanted.index);
        memcpy(out + AT_IDENTITY, config->identity, PL_IDENTITY_BYTES);
    }
    PL_TRY(fill_random(out + AT_NONCE, 32));
    memcpy(h->said[config->server ? SERVER_HELLO : CLIENT_HELLO], out,
           PL_HANDSHAKE_BYTES);
    return PL_OK;
}

pl_status pl_handshake_begin(pl_handshake *h, const pl_handshake_config *config,
                             uint8_t out[PL_HANDSHAKE_BYTES])
{
    PL_ASSERT(!config->server);
    *h = (pl_handshake) { .step = 1 };
    return write_hello(h, config, PL_VERDICT_WELCOME, out);
}

bool pl_handshake_plausible(const pl_handshake *h, const uint8_t *bytes,
                            size_t count)
{
    const uint8_t *magic = h->step < CLIENT_PROOF ? hello_magic : proof_magic;
    return memcmp(bytes, magic, count < 4 ? count : 4) == 0;
}

/* --- the parts of a proof ----------------------------------------------- */

static void derive_psk(pl_handshake *h, const pl_handshake_config *config,
                       pl_principal client)
{
    pl_keys_proof(&config->keys->secret, client, h->psk);
}

/* The MAC over all messages before `step`, with the key for that step. */
static void compute_mac(const pl_handshake *h, int step, const uint8_t key[32],
                        uint8_t out[32])
{
    static const char *const labels[STEPS] = {
        [CLIENT_PROOF] = "paceline/1/client proves",
        [SERVER_PROOF] = "paceline/1/server proves",
    };
    crypto_generichash_state state;
    crypto_generichash_init(&state, h->psk, sizeof h->psk, 32);
    crypto_generichash_update(&state, (const uint8_t *)labels[step],
                              strlen(labels[step]) + 1);
    for (int i = 0; i < step; i++)
        crypto_generichash_update(&state, h->said[i], PL_HANDSHAKE_BYTES);
    crypto_generichash_update(&state, key, 32);
    crypto_generichash_final(&state, out, 32);
    sodium_memzero(&state, sizeof state);
}

static pl_status write_proof(pl_handshake *h, const pl_handshake_config *config,
                             uint8_t out[PL_HANDSHAKE_BYTES])
{
    int step = config->server ? SERVER_PROOF : CLIENT_PROOF;
    memset(out, 0, PL_HANDSHAKE_BYTES);
    memcpy(out, proof_magic, sizeof proof_magic);
    if (config->mechanism == PL_MECHANISM_ENCRYPTED) {
        PL_TRY(fill_random(h->ephemeral, sizeof h->ephemeral));
        crypto_scalarmult_base(out + AT_KEY, h->ephemeral);
    }
    compute_mac(h, step, out + AT_KEY, out + AT_MAC);
    memcpy(h->said[step], out, PL_HANDSHAKE_BYTES);
    return PL_OK;
}

static bool proves(const pl_handshake *h, int step, const uint8_t *in)
{
    uint8_t mac[32];
    if ((in[5] | in[6] | in[7]) != 0) /* reserved, and not in the MAC */
        return false;
    compute_mac(h, step, in + AT_KEY, mac);
    return sodium_memcmp(mac, in + AT_MAC, sizeof mac) == 0;
}

/* False: the peer's key is not a usable point of the curve. */
static bool agree(pl_handshake *h, const uint8_t theirs[32])
{
    static const char label[] = "paceline/1/session";
    uint8_t shared[32], transcript[32], keys[2 * PL_SESSION_KEY_BYTES];
    if (crypto_scalarmult(shared, h->ephemeral, theirs) != 0)
        return false;
    crypto_generichash(transcript, sizeof transcript, h->said[0],
                       sizeof h->said, NULL, 0);
    crypto_generichash_state state;
    crypto_generichash_init(&state, h->psk, sizeof h->psk, sizeof keys);
    crypto_generichash_update(&state, (const uint8_t *)label, sizeof label);
    crypto_generichash_update(&state, shared, sizeof shared);
    crypto_generichash_update(&state, transcript, sizeof transcript);
    crypto_generichash_final(&state, keys, sizeof keys);
    memcpy(h->session, keys, sizeof keys);
    sodium_memzero(shared, sizeof shared);
    sodium_memzero(keys, sizeof keys);
    sodium_memzero(&state, sizeof state);
    return true;
}

/* --- the server ---------------------------------------------------------- */

static const char no_task[] = "no paceline task is there";
static const char stranger[] =
    "it did not prove to be a task of this job: does it belong to another "
    "job, or have another key file?";

static unsigned version_of(const uint8_t *hello)
{
    return (unsigned)(hello[AT_VERSION] | hello[AT_VERSION + 1] << 8);
}

static void say_version(pl_handshake *h, const uint8_t *hello)
{
    snprintf(h->why, sizeof h->why,
             "it uses version %u of the protocol, but this program uses "
             "version %d: run the same paceline everywhere",
             version_of(hello), PL_FRAME_VERSION);
}

static void say_mechanism(pl_handshake *h, pl_mechanism ours, uint8_t theirs)
{
    if (ours == PL_MECHANISM_NONE)
        refuse(h, "it has keys, which this task was not given");
    else if (theirs == PL_MECHANISM_NONE)
        refuse(h, "it did not prove to be a task of this job: was it started "
                  "without --keys?");
    else
        refuse(h, "one end encrypts and the other does not: does one of them "
                  "use a loopback address?");
}

/* Check a client's hello. */
static pl_verdict judge_hello(pl_handshake *h,
                              const pl_handshake_config *config,
                              const uint8_t *in)
{
    pl_principal client = { (pl_principal_role)in[AT_ROLE],
                            (int32_t)pl_get_u32(in + AT_INDEX) };
    if (version_of(in) != PL_FRAME_VERSION) {
        say_version(h, in);
        return PL_VERDICT_VERSION;
    }
    if (in[AT_MECHANISM] != config->mechanism) {
        say_mechanism(h, config->mechanism, in[AT_MECHANISM]);
        return PL_VERDICT_MECHANISM;
    }
    if (config->mechanism == PL_MECHANISM_NONE)
        return PL_VERDICT_WELCOME;
    if (in[AT_ROLE] > PL_PRINCIPAL_EVALUATOR ||
        !pl_job_keys_has(config->keys, client)) {
        refuse(h, stranger);
        return PL_VERDICT_STRANGER;
    }
    pl_principal wanted = { (pl_principal_role)in[AT_WANTED_ROLE],
                            (int32_t)pl_get_u32(in + AT_WANTED_INDEX) };
    unsigned port = (unsigned)(in[AT_PORT] | in[AT_PORT + 1] << 8);
    if (!pl_principal_equal(wanted, config->self) ||
        (config->mechanism == PL_MECHANISM_PROOF && port != config->port)) {
        refuse(h, "it looks for another task of the job: do both have the "
                  "same cluster file?");
        return PL_VERDICT_OTHER;
    }
    h->who = client;
    return PL_VERDICT_WELCOME;
}

static pl_handshake_result take_client_hello(pl_handshake *h,
                                             const pl_handshake_config *config,
                                             pl_verdict verdict,
                                             const uint8_t *in, uint8_t *out,
                                             bool *answer)
{
    pl_verdict judged = judge_hello(h, config, in);
    if (judged == PL_VERDICT_WELCOME && verdict != PL_VERDICT_WELCOME) {
        judged = verdict;
        refuse(h, verdict == PL_VERDICT_USER
                      ? "it runs as another user of this host: give all tasks "
                        "of the job one key file with --keys"
                      : "this system does not tell which user it runs as: "
                        "give all tasks of the job one key file with --keys");
    }
    memcpy(h->identity, in + AT_IDENTITY, PL_IDENTITY_BYTES);
    *answer = write_hello(h, config, judged, out) == PL_OK;
    if (!*answer)
        return refuse(h, "no random numbers are available");
    if (judged != PL_VERDICT_WELCOME)
        return PL_HANDSHAKE_REFUSED;
    if (config->mechanism == PL_MECHANISM_NONE)
        return PL_HANDSHAKE_DONE;
    derive_psk(h, config, h->who);
    return PL_HANDSHAKE_MORE;
}

static pl_handshake_result take_client_proof(pl_handshake *h,
                                             const pl_handshake_config *config,
                                             const uint8_t *in, uint8_t *out,
                                             bool *answer)
{
    *answer = true;
    if (!proves(h, CLIENT_PROOF, in)) {
        memset(out, 0, PL_HANDSHAKE_BYTES);
        memcpy(out, proof_magic, sizeof proof_magic);
        out[AT_PROOF_VERDICT] = PL_VERDICT_STRANGER;
        return refuse(h, stranger);
    }
    *answer = write_proof(h, config, out) == PL_OK;
    if (!*answer)
        return refuse(h, "no random numbers are available");
    if (config->mechanism == PL_MECHANISM_ENCRYPTED && !agree(h, in + AT_KEY)) {
        *answer = false;
        return refuse(h, stranger);
    }
    return PL_HANDSHAKE_DONE;
}

/* --- the client ---------------------------------------------------------- */

static pl_handshake_result take_server_hello(pl_handshake *h,
                                             const pl_handshake_config *config,
                                             const uint8_t *in, uint8_t *out,
                                             bool *answer)
{
    h->final = true;
    if (version_of(in) != PL_FRAME_VERSION) {
        h->final = false; /* the right server may start later */
        say_version(h, in);
        return PL_HANDSHAKE_REFUSED;
    }
    if (in[AT_MECHANISM] != config->mechanism) {
        if (config->mechanism == PL_MECHANISM_NONE)
            return refuse(h, "requires the keys of its job: start this task "
                             "with --keys FILE, too");
        if (in[AT_MECHANISM] == PL_MECHANISM_NONE)
            return refuse(h, "does not prove who it is: was it started without "
                             "--keys?");
        return refuse(h, "and this task do not agree on encryption: does one "
                         "of them use a loopback address?");
    }
    switch (in[AT_VERDICT]) {
    case PL_VERDICT_WELCOME:
        break;
    case PL_VERDICT_OTHER:
        return refuse(h, "is another task of the job than the one looked for: "
                         "do both have the same cluster file?");
    case PL_VERDICT_USER:
        return refuse(h, "runs as another user of this host: give all tasks "
                         "of the job one key file with --keys");
    case PL_VERDICT_NO_USER:
        return refuse(h, "cannot tell which user this task runs as: give all "
                         "tasks of the job one key file with --keys");
    default:
        return refuse(h, "rejected this task, which did not prove to be a "
                         "task of its job; do both have the same key file?");
    }
    h->final = false;
    h->who = config->wanted;
    if (config->mechanism == PL_MECHANISM_NONE)
        return PL_HANDSHAKE_DONE;
    derive_psk(h, config, config->self);
    *answer = write_proof(h, config, out) == PL_OK;
    return *answer ? PL_HANDSHAKE_MORE
                   : refuse(h, "no random numbers are available");
}

static pl_handshake_result take_server_proof(pl_handshake *h,
                                             const pl_handshake_config *config,
                                             const uint8_t *in)
{
    if (in[AT_PROOF_VERDICT] != PL_VERDICT_WELCOME) {
        h->final = true;
        return refuse(h, "rejected this task, which did not prove to be a "
                         "task of its job; do both have the same key file?");
    }
    if (!proves(h, SERVER_PROOF, in) ||
        (config->mechanism == PL_MECHANISM_ENCRYPTED &&
         !agree(h, in + AT_KEY))) {
        h->final = true;
        return refuse(h, "did not prove to be a task of this job: does it "
                         "belong to another job, or have another key file?");
    }
    return PL_HANDSHAKE_DONE;
}

pl_handshake_result pl_handshake_take(pl_handshake *h,
                                      const pl_handshake_config *config,
                                      pl_verdict verdict,
                                      const uint8_t in[PL_HANDSHAKE_BYTES],
                                      uint8_t out[PL_HANDSHAKE_BYTES],
                                      bool *answer)
{
    *answer = false;
    PL_ASSERT(h->step < STEPS);
    if (!pl_handshake_plausible(h, in, PL_HANDSHAKE_BYTES))
        return refuse(h, no_task);
    memcpy(h->said[h->step], in, PL_HANDSHAKE_BYTES);
    int step = h->step;
    h->step = (uint8_t)(step + 2); /* our message is in between */
    switch (step) {
    case CLIENT_HELLO:
        return take_client_hello(h, config, verdict, in, out, answer);
    case SERVER_HELLO:
        return take_server_hello(h, config, in, out, answer);
    case CLIENT_PROOF:
        return take_client_proof(h, config, in, out, answer);
    default:
        return take_server_proof(h, config, in);
    }
}

void pl_handshake_wipe(pl_handshake *h)
{
    sodium_memzero(h->ephemeral, sizeof h->ephemeral);
    sodium_memzero(h->psk, sizeof h->psk);
    sodium_memzero(h->session, sizeof h->session);
}

/* fuzz_handshake.c - the first message of a stranger to a server of each kind,
 * and the answer of a false server to a client. */
#include "base/assert.h"
#include "fuzz/fuzz.h"
#include "net/tcp/handshake.h"

#include <string.h>

/* The first byte picks the end and the mechanism, the rest is sent to it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const pl_job_keys keys = { .workers = 2, .ps = 1 };
    pl_handshake handshake = { .step = 0 };
    uint8_t in[PL_HANDSHAKE_BYTES], out[PL_HANDSHAKE_BYTES];
    if (bytes < 1)
        return 0;
    pl_handshake_config config = {
        .server = (data[0] & 1) == 0,
        .mechanism = (pl_mechanism)(data[0] / 2 % PL_MECHANISMS),
        .port = 4711,
    };
    if (config.mechanism != PL_MECHANISM_NONE)
        config.keys = &keys;
    config.self = (pl_principal) { PL_PRINCIPAL_PS, 0 };
    config.wanted = config.self;
    if (!config.server)
        config.self = (pl_principal) { PL_PRINCIPAL_WORKER, 1 };
    if (!config.server && pl_handshake_begin(&handshake, &config, out) != PL_OK)
        return 0;
    pl_handshake_result result = PL_HANDSHAKE_MORE;
    for (data++, bytes--; result == PL_HANDSHAKE_MORE && bytes >= sizeof in;
         data += sizeof in, bytes -= sizeof in) {
        bool answer;
        memcpy(in, data, sizeof in);
        result = pl_handshake_take(&handshake, &config, PL_VERDICT_WELCOME, in,
                                   out, &answer);
        PL_ASSERT(memchr(handshake.why, '\0', sizeof handshake.why) != NULL);
    }
    /* Random bytes are never a valid proof. */
    PL_ASSERT(config.mechanism == PL_MECHANISM_NONE ||
              result != PL_HANDSHAKE_DONE);
    return 0;
}

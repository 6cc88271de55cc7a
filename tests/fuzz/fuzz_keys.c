/* fuzz_keys.c - key files. */
#include "base/assert.h"
#include "fuzz/fuzz.h"
#include "net/keys.h"

#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    pl_secret secret;
    char text[PL_SECRET_TEXT];
    if (pl_secret_parse_file(&secret, data, bytes) != PL_OK)
        return 0;
    /* What was accepted holds these digits and no others. */
    pl_secret_text(&secret, text);
    const char *digits = strchr((const char *)data, '\n') + 1;
    PL_ASSERT(strncasecmp(text, digits, sizeof text - 1) == 0);
    return 0;
}

#include "fuzz/fuzz.h"

#include "base/hash/crc32c.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "state/manifest.h"

#include <stdio.h>
#include <string.h>

/* What was read must come out as text that reads back as the same. */
static void parse_json(const char *text, size_t bytes)
{
    pl_json *json = NULL;
    pl_json *again = NULL;
    char *out = NULL;
    if (pl_json_parse(&json, text, bytes, "input") != PL_OK)
        return;
    if (pl_json_text(json, 2, &out) != PL_OK ||
        pl_json_parse(&again, out, strlen(out), "again") != PL_OK ||
        !pl_json_equal(json, again))
        __builtin_trap();
    pl_json_free(again);
    pl_mem_free(out);
    pl_json_free(json);
}

/* What was read must be written the same. */
static void parse_manifest(const char *text, size_t bytes)
{
    pl_manifest manifest;
    char *out = NULL;
    if (pl_manifest_init(&manifest, text, bytes, "input") != PL_OK)
        return;
    pl_manifest again;
    if (pl_manifest_text(&out, &manifest) != PL_OK ||
        pl_manifest_init(&again, out, strlen(out), "again") != PL_OK)
        __builtin_trap();
    pl_manifest_close(&again);
    pl_mem_free(out);
    pl_manifest_close(&manifest);
}

/* With its checksum made right, or a changed manifest is never looked into. */
static void parse_mended_manifest(const char *text, size_t bytes)
{
    static const char tail[] = ",\n  \"manifest_crc32c\": \"%08x\"\n}\n";
    size_t tail_bytes = sizeof tail - 1 + strlen("01234567") - strlen("%08x");
    if (bytes < tail_bytes)
        return;
    char *mended = pl_mem_alloc(bytes + 1, 1);
    if (mended == NULL)
        return;
    size_t body = bytes - tail_bytes;
    memcpy(mended, text, body);
    snprintf(mended + body, tail_bytes + 1, tail, pl_crc32c(0, text, body));
    parse_manifest(mended, bytes);
    pl_mem_free(mended);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const char *text = (const char *)data;
    parse_json(text, bytes);
    parse_manifest(text, bytes);
    parse_mended_manifest(text, bytes);
    return 0;
}

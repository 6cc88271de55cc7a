/* fuzz_sweep.c - sweep files. */
#include "fuzz/fuzz.h"

#include "app/sweep/spec.h"
#include "base/mem.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = pl_mem_alloc(bytes + 1, 1); /* a NUL in it ends the text */
    pl_json *spec = NULL;
    if (text == NULL)
        return 0;
    if (bytes > 0)
        memcpy(text, data, bytes);
    if (pl_sweep_spec_parse(&spec, text, "fuzz") == PL_OK)
        pl_json_free(spec);
    if (pl_sweep_spec_grid(&spec, "m", text) == PL_OK)
        pl_json_free(spec);
    pl_mem_free(text);
    return 0;
}

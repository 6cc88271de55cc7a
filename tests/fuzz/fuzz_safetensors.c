#include "fuzz/fuzz.h"

#include "base/hash/crc32c.h"
#include "state/safetensors/safetensors.h"

/* Parse; of what passes the checks, every byte must be readable. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    pl_safetensors *file = NULL;
    if (pl_safetensors_parse(&file, data, bytes, "input") != PL_OK)
        return 0;
    uint32_t crc = 0;
    for (size_t i = 0; i < pl_safetensors_count(file); i++) {
        const pl_safetensor *tensor = pl_safetensors_get(file, i);
        uint64_t size = 0;
        if (pl_safetensor_bytes(tensor, &size) != PL_OK)
            __builtin_trap();
        crc = pl_crc32c(crc, tensor->data, size);
        if (pl_safetensors_find(file, tensor->name) != tensor)
            __builtin_trap();
    }
    (void)crc;
    (void)pl_safetensors_metadata(file, "format");
    pl_safetensors_free(file);
    return 0;
}

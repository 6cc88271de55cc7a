/* fuzz_frame.c - headers of messages, with what follows as their payload. */
#include "base/assert.h"
#include "fuzz/fuzz.h"
#include "net/frame.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t size = bytes < PL_FRAME_BYTES ? bytes : PL_FRAME_BYTES;
    pl_frame frame;
    if (pl_frame_read(&frame, data, size, bytes - size) != PL_OK)
        return 0;
    /* What was accepted is sound and has these bytes and no others. */
    uint8_t again[PL_FRAME_BYTES];
    PL_ASSERT(frame.payload_bytes == bytes - size);
    pl_frame_write(&frame, again);
    PL_ASSERT(memcmp(again, data, sizeof again) == 0);
    return 0;
}

/* fuzz_events.c - event files; once as they are, and once with the right
 * checksums, so that the messages are looked at, too. */
#include "fuzz/fuzz.h"

#include "base/bytes.h"
#include "observe/runs/curve_read.h"
#include "proto/tfrecord.h"

#include <stdlib.h>
#include <string.h>

static void read_once(const uint8_t *data, size_t bytes)
{
    pl_curves curves = { 0 };
    if (pl_events_read(&curves, data, bytes, "fuzz") == PL_OK)
        for (size_t i = 0; i < curves.count; i++)
            pl_curve_thin(&curves.list[i], 3);
    pl_curves_close(&curves);
}

static void mend(uint8_t *data, size_t bytes)
{
    for (size_t at = 0; bytes - at >= 16;) {
        uint64_t length = pl_get_u64(data + at);
        if (length > bytes - at - 16)
            pl_put_u64(data + at, length = bytes - at - 16);
        at += pl_tfrecord_seal(data + at, length);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    read_once(data, bytes);
    uint8_t *copy = malloc(bytes + 1);
    if (copy != NULL && bytes > 0) {
        memcpy(copy, data, bytes);
        mend(copy, bytes);
        read_once(copy, bytes);
    }
    free(copy);
    return 0;
}

/* The checksums of a TFRecord frame. */
#include "proto/tfrecord.h"

#include "base/bytes.h"
#include "base/hash/crc32c.h"

uint32_t pl_tfrecord_sum(const uint8_t *data, size_t bytes)
{
    return pl_crc32c_mask(pl_crc32c(0, data, bytes));
}

size_t pl_tfrecord_seal(uint8_t *frame, size_t bytes)
{
    uint8_t *data = frame + PL_TFRECORD_HEAD;
    pl_put_u64(frame, bytes);
    pl_put_u32(frame + 8, pl_tfrecord_sum(frame, 8));
    pl_put_u32(data + bytes, pl_tfrecord_sum(data, bytes));
    return PL_TFRECORD_HEAD + bytes + PL_TFRECORD_TAIL;
}

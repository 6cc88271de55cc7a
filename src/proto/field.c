/* The slow path of reading a varint: longer than one byte, checked byte by
 * byte. */
#include "proto/field.h"

bool pl_proto_long(pl_proto_span *in, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; in->at < in->end && shift < 64; shift += 7) {
        uint64_t byte = *in->at++;
        if (shift == 63 && byte > 1)
            return false;
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return true;
        }
    }
    return false;
}

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

pl_status pl_proto_cut_short(void)
{
    return PL_FAIL(PL_FORMAT, "the message ends inside a field");
}

pl_status pl_proto_wrong_wire(unsigned wire)
{
    return PL_FAIL(PL_FORMAT, "wire type %u, expected 0, 1, 2 or 5", wire);
}

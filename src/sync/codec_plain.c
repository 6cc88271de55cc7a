/* Plain: unchanged float32, little-endian like every supported host.  Nothing
 * is copied on either side. */
#include "sync/codec.h"

static size_t float_bytes(int64_t count)
{
    return (size_t)count * sizeof(float);
}

static size_t encoded_most(const pl_codec *codec, int64_t count)
{
    (void)codec;
    return float_bytes(count);
}

static pl_encoded encode(const pl_codec *codec, const pl_codec_span *from,
                         void *room)
{
    (void)codec, (void)room;
    return (pl_encoded) { from->floats, float_bytes(from->count) };
}

static const float *decode(const pl_codec *codec, int64_t count,
                           pl_encoded from, float *room)
{
    (void)codec, (void)room;
    return from.size == float_bytes(count) ? from.bytes : NULL;
}

static bool combine(const pl_codec *codec, const pl_kernels *kernels,
                    int64_t count, pl_encoded piece, bool before, float *own)
{
    const float *floats = decode(codec, count, piece, NULL);
    if (floats == NULL)
        return false;
    if (before)
        kernels->add(count, floats, own, own);
    else
        kernels->add(count, own, floats, own);
    return true;
}

const pl_codec pl_codec_plain = {
    .name = "plain",
    .in_place = true,
    .encoded_most = encoded_most,
    .encode = encode,
    .decode = decode,
    .combine = combine,
};

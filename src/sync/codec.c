/* The codecs that there are, and what all of them need: the state of a sender,
 * and the check of a piece's size before a codec reads it. */
#include "sync/codec.h"

#include "base/assert.h"
#include "base/mem.h"

const pl_codec *const pl_codecs[] = {
    &pl_codec_plain,
    &pl_codec_bf16,
    NULL,
};

const float *pl_codec_decode(const pl_codec *codec, int64_t count,
                             pl_encoded from, float *room)
{
    if (from.size > codec->encoded_most(codec, count))
        return NULL;
    return codec->decode(codec, count, from, room);
}

bool pl_codec_combine(const pl_codec *codec, const pl_kernels *kernels,
                      int64_t count, pl_encoded piece, bool before, float *own)
{
    return piece.size <= codec->encoded_most(codec, count) &&
           codec->combine(codec, kernels, count, piece, before, own);
}

pl_status pl_coder_init(pl_coder *coder, const pl_codec *codec, int64_t floats)
{
    *coder = (pl_coder) {
        .codec = codec != NULL ? codec : pl_codecs[0],
        .floats = floats,
    };
    size_t slots = (size_t)coder->codec->slots;
    PL_ASSERT(slots <= PL_CODEC_SLOTS_MOST);
    return slots > 0 ? PL_NEW(coder->slots, slots * (size_t)floats) : PL_OK;
}

void pl_coder_close(pl_coder *coder)
{
    pl_mem_free(coder->slots);
    *coder = (pl_coder) { 0 };
}

pl_encoded pl_coder_encode(pl_coder *coder, int64_t first, int64_t count,
                           const float *floats, void *room)
{
    pl_codec_span span = { .count = count, .floats = floats };
    for (int32_t i = 0; i < coder->codec->slots; i++)
        span.slot[i] = coder->slots + i * coder->floats + first;
    return coder->codec->encode(coder->codec, &span, room);
}

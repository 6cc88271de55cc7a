/* The list of codecs and what they share: the state of a sender, and the check
 * of a piece's size before a codec reads it. */
#include "sync/codec.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"

const pl_codec *const pl_codecs[] = {
    &pl_codec_plain,
    &pl_codec_bf16,
    &pl_codec_topk_default.base,
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
    if (slots == 0)
        return PL_OK;
    PL_TRY(PL_NEW(coder->slots, slots * (size_t)floats));
    pl_status status = PL_NEW(coder->next, slots * (size_t)floats);
    if (status != PL_OK)
        pl_coder_close(coder);
    return status;
}

void pl_coder_close(pl_coder *coder)
{
    pl_mem_free(coder->slots);
    pl_mem_free(coder->next);
    *coder = (pl_coder) { 0 };
}

float *pl_coder_slot(const pl_coder *coder, int i)
{
    return i < coder->codec->slots ? coder->slots + i * coder->floats : NULL;
}

void pl_coder_keep(pl_coder *coder)
{
    float *before = coder->slots;
    coder->slots = coder->next;
    coder->next = before;
}

pl_encoded pl_coder_encode(pl_coder *coder, int64_t first, int64_t count,
                           const float *floats, void *room)
{
    pl_codec_span span = { .count = count, .floats = floats };
    if (coder->codec->in_place)
        return coder->codec->encode(coder->codec, &span, room);
    for (int32_t i = 0; i < coder->codec->slots; i++) {
        span.slot[i] = coder->slots + i * coder->floats + first;
        span.next[i] = coder->next + i * coder->floats + first;
    }
    uint64_t begin = pl_ticks_now();
    pl_encoded encoded = coder->codec->encode(coder->codec, &span, room);
    coder->seconds += (double)(pl_ticks_now() - begin) * pl_ticks_ns() * 1e-9;
    return encoded;
}

/* fuzz_codec.c - pieces of gradients as a peer sends them: a byte for the
 * codec, one for the share of top-k in 255ths, two for the count of floats, one
 * for the order of adding, then the piece.
 *
 * What cannot be decoded is not added either, and changes nothing; what can be
 * is added as it is decoded. */
#include "base/assert.h"
#include "fuzz/fuzz.h"
#include "sync/codec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HEAD 5

static bool same(float a, float b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void try_piece(const pl_codec *codec, int64_t count, pl_encoded piece,
                      bool before)
{
    size_t bytes = (size_t)count * sizeof(float);
    float *room = malloc(bytes), *own = calloc((size_t)count, sizeof *own);
    if (room == NULL || own == NULL)
        abort();
    PL_ASSERT(codec->encoded_most(codec, count) <= bytes);
    const float *floats = pl_codec_decode(codec, count, piece, room);
    bool added =
        pl_codec_combine(codec, pl_kernels_best(), count, piece, before, own);
    PL_ASSERT(added == (floats != NULL));
    for (int64_t i = 0; i < count; i++) {
        float value = 0;
        if (added)
            memcpy(&value, floats + i, sizeof value);
        PL_ASSERT(same(own[i], value));
    }
    free(room);
    free(own);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < HEAD)
        return 0;
    pl_codec_topk topk = pl_codec_topk_of((1 + data[1] % 255) / 255.0);
    const pl_codec *const codecs[] = { &pl_codec_plain, &pl_codec_bf16,
                                       &topk.base };
    const pl_codec *codec = codecs[data[0] % 3];
    int64_t count = 1 + (data[2] | data[3] << 8);
    size_t size = bytes - HEAD;
    /* As messages have it: at the start of an allocation of its size. */
    void *piece = malloc(size > 0 ? size : 1);
    if (piece == NULL)
        abort();
    memcpy(piece, data + HEAD, size);
    try_piece(codec, count, (pl_encoded) { piece, size }, data[4] & 1);
    free(piece);
    return 0;
}

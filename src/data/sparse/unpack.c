/* How a packed file is told from a plain one, and what its stream must hold:
 * whole streams up to the last byte. */
#include "data/sparse/unpack.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

#define ZLIB_CONST /* what zlib reads is const */
#include <zlib.h>
#include <zstd.h>

#define BUFFER_BYTES ((size_t)1 << 20)
#define MOST_IN      ((size_t)1 << 30) /* zlib counts in 32 bits */

/* RFC 1950: deflate, a window of at most 32 KiB, no preset dictionary, and a
 * multiple of 31. */
static bool is_zlib(const uint8_t *data, size_t bytes, bool text)
{
    return bytes >= 2 && (data[0] & 0x0f) == 8 &&
           (text ? data[0] == 0x78 : data[0] <= 0x78) &&
           (data[1] & 0x20) == 0 && (data[0] * 256 + data[1]) % 31 == 0;
}

pl_packing pl_packing_of(const uint8_t *data, size_t bytes, bool text)
{
    static const uint8_t zstd[] = { 0x28, 0xb5, 0x2f, 0xfd };
    if (bytes >= 2 && data[0] == 0x1f && data[1] == 0x8b)
        return PL_PACKING_GZIP;
    if (bytes >= 4 && memcmp(data, zstd, 4) == 0)
        return PL_PACKING_ZSTD;
    if (is_zlib(data, bytes, text))
        return PL_PACKING_ZLIB;
    return PL_PACKING_NONE;
}

/* One round: as much as fits into the buffer.  *ended when a stream did. */
static pl_status inflate_some(z_stream *stream, const char *kind, pl_spill *out,
                              uint8_t *buffer, bool *ended)
{
    stream->next_out = buffer;
    stream->avail_out = BUFFER_BYTES;
    int code = inflate(stream, Z_NO_FLUSH);
    if (code == Z_MEM_ERROR)
        return PL_FAIL(PL_NOMEM, "out of memory: unpacking %s", kind);
    if (code == Z_BUF_ERROR)
        return PL_FAIL(PL_FORMAT,
                       "truncated %s stream: it ends after %llu unpacked "
                       "bytes",
                       kind, (unsigned long long)stream->total_out);
    if (code != Z_OK && code != Z_STREAM_END)
        return PL_FAIL(PL_FORMAT, "broken %s stream: %s", kind,
                       stream->msg != NULL ? stream->msg : zError(code));
    *ended = code == Z_STREAM_END;
    return pl_spill_put(out, buffer, BUFFER_BYTES - stream->avail_out);
}

/* gzip or zlib. */
static pl_status unpack_deflate(pl_spill *out, bool gzip, const uint8_t *data,
                                size_t bytes, uint8_t *buffer)
{
    const char *kind = gzip ? "gzip" : "zlib";
    z_stream stream = { .zalloc = pl_mem_zlib_alloc,
                        .zfree = pl_mem_zlib_free };
    if (inflateInit2(&stream, (gzip ? 16 : 0) + MAX_WBITS) != Z_OK)
        return PL_FAIL(PL_NOMEM, "out of memory: unpacking %s", kind);
    pl_status status = PL_OK;
    bool ended = false;
    stream.next_in = data;
    while (status == PL_OK && (bytes > 0 || !ended)) {
        size_t in = bytes < MOST_IN ? bytes : MOST_IN;
        stream.avail_in = (unsigned)in;
        if (ended && inflateReset(&stream) != Z_OK)
            status = PL_FAIL(PL_FORMAT, "broken %s stream", kind);
        else
            status = inflate_some(&stream, kind, out, buffer, &ended);
        bytes -= in - stream.avail_in;
    }
    inflateEnd(&stream);
    return status;
}

static pl_status unpack_zstd(pl_spill *out, const uint8_t *data, size_t bytes,
                             uint8_t *buffer)
{
    ZSTD_DCtx *context = ZSTD_createDCtx();
    if (context == NULL)
        return PL_FAIL(PL_NOMEM, "out of memory: unpacking zstd");
    pl_status status = PL_OK;
    ZSTD_inBuffer in = { data, bytes, 0 };
    size_t left = 1;
    bool full = false;
    while (status == PL_OK && (in.pos < in.size || full)) {
        ZSTD_outBuffer to = { buffer, BUFFER_BYTES, 0 };
        left = ZSTD_decompressStream(context, &to, &in);
        if (ZSTD_isError(left))
            status = PL_FAIL(PL_FORMAT, "broken zstd stream: %s",
                             ZSTD_getErrorName(left));
        else
            status = pl_spill_put(out, buffer, to.pos);
        full = to.pos == to.size;
    }
    if (status == PL_OK && left != 0)
        status = PL_FAIL(PL_FORMAT, "truncated zstd stream");
    ZSTD_freeDCtx(context);
    return status;
}

pl_status pl_unpack(pl_spill *out, pl_packing packing, const uint8_t *data,
                    size_t bytes)
{
    PL_ASSERT(packing != PL_PACKING_NONE);
    uint8_t *buffer;
    PL_TRY(PL_NEW(buffer, BUFFER_BYTES));
    pl_status status = packing == PL_PACKING_ZSTD
                           ? unpack_zstd(out, data, bytes, buffer)
                           : unpack_deflate(out, packing == PL_PACKING_GZIP,
                                            data, bytes, buffer);
    pl_mem_free(buffer);
    return status;
}

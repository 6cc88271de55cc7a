/* How a packed file is recognised, and what it must hold: whole streams up to
 * the last byte. */
#include "data/pack/unpack.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

#define ZLIB_CONST /* what zlib reads is const */
#include <zlib.h>
#include <zstd.h>

#define BUFFER_BYTES ((size_t)1 << 20)
#define CHUNK_BYTES  ((size_t)1 << 18) /* of the packed file, copied at once */

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

/* A stream being unpacked.  Input is copied piece by piece: the file may change
 * meanwhile, which the libraries do not expect. */
typedef struct unpacking {
    const uint8_t *data; /* not copied yet... */
    size_t bytes;
    size_t packed; /* ... of this total */
    pl_spill *out;
    uint64_t written, most;
    uint8_t *chunk;  /* [CHUNK_BYTES] */
    uint8_t *buffer; /* [BUFFER_BYTES] */
} unpacking;

/* The next piece of input; its length. */
static size_t feed(unpacking *u)
{
    size_t bytes = u->bytes < CHUNK_BYTES ? u->bytes : CHUNK_BYTES;
    memcpy(u->chunk, u->data, bytes);
    u->data += bytes;
    u->bytes -= bytes;
    return bytes;
}

static pl_status put(unpacking *u, size_t bytes)
{
    u->written += bytes;
    if (u->written > u->most)
        return PL_FAIL(PL_FORMAT,
                       "%zu packed bytes become more than %llu; if that is "
                       "right, raise --unpack-ratio",
                       u->packed, (unsigned long long)u->most);
    return pl_spill_put(u->out, u->buffer, bytes);
}

/* One round: as much as fits into the buffer.  *ended when a stream did. */
static pl_status inflate_some(z_stream *stream, const char *kind, unpacking *u,
                              bool *ended)
{
    stream->next_out = u->buffer;
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
    return put(u, BUFFER_BYTES - stream->avail_out);
}

/* gzip or zlib. */
static pl_status unpack_deflate(unpacking *u, bool gzip)
{
    const char *kind = gzip ? "gzip" : "zlib";
    z_stream stream = { .zalloc = pl_mem_zlib_alloc,
                        .zfree = pl_mem_zlib_free };
    if (inflateInit2(&stream, (gzip ? 16 : 0) + MAX_WBITS) != Z_OK)
        return PL_FAIL(PL_NOMEM, "out of memory: unpacking %s", kind);
    pl_status status = PL_OK;
    bool ended = false;
    while (status == PL_OK && (u->bytes > 0 || stream.avail_in > 0 || !ended)) {
        if (stream.avail_in == 0) {
            stream.next_in = u->chunk;
            stream.avail_in = (unsigned)feed(u);
        }
        if (ended && inflateReset(&stream) != Z_OK)
            status = PL_FAIL(PL_FORMAT, "broken %s stream", kind);
        else
            status = inflate_some(&stream, kind, u, &ended);
    }
    inflateEnd(&stream);
    return status;
}

static pl_status unpack_zstd(unpacking *u)
{
    ZSTD_DCtx *context = ZSTD_createDCtx();
    if (context == NULL)
        return PL_FAIL(PL_NOMEM, "out of memory: unpacking zstd");
    pl_status status = PL_OK;
    ZSTD_inBuffer in = { u->chunk, 0, 0 };
    size_t left = 1;
    bool full = false;
    while (status == PL_OK && (u->bytes > 0 || in.pos < in.size || full)) {
        ZSTD_outBuffer to = { u->buffer, BUFFER_BYTES, 0 };
        if (in.pos == in.size)
            in = (ZSTD_inBuffer) { u->chunk, feed(u), 0 };
        left = ZSTD_decompressStream(context, &to, &in);
        if (ZSTD_isError(left))
            status = PL_FAIL(PL_FORMAT, "broken zstd stream: %s",
                             ZSTD_getErrorName(left));
        else
            status = put(u, to.pos);
        full = to.pos == to.size;
    }
    if (status == PL_OK && left != 0)
        status = PL_FAIL(PL_FORMAT, "truncated zstd stream");
    ZSTD_freeDCtx(context);
    return status;
}

static uint64_t most_bytes(size_t packed, int64_t ratio)
{
    uint64_t times = ratio > 0 ? (uint64_t)ratio : PL_UNPACK_RATIO;
    uint64_t most = packed > UINT64_MAX / times ? UINT64_MAX : packed * times;
    return most > PL_UNPACK_ALWAYS ? most : PL_UNPACK_ALWAYS;
}

pl_status pl_unpack(pl_spill *out, pl_packing packing, const uint8_t *data,
                    size_t bytes, int64_t ratio)
{
    PL_ASSERT(packing != PL_PACKING_NONE);
    unpacking u = { .data = data,
                    .bytes = bytes,
                    .packed = bytes,
                    .out = out,
                    .most = most_bytes(bytes, ratio) };
    pl_status status = PL_NEW(u.chunk, CHUNK_BYTES);
    if (status == PL_OK)
        status = PL_NEW(u.buffer, BUFFER_BYTES);
    if (status == PL_OK)
        status = packing == PL_PACKING_ZSTD
                     ? unpack_zstd(&u)
                     : unpack_deflate(&u, packing == PL_PACKING_GZIP);
    pl_mem_free(u.chunk);
    pl_mem_free(u.buffer);
    return status;
}

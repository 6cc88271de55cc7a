/* pack.c - streaming compression by zlib and zstd, each at its library's usual
 * level and with a checksum (zstd's is optional), so that damage is detected.
 * Memory use is one buffer and the library's window. */
#include "data/pack/pack.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

#define ZLIB_CONST /* what zlib reads is const */
#include <zlib.h>
#include <zstd.h>

#define BUFFER_BYTES ((size_t)64 << 10)
#define MOST_IN      ((size_t)1 << 30) /* zlib counts in 32 bits */

struct pl_packer {
    pl_packing packing;
    pl_file_writer *file;
    z_stream gzip;
    bool open; /* a gzip stream to be ended */
    ZSTD_CCtx *zstd;
    uint64_t bytes;
    uint8_t buffer[BUFFER_BYTES];
};

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

pl_packing pl_packing_of_name(const char *path)
{
    if (ends_with(path, ".gz"))
        return PL_PACKING_GZIP;
    return ends_with(path, ".zst") ? PL_PACKING_ZSTD : PL_PACKING_NONE;
}

static pl_status open_gzip(pl_packer *packer)
{
    packer->gzip =
        (z_stream) { .zalloc = pl_mem_zlib_alloc, .zfree = pl_mem_zlib_free };
    if (deflateInit2(&packer->gzip, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                     16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return PL_FAIL(PL_NOMEM, "out of memory: packing gzip");
    packer->open = true;
    return PL_OK;
}

static pl_status open_zstd(pl_packer *packer)
{
    packer->zstd = ZSTD_createCCtx();
    if (packer->zstd == NULL || ZSTD_isError(ZSTD_CCtx_setParameter(
                                    packer->zstd, ZSTD_c_checksumFlag, 1)))
        return PL_FAIL(PL_NOMEM, "out of memory: packing zstd");
    return PL_OK;
}

pl_status pl_packer_new(pl_packer **out, pl_packing packing,
                        pl_file_writer *file)
{
    PL_ASSERT(packing != PL_PACKING_NONE);
    pl_packer *packer;
    PL_TRY(PL_NEW(packer, 1));
    packer->packing = packing;
    packer->file = file;
    pl_status status =
        packing == PL_PACKING_GZIP ? open_gzip(packer) : open_zstd(packer);
    if (status == PL_OK)
        *out = packer;
    else
        pl_packer_free(packer);
    return status;
}

void pl_packer_free(pl_packer *packer)
{
    if (packer == NULL)
        return;
    if (packer->open)
        deflateEnd(&packer->gzip);
    ZSTD_freeCCtx(packer->zstd);
    pl_mem_free(packer);
}

static pl_status write_out(pl_packer *packer, size_t bytes)
{
    packer->bytes += bytes;
    return pl_file_writer_put(packer->file, packer->buffer, bytes);
}

/* Deflate until all input is consumed and, at the end, all output written. */
static pl_status deflate_all(pl_packer *packer, const uint8_t *data,
                             size_t bytes, int flush)
{
    z_stream *stream = &packer->gzip;
    stream->next_in = data;
    stream->avail_in = (unsigned)bytes;
    do {
        stream->next_out = packer->buffer;
        stream->avail_out = BUFFER_BYTES;
        int code = deflate(stream, flush);
        if (code == Z_STREAM_ERROR)
            return PL_FAIL(PL_IO, "packing gzip: %s", zError(code));
        PL_TRY(write_out(packer, BUFFER_BYTES - stream->avail_out));
    } while (stream->avail_out == 0);
    return PL_OK;
}

static pl_status compress_all(pl_packer *packer, const void *data, size_t bytes,
                              ZSTD_EndDirective end)
{
    ZSTD_inBuffer in = { data, bytes, 0 };
    size_t left;
    do {
        ZSTD_outBuffer to = { packer->buffer, BUFFER_BYTES, 0 };
        left = ZSTD_compressStream2(packer->zstd, &to, &in, end);
        if (ZSTD_isError(left))
            return PL_FAIL(PL_NOMEM, "packing zstd: %s",
                           ZSTD_getErrorName(left));
        PL_TRY(write_out(packer, to.pos));
    } while (end == ZSTD_e_end ? left > 0 : in.pos < in.size);
    return PL_OK;
}

pl_status pl_packer_put(pl_packer *packer, const void *data, size_t bytes)
{
    if (packer->packing == PL_PACKING_ZSTD)
        return compress_all(packer, data, bytes, ZSTD_e_continue);
    const uint8_t *at = data;
    while (bytes > 0) {
        size_t in = bytes < MOST_IN ? bytes : MOST_IN;
        PL_TRY(deflate_all(packer, at, in, Z_NO_FLUSH));
        at += in;
        bytes -= in;
    }
    return PL_OK;
}

pl_status pl_packer_finish(pl_packer *packer)
{
    return packer->packing == PL_PACKING_ZSTD
               ? compress_all(packer, NULL, 0, ZSTD_e_end)
               : deflate_all(packer, NULL, 0, Z_FINISH);
}

uint64_t pl_packer_bytes(const pl_packer *packer)
{
    return packer->bytes;
}

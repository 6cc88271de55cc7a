/* pieces.c - cuts a range of parameters into pieces, tracks which have arrived,
 * and decides which to send next within a window. */
#include "sync/ps/messages/pieces.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

#define LINE_FLOATS 16

void pl_pieces_shard(int64_t total, int32_t servers, int32_t index,
                     int64_t *first, int64_t *count)
{
    int64_t lines = (total + LINE_FLOATS - 1) / LINE_FLOATS;
    int64_t begin = lines * index / servers * LINE_FLOATS;
    int64_t end = lines * (index + 1) / servers * LINE_FLOATS;
    *first = begin;
    *count = (end < total ? end : total) - begin;
}

pl_status pl_pieces_init(pl_pieces *pieces, int64_t first, int64_t count,
                         int64_t size, int32_t planes_max)
{
    PL_ASSERT(count >= 1 && planes_max >= 1);
    *pieces = (pl_pieces) { .first = first, .count = count, .planes = 1 };
    pieces->size = size > 0 ? size : PL_PIECE_FLOATS;
    pieces->per_plane = (int32_t)((count + pieces->size - 1) / pieces->size);
    pieces->room = pieces->per_plane * planes_max;
    return PL_NEW(pieces->flags, (size_t)pieces->room);
}

void pl_pieces_close(pl_pieces *pieces)
{
    pl_mem_free(pieces->flags);
    *pieces = (pl_pieces) { 0 };
}

void pl_pieces_reset(pl_pieces *pieces, int32_t planes)
{
    PL_ASSERT(planes >= 1 && planes * pieces->per_plane <= pieces->room);
    pieces->planes = planes;
    pieces->here = 0;
    memset(pieces->flags, 0, (size_t)pieces->room * sizeof *pieces->flags);
}

int32_t pl_pieces_total(const pl_pieces *pieces)
{
    return pieces->per_plane * pieces->planes;
}

bool pl_pieces_complete(const pl_pieces *pieces)
{
    return pieces->here == pl_pieces_total(pieces);
}

bool pl_pieces_windowed(const pl_pieces *pieces)
{
    return pl_pieces_total(pieces) > PL_PIECE_WINDOW;
}

pl_piece_range pl_pieces_range(const pl_pieces *pieces, int32_t index)
{
    PL_ASSERT(index >= 0 && index < pl_pieces_total(pieces));
    int64_t begin = index % pieces->per_plane * pieces->size;
    int64_t left = pieces->count - begin;
    return (pl_piece_range) {
        .plane = index / pieces->per_plane,
        .first = pieces->first + begin,
        .count = (uint32_t)(left < pieces->size ? left : pieces->size),
    };
}

int32_t pl_pieces_find(const pl_pieces *pieces, int64_t plane, int64_t first,
                       int64_t count)
{
    if (plane < 0 || plane >= pieces->planes || first < pieces->first ||
        first >= pieces->first + pieces->count ||
        (first - pieces->first) % pieces->size != 0)
        return -1;
    int32_t index = (int32_t)(plane * pieces->per_plane +
                              (first - pieces->first) / pieces->size);
    return pl_pieces_range(pieces, index).count == count ? index : -1;
}

bool pl_pieces_mark(pl_pieces *pieces, int32_t index)
{
    PL_ASSERT(index >= 0 && index < pl_pieces_total(pieces));
    if (pieces->flags[index])
        return false;
    pieces->flags[index] = true;
    pieces->here++;
    return true;
}

bool pl_pieces_have(const pl_pieces *pieces, int64_t first, int64_t count)
{
    int64_t begin = first - pieces->first, end = begin + count;
    if (begin < 0)
        begin = 0;
    if (end > pieces->count)
        end = pieces->count;
    for (int64_t p = begin / pieces->size; p * pieces->size < end; p++)
        if (!pieces->flags[p])
            return false;
    return true;
}

pl_status pl_stream_init(pl_stream *stream, int64_t first, int64_t count,
                         int64_t size, int32_t planes_max)
{
    *stream = (pl_stream) { .next = 0 };
    return pl_pieces_init(&stream->acked, first, count, size, planes_max);
}

void pl_stream_close(pl_stream *stream)
{
    pl_pieces_close(&stream->acked);
}

void pl_stream_start(pl_stream *stream, int32_t planes, bool backward)
{
    pl_pieces_reset(&stream->acked, planes);
    stream->backward = backward;
    stream->ready_from = backward ? INT64_MAX : 0;
    pl_stream_retry(stream);
}

void pl_stream_retry(pl_stream *stream)
{
    stream->next = 0;
    stream->flying = 0;
}

int32_t pl_stream_next(pl_stream *stream)
{
    int32_t total = pl_pieces_total(&stream->acked);
    while (stream->next < total && stream->flying < PL_PIECE_WINDOW) {
        int32_t index =
            stream->backward ? total - 1 - stream->next : stream->next;
        if (stream->backward &&
            pl_pieces_range(&stream->acked, index).first < stream->ready_from)
            return -1;
        stream->next++;
        if (stream->acked.flags[index])
            continue;
        stream->flying++;
        return index;
    }
    return -1;
}

void pl_stream_ack(pl_stream *stream, int32_t index)
{
    if (pl_pieces_mark(&stream->acked, index) && stream->flying > 0)
        stream->flying--;
}

void pl_stream_ack_all(pl_stream *stream)
{
    for (int32_t i = 0; i < pl_pieces_total(&stream->acked); i++)
        pl_stream_ack(stream, i);
}

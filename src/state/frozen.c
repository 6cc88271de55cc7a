/* Copy before change: while a snapshot is being read, a piece that is about
 * to change is copied into a bounded pool first, unless the reader has
 * already passed it. The changing side never waits; it is told when the pool
 * is full. */
#include "state/frozen.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <string.h>

#define POOL_LEAST ((size_t)64 << 20)

struct pl_frozen {
    pl_frozen_opts opts;
    int planes;
    int64_t per_plane; /* pieces */
    int64_t pieces;    /* of all planes */
    int64_t room;      /* copies that may be held */
    atomic_bool active;
    pl_mutex lock;   /* of what follows */
    int64_t next;    /* pieces before this one were read */
    int64_t held;    /* copies there are */
    float **copies;  /* [pieces]; NULL: as in memory */
    float *current;  /* the piece being read, copied or taken from the pool */
    int64_t reading; /* which that is; the reader's alone */
    float *buffer;   /* for one piece; the reader's alone */
};

static size_t pool_bytes(const pl_frozen *frozen)
{
    size_t all = (size_t)frozen->opts.count * (size_t)frozen->planes;
    size_t quarter = all * sizeof(float) / 4;
    if (frozen->opts.pool_bytes > 0)
        return frozen->opts.pool_bytes;
    return quarter > POOL_LEAST ? quarter : POOL_LEAST;
}

pl_status pl_frozen_new(pl_frozen **out, const pl_frozen_opts *opts)
{
    PL_ASSERT(opts->planes.count >= 1 && opts->count >= 1 && opts->piece >= 0);
    pl_frozen *frozen;
    PL_TRY(PL_NEW(frozen, 1));
    frozen->opts = *opts;
    pl_mutex_init(&frozen->lock);
    if (opts->piece == 0)
        frozen->opts.piece = PL_FROZEN_FLOATS;
    int64_t piece = frozen->opts.piece;
    frozen->planes = opts->planes.count;
    frozen->per_plane = (opts->count + piece - 1) / piece;
    frozen->pieces = frozen->per_plane * frozen->planes;
    frozen->room =
        (int64_t)(pool_bytes(frozen) / ((size_t)piece * sizeof(float)));
    pl_status status = PL_NEW(frozen->copies, (size_t)frozen->pieces);
    if (status == PL_OK)
        status = PL_NEW_ALIGNED(frozen->buffer, (size_t)piece);
    if (status != PL_OK) {
        pl_frozen_free(frozen);
        return status;
    }
    *out = frozen;
    return PL_OK;
}

/* Under the lock: the reader is beyond the pieces before `next`. */
static void pass(pl_frozen *frozen, int64_t next)
{
    for (; frozen->next < next; frozen->next++) {
        float **copy = &frozen->copies[frozen->next];
        frozen->held -= *copy != NULL;
        pl_mem_free(*copy);
        *copy = NULL;
    }
}

void pl_frozen_free(pl_frozen *frozen)
{
    if (frozen == NULL)
        return;
    if (frozen->copies != NULL)
        pl_frozen_end(frozen);
    pl_mem_free(frozen->copies);
    pl_mem_free(frozen->buffer);
    pl_mutex_close(&frozen->lock);
    pl_mem_free(frozen);
}

void pl_frozen_begin(pl_frozen *frozen)
{
    PL_ASSERT(!atomic_load(&frozen->active));
    pl_mutex_lock(&frozen->lock);
    frozen->next = 0;
    frozen->reading = -1;
    pl_mutex_unlock(&frozen->lock);
    atomic_store(&frozen->active, true);
}

void pl_frozen_end(pl_frozen *frozen)
{
    pl_mutex_lock(&frozen->lock);
    atomic_store(&frozen->active, false);
    pass(frozen, frozen->pieces);
    pl_mem_free(frozen->current);
    frozen->current = NULL;
    pl_mutex_unlock(&frozen->lock);
}

static int64_t piece_count(const pl_frozen *frozen, int64_t in_plane)
{
    int64_t left = frozen->opts.count - in_plane * frozen->opts.piece;
    return left < frozen->opts.piece ? left : frozen->opts.piece;
}

static void copy_piece(const pl_frozen *frozen, int64_t index, float *to)
{
    int64_t in_plane = index % frozen->per_plane;
    const float *from = frozen->opts.planes.data[index / frozen->per_plane] +
                        in_plane * frozen->opts.piece;
    memcpy(to, from, (size_t)piece_count(frozen, in_plane) * sizeof(float));
}

/* Under the lock: no read will look at this piece's memory any more.  Copies
 * are not aligned: what the C library gets back of those it does not always
 * give out again, and the pool would take twice its size. */
static bool save_piece(pl_frozen *frozen, int64_t index)
{
    float *copy;
    if (index < frozen->next || frozen->copies[index] != NULL)
        return true;
    if (frozen->held >= frozen->room ||
        PL_NEW(copy, (size_t)frozen->opts.piece) != PL_OK)
        return false;
    copy_piece(frozen, index, copy);
    frozen->copies[index] = copy;
    frozen->held++;
    return true;
}

/* From the end: there the reader comes last. */
bool pl_frozen_touch(pl_frozen *frozen, int64_t first, int64_t count)
{
    if (count <= 0 || !atomic_load(&frozen->active))
        return true;
    int64_t piece = frozen->opts.piece;
    int64_t begin = first / piece, end = (first + count - 1) / piece;
    bool safe = true;
    pl_mutex_lock(&frozen->lock);
    for (int64_t plane = frozen->planes - 1; plane >= 0 && safe; plane--)
        for (int64_t p = end; p >= begin && safe; p--)
            safe = save_piece(frozen, plane * frozen->per_plane + p);
    pl_mutex_unlock(&frozen->lock);
    return safe;
}

/* Piece `index` becomes the one that is read. */
static void take_piece(pl_frozen *frozen, int64_t index)
{
    PL_ASSERT(index > frozen->reading && index < frozen->pieces);
    pl_mutex_lock(&frozen->lock);
    pl_mem_free(frozen->current);
    frozen->current = frozen->copies[index];
    frozen->held -= frozen->current != NULL;
    frozen->copies[index] = NULL;
    if (frozen->current == NULL)
        copy_piece(frozen, index, frozen->buffer);
    pass(frozen, index + 1);
    pl_mutex_unlock(&frozen->lock);
    frozen->reading = index;
}

void pl_frozen_read(pl_frozen *frozen, int plane, int64_t first,
                    const float **data, int64_t *count)
{
    PL_ASSERT(plane >= 0 && plane < frozen->planes && first >= 0 &&
              first < frozen->opts.count);
    int64_t in_plane = first / frozen->opts.piece;
    int64_t index = plane * frozen->per_plane + in_plane;
    if (index != frozen->reading)
        take_piece(frozen, index);
    int64_t at = first - in_plane * frozen->opts.piece;
    *data = (frozen->current != NULL ? frozen->current : frozen->buffer) + at;
    *count = piece_count(frozen, in_plane) - at;
}

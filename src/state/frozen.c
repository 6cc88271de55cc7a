/* Copy before change: while a snapshot is being read, a piece that is about
 * to change is copied into a bounded pool first, unless the reader has
 * already passed it.
 *
 * A piece is in memory, copied, or passed.  Invariants:
 *   F1  Only a piece whose `safe` is set (copied or passed) is changed.
 *   F2  `safe` is set under the lock; the reader copies a piece from memory
 *       under the lock and only while it is not set.
 *   F3  The reader never waits for a change, so every change that waits for the
 *       pool continues; if the reader itself hangs (on a disk), its snapshot is
 *       abandoned: lost, and no longer active. */
#include "state/frozen.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <string.h>

#define POOL_LEAST ((int64_t)64 << 20)
#define WAIT_MS    200 /* then `waiting` is called */
/* The most that one look adds to the waited time: for the rest of a longer gap
 * this process may have been suspended, and the reader with it. */
#define GAP_NS INT64_C(1000000000)

struct pl_frozen {
    pl_frozen_opts opts;
    int planes;
    int64_t per_plane; /* pieces */
    int64_t pieces;    /* of all planes */
    int64_t room;      /* capacity of the pool in copies */
    void (*waiting)(void *context);
    void *context;
    atomic_bool active, lost;
    _Atomic uint8_t *safe; /* [pieces] F1 */
    pl_mutex lock;         /* guards all that follows */
    pl_cond passed;        /* the reader advanced */
    int waiters;           /* changes waiting for that */
    int64_t next;          /* pieces before this one were read */
    int64_t looked_ns;   /* when a change last found the pool full; 0: not... */
    int64_t waited_ns;   /* ... since the reader advanced; the time waited */
    float *pool;         /* room for `room` pieces; NULL: no copy yet */
    float **copies;      /* [pieces] in the pool; NULL: none */
    float **spare;       /* [room] places of the pool that were used... */
    int64_t spare_count; /* ... and are free again */
    int64_t used;        /* places that have ever been used */
    float *current;      /* the place of the pool being read, or NULL */
    int64_t reading;     /* the piece being read; used by the reader only */
    float *buffer;       /* for one piece; used by the reader only */
};

int64_t pl_frozen_pool(int64_t bytes)
{
    int64_t least = bytes < POOL_LEAST ? bytes : POOL_LEAST;
    return bytes / 4 > least ? bytes / 4 : least;
}

/* Capacity of the pool in pieces, at least one. */
static int64_t pool_room(const pl_frozen *frozen)
{
    int64_t piece = frozen->opts.piece * (int64_t)sizeof(float);
    int64_t bytes = (int64_t)frozen->opts.pool_bytes;
    if (bytes == 0)
        bytes = pl_frozen_pool(frozen->pieces * piece);
    int64_t room = bytes / piece;
    return room < 1 ? 1 : room < frozen->pieces ? room : frozen->pieces;
}

static pl_status make_lists(pl_frozen *frozen)
{
    PL_TRY(PL_NEW(frozen->safe, (size_t)frozen->pieces));
    PL_TRY(PL_NEW(frozen->copies, (size_t)frozen->pieces));
    PL_TRY(PL_NEW(frozen->spare, (size_t)frozen->room));
    return PL_NEW_ALIGNED(frozen->buffer, (size_t)frozen->opts.piece);
}

pl_status pl_frozen_new(pl_frozen **out, const pl_frozen_opts *opts)
{
    PL_ASSERT(opts->planes.count >= 1 && opts->count >= 1 && opts->piece >= 0);
    pl_frozen *frozen;
    PL_TRY(PL_NEW(frozen, 1));
    frozen->opts = *opts;
    pl_mutex_init(&frozen->lock);
    pl_cond_init(&frozen->passed);
    if (opts->piece == 0)
        frozen->opts.piece =
            opts->count < PL_FROZEN_FLOATS ? opts->count : PL_FROZEN_FLOATS;
    int64_t piece = frozen->opts.piece;
    if (opts->patience_ms == 0)
        frozen->opts.patience_ms = PL_FROZEN_PATIENCE_MS;
    frozen->planes = opts->planes.count;
    frozen->per_plane = (opts->count + piece - 1) / piece;
    frozen->pieces = frozen->per_plane * frozen->planes;
    frozen->room = pool_room(frozen);
    pl_status status = make_lists(frozen);
    if (status != PL_OK) {
        pl_frozen_free(frozen);
        return status;
    }
    *out = frozen;
    return PL_OK;
}

void pl_frozen_free(pl_frozen *frozen)
{
    if (frozen == NULL)
        return;
    pl_mem_free(frozen->pool);
    pl_mem_free(frozen->spare);
    pl_mem_free(frozen->copies);
    pl_mem_free(frozen->safe);
    pl_mem_free(frozen->buffer);
    pl_cond_close(&frozen->passed);
    pl_mutex_close(&frozen->lock);
    pl_mem_free(frozen);
}

void pl_frozen_on_wait(pl_frozen *frozen, void (*waiting)(void *context),
                       void *context)
{
    frozen->waiting = waiting;
    frozen->context = context;
}

void pl_frozen_begin(pl_frozen *frozen)
{
    PL_ASSERT(!atomic_load(&frozen->active));
    pl_mutex_lock(&frozen->lock);
    frozen->next = frozen->looked_ns = frozen->waited_ns = 0;
    frozen->reading = -1;
    atomic_store(&frozen->lost, false);
    for (int64_t i = 0; i < frozen->pieces; i++)
        atomic_store_explicit(&frozen->safe[i], 0, memory_order_relaxed);
    pl_mutex_unlock(&frozen->lock);
    atomic_store(&frozen->active, true);
}

static void wake_changes(pl_frozen *frozen)
{
    if (frozen->waiters > 0)
        pl_cond_broadcast(&frozen->passed);
}

void pl_frozen_end(pl_frozen *frozen)
{
    pl_mutex_lock(&frozen->lock);
    atomic_store(&frozen->active, false);
    memset(frozen->copies, 0, (size_t)frozen->pieces * sizeof(float *));
    frozen->spare_count = frozen->used = 0;
    frozen->current = NULL;
    pl_mem_free(frozen->pool);
    frozen->pool = NULL;
    wake_changes(frozen);
    pl_mutex_unlock(&frozen->lock);
}

static bool is_safe(const pl_frozen *frozen, int64_t index)
{
    return atomic_load_explicit(&frozen->safe[index], memory_order_acquire);
}

/* Under the lock. F2 */
static void set_safe(pl_frozen *frozen, int64_t index)
{
    atomic_store_explicit(&frozen->safe[index], 1, memory_order_release);
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

/* Under the lock: a place of the pool; NULL: it is full, or out of memory.
 * Used places come first: unused ones take no memory yet. */
static float *take_place(pl_frozen *frozen)
{
    if (frozen->spare_count > 0)
        return frozen->spare[--frozen->spare_count];
    size_t floats = (size_t)(frozen->room * frozen->opts.piece);
    if (frozen->used == frozen->room ||
        (frozen->pool == NULL && PL_NEW(frozen->pool, floats) != PL_OK))
        return NULL;
    return frozen->pool + frozen->used++ * frozen->opts.piece;
}

/* Under the lock. */
static void free_place(pl_frozen *frozen, float *place)
{
    if (place != NULL)
        frozen->spare[frozen->spare_count++] = place;
}

/* Under the lock. */
static bool save_piece(pl_frozen *frozen, int64_t index)
{
    if (is_safe(frozen, index))
        return true;
    float *copy = take_place(frozen);
    if (copy == NULL)
        return false;
    copy_piece(frozen, index, copy);
    frozen->copies[index] = copy;
    set_safe(frozen, index);
    return true;
}

/* A range of the block in pieces of a plane. */
typedef struct range {
    int64_t begin, end;
} range;

static range pieces_of(const pl_frozen *frozen, int64_t first, int64_t count)
{
    return (range) { first / frozen->opts.piece,
                     (first + count - 1) / frozen->opts.piece + 1 };
}

static bool all_safe(const pl_frozen *frozen, range at)
{
    for (int64_t plane = 0; plane < frozen->planes; plane++)
        for (int64_t p = at.begin; p < at.end; p++)
            if (!is_safe(frozen, plane * frozen->per_plane + p))
                return false;
    return true;
}

/* Under the lock, for a change that finds the pool full.  True when it has
 * waited long enough for a reader that does not advance. F3 */
static bool give_up(pl_frozen *frozen)
{
    int64_t now = pl_clock_now_ns(pl_clock_real());
    int64_t gap = frozen->looked_ns > 0 ? now - frozen->looked_ns : 0;
    frozen->looked_ns = now;
    frozen->waited_ns += gap < GAP_NS ? gap : GAP_NS;
    if (frozen->waited_ns < frozen->opts.patience_ms * INT64_C(1000000))
        return false;
    atomic_store(&frozen->lost, true);
    atomic_store(&frozen->active, false);
    wake_changes(frozen);
    return true;
}

/* Under the lock.  Pieces at the end come first, as the reader reaches them
 * last. After the last read nothing needs copying. */
static bool save_pieces(pl_frozen *frozen, range at)
{
    bool safe = true;
    if (!atomic_load(&frozen->active))
        return true;
    for (int64_t plane = frozen->planes - 1; plane >= 0 && safe; plane--)
        for (int64_t p = at.end - 1; p >= at.begin && safe; p--)
            safe = save_piece(frozen, plane * frozen->per_plane + p);
    return safe || give_up(frozen);
}

/* True when this range may change without a copy. */
static bool may_change(const pl_frozen *frozen, int64_t first, int64_t count)
{
    return count <= 0 ||
           !atomic_load_explicit(&frozen->active, memory_order_acquire) ||
           all_safe(frozen, pieces_of(frozen, first, count));
}

bool pl_frozen_touch(pl_frozen *frozen, int64_t first, int64_t count)
{
    if (may_change(frozen, first, count))
        return true;
    pl_mutex_lock(&frozen->lock);
    bool safe = save_pieces(frozen, pieces_of(frozen, first, count));
    pl_mutex_unlock(&frozen->lock);
    return safe;
}

/* Under the lock: wait until the reader advances or a timeout expires. */
static void wait_for_reader(pl_frozen *frozen)
{
    frozen->waiters++;
    pl_status status =
        pl_cond_wait_until(&frozen->passed, &frozen->lock,
                           pl_deadline_in_ms(pl_clock_real(), WAIT_MS));
    (void)status; /* the caller checks again in either case */
    frozen->waiters--;
    if (frozen->waiting == NULL)
        return;
    pl_mutex_unlock(&frozen->lock);
    frozen->waiting(frozen->context);
    pl_mutex_lock(&frozen->lock);
}

void pl_frozen_before_change(pl_frozen *frozen, int64_t first, int64_t count)
{
    if (may_change(frozen, first, count))
        return;
    range at = pieces_of(frozen, first, count);
    pl_mutex_lock(&frozen->lock);
    while (!save_pieces(frozen, at))
        wait_for_reader(frozen);
    pl_mutex_unlock(&frozen->lock);
}

void pl_frozen_before_keys(pl_frozen *frozen, int64_t first, uint64_t most,
                           const uint64_t *ids, int64_t count)
{
    if (!atomic_load_explicit(&frozen->active, memory_order_acquire))
        return;
    for (int64_t k = 0; k < count; k++)
        if (ids[k] < most)
            pl_frozen_before_change(frozen, first + (int64_t)ids[k], 1);
}

/* Under the lock: the reader has passed the pieces before `next`. */
static void pass(pl_frozen *frozen, int64_t next)
{
    frozen->looked_ns = frozen->waited_ns = 0;
    for (; frozen->next < next; frozen->next++) {
        free_place(frozen, frozen->copies[frozen->next]);
        frozen->copies[frozen->next] = NULL;
        set_safe(frozen, frozen->next);
    }
    wake_changes(frozen);
}

/* Make piece `index` the one being read. */
static void take_piece(pl_frozen *frozen, int64_t index)
{
    PL_ASSERT(index > frozen->reading && index < frozen->pieces);
    pl_mutex_lock(&frozen->lock);
    free_place(frozen, frozen->current);
    frozen->current = frozen->copies[index];
    frozen->copies[index] = NULL; /* stays in its place until the next read */
    if (frozen->current == NULL && !pl_frozen_lost(frozen))
        copy_piece(frozen, index, frozen->buffer); /* F2 */
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

bool pl_frozen_lost(const pl_frozen *frozen)
{
    return atomic_load(&frozen->lost);
}

/* The thread that decodes the next window of a stream while the current one is
 * used: blocks in parallel, then rows copied in the window's shuffled order. */
#include "data/sparse/loader.h"

#include "base/mem.h"
#include "base/rng.h"

#include <string.h>

#define WAIT_MS    60000
#define COPIED     512 /* rows copied per item */
#define MOST_ITEMS 65535
#define MOST_ROWS  ((int64_t)COPIED * MOST_ITEMS)

typedef enum slot_state {
    SLOT_EMPTY,
    SLOT_WANTED,
    SLOT_LOADED, /* or failed */
} slot_state;

typedef struct slot {
    slot_state state; /* guarded by the loader's lock */
    pl_loader_key key;
    pl_sparse_rows rows; /* owned by the thread while wanted, otherwise by the
                            reader */
    pl_error error;
} slot;

struct pl_loader {
    pl_sparse_set *set;
    const pl_stream_share *share;
    pl_reader_opts opts;
    pl_stream_plan plan;
    pl_pool *pool;
    pl_thread *thread;
    pl_mutex lock;
    pl_cond changed;
    bool stopping; /* guarded by lock */
    slot slots[2];
    /* Used by the thread for the window it makes. */
    const pl_stream_window *window;
    slot *target;
    pl_sparse_rows *blocks; /* [block_room] */
    int64_t block_room;
    uint64_t *origin; /* [row_room]: block << 32 | row, in block order */
    uint32_t *index;  /* [row_room]: into origin, in the window's order */
    int64_t row_room;
    pl_mutex error_lock; /* guards the target's error while it is made */
};

static void fail_window(pl_loader *loader, pl_status status)
{
    pl_mutex_lock(&loader->error_lock);
    if (loader->target->error.status == PL_OK)
        pl_error_save(&loader->target->error, status);
    pl_mutex_unlock(&loader->error_lock);
}

static void decode_item(void *arg, int item, int thread)
{
    (void)thread;
    pl_loader *loader = arg;
    uint32_t block = loader->plan.order[loader->window->block + item];
    pl_status status =
        pl_sparse_set_decode(loader->set, block, &loader->blocks[item]);
    if (status != PL_OK)
        fail_window(loader, status);
}

static pl_status make_room(pl_loader *loader, int64_t blocks, int64_t rows)
{
    if (blocks > MOST_ITEMS || rows > MOST_ROWS)
        return PL_FAIL(PL_UNSUPPORTED,
                       "a window of %lld examples in %lld blocks; make "
                       "--shuffle-buffer smaller",
                       (long long)rows, (long long)blocks);
    if (blocks > loader->block_room) {
        pl_sparse_rows *grown = pl_mem_resize(loader->blocks, (size_t)blocks,
                                              sizeof *loader->blocks);
        PL_TRY(pl_mem_check(grown, (size_t)blocks, sizeof *loader->blocks));
        memset(grown + loader->block_room, 0,
               (size_t)(blocks - loader->block_room) * sizeof *grown);
        loader->blocks = grown;
        loader->block_room = blocks;
    }
    if (rows > loader->row_room) {
        pl_mem_free(loader->origin);
        pl_mem_free(loader->index);
        loader->origin = NULL;
        loader->index = NULL;
        loader->row_room = 0;
        PL_TRY(PL_NEW(loader->origin, (size_t)rows));
        PL_TRY(PL_NEW(loader->index, (size_t)rows));
        loader->row_room = rows;
    }
    return PL_OK;
}

/* Assign each row its place. */
static int64_t arrange(pl_loader *loader)
{
    int64_t rows = 0;
    for (int64_t b = 0; b < loader->window->count; b++)
        for (int64_t r = 0; r < loader->blocks[b].count; r++)
            loader->origin[rows++] = (uint64_t)b << 32 | (uint64_t)r;
    if (loader->opts.one_pass || rows == 0) {
        for (int64_t i = 0; i < rows; i++)
            loader->index[i] = (uint32_t)i;
        return rows;
    }
    pl_loader_key at = loader->target->key;
    uint64_t key = pl_rng_key_text(loader->opts.seed, "data window");
    key = pl_rng_key(pl_rng_key(key, (uint64_t)at.epoch), (uint64_t)at.window);
    pl_rng_permute(key, (uint64_t)rows, 0, (uint32_t)rows, loader->index);
    return rows;
}

static const pl_sparse_rows *source_of(const pl_loader *loader, int64_t i,
                                       int64_t *row)
{
    uint64_t origin = loader->origin[loader->index[i]];
    *row = (int64_t)(origin & UINT32_MAX);
    return &loader->blocks[origin >> 32];
}

static void copy_item(void *arg, int item, int thread)
{
    (void)thread;
    pl_loader *loader = arg;
    pl_sparse_rows *to = &loader->target->rows;
    int64_t first = (int64_t)item * COPIED, end = first + COPIED;
    for (int64_t i = first; i < end && i < to->count; i++) {
        int64_t row;
        const pl_sparse_rows *from = source_of(loader, i, &row);
        int64_t begin = from->start[row];
        size_t length = (size_t)(to->start[i + 1] - to->start[i]);
        memcpy(to->ids + to->start[i], from->ids + begin,
               length * sizeof *to->ids);
        if (from->weighted)
            memcpy(to->values + to->start[i], from->values + begin,
                   length * sizeof *to->values);
        else if (to->weighted)
            pl_sparse_rows_fill(to->values + to->start[i], (int64_t)length);
        to->labels[i] = from->labels[row];
    }
}

/* Put the rows of the blocks into the window's order. */
static pl_status assemble(pl_loader *loader)
{
    pl_sparse_rows *to = &loader->target->rows;
    int64_t count = arrange(loader), ids = 0, row;
    pl_sparse_rows_clear(to);
    for (int64_t b = 0; b < loader->window->count; b++) {
        ids += pl_sparse_rows_ids(&loader->blocks[b]);
        to->weighted = to->weighted || loader->blocks[b].weighted;
    }
    PL_TRY(pl_sparse_rows_reserve(to, count, ids));
    ids = 0;
    for (int64_t i = 0; i < count; i++) {
        const pl_sparse_rows *from = source_of(loader, i, &row);
        ids += from->start[row + 1] - from->start[row];
        to->start[i + 1] = ids;
    }
    to->count = count;
    pl_pool_run(loader->pool, (int)((count + COPIED - 1) / COPIED), copy_item,
                loader);
    return PL_OK;
}

static pl_status load(pl_loader *loader)
{
    slot *to = loader->target;
    pl_stream_plan_make(&loader->plan, loader->share, loader->set,
                        &loader->opts, to->key.epoch);
    loader->window = &loader->plan.windows[to->key.window];
    PL_TRY(make_room(loader, loader->window->count, loader->window->rows));
    to->error.status = PL_OK;
    pl_pool_run(loader->pool, (int)loader->window->count, decode_item, loader);
    if (to->error.status != PL_OK)
        return pl_error_raise(&to->error);
    return assemble(loader);
}

/* The slot to fill, or NULL when it is time to end; the lock is held. */
static slot *wanted(pl_loader *loader)
{
    for (;;) {
        if (loader->stopping)
            return NULL;
        for (int i = 0; i < 2; i++)
            if (loader->slots[i].state == SLOT_WANTED)
                return &loader->slots[i];
        (void)!pl_cond_wait_until(&loader->changed, &loader->lock,
                                  pl_deadline_in_ms(pl_clock_real(), WAIT_MS));
    }
}

static pl_status run(void *arg)
{
    pl_loader *loader = arg;
    pl_mutex_lock(&loader->lock);
    while ((loader->target = wanted(loader)) != NULL) {
        pl_mutex_unlock(&loader->lock);
        pl_status status = load(loader);
        pl_error_save(&loader->target->error, status);
        pl_mutex_lock(&loader->lock);
        loader->target->state = SLOT_LOADED;
        pl_cond_broadcast(&loader->changed);
    }
    pl_mutex_unlock(&loader->lock);
    return PL_OK;
}

pl_status pl_loader_new(pl_loader **out, pl_sparse_set *set,
                        const pl_stream_share *share,
                        const pl_reader_opts *opts)
{
    pl_loader *loader;
    PL_TRY(PL_NEW(loader, 1));
    loader->set = set;
    loader->share = share;
    loader->opts = *opts;
    pl_mutex_init(&loader->lock);
    pl_mutex_init(&loader->error_lock);
    pl_cond_init(&loader->changed);
    pl_status status = pl_stream_plan_init(&loader->plan, share);
    if (status == PL_OK)
        status = pl_pool_new(&loader->pool, set->opts.threads);
    if (status == PL_OK)
        status = pl_thread_start(&loader->thread, "loader", run, loader);
    if (status == PL_OK)
        *out = loader;
    else
        pl_loader_free(loader);
    return status;
}

void pl_loader_free(pl_loader *loader)
{
    if (loader == NULL)
        return;
    pl_mutex_lock(&loader->lock);
    loader->stopping = true;
    pl_cond_broadcast(&loader->changed);
    pl_mutex_unlock(&loader->lock);
    (void)!pl_thread_join(loader->thread);
    pl_pool_free(loader->pool);
    for (int64_t b = 0; b < loader->block_room; b++)
        pl_sparse_rows_close(&loader->blocks[b]);
    pl_mem_free(loader->blocks);
    pl_mem_free(loader->origin);
    pl_mem_free(loader->index);
    for (int i = 0; i < 2; i++)
        pl_sparse_rows_close(&loader->slots[i].rows);
    pl_stream_plan_close(&loader->plan);
    pl_cond_close(&loader->changed);
    pl_mutex_close(&loader->error_lock);
    pl_mutex_close(&loader->lock);
    pl_mem_free(loader);
}

static bool same(pl_loader_key a, pl_loader_key b)
{
    return a.epoch == b.epoch && a.window == b.window;
}

/* The slot with this window, requested when there is none; the lock is held.
 * The window that the thread is making is not replaced. */
static slot *find(pl_loader *loader, pl_loader_key key, const slot *keep)
{
    for (;;) {
        slot *idle = NULL;
        for (int i = 0; i < 2; i++) {
            slot *each = &loader->slots[i];
            if (each->state != SLOT_EMPTY && same(each->key, key))
                return each;
            if (each->state != SLOT_WANTED && each != keep)
                idle = each;
        }
        if (idle != NULL) {
            idle->key = key;
            idle->state = SLOT_WANTED;
            pl_cond_broadcast(&loader->changed);
            return idle;
        }
        if (keep != NULL)
            return NULL; /* both are in use */
        (void)!pl_cond_wait_until(&loader->changed, &loader->lock,
                                  pl_deadline_in_ms(pl_clock_real(), WAIT_MS));
    }
}

pl_status pl_loader_take(pl_loader *loader, pl_loader_key key,
                         pl_loader_key next, const pl_sparse_rows **rows)
{
    pl_mutex_lock(&loader->lock);
    slot *have = find(loader, key, NULL);
    while (have->state == SLOT_WANTED)
        (void)!pl_cond_wait_until(&loader->changed, &loader->lock,
                                  pl_deadline_in_ms(pl_clock_real(), WAIT_MS));
    if (have->error.status == PL_OK && next.epoch >= 0 && !same(key, next))
        find(loader, next, have);
    pl_mutex_unlock(&loader->lock);
    *rows = &have->rows;
    return pl_error_raise(&have->error);
}

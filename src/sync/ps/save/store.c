/* Writes and reads a server's part of checkpoints in a thread of its own, one
 * thing at a time, while the core goes on. */
#include "sync/ps/save/store.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"

typedef enum task {
    TASK_NONE,
    TASK_SAVE,
    TASK_COMMIT,
    TASK_LOAD,
} task;

struct pl_ps_store {
    pl_partition_opts opts;
    pl_frozen *frozen;
    pl_partition_own own;
    char *run; /* where it was placed; NULL: where it began */
    pl_partition
        *partition; /* of the task, or of the save that is to be completed */
    pl_manifest_shard *shards; /* [of] */
    atomic_bool cancelled;
    pl_error told; /* the failure that poll gave out */
    pl_thread *thread;
    pl_mutex lock;
    pl_cond changed; /* task or stopping */
    /* Guarded by the lock. */
    task task;
    bool ended, stopping;
    pl_error error;
};

static pl_status do_task(pl_ps_store *store, task what)
{
    pl_status status;
    switch (what) {
    case TASK_SAVE:
        status = pl_partition_write(store->partition, store->frozen,
                                    &store->cancelled,
                                    &store->shards[store->opts.index]);
        pl_frozen_end(store->frozen);
        return status;
    case TASK_COMMIT:
        return pl_partition_commit(store->partition, store->shards);
    default:
        return pl_partition_load(store->partition);
    }
}

/* Under the lock: sleep until something changed, or a while passed. */
static void wait_for_change(pl_ps_store *store)
{
    pl_status status =
        pl_cond_wait_until(&store->changed, &store->lock,
                           pl_deadline_in_ms(pl_clock_real(), 60000));
    (void)status; /* late or not, the caller looks again */
}

static pl_status store_main(void *arg)
{
    pl_ps_store *store = arg;
    pl_mutex_lock(&store->lock);
    while (!store->stopping) {
        task what = store->ended ? TASK_NONE : store->task;
        if (what == TASK_NONE) {
            wait_for_change(store);
            continue;
        }
        pl_mutex_unlock(&store->lock);
        pl_status status = do_task(store, what);
        pl_mutex_lock(&store->lock);
        pl_error_save(&store->error, status);
        store->ended = true;
    }
    pl_mutex_unlock(&store->lock);
    return PL_OK;
}

pl_status pl_ps_store_new(pl_ps_store **out, const pl_partition_opts *opts)
{
    pl_status status;
    pl_ps_store *store;
    PL_TRY(PL_NEW(store, 1));
    store->opts = *opts;
    if (opts->place.run == NULL && opts->place.within != NULL)
        store->opts.own = &store->own;
    pl_mutex_init(&store->lock);
    pl_cond_init(&store->changed);
    pl_frozen_opts frozen = { .planes = opts->planes, .count = opts->count };
    PL_TRY_OUT(status, pl_frozen_new(&store->frozen, &frozen));
    PL_TRY_OUT(status, PL_NEW(store->shards, (size_t)opts->of));
    PL_TRY_OUT(status,
               pl_thread_start(&store->thread, "pl-store", store_main, store));
    *out = store;
    return PL_OK;
out:
    pl_ps_store_free(store);
    return status;
}

void pl_ps_store_free(pl_ps_store *store)
{
    if (store == NULL)
        return;
    atomic_store(&store->cancelled, true);
    pl_mutex_lock(&store->lock);
    store->stopping = true;
    pl_cond_broadcast(&store->changed);
    pl_mutex_unlock(&store->lock);
    PL_ASSERT(pl_thread_join(store->thread) == PL_OK);
    pl_partition_free(store->partition);
    pl_frozen_free(store->frozen);
    pl_mem_free(store->shards);
    pl_partition_own_close(&store->own);
    pl_mem_free(store->run);
    pl_cond_close(&store->changed);
    pl_mutex_close(&store->lock);
    pl_mem_free(store);
}

pl_status pl_ps_store_place(pl_ps_store *store, const char *run)
{
    char *copy;
    PL_TRY(pl_mem_copy_text(&copy, run));
    pl_mutex_lock(&store->lock);
    PL_ASSERT(store->run == NULL && store->task == TASK_NONE);
    store->opts.place.run = store->run = copy;
    pl_mutex_unlock(&store->lock);
    return PL_OK;
}

/* What was cancelled and has ended is put away.  True: nothing is there. */
static bool is_idle(pl_ps_store *store)
{
    pl_mutex_lock(&store->lock);
    if (store->ended && atomic_load(&store->cancelled)) {
        store->ended = false;
        store->task = TASK_NONE;
    }
    bool idle = store->task == TASK_NONE;
    pl_mutex_unlock(&store->lock);
    return idle;
}

/* Hand a task to the thread; one whose plan was wrong has ended already. */
static void begin(pl_ps_store *store, task what, pl_status status)
{
    atomic_store(&store->cancelled, false);
    pl_mutex_lock(&store->lock);
    store->task = what;
    store->ended = status != PL_OK;
    pl_error_save(&store->error, status);
    pl_cond_broadcast(&store->changed);
    pl_mutex_unlock(&store->lock);
}

static pl_status read_plan(pl_ps_store *store, const char *plan, size_t bytes)
{
    pl_partition_free(store->partition);
    store->partition = NULL;
    return pl_partition_new(&store->partition, plan, bytes, &store->opts);
}

bool pl_ps_store_save(pl_ps_store *store, const char *plan, size_t bytes)
{
    if (!is_idle(store))
        return false;
    pl_status status = read_plan(store, plan, bytes);
    if (status == PL_OK)
        pl_frozen_begin(store->frozen);
    begin(store, TASK_SAVE, status);
    return true;
}

bool pl_ps_store_commit(pl_ps_store *store, const pl_ps_part *parts)
{
    if (!is_idle(store))
        return false;
    PL_ASSERT(store->partition != NULL);
    int32_t of = store->opts.of;
    for (int32_t j = 0; j < of; j++) {
        pl_manifest_shard_name(store->shards[j].name, j, of);
        store->shards[j].bytes = parts[j].bytes;
        store->shards[j].crc32c = parts[j].crc32c;
    }
    begin(store, TASK_COMMIT, PL_OK);
    return true;
}

bool pl_ps_store_load(pl_ps_store *store, const char *plan, size_t bytes)
{
    if (!is_idle(store))
        return false;
    begin(store, TASK_LOAD, read_plan(store, plan, bytes));
    return true;
}

void pl_ps_store_cancel(pl_ps_store *store)
{
    atomic_store(&store->cancelled, true);
}

bool pl_ps_store_touch(pl_ps_store *store, int64_t first, int64_t count)
{
    return pl_frozen_touch(store->frozen, first, count);
}

bool pl_ps_store_busy(pl_ps_store *store)
{
    return !is_idle(store);
}

static pl_saved outcome_of(pl_status status)
{
    if (status == PL_OK)
        return PL_SAVED_GOOD;
    return status == PL_NUMERIC ? PL_SAVED_NUMERIC : PL_SAVED_FAILED;
}

bool pl_ps_store_poll(pl_ps_store *store, pl_ps_stored *out)
{
    if (is_idle(store))
        return false;
    pl_mutex_lock(&store->lock);
    bool ended = store->ended;
    if (ended) {
        store->told = store->error;
        store->ended = false;
        store->task = TASK_NONE;
    }
    pl_mutex_unlock(&store->lock);
    if (!ended)
        return false;
    const pl_manifest_shard *own = &store->shards[store->opts.index];
    *out = (pl_ps_stored) {
        .outcome = outcome_of(store->told.status),
        .bytes = own->bytes,
        .crc32c = own->crc32c,
        .why = store->told.message,
    };
    return true;
}

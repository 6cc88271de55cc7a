/* Writes, completes and reads checkpoints in a thread of its own, which starts
 * with the first task.  States: idle (NONE), under way, ended (until polled or
 * waited for; if cancelled, until the next task).
 *
 * Invariants:
 *   W1  One task at a time; partition and shards belong to the thread while it
 *       is under way, and to the driver otherwise.
 *   W2  The memory is frozen from the start of a task that writes until the
 *       last byte has been read or the write has failed. */
#include "state/writer.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/thread.h"

typedef enum task {
    TASK_NONE,
    TASK_SHARD,
    TASK_COMMIT,
    TASK_CHECKPOINT,
    TASK_LOAD,
} task;

struct pl_writer {
    pl_partition_opts opts;
    pl_frozen *frozen;
    pl_partition_own own;
    char *run;               /* set by pl_writer_place, or NULL */
    pl_partition *partition; /* of the task, or of the shard to be completed */
    pl_manifest_shard *shards; /* [of] */
    atomic_bool cancelled;
    pl_thread *thread; /* NULL: not started */
    pl_mutex lock;
    pl_cond changed; /* task, ended or stopping */
    /* Guarded by the lock. */
    task task;
    bool ended, stopping;
    pl_error error;
};

/* W2 */
static pl_status write_shard(pl_writer *writer)
{
    pl_manifest_shard *own = &writer->shards[writer->opts.index];
    pl_status status = pl_partition_write(writer->partition, writer->frozen,
                                          &writer->cancelled, own);
    pl_frozen_end(writer->frozen);
    return status;
}

/* Complete the checkpoint after its only shard, or drop it if that failed. */
static pl_status complete(const pl_writer *writer, pl_status status)
{
    const pl_partition *partition = writer->partition;
    if (status == PL_OK)
        status = pl_partition_commit(partition, writer->shards);
    else
        pl_partition_drop(partition);
    return pl_partition_context(partition, status);
}

static pl_status do_task(pl_writer *writer, task what)
{
    switch (what) {
    case TASK_SHARD:
        return write_shard(writer);
    case TASK_COMMIT:
        return pl_partition_commit(writer->partition, writer->shards);
    case TASK_CHECKPOINT:
        return complete(writer, write_shard(writer));
    default:
        return pl_partition_load(writer->partition);
    }
}

/* Under the lock: sleep until a change or a timeout. */
static void wait_for_change(pl_writer *writer)
{
    pl_status status =
        pl_cond_wait_until(&writer->changed, &writer->lock,
                           pl_deadline_in_ms(pl_clock_real(), 60000));
    (void)status; /* the caller checks again in either case */
}

static pl_status writer_main(void *arg)
{
    pl_writer *writer = arg;
    pl_mutex_lock(&writer->lock);
    while (!writer->stopping) {
        task what = writer->ended ? TASK_NONE : writer->task;
        if (what == TASK_NONE) {
            wait_for_change(writer);
            continue;
        }
        pl_mutex_unlock(&writer->lock);
        pl_status status = do_task(writer, what);
        pl_mutex_lock(&writer->lock);
        pl_error_save(&writer->error, status);
        writer->ended = true;
        pl_cond_broadcast(&writer->changed);
    }
    pl_mutex_unlock(&writer->lock);
    return PL_OK;
}

pl_status pl_writer_new(pl_writer **out, const pl_partition_opts *opts)
{
    pl_status status;
    pl_writer *writer;
    PL_TRY(PL_NEW(writer, 1));
    writer->opts = *opts;
    if (opts->place.run == NULL && opts->place.within != NULL)
        writer->opts.own = &writer->own;
    pl_mutex_init(&writer->lock);
    pl_cond_init(&writer->changed);
    pl_frozen_opts frozen = { .planes = opts->planes, .count = opts->count };
    PL_TRY_OUT(status, pl_frozen_new(&writer->frozen, &frozen));
    PL_TRY_OUT(status, PL_NEW(writer->shards, (size_t)opts->of));
    *out = writer;
    return PL_OK;
out:
    pl_writer_free(writer);
    return status;
}

void pl_writer_free(pl_writer *writer)
{
    if (writer == NULL)
        return;
    atomic_store(&writer->cancelled, true);
    pl_mutex_lock(&writer->lock);
    writer->stopping = true;
    pl_cond_broadcast(&writer->changed);
    pl_mutex_unlock(&writer->lock);
    PL_ASSERT(pl_thread_join(writer->thread) == PL_OK);
    pl_partition_free(writer->partition);
    pl_frozen_free(writer->frozen);
    pl_mem_free(writer->shards);
    pl_partition_own_close(&writer->own);
    pl_mem_free(writer->run);
    pl_cond_close(&writer->changed);
    pl_mutex_close(&writer->lock);
    pl_mem_free(writer);
}

pl_status pl_writer_place(pl_writer *writer, const char *run)
{
    char *copy;
    PL_TRY(pl_mem_copy_text(&copy, run));
    pl_mutex_lock(&writer->lock);
    PL_ASSERT(writer->run == NULL && writer->task == TASK_NONE);
    writer->opts.place.run = writer->run = copy;
    pl_mutex_unlock(&writer->lock);
    return PL_OK;
}

pl_frozen *pl_writer_frozen(pl_writer *writer)
{
    return writer->frozen;
}

/* Discard a cancelled task that has ended.  True: no task is left. */
static bool is_idle(pl_writer *writer)
{
    pl_mutex_lock(&writer->lock);
    if (writer->ended && atomic_load(&writer->cancelled)) {
        writer->ended = false;
        writer->task = TASK_NONE;
    }
    bool idle = writer->task == TASK_NONE;
    pl_mutex_unlock(&writer->lock);
    return idle;
}

/* Hand a task to the thread; one with an invalid request ends immediately. */
static void begin(pl_writer *writer, task what, pl_status status)
{
    if (status == PL_OK && writer->thread == NULL)
        status = pl_thread_start(&writer->thread, "pl-checkpoint", writer_main,
                                 writer);
    if (status == PL_OK && (what == TASK_SHARD || what == TASK_CHECKPOINT))
        pl_frozen_begin(writer->frozen);
    atomic_store(&writer->cancelled, false);
    pl_mutex_lock(&writer->lock);
    writer->task = what;
    writer->ended = status != PL_OK;
    pl_error_save(&writer->error, status);
    pl_cond_broadcast(&writer->changed);
    pl_mutex_unlock(&writer->lock);
}

static pl_status read_request(pl_writer *writer, const char *request,
                              size_t bytes)
{
    pl_partition_free(writer->partition);
    writer->partition = NULL;
    return pl_partition_new(&writer->partition, request, bytes, &writer->opts);
}

static bool start(pl_writer *writer, task what, const char *request,
                  size_t bytes)
{
    if (!is_idle(writer))
        return false;
    begin(writer, what, read_request(writer, request, bytes));
    return true;
}

bool pl_writer_shard(pl_writer *writer, const char *request, size_t bytes)
{
    return start(writer, TASK_SHARD, request, bytes);
}

bool pl_writer_commit(pl_writer *writer, const pl_manifest_shard *shards)
{
    if (!is_idle(writer))
        return false;
    PL_ASSERT(writer->partition != NULL);
    for (int32_t i = 0; i < writer->opts.of; i++)
        writer->shards[i] = shards[i];
    begin(writer, TASK_COMMIT, PL_OK);
    return true;
}

bool pl_writer_checkpoint(pl_writer *writer, const char *request, size_t bytes)
{
    PL_ASSERT(writer->opts.of == 1);
    return start(writer, TASK_CHECKPOINT, request, bytes);
}

bool pl_writer_load(pl_writer *writer, const char *request, size_t bytes)
{
    return start(writer, TASK_LOAD, request, bytes);
}

void pl_writer_cancel(pl_writer *writer)
{
    atomic_store(&writer->cancelled, true);
}

bool pl_writer_busy(pl_writer *writer)
{
    return !is_idle(writer);
}

/* Under the lock: collect a task that has ended. */
static bool take_end(pl_writer *writer, pl_error *error)
{
    if (!writer->ended)
        return false;
    *error = writer->error;
    writer->ended = false;
    writer->task = TASK_NONE;
    return true;
}

bool pl_writer_poll(pl_writer *writer, pl_written *out)
{
    if (is_idle(writer))
        return false;
    pl_mutex_lock(&writer->lock);
    bool ended = take_end(writer, &out->error);
    pl_mutex_unlock(&writer->lock);
    if (ended)
        out->shard = writer->shards[writer->opts.index];
    return ended;
}

pl_status pl_writer_wait(pl_writer *writer)
{
    pl_error error = { .status = PL_OK };
    pl_mutex_lock(&writer->lock);
    while (writer->task != TASK_NONE && !take_end(writer, &error))
        wait_for_change(writer);
    pl_mutex_unlock(&writer->lock);
    return pl_error_raise(&error);
}

pl_status pl_writer_checkpoint_now(pl_writer *writer, const char *request,
                                   size_t bytes)
{
    PL_ASSERT(is_idle(writer) && writer->opts.of == 1);
    PL_TRY(read_request(writer, request, bytes));
    return complete(writer, pl_partition_write(writer->partition, NULL, NULL,
                                               writer->shards));
}

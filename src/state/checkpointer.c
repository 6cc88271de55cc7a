/* Checkpoints written in the background: one thread, one checkpoint at a time,
 * and the last K kept. */
#include "state/checkpointer.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "tensor/shape.h"

#include <stdbool.h>
#include <string.h>

#define KEEP_DEFAULT 3

/* What is being written: the caller's manifest and tensors, copied.  The
 * driving thread fills it while `busy` is false, the writing thread reads it
 * while it is true. */
struct snapshot {
    char *model;
    pl_json *settings;
    pl_json *state;
    pl_manifest manifest; /* points to the above */
    pl_checkpoint_tensor *tensors;
    size_t count;
    char *names;  /* the tensors', one after another */
    float *block; /* the tensors' data, one after another */
};

struct pl_checkpointer {
    char *folder;
    int32_t keep;
    struct snapshot snapshot;
    pl_thread *thread; /* NULL: stopped */
    pl_mutex lock;
    pl_cond changed; /* busy or stopping */
    bool busy;       /* a snapshot is to be written; guarded by lock */
    bool stopping;   /* guarded by lock */
    pl_error error;  /* of a write, nobody was told yet; guarded by lock */
};

static void drop_manifest(struct snapshot *snapshot)
{
    pl_mem_free(snapshot->model);
    pl_json_free(snapshot->settings);
    pl_json_free(snapshot->state);
    snapshot->model = NULL;
    snapshot->settings = NULL;
    snapshot->state = NULL;
}

static void drop_tensors(struct snapshot *snapshot)
{
    pl_mem_free(snapshot->tensors);
    pl_mem_free(snapshot->names);
    pl_mem_free(snapshot->block);
    snapshot->tensors = NULL;
    snapshot->names = NULL;
    snapshot->block = NULL;
    snapshot->count = 0;
}

static pl_status copy_manifest(struct snapshot *snapshot,
                               const pl_manifest *manifest)
{
    drop_manifest(snapshot);
    PL_TRY(pl_mem_copy_text(&snapshot->model, manifest->model));
    PL_TRY(pl_json_copy(&snapshot->settings, manifest->settings));
    PL_TRY(pl_json_copy(&snapshot->state, manifest->state));
    snapshot->manifest = (pl_manifest) { .model = snapshot->model,
                                         .step = manifest->step,
                                         .settings = snapshot->settings,
                                         .state = snapshot->state };
    return PL_OK;
}

static size_t elements(const pl_checkpoint_tensor *tensor)
{
    return (size_t)pl_shape_count(tensor->shape, 1);
}

/* True when the memory kept is for tensors like these. */
static bool layout_fits(const struct snapshot *snapshot,
                        const pl_checkpoint_tensor *tensors, size_t count)
{
    if (snapshot->tensors == NULL || snapshot->count != count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (strcmp(snapshot->tensors[i].name, tensors[i].name) != 0 ||
            !pl_shape_equal(snapshot->tensors[i].shape, tensors[i].shape))
            return false;
    return true;
}

static pl_status make_layout(struct snapshot *snapshot,
                             const pl_checkpoint_tensor *tensors, size_t count)
{
    size_t name_bytes = 0;
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        name_bytes += strlen(tensors[i].name) + 1;
        total += elements(&tensors[i]);
    }
    drop_tensors(snapshot);
    PL_TRY(PL_NEW(snapshot->names, name_bytes));
    PL_TRY(PL_NEW_ALIGNED(snapshot->block, total));
    PL_TRY(PL_NEW(snapshot->tensors, count));

    char *name = snapshot->names;
    float *data = snapshot->block;
    for (size_t i = 0; i < count; i++) {
        snapshot->tensors[i] = (pl_checkpoint_tensor) {
            .name = name, .shape = tensors[i].shape, .data = data
        };
        name = stpcpy(name, tensors[i].name) + 1;
        data += elements(&tensors[i]);
    }
    snapshot->count = count;
    return PL_OK;
}

static pl_status take_snapshot(struct snapshot *snapshot,
                               const pl_manifest *manifest,
                               const pl_checkpoint_tensor *tensors,
                               size_t count)
{
    PL_TRY(copy_manifest(snapshot, manifest));
    if (!layout_fits(snapshot, tensors, count))
        PL_TRY(make_layout(snapshot, tensors, count));
    for (size_t i = 0; i < count; i++)
        memcpy(snapshot->tensors[i].data, tensors[i].data,
               elements(&tensors[i]) * sizeof(float));
    return PL_OK;
}

static pl_status write_and_prune(const pl_checkpointer *checkpointer,
                                 const pl_manifest *manifest,
                                 const pl_checkpoint_tensor *tensors,
                                 size_t count)
{
    PL_TRY(pl_checkpoint_write(checkpointer->folder, manifest, tensors, count));
    pl_log(PL_LOG_DEBUG, "checkpoint of step %lld written to %s",
           (long long)manifest->step, checkpointer->folder);
    return pl_checkpoint_prune(checkpointer->folder, manifest->step,
                               checkpointer->keep);
}

/* Under the lock: sleep until something changed, or a while passed. */
static void wait_for_change(pl_checkpointer *checkpointer)
{
    pl_status status =
        pl_cond_wait_until(&checkpointer->changed, &checkpointer->lock,
                           pl_deadline_in_ms(pl_clock_real(), 60000));
    (void)status; /* late or not, the caller looks again */
}

static pl_status writer_main(void *arg)
{
    pl_checkpointer *checkpointer = arg;
    const struct snapshot *snapshot = &checkpointer->snapshot;
    pl_mutex_lock(&checkpointer->lock);
    for (;;) {
        while (!checkpointer->busy && !checkpointer->stopping)
            wait_for_change(checkpointer);
        if (!checkpointer->busy)
            break;
        pl_mutex_unlock(&checkpointer->lock);
        pl_status status = write_and_prune(checkpointer, &snapshot->manifest,
                                           snapshot->tensors, snapshot->count);
        pl_mutex_lock(&checkpointer->lock);
        if (status != PL_OK)
            pl_error_save(&checkpointer->error, status);
        checkpointer->busy = false;
        pl_cond_broadcast(&checkpointer->changed);
    }
    pl_mutex_unlock(&checkpointer->lock);
    return PL_OK;
}

pl_status pl_checkpointer_new(pl_checkpointer **out,
                              const pl_checkpointer_opts *opts)
{
    PL_ASSERT(opts->folder != NULL && opts->keep >= 0);
    pl_status status;
    pl_checkpointer *checkpointer;
    PL_TRY(PL_NEW(checkpointer, 1));
    checkpointer->keep = opts->keep == 0 ? KEEP_DEFAULT : opts->keep;
    pl_mutex_init(&checkpointer->lock);
    pl_cond_init(&checkpointer->changed);
    PL_TRY_OUT(status, pl_mem_copy_text(&checkpointer->folder, opts->folder));
    PL_TRY_OUT(status, pl_thread_start(&checkpointer->thread, "pl-checkpoint",
                                       writer_main, checkpointer));
    *out = checkpointer;
    checkpointer = NULL; /* now the caller's */
out:
    pl_checkpointer_free(checkpointer);
    return status;
}

void pl_checkpointer_free(pl_checkpointer *checkpointer)
{
    if (checkpointer == NULL)
        return;
    pl_status status = pl_checkpointer_stop(checkpointer);
    if (status != PL_OK) /* nobody asked; at least someone may read it */
        pl_log(PL_LOG_WARN, "%s", pl_error_message());
    drop_manifest(&checkpointer->snapshot);
    drop_tensors(&checkpointer->snapshot);
    pl_cond_close(&checkpointer->changed);
    pl_mutex_close(&checkpointer->lock);
    pl_mem_free(checkpointer->folder);
    pl_mem_free(checkpointer);
}

/* Under the lock: the untold error moves into *error. */
static void take_error(pl_checkpointer *checkpointer, pl_error *error)
{
    *error = checkpointer->error;
    checkpointer->error.status = PL_OK;
}

pl_status pl_checkpointer_save(pl_checkpointer *checkpointer,
                               const pl_manifest *manifest,
                               const pl_checkpoint_tensor *tensors,
                               size_t count)
{
    PL_ASSERT(checkpointer->thread != NULL);
    pl_mutex_lock(&checkpointer->lock);
    bool busy = checkpointer->busy;
    pl_mutex_unlock(&checkpointer->lock);
    if (busy)
        return PL_FAIL(PL_AGAIN,
                       "checkpoint of step %lld left out: the one before is "
                       "still being written",
                       (long long)manifest->step);

    PL_TRY(take_snapshot(&checkpointer->snapshot, manifest, tensors, count));
    pl_error before;
    pl_mutex_lock(&checkpointer->lock);
    take_error(checkpointer, &before);
    checkpointer->busy = true;
    pl_cond_broadcast(&checkpointer->changed);
    pl_mutex_unlock(&checkpointer->lock);
    return pl_error_raise(&before);
}

pl_status pl_checkpointer_save_now(pl_checkpointer *checkpointer,
                                   const pl_manifest *manifest,
                                   const pl_checkpoint_tensor *tensors,
                                   size_t count)
{
    PL_ASSERT(checkpointer->thread != NULL);
    pl_status before = pl_checkpointer_wait(checkpointer);
    if (before != PL_OK)
        pl_log(PL_LOG_WARN, "%s", pl_error_message());
    return write_and_prune(checkpointer, manifest, tensors, count);
}

pl_status pl_checkpointer_wait(pl_checkpointer *checkpointer)
{
    pl_error before;
    pl_mutex_lock(&checkpointer->lock);
    while (checkpointer->busy)
        wait_for_change(checkpointer);
    take_error(checkpointer, &before);
    pl_mutex_unlock(&checkpointer->lock);
    return pl_error_raise(&before);
}

pl_status pl_checkpointer_stop(pl_checkpointer *checkpointer)
{
    pl_status status = pl_checkpointer_wait(checkpointer);
    pl_mutex_lock(&checkpointer->lock);
    checkpointer->stopping = true;
    pl_cond_broadcast(&checkpointer->changed);
    pl_mutex_unlock(&checkpointer->lock);
    pl_thread *thread = checkpointer->thread;
    checkpointer->thread = NULL;
    PL_ASSERT(pl_thread_join(thread) == PL_OK);
    return status;
}

/* Builds what a run's checkpoint contains beside its tensors, and checks
 * whether a checkpoint belongs to this run.  Where this process holds the
 * parameters, its own writer gets the request; otherwise the servers get it
 * from the chief. */
#include "state/snapshot.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"
#include "state/writer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_DEFAULT 3

struct pl_snapshot {
    pl_snapshot_opts opts;
    pl_writer *writer; /* NULL: servers hold the parameters */
    int64_t *counts;   /* [opts.workers] */
    pl_best best;      /* step -1: none */
};

/* The partition that covers the whole block. */
static pl_partition_opts whole(const pl_snapshot *snapshot)
{
    return (pl_partition_opts) {
        .of = 1,
        .count = pl_params_block_count(snapshot->opts.params),
        .planes = snapshot->opts.planes,
    };
}

/* Without the file a resumed run can only lose its best checkpoint:
 * continue. */
static pl_status read_best(const char *folder, pl_best *out)
{
    pl_status status = pl_best_read(out, folder);
    if (status == PL_OK || status == PL_NOMEM)
        return status;
    if (status != PL_NOTFOUND)
        pl_log(PL_LOG_WARN, "skipped: %s", pl_error_message());
    *out = (pl_best) { .step = -1 };
    return PL_OK;
}

pl_status pl_snapshot_new(pl_snapshot **out, const pl_snapshot_opts *opts)
{
    pl_snapshot *snapshot;
    PL_TRY(PL_NEW(snapshot, 1));
    snapshot->opts = *opts;
    if (opts->keep == 0)
        snapshot->opts.keep = KEEP_DEFAULT;
    pl_partition_opts partition = whole(snapshot);
    pl_status status = read_best(opts->folder, &snapshot->best);
    if (status == PL_OK && opts->planes.count > 0)
        status = pl_writer_new(&snapshot->writer, &partition);
    if (status == PL_OK && opts->workers > 0)
        status = PL_NEW(snapshot->counts, (size_t)opts->workers);
    if (status != PL_OK) {
        pl_snapshot_free(snapshot);
        return status;
    }
    *out = snapshot;
    return PL_OK;
}

/* Wait for a checkpoint in the background; its failure is only a warning
 * now. */
static void finish_before(pl_snapshot *snapshot)
{
    if (pl_writer_wait(snapshot->writer) != PL_OK)
        pl_log(PL_LOG_WARN, "%s", pl_error_message());
}

void pl_snapshot_free(pl_snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    if (snapshot->writer != NULL)
        finish_before(snapshot);
    pl_writer_free(snapshot->writer);
    pl_mem_free(snapshot->counts);
    pl_mem_free(snapshot);
}

pl_frozen *pl_snapshot_frozen(pl_snapshot *snapshot)
{
    return snapshot->writer != NULL ? pl_writer_frozen(snapshot->writer) : NULL;
}

double pl_snapshot_best_loss(const pl_snapshot *snapshot)
{
    bool known = snapshot != NULL && snapshot->best.step >= 0 &&
                 isfinite(snapshot->best.test_loss);
    return known ? snapshot->best.test_loss : 0;
}

pl_status pl_snapshot_set_best(pl_snapshot *snapshot, const pl_best *best)
{
    PL_TRY(pl_best_write(best, snapshot->opts.folder));
    snapshot->best = *best;
    return PL_OK;
}

int64_t *pl_snapshot_counts(pl_snapshot *snapshot)
{
    return snapshot->counts;
}

/* "gradients": how many of each worker are in the parameters. */
static pl_status write_counts(pl_json *state, const pl_snapshot *snapshot)
{
    if (snapshot->counts == NULL)
        return PL_OK;
    pl_json *counts;
    PL_TRY(pl_json_new_array(&counts));
    PL_TRY(pl_json_set_take(state, "gradients", counts));
    for (int32_t w = 0; w < snapshot->opts.workers; w++)
        PL_TRY(pl_json_append_int(counts, snapshot->counts[w]));
    return PL_OK;
}

/* With another number of workers, each gets an equal share of the total. */
static pl_status read_counts(const pl_json *state, int64_t step,
                             pl_snapshot *snapshot)
{
    int32_t workers = snapshot->opts.workers;
    const pl_json *counts = NULL;
    if (snapshot->counts == NULL)
        return PL_OK;
    if (pl_json_has(state, "gradients"))
        PL_TRY(pl_json_get_array(state, "gradients", &counts));
    bool same = counts != NULL && pl_json_length(counts) == (size_t)workers;
    for (int32_t w = 0; w < workers; w++) {
        snapshot->counts[w] = step / workers;
        if (same)
            PL_TRY(pl_json_int_at(counts, (size_t)w, 0, INT64_MAX,
                                  &snapshot->counts[w]));
    }
    return PL_OK;
}

static pl_status write_state(const pl_snapshot *snapshot,
                             const pl_progress *progress, pl_json **out)
{
    pl_json *state;
    PL_TRY(pl_progress_json(&state, progress, snapshot->opts.kernels));
    pl_status status = write_counts(state, snapshot);
    if (status != PL_OK) {
        pl_json_free(state);
        return status;
    }
    *out = state;
    return PL_OK;
}

/* Refuse the first setting that differs. */
static pl_status compare_settings(const pl_json *now, const pl_json *then,
                                  const char *folder)
{
    for (size_t i = 0; i < pl_json_length(now); i++) {
        const char *key = pl_json_key_at(now, i);
        const char *new_value = NULL, *old_value = NULL;
        PL_TRY(pl_json_get_text(now, key, &new_value));
        if (!pl_json_has(then, key))
            continue; /* the flag is newer than the checkpoint */
        PL_TRY(pl_json_get_text(then, key, &old_value));
        if (strcmp(new_value, old_value) != 0)
            return PL_FAIL(PL_USAGE,
                           "%s is \"%s\", but %s was trained with \"%s\"; "
                           "resume with the same, or start a new --run",
                           key, new_value, folder, old_value);
    }
    return PL_OK;
}

static pl_status check_model(const pl_checkpoint *checkpoint, const char *model)
{
    const char *found = pl_checkpoint_manifest(checkpoint)->model;
    if (strcmp(found, model) == 0)
        return PL_OK;
    return PL_FAIL(PL_USAGE, "%s is a checkpoint of model %s, not of %s",
                   pl_checkpoint_folder(checkpoint), found, model);
}

/* The newest complete checkpoint, or the best. */
static pl_status open_wanted(const pl_snapshot *snapshot, pl_checkpoint **out)
{
    const char *folder = snapshot->opts.folder;
    if (!snapshot->opts.best)
        return pl_checkpoint_find(out, folder);
    if (snapshot->best.step < 0)
        return PL_FAIL(PL_NOTFOUND,
                       "%s: no checkpoint is marked as the best; train with "
                       "--keep-best",
                       folder);
    return pl_checkpoint_open_step(out, folder, snapshot->best.step);
}

/* Open it, if it belongs to this run. */
static pl_status find(pl_snapshot *snapshot, pl_progress *progress,
                      pl_checkpoint **out)
{
    pl_checkpoint *checkpoint;
    PL_TRY(open_wanted(snapshot, &checkpoint));
    const pl_manifest *manifest = pl_checkpoint_manifest(checkpoint);
    pl_status status;
    PL_TRY_OUT(status, check_model(checkpoint, snapshot->opts.model));
    PL_TRY_OUT(status,
               compare_settings(snapshot->opts.settings, manifest->settings,
                                pl_checkpoint_folder(checkpoint)));
    progress->step = manifest->step;
    PL_TRY_OUT(status, pl_progress_read(progress, manifest->state,
                                        snapshot->opts.kernels));
    PL_TRY_OUT(status, read_counts(manifest->state, manifest->step, snapshot));
    *out = checkpoint;
    return PL_OK;
out:
    pl_checkpoint_free(checkpoint);
    return status;
}

static pl_status request_tensor(pl_json *tensors, const pl_params_item *item)
{
    pl_json *tensor, *shape;
    PL_TRY(pl_json_new_object(&tensor));
    PL_TRY(pl_json_append_take(tensors, tensor));
    PL_TRY(pl_json_set_text(tensor, "name", item->name));
    PL_TRY(pl_json_set_int(tensor, "first", item->offset));
    PL_TRY(pl_json_new_array(&shape));
    PL_TRY(pl_json_set_take(tensor, "shape", shape));
    for (int d = 0; d < item->shape.rank; d++)
        PL_TRY(pl_json_append_int(shape, item->shape.dim[d]));
    return PL_OK;
}

/* The folder where all tasks find the checkpoint, and each tensor's place in
 * the block. */
static pl_status request_places(pl_json *request, const pl_snapshot *snapshot,
                                const char *folder)
{
    const pl_params *params = snapshot->opts.params;
    char *path = realpath(snapshot->opts.folder, NULL);
    if (path == NULL)
        return PL_FAIL(PL_IO, "%s: %s", snapshot->opts.folder, strerror(errno));
    pl_status status = pl_json_set_text(request, "checkpoints", path);
    free(path);
    PL_TRY(status);
    const char *name = strrchr(folder, '/');
    PL_TRY(
        pl_json_set_text(request, "folder", name != NULL ? name + 1 : folder));
    pl_json *tensors;
    PL_TRY(pl_json_new_array(&tensors));
    PL_TRY(pl_json_set_take(request, "tensors", tensors));
    for (int i = 0; i < pl_params_count(params); i++)
        PL_TRY(request_tensor(tensors, pl_params_get(params, i)));
    return PL_OK;
}

/* The contents of the manifest. */
static pl_status request_manifest(pl_json *request, const pl_snapshot *snapshot,
                                  const pl_progress *progress)
{
    pl_json *state, *settings;
    PL_TRY(pl_json_set_int(request, "step", progress->step));
    PL_TRY(pl_json_set_int(request, "keep", snapshot->opts.keep));
    if (snapshot->best.step >= 0)
        PL_TRY(pl_json_set_int(request, "spare", snapshot->best.step));
    PL_TRY(pl_json_set_text(request, "model", snapshot->opts.model));
    PL_TRY(pl_json_copy(&settings, snapshot->opts.settings));
    PL_TRY(pl_json_set_take(request, "settings", settings));
    PL_TRY(write_state(snapshot, progress, &state));
    return pl_json_set_take(request, "state", state);
}

/* `progress`: only for a checkpoint to be written. */
static pl_status make_request(const pl_snapshot *snapshot, const char *folder,
                              const pl_progress *progress, char **out)
{
    pl_json *request;
    PL_TRY(pl_json_new_object(&request));
    pl_status status = request_places(request, snapshot, folder);
    if (status == PL_OK && progress != NULL)
        status = request_manifest(request, snapshot, progress);
    if (status == PL_OK)
        status = pl_json_text(request, 0, out);
    pl_json_free(request);
    return status;
}

/* Start a checkpoint in the background; *before: the result of the previous
 * one, unless it was already returned. */
static pl_status save_behind(pl_snapshot *snapshot, const pl_progress *progress,
                             pl_written *before)
{
    char *request = NULL;
    if (!pl_writer_poll(snapshot->writer, before) &&
        pl_writer_busy(snapshot->writer))
        return PL_FAIL(PL_AGAIN,
                       "checkpoint of step %lld skipped: the one before is "
                       "still being written",
                       (long long)progress->step);
    PL_TRY(pl_snapshot_request(snapshot, progress, &request));
    PL_ASSERT(request != NULL);
    bool started =
        pl_writer_checkpoint(snapshot->writer, request, strlen(request));
    PL_ASSERT(started);
    pl_mem_free(request);
    return PL_OK;
}

pl_status pl_snapshot_save(pl_snapshot *snapshot, const pl_progress *progress,
                           bool last)
{
    char *request = NULL;
    pl_written before = { .error.status = PL_OK };
    if (!last) {
        PL_TRY(save_behind(snapshot, progress, &before));
        return pl_error_raise(&before.error);
    }
    finish_before(snapshot);
    PL_TRY(pl_snapshot_request(snapshot, progress, &request));
    PL_ASSERT(request != NULL);
    pl_status status =
        pl_writer_checkpoint_now(snapshot->writer, request, strlen(request));
    pl_mem_free(request);
    return status;
}

/* Read the whole block from an open checkpoint. */
static pl_status load_block(const pl_snapshot *snapshot,
                            const pl_checkpoint *checkpoint)
{
    pl_partition_opts opts = whole(snapshot);
    pl_partition *partition = NULL;
    char *request;
    PL_TRY(make_request(snapshot, pl_checkpoint_folder(checkpoint), NULL,
                        &request));
    pl_status status =
        pl_partition_new(&partition, request, strlen(request), &opts);
    if (status == PL_OK)
        status = pl_partition_load_from(partition, checkpoint);
    pl_partition_free(partition);
    pl_mem_free(request);
    return status;
}

pl_status pl_snapshot_load(pl_snapshot *snapshot, pl_progress *progress)
{
    pl_checkpoint *checkpoint;
    PL_TRY(find(snapshot, progress, &checkpoint));
    pl_status status = load_block(snapshot, checkpoint);
    pl_checkpoint_free(checkpoint);
    return status;
}

pl_status pl_snapshot_request(pl_snapshot *snapshot,
                              const pl_progress *progress, char **request)
{
    char *folder = NULL;
    pl_status status =
        pl_checkpoint_begin(&folder, snapshot->opts.folder, progress->step);
    if (status == PL_OK)
        status = make_request(snapshot, folder, progress, request);
    pl_mem_free(folder);
    return status == PL_OK ? PL_OK
                           : pl_context(status, "checkpoint of step %lld",
                                        (long long)progress->step);
}

pl_status pl_snapshot_find(pl_snapshot *snapshot, pl_progress *progress,
                           char **request)
{
    pl_checkpoint *checkpoint;
    PL_TRY(find(snapshot, progress, &checkpoint));
    pl_status status =
        make_request(snapshot, pl_checkpoint_folder(checkpoint), NULL, request);
    pl_checkpoint_free(checkpoint);
    return status;
}

#include "train/snapshot.h"

#include "base/log.h"
#include "base/mem.h"
#include "train/checkpointer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_DEFAULT 3

struct pl_snapshot {
    pl_snapshot_opts opts;
    pl_checkpointer *checkpointer; /* NULL until the first save */
    pl_checkpoint_tensor *tensors; /* parameters, then each slot's */
    size_t tensor_count;
    int64_t *counts;   /* [opts.workers] */
    char **slot_names; /* of the slots' tensors, owned */
    size_t slot_name_count;
};

static const char *kernels_of(const pl_snapshot *snapshot)
{
    return snapshot->opts.optim != NULL ? snapshot->opts.optim->kernels->name
                                        : snapshot->opts.kernels;
}

static pl_status list_slot(pl_snapshot *snapshot, const char *slot,
                           const pl_params *set)
{
    for (int i = 0; i < pl_params_count(set); i++) {
        const pl_params_item *item = pl_params_get(set, i);
        char *name;
        PL_TRY(pl_checkpoint_slot_name(&name, slot, item->name));
        snapshot->slot_names[snapshot->slot_name_count++] = name;
        snapshot->tensors[snapshot->tensor_count++] = (pl_checkpoint_tensor) {
            .name = name, .shape = item->shape, .data = pl_params_data(set, i)
        };
    }
    return PL_OK;
}

static pl_status list_tensors(pl_snapshot *snapshot)
{
    const pl_optim *optim = snapshot->opts.optim;
    const pl_params *params = snapshot->opts.params;
    size_t count = (size_t)pl_params_count(params);
    if (optim == NULL)
        return PL_OK; /* who has the parameters lists them */
    size_t slots = (size_t)optim->ops->slot_count;
    PL_TRY(PL_NEW(snapshot->tensors, count * (1 + slots)));
    PL_TRY(PL_NEW(snapshot->slot_names, count * slots));
    for (size_t i = 0; i < count; i++) {
        const pl_params_item *item = pl_params_get(params, (int)i);
        snapshot->tensors[snapshot->tensor_count++] =
            (pl_checkpoint_tensor) { .name = item->name,
                                     .shape = item->shape,
                                     .data = pl_params_data(params, (int)i) };
    }
    for (size_t s = 0; s < slots; s++)
        PL_TRY(list_slot(snapshot, optim->ops->slots[s], optim->slots[s]));
    return PL_OK;
}

pl_status pl_snapshot_new(pl_snapshot **out, const pl_snapshot_opts *opts)
{
    pl_snapshot *snapshot;
    PL_TRY(PL_NEW(snapshot, 1));
    snapshot->opts = *opts;
    if (opts->keep == 0)
        snapshot->opts.keep = KEEP_DEFAULT;
    pl_status status = list_tensors(snapshot);
    if (status == PL_OK && opts->workers > 0)
        status = PL_NEW(snapshot->counts, (size_t)opts->workers);
    if (status != PL_OK) {
        pl_snapshot_free(snapshot);
        return status;
    }
    *out = snapshot;
    return PL_OK;
}

void pl_snapshot_free(pl_snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    pl_checkpointer_free(snapshot->checkpointer);
    for (size_t i = 0; i < snapshot->slot_name_count; i++)
        pl_mem_free(snapshot->slot_names[i]);
    pl_mem_free(snapshot->slot_names);
    pl_mem_free(snapshot->counts);
    pl_mem_free(snapshot->tensors);
    pl_mem_free(snapshot);
}

int64_t *pl_snapshot_counts(pl_snapshot *snapshot)
{
    return snapshot->counts;
}

static pl_status check_finite(const pl_params *params)
{
    for (int i = 0; i < pl_params_count(params); i++) {
        const pl_params_item *item = pl_params_get(params, i);
        const float *data = pl_params_data(params, i);
        for (int64_t j = 0; j < item->count; j++)
            if (!isfinite(data[j]))
                return PL_FAIL(PL_NUMERIC,
                               "parameter %s is not finite, so no checkpoint "
                               "was written",
                               item->name);
    }
    return PL_OK;
}

/* Positions are opaque bytes; in the manifest they are hexadecimal. */
static void position_text(const pl_position *position,
                          char text[2 * PL_POSITION_BYTES + 1])
{
    static const char digits[] = "0123456789abcdef";
    for (uint32_t i = 0; i < position->used; i++) {
        text[2 * i] = digits[position->bytes[i] >> 4];
        text[2 * i + 1] = digits[position->bytes[i] & 15];
    }
    text[2 * position->used] = '\0';
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static pl_status parse_position(const char *text, pl_position *out)
{
    size_t length = strlen(text);
    if (length % 2 != 0 || length > 2 * PL_POSITION_BYTES)
        return PL_FAIL(PL_FORMAT, "position: %zu hexadecimal digits", length);
    out->used = (uint32_t)(length / 2);
    for (size_t i = 0; i < out->used; i++) {
        int high = digit_value(text[2 * i]);
        int low = digit_value(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return PL_FAIL(PL_FORMAT, "position: not hexadecimal");
        out->bytes[i] = (uint8_t)(high << 4 | low);
    }
    return PL_OK;
}

/* "gradients": what each worker has in the parameters. */
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

/* Of another number of workers each counts its part of all. */
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
                             const pl_progress *progress, const char *kernels,
                             pl_json **out)
{
    char position[2 * PL_POSITION_BYTES + 1];
    position_text(&progress->position, position);
    pl_json *state = NULL;
    pl_status status;
    PL_TRY_OUT(status, pl_json_new_object(&state));
    PL_TRY_OUT(status, pl_json_set_int(state, "examples", progress->examples));
    PL_TRY_OUT(status, pl_json_set_real(state, "seconds", progress->seconds));
    PL_TRY_OUT(status, pl_json_set_text(state, "position", position));
    PL_TRY_OUT(status, pl_json_set_text(state, "kernels", kernels));
    PL_TRY_OUT(status, pl_json_set_bool(state, "mixed", progress->mixed));
    if (progress->bucket_bytes > 0)
        PL_TRY_OUT(status, pl_json_set_int(state, "bucket_bytes",
                                           progress->bucket_bytes));
    PL_TRY_OUT(status, write_counts(state, snapshot));
    *out = state;
    return PL_OK;
out:
    pl_json_free(state);
    return status;
}

static pl_status read_state(const pl_manifest *manifest, const char *kernels,
                            pl_progress *out)
{
    const char *position, *made_with;
    out->step = manifest->step;
    PL_TRY(pl_json_get_int(manifest->state, "examples", 0, INT64_MAX,
                           &out->examples));
    PL_TRY(pl_json_get_real(manifest->state, "seconds", &out->seconds));
    PL_TRY(pl_json_get_text(manifest->state, "position", &position));
    PL_TRY(pl_json_get_text(manifest->state, "kernels", &made_with));
    PL_TRY(pl_json_get_bool(manifest->state, "mixed", &out->mixed));
    if (pl_json_has(manifest->state, "bucket_bytes"))
        PL_TRY(pl_json_get_int(manifest->state, "bucket_bytes", 1, INT64_MAX,
                               &out->bucket_bytes));
    if (strcmp(made_with, kernels) != 0) {
        pl_log(PL_LOG_WARN,
               "the checkpoint was made with kernels %s, this goes on with %s: "
               "the bits will differ from an uninterrupted run's",
               made_with, kernels);
        out->mixed = true;
    }
    return parse_position(position, &out->position);
}

pl_status pl_snapshot_save(pl_snapshot *snapshot, const pl_progress *progress,
                           bool last)
{
    PL_TRY(check_finite(snapshot->opts.params));
    if (snapshot->checkpointer == NULL)
        PL_TRY(pl_checkpointer_new(&snapshot->checkpointer,
                                   &(pl_checkpointer_opts) {
                                       .folder = snapshot->opts.folder,
                                       .keep = snapshot->opts.keep,
                                   }));
    pl_json *state = NULL;
    PL_TRY(write_state(snapshot, progress, kernels_of(snapshot), &state));
    pl_manifest manifest = {
        .model = snapshot->opts.model,
        .step = progress->step,
        .settings = snapshot->opts.settings,
        .state = state,
    };
    pl_status status =
        last ? pl_checkpointer_save_now(snapshot->checkpointer, &manifest,
                                        snapshot->tensors,
                                        snapshot->tensor_count)
             : pl_checkpointer_save(snapshot->checkpointer, &manifest,
                                    snapshot->tensors, snapshot->tensor_count);
    pl_json_free(state);
    return status;
}

/* The first setting that is not as it was. */
static pl_status compare_settings(const pl_json *now, const pl_json *then,
                                  const char *folder)
{
    for (size_t i = 0; i < pl_json_length(now); i++) {
        const char *key = pl_json_key_at(now, i);
        const char *new_value = NULL, *old_value = NULL;
        PL_TRY(pl_json_get_text(now, key, &new_value));
        if (!pl_json_has(then, key))
            continue; /* a flag that came later */
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

/* The newest complete checkpoint, if it is one of this run. */
static pl_status find(pl_snapshot *snapshot, pl_progress *progress,
                      pl_checkpoint **out)
{
    pl_checkpoint *checkpoint;
    PL_TRY(pl_checkpoint_find(&checkpoint, snapshot->opts.folder));
    const pl_manifest *manifest = pl_checkpoint_manifest(checkpoint);
    pl_status status;
    PL_TRY_OUT(status, check_model(checkpoint, snapshot->opts.model));
    PL_TRY_OUT(status,
               compare_settings(snapshot->opts.settings, manifest->settings,
                                pl_checkpoint_folder(checkpoint)));
    PL_TRY_OUT(status, read_state(manifest, kernels_of(snapshot), progress));
    PL_TRY_OUT(status, read_counts(manifest->state, manifest->step, snapshot));
    *out = checkpoint;
    return PL_OK;
out:
    pl_checkpoint_free(checkpoint);
    return status;
}

pl_status pl_snapshot_load(pl_snapshot *snapshot, pl_progress *progress)
{
    pl_checkpoint *checkpoint;
    PL_TRY(find(snapshot, progress, &checkpoint));
    pl_status status = pl_checkpoint_load(checkpoint, snapshot->tensors,
                                          snapshot->tensor_count);
    pl_checkpoint_free(checkpoint);
    return status;
}

static pl_status plan_tensor(pl_json *tensors, const pl_params_item *item)
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

/* Where all tasks find the folder, and what lies where in the block. */
static pl_status plan_places(pl_json *plan, const pl_snapshot *snapshot,
                             const char *folder)
{
    const pl_params *params = snapshot->opts.params;
    char *path = realpath(snapshot->opts.folder, NULL);
    if (path == NULL)
        return PL_FAIL(PL_IO, "%s: %s", snapshot->opts.folder, strerror(errno));
    pl_status status = pl_json_set_text(plan, "checkpoints", path);
    free(path);
    PL_TRY(status);
    const char *name = strrchr(folder, '/');
    PL_TRY(pl_json_set_text(plan, "folder", name != NULL ? name + 1 : folder));
    pl_json *tensors;
    PL_TRY(pl_json_new_array(&tensors));
    PL_TRY(pl_json_set_take(plan, "tensors", tensors));
    for (int i = 0; i < pl_params_count(params); i++)
        PL_TRY(plan_tensor(tensors, pl_params_get(params, i)));
    return PL_OK;
}

/* What the manifest is to say. */
static pl_status plan_manifest(pl_json *plan, const pl_snapshot *snapshot,
                               const pl_progress *progress)
{
    pl_json *state, *settings;
    PL_TRY(pl_json_set_int(plan, "step", progress->step));
    PL_TRY(pl_json_set_int(plan, "keep", snapshot->opts.keep));
    PL_TRY(pl_json_set_text(plan, "model", snapshot->opts.model));
    PL_TRY(pl_json_copy(&settings, snapshot->opts.settings));
    PL_TRY(pl_json_set_take(plan, "settings", settings));
    PL_TRY(write_state(snapshot, progress, kernels_of(snapshot), &state));
    return pl_json_set_take(plan, "state", state);
}

/* A plan; `progress` only for a checkpoint that is to be written. */
static pl_status make_plan(const pl_snapshot *snapshot, const char *folder,
                           const pl_progress *progress, char **out)
{
    pl_json *plan;
    PL_TRY(pl_json_new_object(&plan));
    pl_status status = plan_places(plan, snapshot, folder);
    if (status == PL_OK && progress != NULL)
        status = plan_manifest(plan, snapshot, progress);
    if (status == PL_OK)
        status = pl_json_text(plan, 0, out);
    pl_json_free(plan);
    return status;
}

pl_status pl_snapshot_plan(pl_snapshot *snapshot, const pl_progress *progress,
                           char **plan)
{
    char *folder;
    PL_TRY(pl_checkpoint_begin(&folder, snapshot->opts.folder, progress->step));
    pl_status status = make_plan(snapshot, folder, progress, plan);
    pl_mem_free(folder);
    return status;
}

pl_status pl_snapshot_find(pl_snapshot *snapshot, pl_progress *progress,
                           char **plan)
{
    pl_checkpoint *checkpoint;
    PL_TRY(find(snapshot, progress, &checkpoint));
    pl_status status =
        make_plan(snapshot, pl_checkpoint_folder(checkpoint), NULL, plan);
    pl_checkpoint_free(checkpoint);
    return status;
}

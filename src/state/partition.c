/* A partition's shard of a checkpoint: reads the untrusted request, finds which
 * elements of which tensors this process holds, writes and reads them.
 * state/place.h decides where it may do so. */
#include "state/partition.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "tensor/shape.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TENSORS_MOST 1000000
#define STEP_PREFIX  "step-"

/* A tensor of the model. */
struct item {
    const char *name; /* the request's */
    pl_shape shape;
    int64_t first, count; /* in the block */
};

struct pl_partition {
    pl_partition_opts opts;
    pl_json *request;
    char *checkpoints;
    const char *name; /* of the checkpoint; the request's */
    char *folder;
    struct item *items;
    size_t item_count;
    /* Of all planes, in the order of memory: all tensors, and those with
     * elements in this partition. */
    pl_checkpoint_tensor *tensors;
    size_t tensor_count;
    pl_checkpoint_tensor *own;
    size_t own_count;
    char **names; /* of the slots' tensors, owned */
    size_t name_count;
};

static int plane_count(const pl_partition *partition)
{
    return partition->opts.planes.count;
}

static float *plane_of(const pl_partition *partition, int plane)
{
    return partition->opts.planes.data[plane];
}

static pl_status read_item(const pl_json *json, int64_t least,
                           struct item *item)
{
    const pl_json *dims;
    PL_TRY(pl_json_get_text(json, "name", &item->name));
    PL_TRY(pl_json_get_array(json, "shape", &dims));
    size_t rank = pl_json_length(dims);
    if (rank > PL_MAX_RANK)
        return PL_FAIL(PL_FORMAT, "shape: %zu dimensions, at most %d", rank,
                       PL_MAX_RANK);
    item->shape.rank = (int)rank;
    for (size_t i = 0; i < rank; i++) {
        pl_status status =
            pl_json_int_at(dims, i, 1, INT64_MAX, &item->shape.dim[i]);
        if (status != PL_OK)
            return pl_context(status, "shape");
    }
    if (pl_shape_check(item->shape) != PL_OK)
        return pl_context(PL_FORMAT, "shape");
    item->count = pl_shape_count(item->shape, 1);
    return pl_json_get_int(json, "first", least, INT64_MAX - item->count,
                           &item->first);
}

/* In rising order, so that they do not overlap. */
static pl_status read_items(pl_partition *partition)
{
    const pl_json *tensors;
    PL_TRY(pl_json_get_array(partition->request, "tensors", &tensors));
    size_t count = pl_json_length(tensors);
    if (count < 1 || count > TENSORS_MOST)
        return PL_FAIL(PL_FORMAT, "tensors: %zu of them", count);
    PL_TRY(PL_NEW(partition->items, count));
    partition->item_count = count;
    int64_t least = 0;
    for (size_t i = 0; i < count; i++) {
        struct item *item = &partition->items[i];
        pl_status status = read_item(pl_json_at(tensors, i), least, item);
        if (status != PL_OK)
            return pl_context(status, "tensors: index %zu", i);
        least = item->first + item->count;
    }
    return PL_OK;
}

/* The folder's name must not lead elsewhere. */
static pl_status read_folder(pl_partition *partition)
{
    const char *told;
    PL_TRY(pl_json_get_text(partition->request, "checkpoints", &told));
    PL_TRY(pl_json_get_text(partition->request, "folder", &partition->name));
    if (strncmp(partition->name, STEP_PREFIX, strlen(STEP_PREFIX)) != 0 ||
        strchr(partition->name, '/') != NULL)
        return PL_FAIL(PL_FORMAT,
                       "folder: \"%.200s\" is not the name of a checkpoint",
                       partition->name);
    PL_TRY(pl_place_checkpoints(&partition->checkpoints, &partition->opts.place,
                                told));
    return pl_file_join(&partition->folder, partition->checkpoints,
                        partition->name);
}

/* The part of a plane's tensor that this partition holds. */
static pl_checkpoint_tensor own_range(const pl_partition *partition,
                                      const struct item *item, int plane,
                                      const char *name)
{
    pl_checkpoint_tensor tensor = { .name = name, .shape = item->shape };
    int64_t begin = item->first, end = item->first + item->count;
    int64_t here_end = partition->opts.first + partition->opts.count;
    if (begin < partition->opts.first)
        begin = partition->opts.first;
    if (end > here_end)
        end = here_end;
    if (begin >= end)
        return tensor;
    tensor.data = plane_of(partition, plane) + (begin - partition->opts.first);
    if (end - begin < item->count) {
        tensor.first = begin - item->first;
        tensor.count = end - begin;
    }
    return tensor;
}

static pl_status list_plane(pl_partition *partition, int plane)
{
    for (size_t i = 0; i < partition->item_count; i++) {
        const struct item *item = &partition->items[i];
        const char *name = item->name;
        if (plane > 0) {
            const char *slot = partition->opts.planes.slots[plane];
            char **own = &partition->names[partition->name_count];
            PL_TRY(pl_checkpoint_slot_name(own, slot, name));
            partition->name_count++;
            name = *own;
        }
        pl_checkpoint_tensor tensor = own_range(partition, item, plane, name);
        partition->tensors[partition->tensor_count++] = tensor;
        if (tensor.data != NULL)
            partition->own[partition->own_count++] = tensor;
    }
    return PL_OK;
}

static pl_status open_partition(pl_partition *partition)
{
    PL_TRY(read_folder(partition));
    PL_TRY(read_items(partition));
    size_t all = partition->item_count * (size_t)plane_count(partition);
    PL_TRY(PL_NEW(partition->tensors, all));
    PL_TRY(PL_NEW(partition->own, all));
    PL_TRY(PL_NEW(partition->names, all));
    for (int plane = 0; plane < plane_count(partition); plane++)
        PL_TRY(list_plane(partition, plane));
    return PL_OK;
}

pl_status pl_partition_new(pl_partition **out, const char *request,
                           size_t bytes, const pl_partition_opts *opts)
{
    PL_ASSERT(opts->count >= 1 && opts->index < opts->of);
    pl_partition *partition;
    PL_TRY(PL_NEW(partition, 1));
    partition->opts = *opts;
    pl_status status =
        pl_json_parse(&partition->request, request, bytes, "save request");
    if (status == PL_OK)
        status = open_partition(partition);
    if (status != PL_OK) {
        pl_partition_free(partition);
        return status;
    }
    *out = partition;
    return PL_OK;
}

void pl_partition_free(pl_partition *partition)
{
    if (partition == NULL)
        return;
    for (size_t i = 0; i < partition->name_count; i++)
        pl_mem_free(partition->names[i]);
    pl_mem_free(partition->names);
    pl_mem_free(partition->own);
    pl_mem_free(partition->tensors);
    pl_mem_free(partition->items);
    pl_mem_free(partition->folder);
    pl_mem_free(partition->checkpoints);
    pl_json_free(partition->request);
    pl_mem_free(partition);
}

pl_status pl_partition_context(const pl_partition *partition, pl_status status)
{
    const char *digits = partition->name + strlen(STEP_PREFIX);
    if (status == PL_OK)
        return PL_OK;
    return pl_context(status, "checkpoint of step %lld", atoll(digits));
}

/* The source of the file's writer. */
struct source {
    const pl_partition *partition;
    pl_frozen *frozen;            /* or NULL */
    const atomic_bool *cancelled; /* or NULL */
};

/* Not finite: all bits of the exponent are set. */
static bool all_finite(const float *data, int64_t count)
{
    uint32_t bad = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &data[i], sizeof bits);
        bad |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    return bad == 0;
}

/* The plane in whose memory `data` lies. */
static int plane_with(const pl_partition *partition, const float *data)
{
    int plane = 0;
    while (data < plane_of(partition, plane) ||
           data >= plane_of(partition, plane) + partition->opts.count)
        plane++;
    return plane;
}

/* Some floats from `from` on. */
static const float *read_some(const struct source *source, int plane,
                              const float *from, int64_t *count)
{
    const float *floats = from;
    *count = PL_FROZEN_FLOATS;
    if (source->frozen != NULL)
        pl_frozen_read(source->frozen, plane,
                       from - plane_of(source->partition, plane), &floats,
                       count);
    return floats;
}

static pl_status read_tensor(void *context, size_t index, uint64_t at,
                             const void **data, size_t *bytes)
{
    const struct source *source = context;
    const pl_partition *partition = source->partition;
    const pl_checkpoint_tensor *tensor = &partition->own[index];
    int plane = plane_with(partition, tensor->data);
    int64_t count, all = tensor->count;
    if (all == 0)
        all = pl_shape_count(tensor->shape, 1);
    if (source->cancelled != NULL && atomic_load(source->cancelled))
        return PL_FAIL(PL_CLOSED, "%s is no longer usable", partition->folder);
    int64_t done = (int64_t)(at / sizeof(float));
    const float *floats = read_some(source, plane, tensor->data + done, &count);
    if (source->frozen != NULL && pl_frozen_lost(source->frozen))
        return PL_FAIL(PL_IO,
                       "%s: the disk accepted no data for %d s while training "
                       "waited for it: this checkpoint is abandoned",
                       partition->folder, PL_FROZEN_PATIENCE_MS / 1000);
    if (count > all - done)
        count = all - done;
    if (plane == 0 && !all_finite(floats, count))
        return PL_FAIL(PL_NUMERIC,
                       "parameter %s is not finite, so no checkpoint was "
                       "written",
                       tensor->name);
    *data = floats;
    *bytes = (size_t)count * sizeof(float);
    return PL_OK;
}

void pl_partition_own_close(pl_partition_own *own)
{
    pl_mem_free(own->checkpoints);
    pl_mem_free(own->steps);
    *own = (pl_partition_own) { 0 };
}

/* Use the first folder that may be used, and keep to it. */
static pl_status learn_folder(const pl_partition *partition)
{
    pl_partition_own *own = partition->opts.own;
    if (own->checkpoints == NULL)
        return pl_mem_copy_text(&own->checkpoints, partition->checkpoints);
    if (strcmp(own->checkpoints, partition->checkpoints) == 0)
        return PL_OK;
    return PL_FAIL(PL_USAGE,
                   "%s: this parameter server's checkpoints are in %s, and "
                   "nowhere else",
                   partition->checkpoints, own->checkpoints);
}

/* Any server may create the folder; all must find it. */
static pl_status check_folder(const pl_partition *partition)
{
    PL_TRY(pl_place_check(&partition->opts.place, partition->checkpoints,
                          partition->name));
    return partition->opts.own != NULL ? learn_folder(partition) : PL_OK;
}

/* A complete checkpoint must not be replaced: a caller that may do so has moved
 * it away. */
static pl_status check_incomplete(const pl_partition *partition)
{
    char *manifest;
    if (partition->opts.own == NULL)
        return PL_OK;
    PL_TRY(pl_file_join(&manifest, partition->folder, PL_MANIFEST_NAME));
    bool complete = pl_file_exists(manifest);
    pl_mem_free(manifest);
    if (!complete)
        return PL_OK;
    return PL_FAIL(PL_USAGE, "%s is a complete checkpoint: it is not replaced",
                   partition->folder);
}

pl_status pl_partition_write(const pl_partition *partition, pl_frozen *frozen,
                             const atomic_bool *cancelled,
                             pl_manifest_shard *out)
{
    struct source source = { partition, frozen, cancelled };
    PL_TRY(check_folder(partition));
    PL_TRY(check_incomplete(partition));
    pl_checkpoint_part part = {
        .index = partition->opts.index,
        .of = partition->opts.of,
        .tensors = partition->own,
        .count = partition->own_count,
        .read = read_tensor,
        .context = &source,
    };
    return pl_checkpoint_write_shard(partition->folder, &part, out);
}

void pl_partition_drop(const pl_partition *partition)
{
    rmdir(partition->folder);
}

/* Append a completed step; an earlier entry for it is dropped. */
static pl_status note_own(pl_partition_own *own, int64_t step)
{
    size_t kept = 0;
    for (size_t i = 0; i < own->count; i++)
        if (own->steps[i] != step)
            own->steps[kept++] = own->steps[i];
    own->count = kept;
    PL_TRY(PL_RESIZE(own->steps, kept + 1));
    own->steps[own->count++] = step;
    return PL_OK;
}

static bool has_step(const pl_partition_own *own, int64_t step)
{
    for (size_t i = 0; i < own->count; i++)
        if (own->steps[i] == step)
            return true;
    return false;
}

/* In a folder of checkpoints that another task named, leave earlier files
 * alone. */
static pl_status prune_own(const pl_partition *partition, int64_t step,
                           int64_t keep, int64_t spare)
{
    pl_partition_own *own = partition->opts.own;
    PL_TRY(note_own(own, step));
    PL_TRY(pl_checkpoint_remove_old(partition->checkpoints, step));
    size_t stays = has_step(own, spare);
    while (own->count - stays > (size_t)keep) {
        size_t oldest = own->steps[0] == spare ? 1 : 0;
        PL_TRY(
            pl_checkpoint_remove(partition->checkpoints, own->steps[oldest]));
        own->count--;
        memmove(own->steps + oldest, own->steps + oldest + 1,
                (own->count - oldest) * sizeof *own->steps);
    }
    return PL_OK;
}

pl_status pl_partition_commit(const pl_partition *partition,
                              const pl_manifest_shard *shards)
{
    int64_t keep, spare = -1;
    pl_manifest manifest = {
        .sliced = partition->opts.of > 1,
        .shards = shards,
        .shard_count = (size_t)partition->opts.of,
    };
    const pl_json *request = partition->request;
    PL_TRY(pl_json_get_int(request, "step", 0, PL_MANIFEST_STEP_MAX,
                           &manifest.step));
    PL_TRY(pl_json_get_int(request, "keep", 1, INT32_MAX, &keep));
    if (pl_json_has(request, "spare"))
        PL_TRY(
            pl_json_get_int(request, "spare", 0, PL_MANIFEST_STEP_MAX, &spare));
    PL_TRY(pl_json_get_text(request, "model", &manifest.model));
    PL_TRY(pl_json_get_object(request, "settings", &manifest.settings));
    PL_TRY(pl_json_get_object(request, "state", &manifest.state));
    pl_status status = pl_checkpoint_commit(partition->folder, &manifest);
    if (status == PL_NOTFOUND && manifest.sliced)
        status = pl_context(status,
                            "another server wrote its shard elsewhere: choose "
                            "a --run that all machines share");
    PL_TRY(status);
    pl_log(PL_LOG_DEBUG, "checkpoint of step %lld written to %s",
           (long long)manifest.step, partition->checkpoints);
    if (partition->opts.own == NULL)
        return pl_checkpoint_prune(partition->checkpoints, manifest.step,
                                   (int32_t)keep, spare);
    return prune_own(partition, manifest.step, keep, spare);
}

pl_status pl_partition_load(const pl_partition *partition)
{
    pl_checkpoint *checkpoint;
    PL_TRY(check_folder(partition));
    PL_TRY(pl_checkpoint_open_part(&checkpoint, partition->folder));
    pl_status status = pl_partition_load_from(partition, checkpoint);
    pl_checkpoint_free(checkpoint);
    return status;
}

pl_status pl_partition_load_from(const pl_partition *partition,
                                 const pl_checkpoint *checkpoint)
{
    return pl_checkpoint_load(checkpoint, partition->tensors,
                              partition->tensor_count);
}

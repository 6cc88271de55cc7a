#include "train/checkpoint.h"

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/mem.h"
#include "tensor/shape.h"
#include "train/checkpoint_priv.h"
#include "train/safetensors.h"

#include <string.h>

/* Give way to a new checkpoint of the same step: a complete one is moved to
 * its .old name, the leftovers of an unfinished one go. */
static pl_status make_room(const char *folder)
{
    if (!pl_file_exists(folder))
        return PL_OK;
    pl_checkpoint *complete = NULL;
    pl_status status = pl_checkpoint_open_folder(&complete, folder, false);
    pl_checkpoint_free(complete);
    if (pl_checkpoint_is_rubbish(status))
        return pl_file_remove_all(folder);
    if (status == PL_NOMEM)
        return status;

    char *old;
    PL_TRY(pl_mem_format(&old, "%s" OLD_SUFFIX, folder));
    status = pl_file_remove_all(old);
    if (status == PL_OK)
        status = pl_file_rename(folder, old);
    pl_mem_free(old);
    return status;
}

pl_status pl_checkpoint_begin(char **folder, const char *checkpoints,
                              int64_t step)
{
    PL_ASSERT(step >= 0 && step <= PL_MANIFEST_STEP_MAX);
    pl_status status;
    char *made;
    PL_TRY(
        pl_mem_format(&made, "%s/" STEP_FORMAT, checkpoints, (long long)step));
    PL_TRY_OUT(status, make_room(made));
    PL_TRY_OUT(status, pl_file_make_folder(made));
    *folder = made;
    made = NULL; /* now the caller's */
out:
    pl_mem_free(made);
    return status;
}

/* The same list in safetensors' words. */
static pl_status describe(pl_safetensor **out,
                          const pl_checkpoint_tensor *tensors, size_t count)
{
    pl_safetensor *list;
    PL_TRY(PL_NEW(list, count));
    for (size_t i = 0; i < count; i++)
        list[i] = (pl_safetensor) { tensors[i].name, PL_FLOAT32,
                                    tensors[i].shape, tensors[i].data };
    *out = list;
    return PL_OK;
}

pl_status pl_checkpoint_write_shard(const char *folder, int32_t index,
                                    int32_t of,
                                    const pl_checkpoint_tensor *tensors,
                                    size_t count, pl_manifest_shard *out)
{
    PL_ASSERT(index >= 0 && index < of && of <= PL_MANIFEST_SHARD_MAX);
    pl_status status;
    pl_safetensor *list = NULL;
    char *path = NULL;
    pl_manifest_shard shard = { 0 };
    pl_safetensors_sum sum;
    pl_manifest_shard_name(shard.name, index, of);
    PL_TRY_OUT(status, pl_file_join(&path, folder, shard.name));
    PL_TRY_OUT(status, describe(&list, tensors, count));
    pl_safetensors_pair format = { "format", "pt" }; /* what loaders expect */
    pl_safetensors_content content = { list, count, &format, 1 };
    PL_TRY_OUT(status, pl_safetensors_write(path, &content, &sum));
    shard.bytes = sum.bytes;
    shard.crc32c = sum.crc32c;
    *out = shard;
out:
    pl_mem_free(list);
    pl_mem_free(path);
    return status;
}

pl_status pl_checkpoint_commit(const char *folder, const pl_manifest *manifest)
{
    pl_status status;
    char *text = NULL;
    char *path = NULL;
    PL_TRY_OUT(status, pl_manifest_text(&text, manifest));
    PL_TRY_OUT(status, pl_file_join(&path, folder, PL_MANIFEST_NAME));
    PL_TRY_OUT(status, pl_file_replace(path, text, strlen(text)));
out:
    pl_mem_free(path);
    pl_mem_free(text);
    return status;
}

pl_status pl_checkpoint_write(const char *checkpoints,
                              const pl_manifest *manifest,
                              const pl_checkpoint_tensor *tensors, size_t count)
{
    pl_status status;
    char *folder = NULL;
    pl_manifest_shard shard;
    PL_TRY_OUT(status,
               pl_checkpoint_begin(&folder, checkpoints, manifest->step));
    PL_TRY_OUT(status,
               pl_checkpoint_write_shard(folder, 0, 1, tensors, count, &shard));
    pl_manifest full = *manifest;
    full.shards = &shard;
    full.shard_count = 1;
    PL_TRY_OUT(status, pl_checkpoint_commit(folder, &full));
out:
    pl_mem_free(folder);
    return status == PL_OK ? PL_OK
                           : pl_context(status, "checkpoint of step %lld",
                                        (long long)manifest->step);
}

struct shard {
    pl_map map;
    pl_safetensors *tensors; /* points into the map */
};

struct pl_checkpoint {
    char *folder;
    pl_manifest manifest;
    struct shard *shards; /* as many as the manifest says */
};

static pl_status read_manifest(pl_checkpoint *checkpoint)
{
    char *path;
    PL_TRY(pl_file_join(&path, checkpoint->folder, PL_MANIFEST_NAME));
    char *text = NULL;
    pl_status status = pl_file_read_text(&text, path, PL_MANIFEST_MAX);
    if (status == PL_NOTFOUND)
        status = PL_FAIL(PL_NOTFOUND,
                         "no " PL_MANIFEST_NAME ": it was not finished");
    if (status == PL_OK)
        status = pl_manifest_init(&checkpoint->manifest, text, strlen(text),
                                  PL_MANIFEST_NAME);
    pl_mem_free(text);
    pl_mem_free(path);
    return status;
}

/* Compare the mapped file with its entry, then read what it holds. */
static pl_status verify_shard(struct shard *shard,
                              const pl_manifest_shard *entry)
{
    uint32_t crc32c = pl_crc32c(0, shard->map.data, shard->map.bytes);
    if (crc32c != entry->crc32c)
        return PL_FAIL(PL_FORMAT,
                       "%s: checksum %08x, the manifest says %08x: damaged",
                       entry->name, crc32c, entry->crc32c);
    return pl_safetensors_parse(&shard->tensors, shard->map.data,
                                shard->map.bytes, entry->name);
}

static pl_status map_shard(struct shard *shard, const char *folder,
                           const pl_manifest_shard *entry)
{
    char *path;
    PL_TRY(pl_file_join(&path, folder, entry->name));
    pl_status status = pl_map_init(&shard->map, path);
    pl_mem_free(path);
    if (status == PL_OK && shard->map.bytes != (uint64_t)entry->bytes)
        status =
            PL_FAIL(PL_FORMAT, "%s: %zu bytes, the manifest says %lld",
                    entry->name, shard->map.bytes, (long long)entry->bytes);
    return status;
}

static pl_status open_shards(pl_checkpoint *checkpoint, bool verify)
{
    const pl_manifest *manifest = &checkpoint->manifest;
    PL_TRY(PL_NEW(checkpoint->shards, manifest->shard_count));
    for (size_t i = 0; i < manifest->shard_count; i++) {
        struct shard *shard = &checkpoint->shards[i];
        PL_TRY(map_shard(shard, checkpoint->folder, &manifest->shards[i]));
        if (verify)
            PL_TRY(verify_shard(shard, &manifest->shards[i]));
    }
    return PL_OK;
}

pl_status pl_checkpoint_open_folder(pl_checkpoint **out, const char *folder,
                                    bool verify)
{
    pl_status status;
    pl_checkpoint *checkpoint;
    PL_TRY(PL_NEW(checkpoint, 1));
    PL_TRY_OUT(status, pl_mem_copy_text(&checkpoint->folder, folder));
    PL_TRY_OUT(status, read_manifest(checkpoint));
    PL_TRY_OUT(status, open_shards(checkpoint, verify));
    *out = checkpoint;
    checkpoint = NULL; /* now the caller's */
out:
    pl_checkpoint_free(checkpoint);
    return status == PL_OK ? PL_OK
                           : pl_context(status, "checkpoint %s", folder);
}

pl_status pl_checkpoint_open(pl_checkpoint **out, const char *folder)
{
    return pl_checkpoint_open_folder(out, folder, true);
}

void pl_checkpoint_free(pl_checkpoint *checkpoint)
{
    if (checkpoint == NULL)
        return;
    for (size_t i = 0;
         checkpoint->shards != NULL && i < checkpoint->manifest.shard_count;
         i++) {
        pl_safetensors_free(checkpoint->shards[i].tensors);
        pl_map_close(&checkpoint->shards[i].map);
    }
    pl_mem_free(checkpoint->shards);
    pl_manifest_close(&checkpoint->manifest);
    pl_mem_free(checkpoint->folder);
    pl_mem_free(checkpoint);
}

const pl_manifest *pl_checkpoint_manifest(const pl_checkpoint *checkpoint)
{
    return &checkpoint->manifest;
}

const char *pl_checkpoint_folder(const pl_checkpoint *checkpoint)
{
    return checkpoint->folder;
}

/* Find the wanted tensor that `stored` is for and note it in sources. */
static pl_status match_one(const pl_safetensor *stored,
                           const pl_checkpoint_tensor *tensors, size_t count,
                           pl_safetensor *sources)
{
    size_t i = 0;
    while (i < count && strcmp(tensors[i].name, stored->name) != 0)
        i++;
    if (i == count)
        return PL_FAIL(PL_SHAPE, "tensor %.200s is not one of the model's",
                       stored->name);
    if (sources[i].name != NULL)
        return PL_FAIL(PL_FORMAT, "tensor %s is in two shards", stored->name);
    char has[PL_SHAPE_TEXT];
    char needs[PL_SHAPE_TEXT];
    if (stored->dtype != PL_FLOAT32 ||
        !pl_shape_equal(stored->shape, tensors[i].shape))
        return PL_FAIL(
            PL_SHAPE, "tensor %s is %s %s, the model needs %s %s", stored->name,
            pl_dtype_name(stored->dtype), pl_shape_text(stored->shape, has),
            pl_dtype_name(PL_FLOAT32), pl_shape_text(tensors[i].shape, needs));
    sources[i] = *stored;
    return PL_OK;
}

static pl_status match_all(const pl_checkpoint *checkpoint,
                           const pl_checkpoint_tensor *tensors, size_t count,
                           pl_safetensor *sources)
{
    for (size_t s = 0; s < checkpoint->manifest.shard_count; s++) {
        const pl_safetensors *shard = checkpoint->shards[s].tensors;
        for (size_t i = 0; i < pl_safetensors_count(shard); i++)
            PL_TRY(match_one(pl_safetensors_get(shard, i), tensors, count,
                             sources));
    }
    for (size_t i = 0; i < count; i++)
        if (sources[i].name == NULL)
            return PL_FAIL(PL_SHAPE, "tensor %s is missing", tensors[i].name);
    return PL_OK;
}

pl_status pl_checkpoint_load(const pl_checkpoint *checkpoint,
                             const pl_checkpoint_tensor *tensors, size_t count)
{
    pl_safetensor *sources;
    PL_TRY(PL_NEW(sources, count));
    pl_status status = match_all(checkpoint, tensors, count, sources);
    for (size_t i = 0; status == PL_OK && i < count; i++) {
        uint64_t bytes = 0;
        status = pl_safetensor_bytes(&sources[i], &bytes);
        if (status == PL_OK && bytes > 0)
            memcpy(tensors[i].data, sources[i].data, (size_t)bytes);
    }
    pl_mem_free(sources);
    return status == PL_OK
               ? PL_OK
               : pl_context(status, "checkpoint %s", checkpoint->folder);
}

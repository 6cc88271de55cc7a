/* A checkpoint's folder: how it is written (files under temporary names, the
 * manifest last, which completes it), opened and checked. */
#include "state/checkpoint/checkpoint.h"

#include "base/assert.h"
#include "base/file/file.h"
#include "base/hash/crc32c.h"
#include "base/mem.h"
#include "state/checkpoint/checkpoint_priv.h"
#include "tensor/shape.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

pl_status pl_checkpoint_slot_name(char **out, const char *slot,
                                  const char *tensor)
{
    return pl_mem_format(out, "optimizer.%s.%s", slot, tensor);
}

/* Make room for a new checkpoint of the same step: a complete one is renamed to
 * its .old name, the remains of an incomplete one are removed. */
static pl_status make_room(const char *folder)
{
    if (!pl_file_exists(folder))
        return PL_OK;
    pl_checkpoint *complete = NULL;
    pl_status status =
        pl_checkpoint_open_folder(&complete, folder, PL_LOOK_SIZES);
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
    if (step < 0 || step > PL_MANIFEST_STEP_MAX)
        return PL_FAIL(PL_UNSUPPORTED,
                       "a checkpoint of step %lld: they are numbered from 0 to "
                       "%lld",
                       (long long)step, (long long)PL_MANIFEST_STEP_MAX);
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

/* Tensors and metadata of a shard for the safetensors writer; close_words frees
 * what was allocated for them. */
struct words {
    pl_safetensor *tensors;
    pl_safetensors_pair *pairs;
    char **texts; /* of all pairs but the first */
    size_t pair_count;
};

static void close_words(struct words *words)
{
    for (size_t i = 0; words->texts != NULL && i < 2 * words->pair_count; i++)
        pl_mem_free(words->texts[i]);
    pl_mem_free(words->texts);
    pl_mem_free(words->tensors);
    pl_mem_free(words->pairs);
}

static bool is_slice(const pl_checkpoint_tensor *tensor)
{
    return tensor->count > 0;
}

/* "slice.softmax/weights": "3920 784x10" */
static pl_status add_slice(struct words *words,
                           const pl_checkpoint_tensor *tensor)
{
    char shape[PL_SHAPE_TEXT * 2];
    size_t used = 0;
    for (int i = 0; i < tensor->shape.rank; i++)
        used +=
            (size_t)snprintf(shape + used, sizeof shape - used, "%s%lld",
                             i > 0 ? "x" : "", (long long)tensor->shape.dim[i]);
    char **texts = &words->texts[2 * words->pair_count];
    PL_TRY(pl_mem_format(&texts[0], SLICE_KEY "%s", tensor->name));
    PL_TRY(
        pl_mem_format(&texts[1], "%lld %s", (long long)tensor->first, shape));
    words->pairs[words->pair_count++] =
        (pl_safetensors_pair) { texts[0], texts[1] };
    return PL_OK;
}

static pl_status describe(struct words *words, const pl_checkpoint_part *part)
{
    PL_TRY(PL_NEW(words->tensors, part->count));
    PL_TRY(PL_NEW(words->pairs, part->count + 1));
    PL_TRY(PL_NEW(words->texts, 2 * (part->count + 1)));
    words->pairs[words->pair_count++] =
        (pl_safetensors_pair) { "format", "pt" }; /* what loaders expect */
    for (size_t i = 0; i < part->count; i++) {
        const pl_checkpoint_tensor *tensor = &part->tensors[i];
        pl_shape shape =
            is_slice(tensor) ? PL_SHAPE(tensor->count) : tensor->shape;
        words->tensors[i] =
            (pl_safetensor) { tensor->name, PL_FLOAT32, shape, tensor->data };
        if (is_slice(tensor))
            PL_TRY(add_slice(words, tensor));
    }
    return PL_OK;
}

pl_status pl_checkpoint_write_shard(const char *folder,
                                    const pl_checkpoint_part *part,
                                    pl_manifest_shard *out)
{
    PL_ASSERT(part->index >= 0 && part->index < part->of &&
              part->of <= PL_MANIFEST_SHARD_MAX);
    pl_status status;
    struct words words = { 0 };
    char *path = NULL;
    pl_manifest_shard shard = { 0 };
    pl_safetensors_sum sum;
    pl_manifest_shard_name(shard.name, part->index, part->of);
    PL_TRY_OUT(status, pl_file_join(&path, folder, shard.name));
    PL_TRY_OUT(status, describe(&words, part));
    pl_safetensors_content content = {
        .tensors = words.tensors,
        .count = part->count,
        .metadata = words.pairs,
        .metadata_count = words.pair_count,
        .read = part->read,
        .context = part->context,
    };
    PL_TRY_OUT(status, pl_safetensors_write(path, &content, &sum));
    shard.bytes = sum.bytes;
    shard.crc32c = sum.crc32c;
    *out = shard;
out:
    close_words(&words);
    pl_mem_free(path);
    return status;
}

static pl_status map_shard(pl_checkpoint_shard *shard, const char *folder,
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

/* Does the shard exist with the size in its entry?  It is not mapped: a process
 * close to its limits may have no addresses left. */
static pl_status check_size(const char *folder, const pl_manifest_shard *entry)
{
    char *path;
    struct stat found;
    PL_TRY(pl_file_join(&path, folder, entry->name));
    int failed = stat(path, &found) != 0 ? errno : 0;
    pl_mem_free(path);
    if (failed != 0)
        return PL_FAIL(failed == ENOENT ? PL_NOTFOUND : PL_IO, "open %s/%s: %s",
                       folder, entry->name, strerror(failed));
    if (found.st_size != entry->bytes)
        return PL_FAIL(PL_FORMAT, "%s: %lld bytes, the manifest says %lld",
                       entry->name, (long long)found.st_size,
                       (long long)entry->bytes);
    return PL_OK;
}

/* All shards are in the folder of the manifest. */
static pl_status look_for_shards(const char *folder,
                                 const pl_manifest *manifest)
{
    for (size_t i = 0; i < manifest->shard_count; i++)
        PL_TRY(check_size(folder, &manifest->shards[i]));
    return PL_OK;
}

pl_status pl_checkpoint_commit(const char *folder, const pl_manifest *manifest)
{
    pl_status status;
    char *text = NULL;
    char *path = NULL;
    PL_TRY_OUT(status, look_for_shards(folder, manifest));
    PL_TRY_OUT(status, pl_manifest_text(&text, manifest));
    PL_TRY_OUT(status, pl_file_join(&path, folder, PL_MANIFEST_NAME));
    PL_TRY_OUT(status, pl_file_replace(path, text, strlen(text)));
out:
    pl_mem_free(path);
    pl_mem_free(text);
    return status;
}

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

pl_status pl_checkpoint_check_sum(const pl_checkpoint_shard *shard,
                                  const pl_manifest_shard *entry)
{
    uint32_t crc32c = pl_crc32c(0, shard->map.data, shard->map.bytes);
    if (crc32c != entry->crc32c)
        return PL_FAIL(PL_FORMAT,
                       "%s: checksum %08x, the manifest says %08x: damaged",
                       entry->name, crc32c, entry->crc32c);
    return PL_OK;
}

static pl_status open_shard(const pl_checkpoint *checkpoint, size_t index,
                            pl_checkpoint_look look)
{
    pl_checkpoint_shard *shard = &checkpoint->shards[index];
    const pl_manifest_shard *entry = &checkpoint->manifest.shards[index];
    if (look == PL_LOOK_SIZES)
        return check_size(checkpoint->folder, entry);
    PL_TRY(map_shard(shard, checkpoint->folder, entry));
    if (look == PL_LOOK_ALL)
        PL_TRY(pl_checkpoint_check_sum(shard, entry));
    shard->checked = look == PL_LOOK_ALL;
    PL_TRY(pl_safetensors_parse(&shard->tensors, shard->map.data,
                                shard->map.bytes, entry->name));
    return pl_map_check(&shard->map);
}

static pl_status open_all(pl_checkpoint *checkpoint, pl_checkpoint_look look)
{
    PL_TRY(read_manifest(checkpoint));
    PL_TRY(PL_NEW(checkpoint->shards, checkpoint->manifest.shard_count));
    for (size_t i = 0; i < checkpoint->manifest.shard_count; i++)
        PL_TRY(open_shard(checkpoint, i, look));
    return PL_OK;
}

pl_status pl_checkpoint_open_folder(pl_checkpoint **out, const char *folder,
                                    pl_checkpoint_look look)
{
    pl_status status;
    pl_checkpoint *checkpoint;
    PL_TRY(PL_NEW(checkpoint, 1));
    PL_TRY_OUT(status, pl_mem_copy_text(&checkpoint->folder, folder));
    PL_TRY_OUT(status, open_all(checkpoint, look));
    *out = checkpoint;
    checkpoint = NULL; /* now the caller's */
out:
    pl_checkpoint_free(checkpoint);
    return status == PL_OK ? PL_OK
                           : pl_context(status, "checkpoint %s", folder);
}

pl_status pl_checkpoint_open(pl_checkpoint **out, const char *folder)
{
    return pl_checkpoint_open_folder(out, folder, PL_LOOK_ALL);
}

pl_status pl_checkpoint_open_part(pl_checkpoint **out, const char *folder)
{
    return pl_checkpoint_open_folder(out, folder, PL_LOOK_HEADERS);
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

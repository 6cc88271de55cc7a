/* Writes and reads manifest.json. Its last line is a checksum of everything
 * before, checked before any member is believed. */
#include "train/manifest.h"

#include "base/crc32c.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

#define FORMAT "paceline-checkpoint"

/* How the file ends: the checksum of all bytes before. */
#define TAIL_FORMAT ",\n  \"manifest_crc32c\": \"%08x\"\n}\n"
#define TAIL_BYTES  (sizeof ",\n  \"manifest_crc32c\": \"01234567\"\n}\n" - 1)

const char *pl_manifest_shard_name(char name[PL_SHARD_NAME], int32_t index,
                                   int32_t of)
{
    snprintf(name, PL_SHARD_NAME, "shard-%05d-of-%05d.safetensors", index, of);
    return name;
}

static void make_tail(char tail[TAIL_BYTES + 1], const char *text, size_t bytes)
{
    snprintf(tail, TAIL_BYTES + 1, TAIL_FORMAT, pl_crc32c(0, text, bytes));
}

static pl_status add_copy(pl_json *json, const char *key, const pl_json *value)
{
    pl_json *copy;
    PL_TRY(pl_json_copy(&copy, value));
    return pl_json_set_take(json, key, copy);
}

static pl_status add_shard(pl_json *files, const pl_manifest_shard *shard)
{
    char crc32c[9];
    pl_json *file;
    snprintf(crc32c, sizeof crc32c, "%08x", shard->crc32c);
    PL_TRY(pl_json_new_object(&file));
    PL_TRY(pl_json_append_take(files, file));
    PL_TRY(pl_json_set_text(file, "name", shard->name));
    PL_TRY(pl_json_set_int(file, "bytes", shard->bytes));
    return pl_json_set_text(file, "crc32c", crc32c);
}

static pl_status fill(pl_json *json, const pl_manifest *manifest)
{
    pl_json *files;
    PL_TRY(pl_json_set_text(json, "format", FORMAT));
    PL_TRY(pl_json_set_int(json, "version", manifest->sliced ? 2 : 1));
    PL_TRY(pl_json_set_text(json, "model", manifest->model));
    PL_TRY(pl_json_set_int(json, "step", manifest->step));
    PL_TRY(add_copy(json, "settings", manifest->settings));
    PL_TRY(add_copy(json, "state", manifest->state));
    PL_TRY(pl_json_new_array(&files));
    PL_TRY(pl_json_set_take(json, "files", files));
    for (size_t i = 0; i < manifest->shard_count; i++)
        PL_TRY(add_shard(files, &manifest->shards[i]));
    return PL_OK;
}

pl_status pl_manifest_text(char **out, const pl_manifest *manifest)
{
    pl_status status;
    pl_json *json = NULL;
    char *text = NULL;
    PL_TRY_OUT(status, pl_json_new_object(&json));
    PL_TRY_OUT(status, fill(json, manifest));
    PL_TRY_OUT(status, pl_json_text(json, 2, &text));

    char tail[TAIL_BYTES + 1];
    size_t bytes = strlen(text) - strlen("\n}"); /* the tail closes it */
    if (bytes + TAIL_BYTES > PL_MANIFEST_MAX) {
        status = PL_FAIL(PL_UNSUPPORTED, "manifest of %zu bytes", bytes);
        goto out;
    }
    make_tail(tail, text, bytes);
    PL_TRY_OUT(status, pl_mem_format(out, "%.*s%s", (int)bytes, text, tail));
out:
    pl_mem_free(text);
    pl_json_free(json);
    return status;
}

/* Damage is found before anything is believed. */
static pl_status check_tail(const char *text, size_t bytes)
{
    if (bytes < TAIL_BYTES)
        return PL_FAIL(PL_FORMAT, "%zu bytes are no manifest", bytes);
    char tail[TAIL_BYTES + 1];
    make_tail(tail, text, bytes - TAIL_BYTES);
    if (memcmp(tail, text + bytes - TAIL_BYTES, TAIL_BYTES) != 0)
        return PL_FAIL(PL_FORMAT,
                       "its checksum does not match: damaged or edited");
    return PL_OK;
}

/* Exactly the 8 digits we write. */
static pl_status read_crc32c(const pl_json *file, uint32_t *out)
{
    const char *text = NULL;
    char again[9];
    unsigned value = 0;
    PL_TRY(pl_json_get_text(file, "crc32c", &text));
    int found = sscanf(text, "%8x", &value);
    snprintf(again, sizeof again, "%08x", value);
    if (found != 1 || strcmp(text, again) != 0)
        return PL_FAIL(PL_FORMAT, "crc32c: expected 8 hexadecimal digits");
    *out = value;
    return PL_OK;
}

static pl_status read_shard(const pl_json *file, size_t index, size_t of,
                            pl_manifest_shard *shard)
{
    const char *name = NULL;
    PL_TRY(pl_json_get_text(file, "name", &name));
    pl_manifest_shard_name(shard->name, (int32_t)index, (int32_t)of);
    if (strcmp(name, shard->name) != 0)
        return PL_FAIL(PL_FORMAT, "name: expected %s, found %.200s",
                       shard->name, name);
    PL_TRY(pl_json_get_int(file, "bytes", 0, INT64_MAX, &shard->bytes));
    return read_crc32c(file, &shard->crc32c);
}

static pl_status read_shards(pl_manifest *manifest)
{
    const pl_json *files = NULL;
    PL_TRY(pl_json_get_array(manifest->own_json, "files", &files));
    size_t count = pl_json_length(files);
    if (count < 1 || count > PL_MANIFEST_SHARD_MAX)
        return PL_FAIL(PL_FORMAT, "files: %zu of them, expected 1 .. %d", count,
                       PL_MANIFEST_SHARD_MAX);
    PL_TRY(PL_NEW(manifest->own_shards, count));
    for (size_t i = 0; i < count; i++) {
        pl_status status = read_shard(pl_json_at(files, i), i, count,
                                      &manifest->own_shards[i]);
        if (status != PL_OK)
            return pl_context(status, "files: index %zu", i);
    }
    manifest->shards = manifest->own_shards;
    manifest->shard_count = count;
    return PL_OK;
}

static pl_status read_members(pl_manifest *manifest)
{
    const pl_json *json = manifest->own_json;
    const char *format = NULL;
    int64_t version = 0;
    PL_TRY(pl_json_get_text(json, "format", &format));
    if (strcmp(format, FORMAT) != 0)
        return PL_FAIL(PL_FORMAT, "format: expected %s, found %.200s", FORMAT,
                       format);
    PL_TRY(pl_json_get_int(json, "version", 1, INT64_MAX, &version));
    if (version > PL_MANIFEST_VERSION)
        return PL_FAIL(PL_UNSUPPORTED,
                       "version %lld, this program knows up to %d",
                       (long long)version, PL_MANIFEST_VERSION);
    manifest->sliced = version >= 2;
    PL_TRY(pl_json_get_text(json, "model", &manifest->model));
    PL_TRY(pl_json_get_int(json, "step", 0, PL_MANIFEST_STEP_MAX,
                           &manifest->step));
    PL_TRY(pl_json_get_object(json, "settings", &manifest->settings));
    PL_TRY(pl_json_get_object(json, "state", &manifest->state));
    return read_shards(manifest);
}

pl_status pl_manifest_init(pl_manifest *manifest, const char *text,
                           size_t bytes, const char *what)
{
    pl_manifest parsed = { 0 };
    pl_status status = check_tail(text, bytes);
    if (status == PL_OK)
        status = pl_json_parse(&parsed.own_json, text, bytes, "JSON");
    if (status == PL_OK)
        status = read_members(&parsed);
    if (status != PL_OK) {
        pl_manifest_close(&parsed);
        return pl_context(status, "%s", what);
    }
    *manifest = parsed;
    return PL_OK;
}

void pl_manifest_close(pl_manifest *manifest)
{
    pl_mem_free(manifest->own_shards);
    pl_json_free(manifest->own_json);
    *manifest = (pl_manifest) { 0 };
}

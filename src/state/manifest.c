/* Writes and reads manifest.json. Its last line is a checksum of everything
 * before it, verified before any member is used. */
#include "state/manifest.h"

#include "base/hash/crc32c.h"
#include "base/json/fields.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

#define FORMAT "paceline-checkpoint"

/* How the file ends: the checksum of all preceding bytes. */
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

/* The first members of the file, also in newer versions. */
typedef struct manifest_head {
    const char *format;
    int64_t version;
} manifest_head;

static const pl_field head_rows[] = {
    { "format", PL_FIELD_TEXT(manifest_head, format) },
    { "version", PL_FIELD_INT(manifest_head, version), .least = 1,
      .most = INT64_MAX },
};
static const pl_fields head_fields = PL_FIELDS(manifest_head, head_rows);

static const pl_field shard_rows[] = {
    { "name", PL_FIELD_CHARS(pl_manifest_shard, name) },
    { "bytes", PL_FIELD_INT(pl_manifest_shard, bytes) },
    { "crc32c", PL_FIELD_HEX(pl_manifest_shard, crc32c) },
};
static const pl_fields shard_fields = PL_FIELDS(pl_manifest_shard, shard_rows);

/* The file without its last line. */
typedef struct manifest_file {
    manifest_head head;
    pl_manifest body;
} manifest_file;

static const pl_field file_rows[] = {
    { NULL, PL_FIELD_INLINE(manifest_file, head, &head_fields) },
    { "model", PL_FIELD_TEXT(manifest_file, body.model) },
    { "step", PL_FIELD_INT(manifest_file, body.step),
      .most = PL_MANIFEST_STEP_MAX },
    { "settings", PL_FIELD_ANY_OBJECT(manifest_file, body.settings) },
    { "state", PL_FIELD_ANY_OBJECT(manifest_file, body.state) },
    { "files",
      PL_FIELD_LIST(manifest_file, body.shards, body.shard_count,
                    &shard_fields),
      .least = 1, .most = PL_MANIFEST_SHARD_MAX },
};
static const pl_fields file_fields = PL_FIELDS(manifest_file, file_rows);

pl_status pl_manifest_text(char **out, const pl_manifest *manifest)
{
    pl_status status;
    manifest_file file = {
        .head = { .format = FORMAT, .version = manifest->sliced ? 2 : 1 },
        .body = *manifest,
    };
    char *text;
    PL_TRY(pl_fields_text(&file_fields, &file, 2, &text));

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
    return status;
}

/* Damage is detected before any member is used. */
static pl_status check_tail(const char *text, size_t bytes)
{
    if (bytes < TAIL_BYTES)
        return PL_FAIL(PL_FORMAT, "not a manifest: %zu bytes", bytes);
    char tail[TAIL_BYTES + 1];
    make_tail(tail, text, bytes - TAIL_BYTES);
    if (memcmp(tail, text + bytes - TAIL_BYTES, TAIL_BYTES) != 0)
        return PL_FAIL(PL_FORMAT,
                       "its checksum does not match: damaged or edited");
    return PL_OK;
}

/* Is it a manifest, and of a version that can be read? */
static pl_status check_head(const pl_json *json)
{
    manifest_head head;
    PL_TRY(pl_fields_read(&head_fields, json, &head));
    if (strcmp(head.format, FORMAT) != 0)
        return PL_FAIL(PL_FORMAT, "format: expected %s, found %.200s", FORMAT,
                       head.format);
    if (head.version > PL_MANIFEST_VERSION)
        return PL_FAIL(PL_UNSUPPORTED,
                       "version %lld, this program knows up to %d",
                       (long long)head.version, PL_MANIFEST_VERSION);
    return PL_OK;
}

/* A name is a path to be opened: it must be the one we would choose. */
static pl_status check_shards(const pl_manifest *manifest)
{
    char name[PL_SHARD_NAME];
    for (size_t i = 0; i < manifest->shard_count; i++) {
        pl_manifest_shard_name(name, (int32_t)i,
                               (int32_t)manifest->shard_count);
        if (strcmp(name, manifest->shards[i].name) != 0)
            return PL_FAIL(PL_FORMAT,
                           "files: index %zu: name: expected %s, found %s", i,
                           name, manifest->shards[i].name);
    }
    return PL_OK;
}

static pl_status read_members(pl_manifest *manifest)
{
    manifest_file file;
    pl_json *json = manifest->own_json;
    PL_TRY(check_head(json));
    PL_TRY(pl_fields_read(&file_fields, json, &file));
    *manifest = file.body;
    manifest->sliced = file.head.version >= 2;
    manifest->own_json = json;
    manifest->own_shards = (pl_manifest_shard *)manifest->shards;
    return check_shards(manifest);
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

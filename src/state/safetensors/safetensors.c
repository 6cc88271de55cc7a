/* Reading safetensors files: which headers are accepted, and where each
 * tensor's bytes lie.  The file is hostile input; every offset is checked
 * before use. */
#include "state/safetensors/safetensors.h"

#include "base/file/file.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "state/safetensors/safetensors_priv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Where a tensor's data are, relative to the end of the header. */
struct range {
    uint64_t begin;
    uint64_t end;
    const char *name;
};

struct pl_safetensors {
    pl_map map;          /* of an opened file */
    const uint8_t *data; /* the whole file */
    size_t bytes;
    pl_json *header;         /* owns the names and the metadata */
    const pl_json *metadata; /* NULL: none */
    size_t count;
    pl_safetensor *tensors;
};

static pl_status read_header(pl_safetensors *file, size_t *header_bytes)
{
    uint64_t length;
    if (file->bytes < sizeof length)
        return PL_FAIL(PL_FORMAT, "not a safetensors file: %zu bytes",
                       file->bytes);
    memcpy(&length, file->data, sizeof length);
    if (length > PL_SAFETENSORS_HEADER_MAX)
        return PL_FAIL(PL_FORMAT,
                       "header length %" PRIu64 " is more than %d bytes",
                       length, PL_SAFETENSORS_HEADER_MAX);
    if (length > file->bytes - sizeof length)
        return PL_FAIL(PL_FORMAT,
                       "header of %" PRIu64 " bytes in a file of %zu", length,
                       file->bytes);
    const char *text = (const char *)file->data + sizeof length;
    if (length == 0 || text[0] != '{')
        return PL_FAIL(PL_FORMAT, "the header does not begin with {");
    *header_bytes = (size_t)length;
    return pl_json_parse(&file->header, text, (size_t)length, "header");
}

static pl_status check_metadata(pl_safetensors *file)
{
    if (!pl_json_has(file->header, METADATA))
        return PL_OK;
    PL_TRY(pl_json_get_object(file->header, METADATA, &file->metadata));
    void *walk = NULL;
    const char *key;
    const pl_json *value;
    while (pl_json_next(file->metadata, &walk, &key, &value)) {
        const char *text;
        pl_status status = pl_json_as_text(value, key, &text);
        if (status != PL_OK)
            return pl_context(status, METADATA);
    }
    return PL_OK;
}

static pl_status read_dtype(const pl_json *entry, pl_dtype *out)
{
    const char *name = NULL;
    PL_TRY(pl_json_get_text(entry, "dtype", &name));
    for (size_t i = 0; i < pl_safetensors_type_count; i++)
        if (strcmp(name, pl_safetensors_types[i].name) == 0) {
            *out = (pl_dtype)i;
            return PL_OK;
        }
    return PL_FAIL(PL_UNSUPPORTED, "dtype %.20s (known are F32, U8, I32, I64)",
                   name);
}

static pl_status read_shape(const pl_json *entry, pl_shape *out)
{
    const pl_json *dims = NULL;
    PL_TRY(pl_json_get_array(entry, "shape", &dims));
    size_t rank = pl_json_length(dims);
    if (rank > PL_MAX_RANK)
        return PL_FAIL(PL_UNSUPPORTED, "%zu dimensions, more than %d", rank,
                       PL_MAX_RANK);
    out->rank = (int)rank;
    for (size_t i = 0; i < rank; i++) {
        pl_status status = pl_json_int_at(dims, i, 0, INT64_MAX, &out->dim[i]);
        if (status != PL_OK)
            return pl_context(status, "shape");
    }
    return PL_OK;
}

/* begin <= end <= limit, both non-negative. */
static pl_status read_offsets(const pl_json *entry, uint64_t limit,
                              struct range *out)
{
    const pl_json *offsets = NULL;
    PL_TRY(pl_json_get_array(entry, "data_offsets", &offsets));
    if (pl_json_length(offsets) != 2)
        return PL_FAIL(PL_FORMAT, "data_offsets: %zu numbers, expected 2",
                       pl_json_length(offsets));
    int64_t begin = 0;
    int64_t end = 0;
    pl_status status = pl_json_int_at(offsets, 1, 0, (int64_t)limit, &end);
    if (status == PL_OK)
        status = pl_json_int_at(offsets, 0, 0, end, &begin);
    if (status != PL_OK)
        return pl_context(status, "data_offsets");
    out->begin = (uint64_t)begin;
    out->end = (uint64_t)end;
    return PL_OK;
}

static pl_status read_tensor(const pl_json *entry, uint64_t limit,
                             pl_safetensor *tensor, struct range *range)
{
    uint64_t bytes = 0;
    PL_TRY(read_dtype(entry, &tensor->dtype));
    PL_TRY(read_shape(entry, &tensor->shape));
    PL_TRY(read_offsets(entry, limit, range));
    if (pl_safetensor_bytes(tensor, &bytes) != PL_OK)
        return pl_context(PL_FORMAT, "shape");
    if (bytes != range->end - range->begin)
        return PL_FAIL(PL_FORMAT,
                       "%" PRIu64 " bytes of data, its shape needs %" PRIu64,
                       range->end - range->begin, bytes);
    return PL_OK;
}

static int compare_ranges(const void *a, const void *b)
{
    const struct range *x = a;
    const struct range *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* Sort; each range must begin where the previous one ends. */
static pl_status check_cover(struct range *ranges, size_t count, uint64_t limit)
{
    uint64_t end = 0;
    qsort(ranges, count, sizeof *ranges, compare_ranges);
    for (size_t i = 0; i < count; i++) {
        if (ranges[i].begin != end)
            return PL_FAIL(PL_FORMAT,
                           "tensor %.200s begins at %" PRIu64 ", %s %" PRIu64,
                           ranges[i].name, ranges[i].begin,
                           ranges[i].begin < end ? "inside another that ends at"
                                                 : "a gap after",
                           end);
        end = ranges[i].end;
    }
    if (end != limit)
        return PL_FAIL(PL_FORMAT,
                       "%" PRIu64
                       " bytes after the last tensor belong to no tensor",
                       limit - end);
    return PL_OK;
}

static pl_status read_tensors(pl_safetensors *file, struct range *ranges,
                              size_t begin)
{
    uint64_t limit = file->bytes - begin;
    void *walk = NULL;
    const char *name;
    const pl_json *entry;
    size_t i = 0;
    while (pl_json_next(file->header, &walk, &name, &entry)) {
        if (strcmp(name, METADATA) == 0)
            continue;
        pl_safetensor *tensor = &file->tensors[i];
        pl_status status = read_tensor(entry, limit, tensor, &ranges[i]);
        if (status != PL_OK)
            return pl_context(status, "tensor %.200s", name);
        tensor->name = name;
        tensor->data = file->data + begin + ranges[i].begin;
        ranges[i++].name = name;
    }
    return check_cover(ranges, file->count, limit);
}

/* Parse file->data; the ranges are only needed here. */
static pl_status parse(pl_safetensors *file)
{
    size_t header_bytes = 0;
    PL_TRY(read_header(file, &header_bytes));
    PL_TRY(check_metadata(file));
    file->count =
        pl_json_length(file->header) - (file->metadata != NULL ? 1 : 0);
    PL_TRY(PL_NEW(file->tensors, file->count));
    struct range *ranges;
    PL_TRY(PL_NEW(ranges, file->count));
    pl_status status =
        read_tensors(file, ranges, sizeof(uint64_t) + header_bytes);
    pl_mem_free(ranges);
    return status;
}

pl_status pl_safetensors_open(pl_safetensors **out, const char *path)
{
    pl_status status;
    pl_safetensors *file;
    PL_TRY(PL_NEW(file, 1));
    PL_TRY_OUT(status, pl_map_init(&file->map, path));
    file->data = file->map.data;
    file->bytes = file->map.bytes;
    status = parse(file);
    if (status != PL_OK) {
        pl_context(status, "%s", path);
        goto out;
    }
    *out = file;
    file = NULL; /* now the caller's */
out:
    pl_safetensors_free(file);
    return status;
}

pl_status pl_safetensors_parse(pl_safetensors **out, const void *data,
                               size_t bytes, const char *what)
{
    pl_safetensors *file;
    PL_TRY(PL_NEW(file, 1));
    file->data = data;
    file->bytes = bytes;
    pl_status status = parse(file);
    if (status != PL_OK) {
        pl_safetensors_free(file);
        return pl_context(status, "%s", what);
    }
    *out = file;
    return PL_OK;
}

void pl_safetensors_free(pl_safetensors *file)
{
    if (file == NULL)
        return;
    pl_mem_free(file->tensors);
    pl_json_free(file->header);
    pl_map_close(&file->map);
    pl_mem_free(file);
}

size_t pl_safetensors_count(const pl_safetensors *file)
{
    return file->count;
}

const pl_safetensor *pl_safetensors_get(const pl_safetensors *file,
                                        size_t index)
{
    return &file->tensors[index];
}

const pl_safetensor *pl_safetensors_find(const pl_safetensors *file,
                                         const char *name)
{
    for (size_t i = 0; i < file->count; i++)
        if (strcmp(file->tensors[i].name, name) == 0)
            return &file->tensors[i];
    return NULL;
}

const char *pl_safetensors_metadata(const pl_safetensors *file, const char *key)
{
    const char *text = NULL;
    if (file->metadata == NULL || !pl_json_has(file->metadata, key) ||
        pl_json_get_text(file->metadata, key, &text) != PL_OK)
        return NULL;
    return text;
}

/* safetensors_write.c - the writing part of safetensors.h. */
#include "state/safetensors/safetensors.h"

#include "base/file/file.h"
#include "base/hash/crc32c.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "state/safetensors/safetensors_priv.h"

#include <string.h>

#define ALIGN 8

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "tensors go to the file as they are in memory");

const struct pl_safetensors_type pl_safetensors_types[] = {
    [PL_FLOAT32] = { "F32", 4 },
    [PL_UINT8] = { "U8", 1 },
    [PL_INT32] = { "I32", 4 },
    [PL_INT64] = { "I64", 8 },
};
const size_t pl_safetensors_type_count =
    sizeof pl_safetensors_types / sizeof *pl_safetensors_types;

pl_status pl_safetensor_bytes(const pl_safetensor *tensor, uint64_t *out)
{
    uint64_t bytes = pl_safetensors_types[tensor->dtype].bytes;
    for (int i = 0; i < tensor->shape.rank; i++) {
        int64_t dim = tensor->shape.dim[i];
        if (dim < 0)
            return PL_FAIL(PL_SHAPE, "dimension %d is %lld", i, (long long)dim);
        if (__builtin_mul_overflow(bytes, (uint64_t)dim, &bytes) ||
            bytes > INT64_MAX)
            return PL_FAIL(PL_SHAPE, "more than 2^63 bytes");
    }
    *out = bytes;
    return PL_OK;
}

/* {"dtype":"F32","shape":[2,3],"data_offsets":[0,24]} into *entry. */
static pl_status fill_entry(pl_json *entry, const pl_safetensor *tensor,
                            uint64_t begin, uint64_t end)
{
    pl_json *shape;
    pl_json *offsets;
    PL_TRY(pl_json_set_text(entry, "dtype",
                            pl_safetensors_types[tensor->dtype].name));
    PL_TRY(pl_json_new_array(&shape));
    PL_TRY(pl_json_set_take(entry, "shape", shape));
    for (int i = 0; i < tensor->shape.rank; i++)
        PL_TRY(pl_json_append_int(shape, tensor->shape.dim[i]));
    PL_TRY(pl_json_new_array(&offsets));
    PL_TRY(pl_json_set_take(entry, "data_offsets", offsets));
    PL_TRY(pl_json_append_int(offsets, (int64_t)begin));
    return pl_json_append_int(offsets, (int64_t)end);
}

static pl_status add_tensor(pl_json *header, const pl_safetensor *tensor,
                            uint64_t *end)
{
    uint64_t bytes = 0;
    uint64_t begin = *end;
    if (strcmp(tensor->name, METADATA) == 0 ||
        pl_json_has(header, tensor->name))
        return PL_FAIL(PL_USAGE, "the name is taken");
    PL_TRY(pl_safetensor_bytes(tensor, &bytes));
    if (__builtin_add_overflow(begin, bytes, end) || *end > INT64_MAX)
        return PL_FAIL(PL_SHAPE, "the file would pass 2^63 bytes");

    pl_json *entry;
    PL_TRY(pl_json_new_object(&entry));
    PL_TRY(pl_json_set_take(header, tensor->name, entry));
    return fill_entry(entry, tensor, begin, *end);
}

static pl_status add_metadata(pl_json *header,
                              const pl_safetensors_content *content)
{
    if (content->metadata_count == 0)
        return PL_OK;
    pl_json *metadata;
    PL_TRY(pl_json_new_object(&metadata));
    PL_TRY(pl_json_set_take(header, METADATA, metadata));
    for (size_t i = 0; i < content->metadata_count; i++)
        PL_TRY(pl_json_set_text(metadata, content->metadata[i].key,
                                content->metadata[i].value));
    return PL_OK;
}

static pl_status header_text(char **out, const pl_safetensors_content *content)
{
    pl_status status;
    pl_json *header = NULL;
    uint64_t end = 0;
    PL_TRY_OUT(status, pl_json_new_object(&header));
    PL_TRY_OUT(status, add_metadata(header, content));
    for (size_t i = 0; i < content->count; i++) {
        status = add_tensor(header, &content->tensors[i], &end);
        if (status != PL_OK) {
            pl_context(status, "tensor %s", content->tensors[i].name);
            goto out;
        }
    }
    PL_TRY_OUT(status, pl_json_text(header, 0, out));
out:
    pl_json_free(header);
    return status;
}

static pl_status put(pl_file_writer *writer, pl_safetensors_sum *sum,
                     const void *data, size_t bytes)
{
    sum->crc32c = pl_crc32c(sum->crc32c, data, bytes);
    sum->bytes += (int64_t)bytes;
    return pl_file_writer_put(writer, data, bytes);
}

static pl_status put_header(pl_file_writer *writer, pl_safetensors_sum *sum,
                            const char *text)
{
    static const char blanks[ALIGN] = "        ";
    size_t bytes = strlen(text);
    size_t padding = (ALIGN - bytes % ALIGN) % ALIGN;
    uint64_t length = bytes + padding;
    if (length > PL_SAFETENSORS_HEADER_MAX)
        return PL_FAIL(PL_UNSUPPORTED,
                       "header of %zu bytes, the format allows %d", bytes,
                       PL_SAFETENSORS_HEADER_MAX);
    PL_TRY(put(writer, sum, &length, sizeof length));
    PL_TRY(put(writer, sum, text, bytes));
    return put(writer, sum, blanks, padding);
}

/* Write one tensor in the pieces that its owner returns. */
static pl_status put_pieces(pl_file_writer *writer, pl_safetensors_sum *sum,
                            const pl_safetensors_content *content, size_t i,
                            uint64_t bytes)
{
    const void *data = NULL;
    size_t some = 0;
    for (uint64_t at = 0; at < bytes; at += some) {
        PL_TRY(content->read(content->context, i, at, &data, &some));
        if (some > bytes - at)
            some = (size_t)(bytes - at);
        PL_TRY(put(writer, sum, data, some));
    }
    return PL_OK;
}

static pl_status put_tensors(pl_file_writer *writer, pl_safetensors_sum *sum,
                             const pl_safetensors_content *content)
{
    for (size_t i = 0; i < content->count; i++) {
        uint64_t bytes = 0;
        PL_TRY(pl_safetensor_bytes(&content->tensors[i], &bytes));
        if (content->read != NULL)
            PL_TRY(put_pieces(writer, sum, content, i, bytes));
        else
            PL_TRY(put(writer, sum, content->tensors[i].data, (size_t)bytes));
    }
    return PL_OK;
}

pl_status pl_safetensors_write(const char *path,
                               const pl_safetensors_content *content,
                               pl_safetensors_sum *sum)
{
    pl_status status;
    pl_file_writer *writer = NULL;
    char *text = NULL;
    pl_safetensors_sum written = { 0 };
    PL_TRY_OUT(status, header_text(&text, content));
    PL_TRY_OUT(status, pl_file_writer_new(&writer, path));
    PL_TRY_OUT(status, put_header(writer, &written, text));
    PL_TRY_OUT(status, put_tensors(writer, &written, content));
    PL_TRY_OUT(status, pl_file_writer_commit(writer));
    if (sum != NULL)
        *sum = written;
out:
    pl_file_writer_free(writer);
    pl_mem_free(text);
    return status;
}

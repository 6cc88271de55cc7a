/* safetensors.h - named tensors in a file that other programs can read.
 *
 * The format (github.com/huggingface/safetensors): the header's length in 8
 * bytes, little-endian; the header, a JSON object of tensor name -> dtype,
 * shape and data_offsets, with string pairs under "__metadata__"; then the
 * data.  The reader trusts nothing: lengths, shapes and offsets are checked
 * before use, and tensors must cover the data without overlaps or gaps, as the
 * format's own library requires.
 *
 * The types F32, U8, I32 and I64 are supported, and shapes of at most
 * PL_MAX_RANK dimensions; others are PL_UNSUPPORTED.
 *
 * Threads: a pl_safetensors may be read by several once it is open. */
#ifndef PL_STATE_SAFETENSORS_SAFETENSORS_H
#define PL_STATE_SAFETENSORS_SAFETENSORS_H

#include "paceline/tensor.h"

#include <stddef.h>
#include <stdint.h>

#define PL_SAFETENSORS_HEADER_MAX 100000000 /* the format's own limit */

typedef struct pl_safetensor {
    const char *name;
    pl_dtype dtype;
    pl_shape shape;   /* dimensions may be 0 */
    const void *data; /* plain layout; in a file, perhaps not aligned */
} pl_safetensor;

typedef struct pl_safetensors_pair {
    const char *key;
    const char *value;
} pl_safetensors_pair;

typedef struct pl_safetensors_content {
    const pl_safetensor *tensors; /* in the order they have in the file */
    size_t count;
    const pl_safetensors_pair *metadata;
    size_t metadata_count;
    /* Optional: return the data of a tensor from byte `at` on, in pieces and in
     * the order of the file; default: all of tensor->data. */
    pl_status (*read)(void *context, size_t tensor, uint64_t at,
                      const void **data, size_t *bytes);
    void *context;
} pl_safetensors_content;

/* The result of a write. */
typedef struct pl_safetensors_sum {
    int64_t bytes;
    uint32_t crc32c; /* of the whole file */
} pl_safetensors_sum;

/* Bytes of the data; PL_SHAPE when a dimension is negative or the count does
 * not fit. */
pl_status pl_safetensor_bytes(const pl_safetensor *tensor,
                              uint64_t *out) PL_MUST_CHECK;

/* Write the file, completely or not at all.  The header is padded with spaces
 * so that the data begins at a multiple of 8.  *sum is optional. */
pl_status pl_safetensors_write(const char *path,
                               const pl_safetensors_content *content,
                               pl_safetensors_sum *sum) PL_MUST_CHECK;

typedef struct pl_safetensors pl_safetensors;

/* Open a file, which stays mapped until the free.  It must not be truncated
 * meanwhile; replacing it (rename) is safe. */
pl_status pl_safetensors_open(pl_safetensors **out,
                              const char *path) PL_MUST_CHECK;

/* The same for a file in memory, which must stay; `what` names it. */
pl_status pl_safetensors_parse(pl_safetensors **out, const void *data,
                               size_t bytes, const char *what) PL_MUST_CHECK;
void pl_safetensors_free(pl_safetensors *file); /* NULL is fine */

/* Results live until the free. */
size_t pl_safetensors_count(const pl_safetensors *file);
const pl_safetensor *pl_safetensors_get(const pl_safetensors *file,
                                        size_t index); /* as in the header */
const pl_safetensor *pl_safetensors_find(const pl_safetensors *file,
                                         const char *name); /* or NULL */
const char *pl_safetensors_metadata(const pl_safetensors *file,
                                    const char *key); /* or NULL */

#endif

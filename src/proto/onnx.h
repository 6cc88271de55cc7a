/* onnx.h - ONNX files: a graph of named operators with its weights.
 *
 * The structs represent a file that was read or will be written.  Texts and
 * lists belong to the creator of the struct: for a file that was read, the
 * pl_onnx.
 *
 * A file is untrusted input.  After pl_onnx_parse every tensor has as many
 * elements as its dimensions state, or names the external file that holds them;
 * the caller interprets the graph.
 *
 * Threads: none of its own. */
#ifndef PL_PROTO_ONNX_H
#define PL_PROTO_ONNX_H

#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PL_ONNX_RANK 8 /* the most dimensions */
#define PL_ONNX_FILE_MOST                                                      \
    ((size_t)INT32_MAX) /* the limit of Protocol Buffers */

/* TensorProto.DataType; tensors of other types are refused where they are
 * used. */
enum {
    PL_ONNX_FLOAT = 1,
    PL_ONNX_INT32 = 6,
    PL_ONNX_INT64 = 7,
};

/* AttributeProto.AttributeType */
enum {
    PL_ONNX_ATTR_FLOAT = 1,
    PL_ONNX_ATTR_INT = 2,
    PL_ONNX_ATTR_STRING = 3,
    PL_ONNX_ATTR_TENSOR = 4,
    PL_ONNX_ATTR_FLOATS = 6,
    PL_ONNX_ATTR_INTS = 7,
};

typedef struct pl_onnx_tensor {
    const char *name;
    int32_t type;
    int rank;
    int64_t dims[PL_ONNX_RANK];
    int64_t count;    /* elements: the product of dims */
    const void *data; /* `count` elements of type FLOAT, INT32 or INT64; NULL:
                         another type, or external */
    /* External: bytes of a file beside this one. */
    const char *location; /* NULL: in this file */
    int64_t offset, bytes;
} pl_onnx_tensor;

typedef struct pl_onnx_attribute {
    const char *name;
    int32_t type;
    int64_t i;
    float f;
    const char *s; /* NUL-terminated */
    const pl_onnx_tensor *t;
    const int64_t *ints;
    const float *floats;
    size_t count; /* of ints or floats */
} pl_onnx_attribute;

typedef struct pl_onnx_node {
    const char *name, *op, *domain; /* "" where the file has none */
    const char *const *inputs;      /* names of values; "": left out */
    size_t input_count;
    const char *const *outputs;
    size_t output_count;
    const pl_onnx_attribute *attributes;
    size_t attribute_count;
} pl_onnx_node;

/* An input or output of the graph. */
typedef struct pl_onnx_value {
    const char *name;
    int32_t type;
    bool has_shape;
    int rank;
    int64_t dims[PL_ONNX_RANK]; /* -1: any size */
} pl_onnx_value;

typedef struct pl_onnx_model {
    int64_t ir_version, opset;
    const char *producer; /* "pytorch 2.4" */
    const char *graph_name;
    const pl_onnx_node *nodes;
    size_t node_count;
    const pl_onnx_tensor *initializers;
    size_t initializer_count;
    const pl_onnx_value *inputs, *outputs;
    size_t graph_input_count, graph_output_count;
} pl_onnx_model;

typedef struct pl_onnx pl_onnx;

/* Read a file.  PL_FORMAT: it is not an ONNX model, or a size in it is wrong;
 * PL_UNSUPPORTED: it is one, but has unsupported features. */
pl_status pl_onnx_parse(pl_onnx **out, const void *data,
                        size_t bytes) PL_MUST_CHECK;
void pl_onnx_free(pl_onnx *onnx); /* NULL is fine */
const pl_onnx_model *pl_onnx_get(const pl_onnx *onnx);

/* Append the file of a model whose tensors all have data.  PL_UNSUPPORTED when
 * it would be longer than a file may be. */
pl_status pl_onnx_pack(const pl_onnx_model *model,
                       pl_buffer *out) PL_MUST_CHECK;

#endif

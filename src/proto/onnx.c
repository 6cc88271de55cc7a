/* onnx.c - reads ONNX files: checks that the sizes of a file are consistent,
 * and limits the memory it may need.
 *
 * A message of two bytes becomes a struct of a hundred, so unpacking has a
 * budget in proportion to the file: a model stays within it, an attack does
 * not. */
#include "proto/onnx.h"

#include "base/error.h"
#include "base/mem.h"
#include "onnx.pb-c.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUDGET_TIMES 16                /* bytes per byte of the file... */
#define BUDGET_BYTES ((size_t)1 << 20) /* ... and at least this for structs */
#define EXTERNAL     1                 /* TensorProto.DataLocation */
#define ELEMENTS     ((int64_t)1 << 40)

struct pl_onnx {
    size_t budget;
    bool over; /* budget exceeded */
    Pl__Onnx__Model *message;
    pl_onnx_model model;
    pl_onnx_node *nodes;
    pl_onnx_attribute *attributes; /* of all nodes */
    pl_onnx_tensor *tensors;       /* initializers, then those of attributes */
    pl_onnx_value *values;         /* inputs, then outputs */
    char *producer;
};

static void *take(void *context, size_t bytes)
{
    pl_onnx *onnx = context;
    if (bytes > onnx->budget) {
        onnx->over = true;
        return NULL;
    }
    onnx->budget -= bytes;
    return pl_mem_alloc(bytes, 1);
}

static void give_back(void *context, void *memory)
{
    (void)context;
    pl_mem_free(memory);
}

static ProtobufCAllocator allocator_of(pl_onnx *onnx)
{
    return (ProtobufCAllocator) { take, give_back, onnx };
}

/* --- tensors ------------------------------------------------------------ */

static size_t size_of(int32_t type)
{
    return type == PL_ONNX_FLOAT || type == PL_ONNX_INT32 ? 4
           : type == PL_ONNX_INT64                        ? 8
                                                          : 0;
}

static pl_status read_dims(pl_onnx_tensor *tensor, const Pl__Onnx__Tensor *from)
{
    if (from->n_dims > PL_ONNX_RANK)
        return PL_FAIL(PL_UNSUPPORTED,
                       "tensor %s has %zu dimensions, expected at most %d",
                       from->name, from->n_dims, PL_ONNX_RANK);
    tensor->rank = (int)from->n_dims;
    tensor->count = 1;
    for (int d = 0; d < tensor->rank; d++) {
        int64_t size = from->dims[d];
        tensor->dims[d] = size;
        if (size < 0 ||
            __builtin_mul_overflow(tensor->count, size, &tensor->count) ||
            tensor->count > ELEMENTS)
            return PL_FAIL(PL_FORMAT,
                           "tensor %s: dimension %d is %lld, which no tensor "
                           "has",
                           from->name, d, (long long)size);
    }
    return PL_OK;
}

/* "4096" */
static pl_status read_number(int64_t *out, const Pl__Onnx__Entry *entry,
                             const char *tensor)
{
    char *end;
    errno = 0;
    long long value = strtoll(entry->value, &end, 10);
    if (end == entry->value || *end != '\0' || errno != 0 || value < 0)
        return PL_FAIL(PL_FORMAT,
                       "tensor %s: its external data has %s \"%.40s\", "
                       "expected a number of bytes",
                       tensor, entry->key, entry->value);
    *out = value;
    return PL_OK;
}

static pl_status read_place(pl_onnx_tensor *tensor,
                            const Pl__Onnx__Tensor *from)
{
    int64_t wanted = tensor->count * (int64_t)size_of(tensor->type);
    tensor->bytes = wanted;
    for (size_t i = 0; i < from->n_external_data; i++) {
        const Pl__Onnx__Entry *entry = from->external_data[i];
        if (strcmp(entry->key, "location") == 0)
            tensor->location = entry->value;
        else if (strcmp(entry->key, "offset") == 0)
            PL_TRY(read_number(&tensor->offset, entry, from->name));
        else if (strcmp(entry->key, "length") == 0)
            PL_TRY(read_number(&tensor->bytes, entry, from->name));
    }
    if (tensor->location == NULL)
        return PL_FAIL(PL_FORMAT,
                       "tensor %s: its data is in another file, which is not "
                       "named",
                       from->name);
    if (tensor->bytes != wanted)
        return PL_FAIL(PL_FORMAT,
                       "tensor %s: its external data has %lld bytes, expected "
                       "%lld",
                       from->name, (long long)tensor->bytes, (long long)wanted);
    return PL_OK;
}

/* Elements are in one of several fields. */
static pl_status read_data(pl_onnx_tensor *tensor, const Pl__Onnx__Tensor *from)
{
    size_t size = size_of(tensor->type), found = 0;
    if (size == 0)
        return PL_OK;
    if (from->raw_data.len > 0) {
        tensor->data = from->raw_data.data;
        found = from->raw_data.len / size;
        if (from->raw_data.len % size != 0)
            found = SIZE_MAX;
    } else if (tensor->type == PL_ONNX_FLOAT) {
        tensor->data = from->float_data;
        found = from->n_float_data;
    } else if (tensor->type == PL_ONNX_INT32) {
        tensor->data = from->int32_data;
        found = from->n_int32_data;
    } else {
        tensor->data = from->int64_data;
        found = from->n_int64_data;
    }
    if (found != (size_t)tensor->count)
        return PL_FAIL(PL_FORMAT,
                       "tensor %s: its data does not have the %lld elements "
                       "of its dimensions",
                       from->name, (long long)tensor->count);
    if (tensor->data == NULL)
        tensor->data = ""; /* no elements */
    return PL_OK;
}

static pl_status read_tensor(pl_onnx_tensor *tensor,
                             const Pl__Onnx__Tensor *from)
{
    tensor->name = from->name;
    tensor->type = from->data_type;
    PL_TRY(read_dims(tensor, from));
    return from->data_location == EXTERNAL ? read_place(tensor, from)
                                           : read_data(tensor, from);
}

/* --- nodes -------------------------------------------------------------- */

/* protobuf-c terminates texts with a NUL, but not bytes. */
static pl_status end_bytes(ProtobufCBinaryData *bytes, const char **out)
{
    *out = "";
    if (bytes->len == 0)
        return PL_OK;
    uint8_t *longer = pl_mem_resize(bytes->data, bytes->len + 1, 1);
    PL_TRY(pl_mem_check(longer, bytes->len + 1, 1));
    longer[bytes->len] = '\0';
    bytes->data = longer;
    *out = (const char *)longer;
    return PL_OK;
}

static pl_status read_attribute(pl_onnx_attribute *attribute,
                                Pl__Onnx__Attribute *from,
                                pl_onnx_tensor **tensor)
{
    *attribute = (pl_onnx_attribute) {
        .name = from->name,
        .type = from->type,
        .i = from->i,
        .f = from->f,
        .ints = from->ints,
        .floats = from->floats,
        .count =
            from->type == PL_ONNX_ATTR_FLOATS ? from->n_floats : from->n_ints,
    };
    PL_TRY(end_bytes(&from->s, &attribute->s));
    if (from->t == NULL)
        return PL_OK;
    attribute->t = *tensor;
    return read_tensor((*tensor)++, from->t);
}

static pl_status read_nodes(pl_onnx *onnx, const Pl__Onnx__Graph *graph)
{
    pl_onnx_attribute *attribute = onnx->attributes;
    pl_onnx_tensor *tensor = onnx->tensors + graph->n_initializer;
    for (size_t i = 0; i < graph->n_node; i++) {
        const Pl__Onnx__Node *from = graph->node[i];
        onnx->nodes[i] = (pl_onnx_node) {
            .name = from->name,
            .op = from->op_type,
            .domain = from->domain,
            .inputs = (const char *const *)from->input,
            .input_count = from->n_input,
            .outputs = (const char *const *)from->output,
            .output_count = from->n_output,
            .attributes = attribute,
            .attribute_count = from->n_attribute,
        };
        for (size_t a = 0; a < from->n_attribute; a++) {
            pl_status status =
                read_attribute(attribute++, from->attribute[a], &tensor);
            if (status != PL_OK)
                return pl_context(status, "node %s (%s)", from->name,
                                  from->op_type);
        }
    }
    return PL_OK;
}

/* --- the graph ---------------------------------------------------------- */

static pl_status read_value(pl_onnx_value *value,
                            const Pl__Onnx__ValueInfo *from)
{
    const Pl__Onnx__TensorType *type =
        from->type != NULL ? from->type->tensor_type : NULL;
    *value = (pl_onnx_value) { .name = from->name };
    if (type == NULL)
        return PL_OK; /* its users report an error */
    value->type = type->elem_type;
    if (type->shape == NULL)
        return PL_OK;
    if (type->shape->n_dim > PL_ONNX_RANK)
        return PL_FAIL(PL_UNSUPPORTED,
                       "%s has %zu dimensions, expected at most %d", from->name,
                       type->shape->n_dim, PL_ONNX_RANK);
    value->has_shape = true;
    value->rank = (int)type->shape->n_dim;
    for (int d = 0; d < value->rank; d++) {
        const Pl__Onnx__Dimension *dim = type->shape->dim[d];
        bool fixed = dim->value_case == PL__ONNX__DIMENSION__VALUE_DIM_VALUE;
        value->dims[d] = fixed && dim->dim_value > 0 ? dim->dim_value : -1;
    }
    return PL_OK;
}

static pl_status make_room(pl_onnx *onnx, const Pl__Onnx__Graph *graph)
{
    size_t attributes = 0, tensors = graph->n_initializer;
    for (size_t i = 0; i < graph->n_node; i++) {
        const Pl__Onnx__Node *node = graph->node[i];
        attributes += node->n_attribute;
        for (size_t a = 0; a < node->n_attribute; a++)
            tensors += node->attribute[a]->t != NULL;
    }
    PL_TRY(PL_NEW(onnx->nodes, graph->n_node));
    PL_TRY(PL_NEW(onnx->attributes, attributes));
    PL_TRY(PL_NEW(onnx->tensors, tensors));
    return PL_NEW(onnx->values, graph->n_input + graph->n_output);
}

static pl_status read_graph(pl_onnx *onnx, const Pl__Onnx__Graph *graph)
{
    PL_TRY(make_room(onnx, graph));
    for (size_t i = 0; i < graph->n_initializer; i++)
        PL_TRY(read_tensor(&onnx->tensors[i], graph->initializer[i]));
    PL_TRY(read_nodes(onnx, graph));
    for (size_t i = 0; i < graph->n_input; i++)
        PL_TRY(read_value(&onnx->values[i], graph->input[i]));
    for (size_t i = 0; i < graph->n_output; i++)
        PL_TRY(read_value(&onnx->values[graph->n_input + i], graph->output[i]));
    return PL_OK;
}

static int64_t opset_of(const Pl__Onnx__Model *message)
{
    for (size_t i = 0; i < message->n_opset_import; i++) {
        const char *domain = message->opset_import[i]->domain;
        if (domain[0] == '\0' || strcmp(domain, "ai.onnx") == 0)
            return message->opset_import[i]->version;
    }
    return 0;
}

static pl_status read_model(pl_onnx *onnx)
{
    const Pl__Onnx__Model *message = onnx->message;
    const Pl__Onnx__Graph *graph = message->graph;
    if (graph == NULL || graph->n_node == 0)
        return PL_FAIL(PL_FORMAT, "it holds no graph of operators");
    PL_TRY(read_graph(onnx, graph));
    PL_TRY(pl_mem_format(&onnx->producer, "%s%s%s", message->producer_name,
                         message->producer_version[0] != '\0' ? " " : "",
                         message->producer_version));
    onnx->model = (pl_onnx_model) {
        .ir_version = message->ir_version,
        .opset = opset_of(message),
        .producer = onnx->producer,
        .graph_name = graph->name,
        .nodes = onnx->nodes,
        .node_count = graph->n_node,
        .initializers = onnx->tensors,
        .initializer_count = graph->n_initializer,
        .inputs = onnx->values,
        .outputs = onnx->values + graph->n_input,
        .graph_input_count = graph->n_input,
        .graph_output_count = graph->n_output,
    };
    return PL_OK;
}

static pl_status unpack(pl_onnx *onnx, const void *data, size_t bytes)
{
    ProtobufCAllocator allocator = allocator_of(onnx);
    if (bytes > PL_ONNX_FILE_MOST)
        return PL_FAIL(PL_FORMAT, "%zu bytes, more than an ONNX file may have",
                       bytes);
    onnx->budget = BUDGET_TIMES * bytes + BUDGET_BYTES;
    onnx->message = pl__onnx__model__unpack(&allocator, bytes, data);
    if (onnx->message != NULL)
        return PL_OK;
    if (onnx->over)
        return PL_FAIL(PL_FORMAT, "it has too many empty parts for a model, "
                                  "as if made to exhaust memory");
    return PL_FAIL(PL_FORMAT, "not an ONNX model: not a Protocol Buffers "
                              "message, or truncated");
}

pl_status pl_onnx_parse(pl_onnx **out, const void *data, size_t bytes)
{
    pl_onnx *onnx;
    PL_TRY(PL_NEW(onnx, 1));
    pl_status status = unpack(onnx, data, bytes);
    if (status == PL_OK)
        status = read_model(onnx);
    if (status == PL_OK)
        *out = onnx;
    else
        pl_onnx_free(onnx);
    return status;
}

void pl_onnx_free(pl_onnx *onnx)
{
    if (onnx == NULL)
        return;
    ProtobufCAllocator allocator = allocator_of(onnx);
    if (onnx->message != NULL)
        pl__onnx__model__free_unpacked(onnx->message, &allocator);
    pl_mem_free(onnx->nodes);
    pl_mem_free(onnx->attributes);
    pl_mem_free(onnx->tensors);
    pl_mem_free(onnx->values);
    pl_mem_free(onnx->producer);
    pl_mem_free(onnx);
}

const pl_onnx_model *pl_onnx_get(const pl_onnx *onnx)
{
    return &onnx->model;
}

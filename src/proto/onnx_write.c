/* onnx_write.c - writes ONNX files: a model's structs as messages of
 * protobuf-c, which borrow all texts and data, packed in one go.  Tensors are
 * written as raw bytes. */
#include "proto/onnx.h"

#include "base/error.h"
#include "base/mem.h"
#include "onnx.pb-c.h"

#include <string.h>

/* Memory of the messages, freed as a whole. */
typedef struct piece {
    struct piece *next;
} piece;

typedef struct packer {
    piece *pieces;
    bool failed; /* out of memory */
} packer;

/* `count` zeroed elements; after a failure the result is never used. */
static void *take(packer *p, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) ||
        __builtin_add_overflow(bytes, sizeof(piece), &bytes))
        p->failed = true;
    piece *made = p->failed ? NULL : pl_mem_alloc(bytes, 1);
    if (made == NULL) {
        p->failed = true;
        return NULL;
    }
    made->next = p->pieces;
    p->pieces = made;
    return made + 1;
}

static void close_packer(packer *p)
{
    while (p->pieces != NULL) {
        piece *next = p->pieces->next;
        pl_mem_free(p->pieces);
        p->pieces = next;
    }
}

/* Pointers to `count` messages, each of `size` bytes. */
static void *take_list(packer *p, size_t count, size_t size, void ***list)
{
    char *made = take(p, count, size);
    *list = take(p, count, sizeof **list);
    for (size_t i = 0; i < count && !p->failed; i++)
        (*list)[i] = made + i * size;
    return p->failed ? NULL : made;
}

/* The library's texts are not const, but it does not write to them. */
static char *text_of(const char *text)
{
    return (char *)(text != NULL ? text : "");
}

static void fill_tensor(Pl__Onnx__Tensor *to, const pl_onnx_tensor *from)
{
    size_t size = from->type == PL_ONNX_INT64 ? 8 : 4;
    pl__onnx__tensor__init(to);
    to->name = text_of(from->name);
    to->data_type = from->type;
    to->n_dims = (size_t)from->rank;
    to->dims = (int64_t *)from->dims;
    to->raw_data.len = (size_t)from->count * size;
    to->raw_data.data = (uint8_t *)from->data;
}

static void fill_attribute(packer *p, Pl__Onnx__Attribute *to,
                           const pl_onnx_attribute *from)
{
    pl__onnx__attribute__init(to);
    to->name = text_of(from->name);
    to->type = from->type;
    to->i = from->i;
    to->f = from->f;
    if (from->s != NULL) {
        to->s.len = strlen(from->s);
        to->s.data = (uint8_t *)text_of(from->s);
    }
    if (from->type == PL_ONNX_ATTR_INTS) {
        to->n_ints = from->count;
        to->ints = (int64_t *)from->ints;
    }
    if (from->type == PL_ONNX_ATTR_FLOATS) {
        to->n_floats = from->count;
        to->floats = (float *)from->floats;
    }
    if (from->t != NULL && (to->t = take(p, 1, sizeof *to->t)) != NULL)
        fill_tensor(to->t, from->t);
}

static void fill_node(packer *p, Pl__Onnx__Node *to, const pl_onnx_node *from)
{
    pl__onnx__node__init(to);
    to->name = text_of(from->name);
    to->op_type = text_of(from->op);
    to->domain = text_of(from->domain);
    to->n_input = from->input_count;
    to->input = (char **)from->inputs;
    to->n_output = from->output_count;
    to->output = (char **)from->outputs;
    to->n_attribute = from->attribute_count;
    Pl__Onnx__Attribute *made = take_list(
        p, from->attribute_count, sizeof *made, (void ***)&to->attribute);
    for (size_t i = 0; i < from->attribute_count && made != NULL; i++)
        fill_attribute(p, &made[i], &from->attributes[i]);
}

static void fill_shape(packer *p, Pl__Onnx__TensorType *type,
                       const pl_onnx_value *from)
{
    Pl__Onnx__TensorShape *shape = take(p, 1, sizeof *shape);
    if (shape == NULL)
        return;
    pl__onnx__tensor_shape__init(shape);
    shape->n_dim = (size_t)from->rank;
    Pl__Onnx__Dimension *dims =
        take_list(p, shape->n_dim, sizeof *dims, (void ***)&shape->dim);
    for (int d = 0; d < from->rank && dims != NULL; d++) {
        pl__onnx__dimension__init(&dims[d]);
        if (from->dims[d] >= 0) {
            dims[d].value_case = PL__ONNX__DIMENSION__VALUE_DIM_VALUE;
            dims[d].dim_value = from->dims[d];
        } else {
            dims[d].value_case = PL__ONNX__DIMENSION__VALUE_DIM_PARAM;
            dims[d].dim_param = text_of("batch");
        }
    }
    type->shape = shape;
}

static void fill_value(packer *p, Pl__Onnx__ValueInfo *to,
                       const pl_onnx_value *from)
{
    pl__onnx__value_info__init(to);
    to->name = text_of(from->name);
    Pl__Onnx__TensorType *type = take(p, 1, sizeof *type);
    to->type = take(p, 1, sizeof *to->type);
    if (p->failed)
        return;
    pl__onnx__type__init(to->type);
    pl__onnx__tensor_type__init(type);
    to->type->tensor_type = type;
    type->elem_type = from->type;
    if (from->has_shape)
        fill_shape(p, type, from);
}

static Pl__Onnx__ValueInfo **fill_values(packer *p, const pl_onnx_value *values,
                                         size_t count)
{
    void **list;
    Pl__Onnx__ValueInfo *made = take_list(p, count, sizeof *made, &list);
    for (size_t i = 0; i < count && made != NULL; i++)
        fill_value(p, &made[i], &values[i]);
    return (Pl__Onnx__ValueInfo **)list;
}

static void fill_graph(packer *p, Pl__Onnx__Graph *to,
                       const pl_onnx_model *from)
{
    pl__onnx__graph__init(to);
    to->name = text_of(from->graph_name);
    to->n_node = from->node_count;
    Pl__Onnx__Node *nodes =
        take_list(p, from->node_count, sizeof *nodes, (void ***)&to->node);
    for (size_t i = 0; i < from->node_count && nodes != NULL; i++)
        fill_node(p, &nodes[i], &from->nodes[i]);
    to->n_initializer = from->initializer_count;
    Pl__Onnx__Tensor *tensors =
        take_list(p, from->initializer_count, sizeof *tensors,
                  (void ***)&to->initializer);
    for (size_t i = 0; i < from->initializer_count && tensors != NULL; i++)
        fill_tensor(&tensors[i], &from->initializers[i]);
    to->n_input = from->graph_input_count;
    to->input = fill_values(p, from->inputs, from->graph_input_count);
    to->n_output = from->graph_output_count;
    to->output = fill_values(p, from->outputs, from->graph_output_count);
}

static pl_status put(const Pl__Onnx__Model *message, pl_buffer *out)
{
    size_t bytes = pl__onnx__model__get_packed_size(message);
    if (bytes > PL_ONNX_FILE_MOST)
        return PL_FAIL(PL_UNSUPPORTED,
                       "the model has %zu bytes, more than the %zu of an ONNX "
                       "file",
                       bytes, PL_ONNX_FILE_MOST);
    uint8_t *room = pl_buffer_grow(out, bytes);
    if (room != NULL)
        (void)pl__onnx__model__pack(message, room);
    return pl_buffer_status(out);
}

pl_status pl_onnx_pack(const pl_onnx_model *model, pl_buffer *out)
{
    packer p = { 0 };
    Pl__Onnx__Model message = PL__ONNX__MODEL__INIT;
    Pl__Onnx__Graph graph;
    Pl__Onnx__Opset opset = PL__ONNX__OPSET__INIT, *opsets[] = { &opset };
    fill_graph(&p, &graph, model);
    opset.version = model->opset;
    message.ir_version = model->ir_version;
    message.producer_name = text_of(model->producer);
    message.graph = &graph;
    message.n_opset_import = 1;
    message.opset_import = opsets;
    pl_status status =
        p.failed ? pl_mem_check(NULL, 1, sizeof message) : put(&message, out);
    close_packer(&p);
    return status;
}

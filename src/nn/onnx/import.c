/* import.c - walks the graph of an ONNX file, in which nodes come after those
 * that compute their inputs: finds values by name, and decides how the data's
 * examples are reshaped to the file's input. */
#include "nn/onnx/import.h"

#include "base/error.h"
#include "base/mem.h"
#include "graph/graph.h"
#include "tensor/shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- values ------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const pl_import_value *)a)->name,
                  ((const pl_import_value *)b)->name);
}

static pl_import_value *find(const pl_import *im, const char *name)
{
    const pl_import_value key = { .name = name };
    return bsearch(&key, im->values, im->value_count, sizeof key, by_name);
}

static void add(pl_import *im, const char *name, const pl_onnx_tensor *tensor)
{
    if (name[0] != '\0')
        im->values[im->value_count++] =
            (pl_import_value) { .name = name, .tensor = tensor };
}

static pl_status sort_values(pl_import *im)
{
    qsort(im->values, im->value_count, sizeof *im->values, by_name);
    for (size_t i = 1; i < im->value_count; i++)
        if (strcmp(im->values[i - 1].name, im->values[i].name) == 0)
            return PL_FAIL(PL_FORMAT, "two values have the name %s",
                           im->values[i].name);
    return PL_OK;
}

/* List weights and results of nodes, with room for the input. */
static pl_status list_values(pl_import *im)
{
    const pl_onnx_model *model = im->model;
    size_t room = 1 + model->initializer_count;
    for (size_t i = 0; i < model->node_count; i++)
        room += model->nodes[i].output_count;
    PL_TRY(PL_NEW(im->values, room));
    for (size_t i = 0; i < model->initializer_count; i++)
        add(im, model->initializers[i].name, &model->initializers[i]);
    for (size_t i = 0; i < model->node_count; i++)
        for (size_t o = 0; o < model->nodes[i].output_count; o++)
            add(im, model->nodes[i].outputs[o], NULL);
    return sort_values(im);
}

/* Older files also list their weights among the inputs. */
static pl_status find_input(pl_import *im, const pl_onnx_value **out)
{
    *out = NULL;
    for (size_t i = 0; i < im->model->graph_input_count; i++) {
        const pl_onnx_value *input = &im->model->inputs[i];
        const pl_import_value *value = find(im, input->name);
        if (value != NULL && value->tensor != NULL)
            continue;
        if (*out != NULL)
            return PL_FAIL(PL_UNSUPPORTED,
                           "it has the inputs %s and %s: a model has one, the "
                           "examples",
                           (*out)->name, input->name);
        *out = input;
    }
    if (*out == NULL || (*out)->name[0] == '\0')
        return PL_FAIL(PL_UNSUPPORTED, "it has no input for the examples");
    add(im, (*out)->name, NULL);
    return sort_values(im);
}

/* --- the input ---------------------------------------------------------- */

/* The sizes other than 1: [1, 28, 28] and [28, 28] are the same image. */
static pl_shape essence(const int64_t *dims, int rank)
{
    pl_shape shape = { .rank = 0 };
    for (int d = 0; d < rank; d++)
        if (dims[d] != 1)
            shape.dim[shape.rank++] = dims[d];
    return shape;
}

/* The shape that the examples must have: sizes that the file leaves open are
 * those of the examples. */
static pl_status input_shape(const pl_import *im, const pl_onnx_value *input,
                             pl_shape *out)
{
    pl_shape have = im->build->input->shape; /* including the batch */
    char text[PL_SHAPE_TEXT];
    *out = (pl_shape) { .rank = input->rank, .dim = { PL_BATCH } };
    for (int d = 1; d < input->rank; d++) {
        bool open = input->dims[d] < 0;
        if (open && input->rank != have.rank)
            return PL_FAIL(PL_SHAPE,
                           "input %s leaves its sizes open, and has %d "
                           "dimensions where the examples are %s",
                           input->name, input->rank, pl_shape_text(have, text));
        out->dim[d] = open ? have.dim[d] : input->dims[d];
    }
    return PL_OK;
}

/* The order of pixels must not change. */
static pl_status check_input(const pl_onnx_value *input, pl_shape have,
                             pl_shape want)
{
    char h[PL_SHAPE_TEXT], w[PL_SHAPE_TEXT];
    pl_shape a = essence(have.dim + 1, have.rank - 1);
    pl_shape b = essence(want.dim + 1, want.rank - 1);
    bool flat = a.rank <= 1 || b.rank <= 1;
    if (pl_shape_check(want) == PL_OK && (flat || pl_shape_equal(a, b)) &&
        pl_shape_row(have) == pl_shape_row(want))
        return PL_OK;
    return PL_FAIL(PL_SHAPE, "input %s is %s, but the examples are %s",
                   input->name, pl_shape_text(want, w), pl_shape_text(have, h));
}

static pl_status read_input(pl_import *im, const pl_onnx_value *input)
{
    pl_node *examples = im->build->input;
    pl_shape want = examples->shape;
    if (input->type != PL_ONNX_FLOAT)
        return PL_FAIL(PL_UNSUPPORTED,
                       "input %s has elements of type %d, expected float",
                       input->name, input->type);
    if (input->has_shape && (input->rank < 2 || input->rank > PL_MAX_RANK))
        return PL_FAIL(PL_UNSUPPORTED,
                       "input %s has %d dimensions, expected the batch and 1 "
                       "to %d of an example",
                       input->name, input->rank, PL_MAX_RANK - 1);
    im->batch =
        input->has_shape && input->dims[0] > 0 ? input->dims[0] : PL_BATCH;
    if (input->has_shape) {
        PL_TRY(input_shape(im, input, &want));
        PL_TRY(check_input(input, examples->shape, want));
    }
    /* export.c finds the file's shape by this name. */
    find(im, input->name)->node =
        pl_shape_equal(want, examples->shape)
            ? examples
            : pl_named(pl_reshape(examples, want), input->name);
    return pl_graph_status(im->build->graph);
}

/* --- nodes -------------------------------------------------------------- */

const char *pl_import_node_name(const pl_onnx_node *node)
{
    return node->name[0] != '\0'    ? node->name
           : node->output_count > 0 ? node->outputs[0]
                                    : "?";
}

/* Inputs of the node must be computed already. */
static pl_status take_inputs(pl_import *im)
{
    const pl_onnx_node *node = im->node;
    memset(im->in, 0, sizeof im->in);
    if (node->input_count > PL_IMPORT_INPUTS)
        return PL_FAIL(PL_UNSUPPORTED, "it has %zu inputs, expected at most %d",
                       node->input_count, PL_IMPORT_INPUTS);
    for (size_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i][0] == '\0')
            continue;
        pl_import_value *value = find(im, node->inputs[i]);
        if (value == NULL || (value->node == NULL && value->tensor == NULL &&
                              !value->listed && value->part == PL_IMPORT_WHOLE))
            return PL_FAIL(PL_FORMAT,
                           "its input %s is not made by any node before it",
                           node->inputs[i]);
        im->in[i] = value;
    }
    return PL_OK;
}

/* Name our result after the file's node; an alias keeps its name. */
static void name_result(const pl_import *im, int before)
{
    pl_node *made = im->out->node;
    if (made != NULL && made->id >= before && made->op != &pl_op_parameter)
        (void)pl_named(made, pl_import_node_name(im->node));
}

static pl_status read_node(pl_import *im)
{
    const pl_onnx_node *node = im->node;
    const pl_import_op *op = pl_import_find(node->op);
    int before = pl_graph_count(im->build->graph);
    if (op == NULL || node->output_count == 0 || node->outputs[0][0] == '\0')
        return PL_FAIL(PL_UNSUPPORTED, "it makes nothing");
    PL_TRY(take_inputs(im));
    im->out = find(im, node->outputs[0]);
    PL_TRY(op->read(im));
    PL_TRY(pl_graph_status(im->build->graph));
    const pl_node *made = im->out->node;
    if (made != NULL && made->op != &pl_op_parameter &&
        !pl_shape_batched(made->shape))
        return PL_FAIL(PL_UNSUPPORTED,
                       "its result does not depend on the examples");
    name_result(im, before);
    return pl_graph_status(im->build->graph);
}

static pl_status read_nodes(pl_import *im)
{
    for (size_t i = 0; i < im->model->node_count; i++) {
        im->node = &im->model->nodes[i];
        pl_status status = read_node(im);
        if (status != PL_OK)
            return pl_context(status, "node %s (%s)",
                              pl_import_node_name(im->node), im->node->op);
    }
    return PL_OK;
}

pl_status pl_import_run(pl_import *im)
{
    const pl_onnx_value *input = NULL;
    pl_status status = list_values(im);
    if (status == PL_OK)
        status = find_input(im, &input);
    if (status == PL_OK)
        status = read_input(im, input);
    if (status == PL_OK)
        status = read_nodes(im);
    if (status == PL_OK) {
        const char *name = im->model->outputs[0].name;
        const pl_import_value *output = find(im, name);
        im->build->logits = output != NULL ? output->node : NULL;
        if (im->build->logits == NULL)
            status = PL_FAIL(PL_FORMAT, "no node makes its output %s", name);
    }
    pl_mem_free(im->values);
    return status;
}

/* --- inputs and attributes of operators --------------------------------- */

bool pl_import_has(const pl_import *im, int i)
{
    return im->in[i] != NULL;
}

/* A value has one parameter, even under several names. */
static pl_import_value *home_of(const pl_import *im, pl_import_value *value)
{
    pl_import_value *home = find(im, value->tensor->name);
    return home != NULL && home->tensor == value->tensor ? home : value;
}

static pl_status check_weights(const pl_onnx_tensor *tensor)
{
    if (tensor->type == PL_ONNX_FLOAT && tensor->rank >= 1 &&
        tensor->rank <= PL_MAX_RANK)
        return PL_OK;
    return PL_FAIL(PL_UNSUPPORTED,
                   "weights %s have elements of type %d and %d dimensions, "
                   "expected float and 1 to %d",
                   tensor->name, tensor->type, tensor->rank, PL_MAX_RANK);
}

/* Without --init it starts as in the file, otherwise as `init`; with a rate it
 * is a running average. */
static pl_status make_parameter(pl_import *im, pl_import_value *value,
                                const char *init, float rate)
{
    const pl_onnx_tensor *tensor = value->tensor;
    pl_import_value *home = home_of(im, value);
    pl_graph *graph = im->build->graph;
    pl_shape shape = { .rank = tensor->rank };
    PL_TRY(check_weights(tensor));
    if (strcmp(im->build->init, PL_INIT_FILE) == 0)
        init = PL_INIT_FILE;
    memcpy(shape.dim, tensor->dims, sizeof *shape.dim * (size_t)tensor->rank);
    if (home->node == NULL && rate >= 0)
        home->node = pl_statistic(graph, home->name, shape, init, rate);
    else if (home->node == NULL)
        home->node = pl_parameter(graph, home->name, shape, init);
    value->node = home->node;
    return pl_graph_status(graph);
}

pl_status pl_import_vector(pl_import *im, int i, const char *init, float rate,
                           pl_node **out)
{
    pl_import_value *value = im->in[i];
    if (value == NULL || value->tensor == NULL)
        return PL_FAIL(PL_UNSUPPORTED, "its input %d is not in the file", i);
    if (value->node == NULL)
        PL_TRY(make_parameter(im, value, init, rate));
    *out = value->node;
    return PL_OK;
}

pl_status pl_import_in(pl_import *im, int i, pl_node **out)
{
    pl_import_value *value = im->in[i];
    if (value == NULL)
        return PL_FAIL(PL_FORMAT, "its input %d is missing", i);
    if (value->listed)
        return PL_FAIL(PL_UNSUPPORTED,
                       "its input %s is a list of sizes, expected numbers of "
                       "the examples",
                       value->name);
    bool gelu = value->part == PL_IMPORT_GATE || value->part == PL_IMPORT_GATED;
    if (value->part != PL_IMPORT_WHOLE)
        return PL_FAIL(PL_UNSUPPORTED,
                       "its input %s is computed by %s, which is supported "
                       "only as part of %s",
                       value->name,
                       gelu ? "Erf" : "ReduceMean over the last dimension",
                       gelu ? "GELU" : "layer normalization");
    if (value->node == NULL) /* vectors are biases */
        PL_TRY(make_parameter(
            im, value, value->tensor->rank > 1 ? im->build->init : "zeros",
            -1));
    *out = value->node;
    return PL_OK;
}

pl_status pl_import_sizes(const pl_import *im, int i, int64_t *sizes,
                          int *count)
{
    const pl_import_value *value = im->in[i];
    const pl_onnx_tensor *tensor = value != NULL ? value->tensor : NULL;
    if (value != NULL && value->listed) {
        *count = value->count;
        memcpy(sizes, value->sizes, sizeof value->sizes);
        return PL_OK;
    }
    bool wide = tensor != NULL && tensor->type == PL_ONNX_INT64;
    if (tensor == NULL || tensor->data == NULL || tensor->rank > 1 ||
        tensor->count > PL_ONNX_RANK ||
        (!wide && tensor->type != PL_ONNX_INT32))
        return PL_FAIL(PL_UNSUPPORTED,
                       "its input %d is not a constant list of at most %d "
                       "integers",
                       i, PL_ONNX_RANK);
    *count = (int)tensor->count;
    for (int d = 0; d < *count; d++)
        if (wide)
            memcpy(&sizes[d], (const char *)tensor->data + 8 * d, 8);
        else
            sizes[d] = ((const int32_t *)tensor->data)[d];
    return PL_OK;
}

bool pl_import_is_scalar(const pl_import *im, int i)
{
    const pl_onnx_tensor *tensor =
        im->in[i] != NULL && im->in[i]->node == NULL ? im->in[i]->tensor : NULL;
    return tensor != NULL && tensor->data != NULL &&
           tensor->type == PL_ONNX_FLOAT && tensor->count == 1;
}

pl_status pl_import_scalar(const pl_import *im, int i, float *out)
{
    const pl_onnx_tensor *tensor = im->in[i] != NULL ? im->in[i]->tensor : NULL;
    if (tensor == NULL || tensor->data == NULL ||
        tensor->type != PL_ONNX_FLOAT || tensor->count != 1)
        return PL_FAIL(PL_UNSUPPORTED,
                       "its input %d is not a constant of one float", i);
    memcpy(out, tensor->data, sizeof *out);
    return PL_OK;
}

const pl_onnx_attribute *pl_import_attribute(const pl_import *im,
                                             const char *name)
{
    for (size_t i = 0; i < im->node->attribute_count; i++)
        if (strcmp(im->node->attributes[i].name, name) == 0)
            return &im->node->attributes[i];
    return NULL;
}

int64_t pl_import_int(const pl_import *im, const char *name, int64_t fallback)
{
    const pl_onnx_attribute *attribute = pl_import_attribute(im, name);
    return attribute != NULL ? attribute->i : fallback;
}

float pl_import_float(const pl_import *im, const char *name, float fallback)
{
    const pl_onnx_attribute *attribute = pl_import_attribute(im, name);
    return attribute != NULL ? attribute->f : fallback;
}

const char *pl_import_text(const pl_import *im, const char *name,
                           const char *fallback)
{
    const pl_onnx_attribute *attribute = pl_import_attribute(im, name);
    return attribute != NULL ? attribute->s : fallback;
}

pl_status pl_import_same(const pl_import *im, const char *name,
                         int64_t fallback, int64_t *out)
{
    const pl_onnx_attribute *attribute = pl_import_attribute(im, name);
    *out = fallback;
    if (attribute == NULL || attribute->type != PL_ONNX_ATTR_INTS ||
        attribute->count == 0)
        return PL_OK;
    *out = attribute->ints[0];
    for (size_t i = 1; i < attribute->count; i++)
        if (attribute->ints[i] != *out)
            return PL_FAIL(PL_UNSUPPORTED,
                           "its %s are %lld and %lld, expected the same in all "
                           "directions",
                           name, (long long)*out,
                           (long long)attribute->ints[i]);
    return PL_OK;
}

/* export.c - writes a network as an ONNX file: chooses an ONNX operator for
 * each of ours, and names the values. */
#include "nn/onnx/export.h"

#include "base/error.h"
#include "base/mem.h"
#include "nn/onnx/onnx_model.h"
#include "proto/onnx.h"
#include "tensor/shape.h"

#include <stdio.h>
#include <string.h>

#define IR_VERSION 9
#define OPSET      17 /* long supported by ONNX Runtime and PyTorch */
#define GELU_OPSET 20 /* the first with Gelu */
#define NAME_BYTES 96
#define ATTRIBUTES 4

/* A node of the file, with the memory that it points to. */
typedef struct made {
    char value[NAME_BYTES], constant[NAME_BYTES];
    const char *name; /* of its value: the above, or a parameter's name */
    const char *inputs[PL_MAX_INPUTS + 1]; /* a constant, or those of the
                                              moments */
    size_t input_count;
    pl_onnx_attribute attributes[ATTRIBUTES];
    size_t attribute_count;
    int64_t ints[ATTRIBUTES][4];
    int64_t sizes[8]; /* of the constant of a reshape ... */
    float factor;     /* ... or of a scale or a dropout */
} made;

typedef struct exporter {
    const pl_network *network;
    pl_onnx_ends ends;
    const pl_node *input; /* first node of the file's graph */
    const char *prefix;   /* of value names, which no parameter has */
    bool *needed;         /* [nodes] for the logits */
    made *made;           /* [nodes] */
    pl_onnx_node *nodes;
    size_t node_count;
    pl_onnx_tensor *tensors;
    size_t tensor_count;
    int64_t opset;
} exporter;

/* --- one node ----------------------------------------------------------- */

static void put_ints(made *m, const char *name, int count, int64_t value)
{
    size_t a = m->attribute_count++;
    for (int i = 0; i < count; i++)
        m->ints[a][i] = value;
    m->attributes[a] = (pl_onnx_attribute) { .name = name,
                                             .type = PL_ONNX_ATTR_INTS,
                                             .ints = m->ints[a],
                                             .count = (size_t)count };
}

static void put_int(made *m, const char *name, int64_t value)
{
    m->attributes[m->attribute_count++] = (pl_onnx_attribute) {
        .name = name, .type = PL_ONNX_ATTR_INT, .i = value
    };
}

/* Add an input that is a constant of the file. */
static pl_onnx_tensor *put_constant(exporter *e, made *m, int id,
                                    const char *what)
{
    pl_onnx_tensor *tensor = &e->tensors[e->tensor_count++];
    snprintf(m->constant, sizeof m->constant, "%s.%d.%s", e->prefix, id, what);
    m->inputs[m->input_count++] = m->constant;
    tensor->name = m->constant;
    tensor->count = 1;
    return tensor;
}

static void put_float(exporter *e, made *m, const pl_node *node,
                      const char *what)
{
    pl_onnx_tensor *tensor = put_constant(e, m, node->id, what);
    m->factor = node->factor;
    tensor->type = PL_ONNX_FLOAT;
    tensor->data = &m->factor;
}

static void gemm(exporter *e, made *m, const pl_node *node)
{
    (void)e, (void)node;
    put_int(m, "transB", 1);
}

static void factor(exporter *e, made *m, const pl_node *node)
{
    put_float(e, m, node, "factor");
}

static void ratio(exporter *e, made *m, const pl_node *node)
{
    put_float(e, m, node, "ratio");
}

static void sizes(exporter *e, made *m, const pl_node *node)
{
    pl_onnx_tensor *tensor = put_constant(e, m, node->id, "shape");
    memcpy(m->sizes, node->shape.dim, sizeof node->shape.dim);
    m->sizes[0] = -1; /* the batch */
    tensor->type = PL_ONNX_INT64;
    tensor->rank = 1;
    tensor->count = tensor->dims[0] = node->shape.rank;
    tensor->data = m->sizes;
}

static void put_real(made *m, const char *name, float value)
{
    m->attributes[m->attribute_count++] = (pl_onnx_attribute) {
        .name = name, .type = PL_ONNX_ATTR_FLOAT, .f = value
    };
}

/* Its inputs are the source, the moments of the batch, scale and shift. */
static void batch_norm(exporter *e, made *m, const pl_node *node)
{
    const pl_node *moments = node->in[1];
    m->inputs[1] = e->made[node->in[2]->id].name;
    m->inputs[2] = e->made[node->in[3]->id].name;
    m->inputs[3] = e->made[moments->in[1]->id].name;
    m->inputs[4] = e->made[moments->in[2]->id].name;
    m->input_count = 5;
    put_real(m, "epsilon", node->factor);
}

static void layer_norm(exporter *e, made *m, const pl_node *node)
{
    (void)e;
    put_int(m, "axis", -1);
    put_real(m, "epsilon", node->factor);
}

static void leaky_relu(exporter *e, made *m, const pl_node *node)
{
    (void)e;
    put_real(m, "alpha", node->factor);
}

/* Gelu needs a newer operator set. */
static void gelu(exporter *e, made *m, const pl_node *node)
{
    (void)m, (void)node;
    e->opset = GELU_OPSET;
}

static void join(exporter *e, made *m, const pl_node *node)
{
    (void)e;
    put_int(m, "axis", node->axis);
}

static void last_axis(exporter *e, made *m, const pl_node *node)
{
    (void)e, (void)node;
    put_int(m, "axis", -1);
}

/* A size of 1 keeps the source's size, including the batch's. */
static void expand(exporter *e, made *m, const pl_node *node)
{
    sizes(e, m, node);
    m->sizes[0] = pl_shape_batched(node->shape) ? 1 : node->shape.dim[0];
}

/* Before and after each of the four dimensions of images. */
static void pad(exporter *e, made *m, const pl_node *node)
{
    pl_onnx_tensor *tensor = put_constant(e, m, node->id, "pads");
    for (int d = 0; d < 8; d++)
        m->sizes[d] = d % 4 >= 2 ? node->pad : 0;
    tensor->type = PL_ONNX_INT64;
    tensor->rank = 1;
    tensor->count = tensor->dims[0] = 8;
    tensor->data = m->sizes;
}

static void conv(exporter *e, made *m, const pl_node *node)
{
    (void)e;
    put_ints(m, "strides", 2, node->stride);
    put_ints(m, "pads", 4, node->pad);
}

static void pool(exporter *e, made *m, const pl_node *node)
{
    (void)e;
    put_ints(m, "kernel_shape", 2, node->size);
    put_ints(m, "strides", 2, node->stride);
}

static const struct counterpart {
    const pl_op *op;
    const char *name;
    void (*fill)(exporter *e, made *m, const pl_node *node); /* or NULL */
} counterparts[] = {
    { &pl_op_add, "Add", NULL },
    { &pl_op_avg_pool, "AveragePool", pool },
    { &pl_op_batch_norm, "BatchNormalization", batch_norm },
    { &pl_op_bias, "Add", NULL },
    { &pl_op_broadcast, "Expand", expand },
    { &pl_op_concat, "Concat", join },
    { &pl_op_conv2d, "Conv", conv },
    { &pl_op_dropout, "Dropout", ratio },
    { &pl_op_gelu, "Gelu", gelu },
    { &pl_op_global_avg_pool, "GlobalAveragePool", NULL },
    { &pl_op_inner, "Gemm", gemm },
    { &pl_op_layer_norm, "LayerNormalization", layer_norm },
    { &pl_op_leaky_relu, "LeakyRelu", leaky_relu },
    { &pl_op_matmul, "MatMul", NULL },
    { &pl_op_matmul_nt, "Gemm", gemm },
    { &pl_op_max_pool, "MaxPool", pool },
    { &pl_op_multiply, "Mul", NULL },
    { &pl_op_pad, "Pad", pad },
    { &pl_op_relu, "Relu", NULL },
    { &pl_op_reshape, "Reshape", sizes },
    { &pl_op_scale, "Mul", factor },
    { &pl_op_sigmoid, "Sigmoid", NULL },
    { &pl_op_softmax, "Softmax", last_axis },
    { &pl_op_tanh, "Tanh", NULL },
};

static pl_status put_node(exporter *e, const pl_node *node)
{
    const struct counterpart *found = NULL;
    made *m = &e->made[node->id];
    for (size_t i = 0; i < sizeof counterparts / sizeof *counterparts; i++)
        if (counterparts[i].op == node->op)
            found = &counterparts[i];
    if (found == NULL)
        return PL_FAIL(PL_UNSUPPORTED,
                       "node %s: nothing in ONNX stands for the operator %s",
                       node->name, node->op->name);
    for (int i = 0; i < node->input_count; i++)
        m->inputs[m->input_count++] = e->made[node->in[i]->id].name;
    if (found->fill != NULL)
        found->fill(e, m, node);
    e->nodes[e->node_count++] = (pl_onnx_node) {
        .name = node->name,
        .op = found->name,
        .domain = "",
        .inputs = m->inputs,
        .input_count = m->input_count,
        .outputs = &m->name,
        .output_count = 1,
        .attributes = m->attributes,
        .attribute_count = m->attribute_count,
    };
    return PL_OK;
}

/* --- the graph ---------------------------------------------------------- */

static void put_parameter(exporter *e, const pl_node *node, int index)
{
    pl_onnx_tensor *tensor = &e->tensors[e->tensor_count++];
    e->made[node->id].name = node->name;
    tensor->name = node->name;
    tensor->type = PL_ONNX_FLOAT;
    tensor->rank = node->shape.rank;
    tensor->count = pl_params_get(e->network->params, index)->count;
    memcpy(tensor->dims, node->shape.dim,
           sizeof *tensor->dims * (size_t)node->shape.rank);
    tensor->data = pl_params_data(e->network->params, index);
}

/* The data's examples may differ in shape from the file's input: then the
 * import reshaped them, under the name of that input. */
static void find_input(exporter *e)
{
    const pl_graph *graph = e->network->graph;
    e->input = pl_graph_get(graph, PL_INPUT_FEATURES);
    for (int i = 0; i < e->network->forward && e->ends.input[0] != '\0'; i++) {
        const pl_node *node = pl_graph_get(graph, i);
        if (node->op == &pl_op_reshape && node->in[0] == e->input &&
            strcmp(node->name, e->ends.input) == 0) {
            e->input = node;
            return;
        }
    }
}

static void name_values(exporter *e, const char *output)
{
    static const char *const prefixes[] = { "value", "node_value",
                                            "paceline_value" };
    const pl_params *params = e->network->params;
    e->prefix = prefixes[0];
    for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++) {
        bool taken = false;
        for (int i = 0; i < pl_params_count(params); i++)
            taken = taken || strncmp(pl_params_get(params, i)->name,
                                     prefixes[p], strlen(prefixes[p])) == 0;
        e->prefix = prefixes[p];
        if (!taken)
            break;
    }
    for (int i = 0; i < e->network->forward; i++) {
        made *m = &e->made[i];
        snprintf(m->value, sizeof m->value, "%s.%d", e->prefix, i);
        m->name = m->value;
    }
    bool goes_on = e->ends.last[0] != '\0';
    e->made[e->input->id].name =
        e->ends.input[0] != '\0' ? e->ends.input : "input";
    if (!goes_on)
        e->made[e->network->logits->id].name = output;
}

static void find_needed(exporter *e)
{
    e->needed[e->network->logits->id] = true;
    for (int i = e->network->logits->id; i >= 0; i--) {
        const pl_node *node = pl_graph_get(e->network->graph, i);
        for (int n = 0;
             n < node->input_count && e->needed[i] && node != e->input; n++)
            e->needed[node->in[n]->id] = true;
    }
}

static pl_status put_graph(exporter *e)
{
    const pl_graph *graph = e->network->graph;
    const pl_node *param = NULL;
    for (int i = 0; (param = pl_graph_next_param(graph, param)) != NULL; i++)
        if (e->needed[param->id])
            put_parameter(e, param, i);
    for (int i = 0; i <= e->network->logits->id; i++) {
        const pl_node *node = pl_graph_get(graph, i);
        /* The moments of a batch are part of its normalization. */
        if (e->needed[i] && node != e->input && node->op != &pl_op_parameter &&
            node->op != &pl_op_batch_moments)
            PL_TRY(put_node(e, node));
    }
    return PL_OK;
}

/* The operator with which the loss begins, if the imported model had it. */
static void put_last(exporter *e, made *m, const char *const *output)
{
    if (e->ends.last[0] == '\0')
        return;
    m->inputs[0] = e->made[e->network->logits->id].name;
    put_int(m, "axis", 1);
    e->nodes[e->node_count++] = (pl_onnx_node) {
        .name = e->ends.last,
        .op = e->ends.last,
        .domain = "",
        .inputs = m->inputs,
        .input_count = 1,
        .outputs = output,
        .output_count = 1,
        .attributes = m->attributes,
        .attribute_count = m->attribute_count,
    };
}

static pl_onnx_value value_of(const char *name, pl_shape shape)
{
    pl_onnx_value value = { .name = name,
                            .type = PL_ONNX_FLOAT,
                            .has_shape = true,
                            .rank = shape.rank };
    memcpy(value.dims, shape.dim, sizeof *shape.dim * (size_t)shape.rank);
    return value;
}

static pl_status export(exporter *e, pl_buffer *out)
{
    made last = { .attribute_count = 0 };
    const char *output = e->ends.output[0] != '\0' ? e->ends.output : "logits";
    find_input(e);
    name_values(e, output);
    find_needed(e);
    PL_TRY(put_graph(e));
    put_last(e, &last, &output);
    pl_onnx_value input = value_of(e->made[e->input->id].name, e->input->shape);
    pl_onnx_value logits = value_of(output, e->network->logits->shape);
    return pl_onnx_pack(
        &(pl_onnx_model) { .ir_version = IR_VERSION,
                           .opset = e->opset,
                           .producer = "paceline",
                           .graph_name = e->network->model->name,
                           .nodes = e->nodes,
                           .node_count = e->node_count,
                           .initializers = e->tensors,
                           .initializer_count = e->tensor_count,
                           .inputs = &input,
                           .graph_input_count = 1,
                           .outputs = &logits,
                           .graph_output_count = 1 },
        out);
}

pl_status pl_onnx_export(const pl_network *network, pl_buffer *out)
{
    exporter e = { .network = network, .ends = { "", "", "" }, .opset = OPSET };
    size_t count = (size_t)network->forward + 1;
    if (network->sparse)
        return PL_FAIL(PL_UNSUPPORTED,
                       "a sparse model has no graph that ONNX can express; "
                       "its checkpoint is a table of weights");
    if (network->model->file != NULL)
        e.ends = pl_onnx_net_ends(network->model);
    if (network->numeric) /* a numeric network has it in its graph */
        e.ends.last = "";
    pl_status status;
    PL_TRY_OUT(status, PL_NEW(e.needed, count));
    PL_TRY_OUT(status, PL_NEW(e.made, count));
    PL_TRY_OUT(status, PL_NEW(e.nodes, count));
    PL_TRY_OUT(status, PL_NEW(e.tensors, 2 * count));
    status = export(&e, out);
out:
    pl_mem_free(e.needed);
    pl_mem_free(e.made);
    pl_mem_free(e.nodes);
    pl_mem_free(e.tensors);
    return status;
}

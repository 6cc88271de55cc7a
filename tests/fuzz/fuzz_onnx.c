/* fuzz_onnx.c - bytes as an ONNX file.
 *
 * What is parsed is packed and parsed again, to the same bytes.  What is
 * accepted as a model is built, differentiated and planned, without memory for
 * its parameters: no file may reach an assertion. */
#include "fuzz/fuzz.h"

#include "base/assert.h"
#include "graph/plan.h"
#include "nn/onnx/onnx_model.h"
#include "proto/onnx.h"

#include <string.h>

/* Tensors of types that we do not read, and those outside, have no data. */
static bool has_all_data(const pl_onnx_model *model)
{
    bool all = true;
    for (size_t i = 0; i < model->initializer_count; i++)
        all = all && model->initializers[i].data != NULL;
    for (size_t i = 0; i < model->node_count; i++)
        for (size_t a = 0; a < model->nodes[i].attribute_count; a++) {
            const pl_onnx_tensor *t = model->nodes[i].attributes[a].t;
            all = all && (t == NULL || t->data != NULL);
        }
    return all;
}

static void pack_again(const void *data, size_t bytes)
{
    pl_onnx *first = NULL, *second = NULL;
    pl_buffer once = { 0 }, twice = { 0 };
    if (pl_onnx_parse(&first, data, bytes) != PL_OK)
        return;
    if (has_all_data(pl_onnx_get(first))) {
        PL_ASSERT(pl_onnx_pack(pl_onnx_get(first), &once) == PL_OK);
        PL_ASSERT(pl_onnx_parse(&second, once.data, once.bytes) == PL_OK);
        PL_ASSERT(pl_onnx_pack(pl_onnx_get(second), &twice) == PL_OK);
        PL_ASSERT(once.bytes == twice.bytes &&
                  memcmp(once.data, twice.data, once.bytes) == 0);
    }
    pl_buffer_close(&once);
    pl_buffer_close(&twice);
    pl_onnx_free(second);
    pl_onnx_free(first);
}

static void build(const pl_model *model)
{
    pl_network *network;
    pl_plan *plan;
    pl_shape example =
        model->example.rank > 0 ? model->example : PL_SHAPE(1, 6, 6);
    if (pl_network_new(&network, model,
                       &(pl_network_opts) {
                           .example = example,
                           .classes = model->classes > 0 ? model->classes : 3,
                           .no_values = true,
                       }) != PL_OK)
        return;
    pl_node *outputs[] = { network->loss };
    if (pl_plan_new(&plan, &(pl_plan_opts) { .graph = network->graph,
                                             .batch = 2,
                                             .kernels = pl_kernels_best(),
                                             .outputs = outputs,
                                             .output_count = 1 }) == PL_OK)
        pl_plan_free(plan);
    pl_network_free(network);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    pl_onnx_net *net;
    pack_again(data, bytes);
    if (pl_onnx_net_new(&net, &(pl_onnx_net_opts) {
                                  .path = "/nowhere/m.onnx",
                                  .data = bytes > 0 ? (const void *)data : "",
                                  .bytes = bytes }) != PL_OK)
        return 0;
    build(pl_onnx_net_model(net));
    pl_onnx_net_free(net);
    return 0;
}

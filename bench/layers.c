/* Time of each operator in a training step of a large network. */
#include "base/mem.h"
#include "bench.h"
#include "graph/plan.h"
#include "nn/model.h"
#include "tensor/shape.h"

#include <stdio.h>

#define BATCH 128
#define STEPS 5 /* after a warm-up; the fastest time of each counts */

static pl_node *conv(pl_build *b, const char *name, pl_node *x, int64_t outs,
                     int64_t kernel, int64_t stride, int64_t pad)
{
    return pl_relu(pl_conv_layer(b, name, x, outs, kernel, stride, pad));
}

/* The layers of AlexNet, one tower, without dropout. */
static pl_status build(pl_build *b)
{
    pl_node *x = pl_reshape(b->input, PL_SHAPE(PL_BATCH, 3, 224, 224));
    x = pl_max_pool(conv(b, "conv1", x, 64, 11, 4, 2), 3, 2);
    x = pl_max_pool(conv(b, "conv2", x, 192, 5, 1, 2), 3, 2);
    x = conv(b, "conv3", x, 384, 3, 1, 1);
    x = conv(b, "conv4", x, 256, 3, 1, 1);
    x = pl_max_pool(conv(b, "conv5", x, 256, 3, 1, 1), 3, 2);
    x = pl_relu(pl_dense(b, "fc1", x, 4096));
    x = pl_relu(pl_dense(b, "fc2", x, 4096));
    b->logits = pl_dense(b, "fc3", x, b->classes);
    return PL_OK;
}

static const pl_model model = { .name = "layers", .build = build };

/* Everything a step needs. */
typedef struct rig {
    pl_network *network;
    pl_params *grads;
    pl_plan *plan;
    pl_exec *exec;
    pl_trace *trace;
    uint8_t *images;
    int32_t *labels;
    uint64_t *ticks, *best; /* of each node: this step's, the fastest */
} rig;

static pl_status rig_init(rig *r, int threads)
{
    pl_shape image = PL_SHAPE(3, 224, 224);
    PL_TRY(pl_network_new(
        &r->network, &model,
        &(pl_network_opts) { .example = image, .classes = 1000, .seed = 1 }));
    const pl_network *n = r->network;
    size_t nodes = (size_t)pl_graph_count(n->graph);
    PL_TRY(pl_params_like(&r->grads, n->params));
    PL_TRY(pl_plan_new(&r->plan, &(pl_plan_opts) {
                                     .graph = n->graph,
                                     .batch = BATCH,
                                     .outputs = &n->loss,
                                     .output_count = 1,
                                     .diff = n->diff,
                                     .diff_count = pl_params_count(n->params),
                                     .threads = threads,
                                 }));
    PL_TRY(pl_exec_new(&r->exec, r->plan, n->params, r->grads));
    PL_TRY(pl_trace_new(&r->trace, &(pl_trace_opts) { .lanes = 1 }));
    pl_trace_switch(r->trace, true);
    size_t pixels = (size_t)pl_shape_count(image, 1);
    PL_TRY(PL_NEW(r->images, BATCH * pixels));
    for (size_t i = 0; i < BATCH * pixels; i++)
        r->images[i] = (uint8_t)(i * 7919 % 251);
    PL_TRY(PL_NEW(r->labels, BATCH));
    PL_TRY(PL_NEW(r->ticks, nodes));
    return PL_NEW(r->best, nodes);
}

static void rig_close(rig *r)
{
    pl_mem_free(r->ticks);
    pl_mem_free(r->best);
    pl_mem_free(r->images);
    pl_mem_free(r->labels);
    pl_trace_free(r->trace);
    pl_exec_free(r->exec);
    pl_plan_free(r->plan);
    pl_params_free(r->grads);
    pl_network_free(r->network);
}

static void run_step(rig *r, int64_t step)
{
    pl_view views[PL_INPUT_COUNT] = {
        [PL_INPUT_FEATURES] = { .data = r->images,
                                .stride = (int64_t)3 * 224 * 224,
                                .dtype = PL_UINT8,
                                .scale = 1.0f / 255 },
        [PL_INPUT_LABELS] = { .data = r->labels,
                              .stride = 1,
                              .dtype = PL_INT32,
                              .scale = 1 },
    };
    uint32_t first = pl_trace_count(r->trace, 0);
    pl_exec_run(r->exec, &(pl_exec_args) { .rows = BATCH,
                                           .views = views,
                                           .seed = 1,
                                           .trace = r->trace,
                                           .step = step });
    const pl_graph *graph = r->network->graph;
    int nodes = pl_graph_count(graph);
    for (int i = 0; i < nodes; i++) {
        r->ticks[i] = 0;
        for (uint32_t s = first; s < pl_trace_count(r->trace, 0); s++) {
            const pl_span *span = pl_trace_get(r->trace, 0, s);
            if (span->name == pl_graph_get(graph, i)->name)
                r->ticks[i] += span->end - span->begin;
        }
        if (step == 1 || r->ticks[i] < r->best[i])
            r->best[i] = r->ticks[i];
    }
}

static void put_row(bench *b, const char *name, const char *operator_name,
                    double seconds, double flops)
{
    double limit = bench_limits_of(b, pl_kernels_best())->gflops_all;
    table_text(&b->table, "node", name);
    table_text(&b->table, "operator", operator_name);
    table_number(&b->table, "ms", seconds * 1e3);
    if (flops > 0) {
        table_number(&b->table, "GFLOP/s", flops / seconds / 1e9);
        table_share(&b->table, "share", flops / seconds / 1e9, limit);
    } else {
        table_empty(&b->table, "GFLOP/s");
        table_empty(&b->table, "share");
    }
    table_row_end(&b->table);
}

static void print(bench *b, const rig *r)
{
    double seconds = 0, flops = 0;
    for (int i = 0; i < pl_graph_count(r->network->graph); i++) {
        const pl_node *node = pl_graph_get(r->network->graph, i);
        double own = (double)r->best[i] * pl_ticks_ns() * 1e-9;
        double work = node->op->multiply_adds != NULL
                          ? 2.0 * BATCH * (double)node->op->multiply_adds(node)
                          : 0;
        if (r->best[i] == 0)
            continue;
        put_row(b, node->name, node->op->name, own, work);
        seconds += own;
        flops += work;
    }
    put_row(b, "all", "", seconds, flops);
}

pl_status bench_layers(bench *b)
{
    rig r = { .network = NULL };
    PL_TRY(bench_need_cpu_limits(b));
    pl_status status = rig_init(&r, b->threads);
    for (int64_t step = 0; status == PL_OK && step <= STEPS; step++)
        run_step(&r, step);
    if (status == PL_OK) {
        table_begin(&b->table, "layers", "Large layers",
                    "AlexNet's layers at batch 128, all threads, the fastest "
                    "of 5 steps.  Work is counted\nas direct convolution, so "
                    "Winograd's algorithm may exceed the limit of\n"
                    "multiply-adds.  A node's time includes the changes of "
                    "its layout.");
        print(b, &r);
        table_end(&b->table);
    }
    rig_close(&r);
    return status;
}

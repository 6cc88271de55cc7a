#include "ops_case.h"

#include "base/mem.h"
#include "tensor/shape.h"

#include <math.h>
#include <stdio.h>

/* The inputs, the operator, and the operators of its gradient. */
static pl_status build(ops_case *c, const pl_op_case *shapes)
{
    pl_node *in[PL_MAX_INPUTS] = { NULL };
    int inputs = 0;
    while (inputs < PL_MAX_INPUTS && shapes->inputs[inputs].rank > 0)
        inputs++;
    for (int i = 0; i < inputs; i++) {
        char name[24];
        snprintf(name, sizeof name, "input%d", i);
        bool labels = shapes->label_classes > 0 && i == inputs - 1;
        in[i] = pl_input(c->graph, name, labels ? PL_INT32 : PL_FLOAT32,
                         shapes->inputs[i]);
    }
    c->forward.first = inputs;
    pl_node *node = shapes->build(in);
    PL_TRY(pl_graph_status(c->graph));
    c->forward.last = node->id + 1;
    pl_node *diff = pl_input(c->graph, "diff", PL_FLOAT32, node->shape);
    pl_node *diff_in[PL_MAX_INPUTS] = { NULL };
    if (node->op->gradient != NULL)
        node->op->gradient(node, diff, diff_in);
    PL_TRY(pl_graph_status(c->graph));
    c->count = pl_graph_count(c->graph);
    c->backward.first = diff->id + 1;
    c->backward.last = c->count;
    return PL_OK;
}

static void fill(void *data, pl_dtype dtype, int64_t count, int32_t classes)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t value = i * 7919 % 251; /* no pattern for branch prediction */
        if (dtype == PL_INT32)
            ((int32_t *)data)[i] = (int32_t)(value % classes);
        else if (dtype == PL_UINT8)
            ((uint8_t *)data)[i] = (uint8_t)value;
        else
            ((float *)data)[i] = (float)value / 251 - 0.5f;
    }
}

static pl_status give_memory(ops_case *c, int id, const ops_case_opts *opts)
{
    const pl_node *node = pl_graph_get(c->graph, id);
    int64_t count = pl_shape_count(node->shape, c->padded);
    pl_dtype dtype = node->dtype;
    if (id == 0 && opts->uint8)
        dtype = PL_UINT8;
    if (node->op->alias) {
        c->views[id].data = c->views[node->in[0]->id].data;
    } else {
        size_t bytes = (size_t)(count * pl_dtype_bytes(dtype));
        PL_TRY(pl_mem_check(c->data[id] = pl_mem_alloc_aligned(1, bytes), 1,
                            bytes));
        fill(c->data[id], dtype, count, opts->shapes->label_classes);
        c->views[id].data = c->data[id];
    }
    c->views[id].stride = node->shape.rank > 1 && node->shape.dim[0] > 0
                              ? count / node->shape.dim[0]
                              : 1;
    c->views[id].dtype = dtype;
    c->views[id].scale = dtype == PL_UINT8 ? 1.0f / 255 : 1.0f;
    if (node->op->scratch != NULL)
        PL_TRY(PL_NEW_ALIGNED(
            c->scratches[id],
            (size_t)node->op->scratch(node, opts->kernels->lanes)));
    if (node->op->workspace == NULL)
        return PL_OK;
    return PL_NEW_ALIGNED(c->workspaces[id],
                          (size_t)node->op->workspace(node, c->padded));
}

static void set_run(ops_case *c, int id)
{
    const pl_node *node = pl_graph_get(c->graph, id);
    pl_op_run *run = &c->runs[id];
    *run = (pl_op_run) {
        .state = &c->state,
        .node = node,
        .lanes = node->op->layout == PL_OP_LANES,
        .out = c->data[id],
        .workspace = c->workspaces[id],
        .scratch = c->scratches[id],
    };
    for (int j = 0; j < node->input_count; j++)
        run->in[j] = &c->views[node->in[j]->id];
    if (node->input_count > 0)
        run->in_workspace = c->workspaces[node->in[0]->id];
}

static double bytes_of(const ops_case *c, const pl_node *node)
{
    double bytes = (double)pl_shape_count(node->shape, c->padded) *
                   (double)pl_dtype_bytes(c->views[node->id].dtype);
    if (node->op->workspace != NULL)
        bytes += 4 * (double)node->op->workspace(node, c->padded);
    return bytes;
}

/* Multiply-adds of the product of two matrices [n, k] and [k, m], whichever is
 * transposed: the root of the product of the three element counts is n m k.
 * Operators on images state theirs, for one example. */
static double multiply_adds(const ops_case *c, const pl_node *node)
{
    if (node->op->multiply_adds == NULL)
        return 0;
    if (node->op->layout == PL_OP_LANES)
        return (double)(node->op->multiply_adds(node) * c->state.rows);
    return sqrt((double)pl_shape_count(node->in[0]->shape, 1) *
                (double)pl_shape_count(node->in[1]->shape, 1) *
                (double)pl_shape_count(node->shape, 1));
}

static void count_work(const ops_case *c, ops_work *work)
{
    for (int i = work->first; i < work->last; i++) {
        const pl_node *node = pl_graph_get(c->graph, i);
        if (node->op->run == NULL)
            continue;
        work->steps++;
        work->flops += 2 * multiply_adds(c, node);
        work->bytes += bytes_of(c, node);
        for (int j = 0; j < node->input_count; j++)
            work->bytes += bytes_of(c, node->in[j]);
    }
}

pl_status ops_case_init(ops_case *c, const ops_case_opts *opts)
{
    int64_t lanes = opts->kernels->lanes;
    int64_t rows = opts->shapes->batch > 0 ? opts->shapes->batch : 1;
    *c = (ops_case) {
        .state = { .kernels = opts->kernels,
                   .rows = rows,
                   .seed = 1,
                   .training = true },
        .padded =
            opts->shapes->batch > 0 ? (rows + lanes - 1) / lanes * lanes : 1,
    };
    pl_status status;
    PL_TRY_OUT(status, pl_graph_new(&c->graph));
    PL_TRY_OUT(status, build(c, opts->shapes));
    size_t count = (size_t)c->count;
    PL_TRY_OUT(status, PL_NEW(c->data, count));
    PL_TRY_OUT(status, PL_NEW(c->workspaces, count));
    PL_TRY_OUT(status, PL_NEW(c->scratches, count));
    PL_TRY_OUT(status, PL_NEW(c->views, count));
    PL_TRY_OUT(status, PL_NEW(c->runs, count));
    for (int i = 0; i < c->count; i++) {
        PL_TRY_OUT(status, give_memory(c, i, opts));
        set_run(c, i);
    }
    count_work(c, &c->forward);
    count_work(c, &c->backward);
    ops_case_run(c, &c->forward); /* the backward run reads its results */
    return PL_OK;
out:
    ops_case_close(c);
    return status;
}

void ops_case_close(ops_case *c)
{
    for (int i = 0; i < c->count && c->data != NULL; i++)
        pl_mem_free(c->data[i]);
    for (int i = 0; i < c->count && c->workspaces != NULL; i++)
        pl_mem_free(c->workspaces[i]);
    for (int i = 0; i < c->count && c->scratches != NULL; i++)
        pl_mem_free(c->scratches[i]);
    pl_mem_free(c->data);
    pl_mem_free(c->workspaces);
    pl_mem_free(c->scratches);
    pl_mem_free(c->views);
    pl_mem_free(c->runs);
    pl_graph_free(c->graph);
}

bool ops_case_reads_uint8(const ops_case *c)
{
    bool read = false;
    for (int i = 0; i < c->count; i++) {
        const pl_node *node = pl_graph_get(c->graph, i);
        for (int j = 0; j < node->input_count; j++) {
            if (node->in[j]->id != 0)
                continue;
            if (node->op->run == NULL || (node->op->reads_views & 1u << j) == 0)
                return false;
            read = true;
        }
    }
    return read;
}

void ops_case_run(const ops_case *c, const ops_work *work)
{
    for (int i = work->first; i < work->last; i++) {
        const pl_op_run *run = &c->runs[i];
        if (run->node->op->run != NULL)
            run->node->op->run(run);
    }
}

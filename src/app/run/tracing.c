/* tracing.c - writes the trace of a task with the sizes of its operators, so
 * that `profile` can compare them with the machine's limits. */
#include "app/run/tracing.h"

#include "app/train/limits.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "graph/graph.h"
#include "observe/record/chrome_trace.h"
#include "tensor/shape.h"
#include "train/compute/compute.h"

#include <stdio.h>
#include <string.h>

/* The operators of a network for the trace. */
typedef struct operators {
    pl_trace_operator *list;
    char (*shapes)[PL_SHAPE_TEXT];
    int count;
} operators;

static void close_operators(operators *ops)
{
    pl_mem_free(ops->list);
    pl_mem_free(ops->shapes);
}

/* Bytes of a node that are read or written in one step. */
static double bytes_of(const pl_node *node, int64_t batch)
{
    return (double)pl_shape_count(node->shape, batch) * sizeof(float);
}

static void describe(operators *ops, const pl_node *node, int64_t batch)
{
    char *shape = ops->shapes[ops->count];
    pl_trace_operator *op = &ops->list[ops->count++];
    pl_shape full = node->shape;
    if (pl_shape_batched(full))
        full.dim[0] = batch;
    *op = (pl_trace_operator) {
        .name = node->name,
        .op = node->op->name,
        .shape = pl_shape_text(full, shape),
        .bytes = bytes_of(node, batch),
    };
    if (node->op->multiply_adds != NULL)
        op->flop = 2 * (double)node->op->multiply_adds(node) * (double)batch;
    for (int i = 0; i < node->input_count; i++)
        op->bytes += bytes_of(node->in[i], batch);
}

/* The work of a sparse model has no nodes; each span has its own bytes. */
static pl_status list_sparse(operators *ops, const pl_job *job)
{
    static const struct {
        const char *name, *op;
        bool keys; /* one number per key, not per row */
    } known[] = {
        { "find", "distinct keys", true }, { "gather", "table[keys]", true },
        { "dot", "X w + b", false },       { "sigmoid", "sigmoid", false },
        { "error", "p - y", false },       { "gradient", "X^T error", true },
        { "combine", "sum", true },        { "loss", "log loss", false },
        { "apply", "optimizer", true },    { "hogwild", "all of these", false },
    };
    size_t count = sizeof known / sizeof *known;
    PL_TRY(PL_NEW(ops->list, count));
    PL_TRY(PL_NEW(ops->shapes, count));
    for (size_t i = 0; i < count; i++) {
        char *shape = ops->shapes[i];
        if (known[i].keys)
            snprintf(shape, PL_SHAPE_TEXT, "[keys]");
        else
            snprintf(shape, PL_SHAPE_TEXT, "[%lld]",
                     (long long)job->options->train.batch);
        ops->list[ops->count++] = (pl_trace_operator) {
            .name = known[i].name,
            .op = known[i].op,
            .shape = shape,
        };
    }
    return PL_OK;
}

static pl_status list_operators(operators *ops, const pl_job *job)
{
    if (job->network->sparse)
        return list_sparse(ops, job);
    const pl_graph *graph = job->network->graph;
    size_t count = (size_t)pl_graph_count(graph);
    PL_TRY(PL_NEW(ops->list, count));
    PL_TRY(PL_NEW(ops->shapes, count));
    for (size_t i = 0; i < count; i++) {
        const pl_node *node = pl_graph_get(graph, (int)i);
        if (node->input_count > 0)
            describe(ops, node, job->options->train.batch);
    }
    return PL_OK;
}

/* A large model's operators use all threads, a small one's a single thread. */
static pl_status measure_limits(const pl_job *job, pl_limits *out)
{
    int threads = pl_pool_threads(job->pool);
    pl_compute_size size;
    PL_TRY(pl_compute_memory(
        &(pl_compute_opts) {
            .network = job->network,
            .batch = job->options->train.batch,
            .threads = threads,
            .kernels = job->kernels,
            .bf16 = pl_options_bf16(&job->options->train),
        },
        &size));
    return pl_limits_measure(job->pool, size.large ? threads : 1, out);
}

static pl_status write_file(const pl_tracing_opts *opts, const char *path)
{
    char process[64];
    operators ops = { 0 };
    pl_limits limits = { 0 };
    pl_status status;
    snprintf(process, sizeof process, "%s %d", pl_role_text(opts->task.role),
             opts->task.index);
    if (opts->job != NULL) {
        PL_TRY_OUT(status, list_operators(&ops, opts->job));
        PL_TRY_OUT(status, measure_limits(opts->job, &limits));
    }
    status = pl_chrome_trace_write(opts->trace, path,
                                   &(pl_chrome_trace_opts) {
                                       .process = process,
                                       .skew = opts->skew,
                                       .operators = ops.list,
                                       .operator_count = ops.count,
                                       .gflops = limits.gflops,
                                       .gbytes = limits.gbytes,
                                   });
out:
    close_operators(&ops);
    return status;
}

pl_status pl_tracing_write(const pl_tracing_opts *opts)
{
    if (opts->trace == NULL || opts->run == NULL)
        return PL_OK;
    char *folder = NULL, *path = NULL;
    pl_status status;
    PL_TRY_OUT(status, pl_file_join(&folder, opts->run, "trace"));
    PL_TRY_OUT(status, pl_file_make_folder(folder));
    PL_TRY_OUT(status,
               pl_mem_format(&path, "%s/%s-%d.json", folder,
                             pl_role_text(opts->task.role), opts->task.index));
    PL_TRY_OUT(status, write_file(opts, path));
    const char *run = opts->sent_to != NULL ? opts->sent_to : opts->run;
    pl_log(PL_LOG_INFO,
           "trace written to %s%s (open it in a trace viewer, or see "
           "`paceline profile %s`)",
           run, path + strlen(opts->run), run);
out:
    pl_mem_free(folder);
    pl_mem_free(path);
    return status;
}

/* An operation bound to its memory, run slice by slice. */
#include "base/assert.h"
#include "base/mem.h"
#include "kernels/cpu/dnn_priv.h"
#include "kernels/cpu/team.h"

#include <string.h>

#define ADD_RANGE 16384 /* floats per thread and turn */

struct pl_dnn_call {
    const pl_dnn_op *op;
    dnnl_stream_t stream;
    float *data[PL_DNN_ARGS], *scratch;
    /* The caller's memory, and the primitive's if its layout differs. */
    dnnl_memory_t given[PL_DNN_ARGS], native[PL_DNN_ARGS], work;
    dnnl_exec_arg_t args[PL_DNN_ARGS + 1];
    int count;
};

static pl_status bind(pl_dnn_call *call, dnnl_memory_t *out,
                      pl_dnn_shape_ref shape, float *data)
{
    return pl_dnn_check(dnnl_memory_create(out, shape, call->op->engine, data),
                        "bind memory");
}

static pl_status bind_all(pl_dnn_call *call)
{
    const pl_dnn_op *op = call->op;
    PL_TRY(pl_dnn_check(dnnl_stream_create(&call->stream, op->engine,
                                           dnnl_stream_default_flags),
                        "start a stream"));
    for (int i = 0; i < PL_DNN_ARGS; i++) {
        const pl_dnn_arg *arg = &op->args[i];
        if (arg->id == 0)
            continue;
        PL_ASSERT(call->data[i] != NULL);
        PL_TRY(bind(call, &call->given[i], arg->given, call->data[i]));
        if (arg->reorder != NULL)
            PL_TRY(bind(call, &call->native[i], arg->native,
                        call->scratch + arg->temp));
        call->args[call->count++] = (dnnl_exec_arg_t) {
            arg->id, arg->reorder != NULL ? call->native[i] : call->given[i]
        };
    }
    if (op->work == NULL || dnnl_memory_desc_get_size(op->work) == 0)
        return PL_OK;
    PL_TRY(bind(call, &call->work, op->work, call->scratch + op->work_at));
    call->args[call->count++] =
        (dnnl_exec_arg_t) { DNNL_ARG_SCRATCHPAD, call->work };
    return PL_OK;
}

pl_status pl_dnn_call_new(pl_dnn_call **out, const pl_dnn_op *op,
                          float *const *data, float *scratch)
{
    pl_dnn_call *call;
    PL_TRY(PL_NEW(call, 1));
    call->op = op;
    call->scratch = scratch;
    for (int i = 0; i < PL_DNN_ARGS; i++)
        call->data[i] = data[i];
    pl_status status = bind_all(call);
    if (status != PL_OK) {
        pl_dnn_call_free(call);
        return status;
    }
    *out = call;
    return PL_OK;
}

void pl_dnn_call_free(pl_dnn_call *call)
{
    if (call == NULL)
        return;
    for (int i = 0; i < PL_DNN_ARGS; i++) {
        dnnl_memory_destroy(call->given[i]);
        dnnl_memory_destroy(call->native[i]);
    }
    dnnl_memory_destroy(call->work);
    dnnl_stream_destroy(call->stream);
    pl_mem_free(call);
}

static void reorder(const pl_dnn_call *call, int i)
{
    const pl_dnn_arg *arg = &call->op->args[i];
    if (arg->reorder == NULL)
        return;
    dnnl_exec_arg_t args[] = {
        { DNNL_ARG_FROM, arg->written ? call->native[i] : call->given[i] },
        { DNNL_ARG_TO, arg->written ? call->given[i] : call->native[i] },
    };
    dnnl_status_t status =
        dnnl_primitive_execute(arg->reorder, call->stream, 2, args);
    PL_ASSERT(status == dnnl_success);
}

static void point(dnnl_memory_t memory, float *data)
{
    dnnl_status_t status = dnnl_memory_set_data_handle(memory, data);
    PL_ASSERT(status == dnnl_success);
}

/* Move to the rows of a slice; inputs are padded with zeros.  The batch is the
 * outermost dimension of the caller's memory. */
static void enter_rows(const pl_dnn_call *call, int i, int64_t slice,
                       int64_t rows)
{
    const pl_dnn_arg *arg = &call->op->args[i];
    size_t bytes = dnnl_memory_desc_get_size(arg->given);
    size_t row = bytes / (size_t)call->op->slice;
    char *data = (char *)call->data[i] + bytes * (size_t)slice;
    point(call->given[i], (float *)(void *)data);
    if (arg->written)
        return;
    memset(data + row * (size_t)rows, 0,
           row * (size_t)(call->op->slice - rows));
    reorder(call, i);
}

/* sum += share, split into ranges */
typedef struct addition {
    const pl_kernels *kernels;
    int64_t count;
    float *sum;
    const float *share;
} addition;

static void add_range(void *arg, int item, int thread)
{
    (void)thread;
    const addition *a = arg;
    int64_t first = (int64_t)item * ADD_RANGE;
    int64_t left = a->count - first;
    a->kernels->add(left < ADD_RANGE ? left : ADD_RANGE, a->sum + first,
                    a->share + first, a->sum + first);
}

/* Where the primitive writes a sum over the batch. */
static float *sum_of(const pl_dnn_call *call, int i)
{
    const pl_dnn_arg *arg = &call->op->args[i];
    return arg->reorder != NULL ? call->scratch + arg->temp : call->data[i];
}

/* The first slice writes the sum itself, later ones a spare area. */
static void enter_sum(const pl_dnn_call *call, int i, int64_t slice)
{
    const pl_dnn_op *op = call->op;
    if (op->slice < op->batch)
        point(op->args[i].reorder != NULL ? call->native[i] : call->given[i],
              slice == 0 ? sum_of(call, i) : call->scratch + op->args[i].spare);
}

static void leave_sum(const pl_dnn_call *call, int i, int64_t slice)
{
    const pl_dnn_op *op = call->op;
    if (slice == 0)
        return;
    int64_t floats = (int64_t)(dnnl_memory_desc_get_size(op->args[i].native) /
                               sizeof(float));
    addition a = { op->kernels, floats, sum_of(call, i),
                   call->scratch + op->args[i].spare };
    pl_team_run(op->threads, (int)((floats + ADD_RANGE - 1) / ADD_RANGE),
                add_range, &a);
    enter_sum(call, i, 0);
}

static void run_slice(const pl_dnn_call *call, int64_t slice, int64_t rows)
{
    const pl_dnn_op *op = call->op;
    for (int i = 0; i < PL_DNN_ARGS; i++)
        if (op->args[i].id != 0 && op->args[i].batched)
            enter_rows(call, i, slice, rows);
        else if (op->args[i].id != 0 && op->args[i].written)
            enter_sum(call, i, slice);
    dnnl_status_t status = dnnl_primitive_execute(op->primitive, call->stream,
                                                  call->count, call->args);
    PL_ASSERT(status == dnnl_success);
    for (int i = 0; i < PL_DNN_ARGS; i++)
        if (op->args[i].id != 0 && op->args[i].written) {
            if (op->args[i].batched)
                reorder(call, i);
            else
                leave_sum(call, i, slice);
        }
}

void pl_dnn_call_run(const pl_dnn_call *call, int64_t rows)
{
    const pl_dnn_op *op = call->op;
    omp_set_num_threads(op->threads);
    for (int i = 0; i < PL_DNN_ARGS; i++)
        if (!op->args[i].batched && !op->args[i].written)
            reorder(call, i);
    for (int64_t first = 0; first < rows; first += op->slice) {
        int64_t left = rows - first;
        run_slice(call, first / op->slice, left < op->slice ? left : op->slice);
    }
    for (int i = 0; i < PL_DNN_ARGS; i++)
        if (!op->args[i].batched && op->args[i].written)
            reorder(call, i);
}

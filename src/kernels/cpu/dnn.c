/* Design.
 *
 * Every pl_dnn_arg has two descriptions: the caller's layout and the
 * primitive's.  The primitive chooses its layout freely; if the two differ, a
 * reorder runs before or after it, through part of the scratch memory.  So
 * weights, first layers and odd numbers of channels need no special code, and
 * another version of the library may choose other layouts.
 *
 * Winograd's algorithm needs scratch memory in proportion to the batch, more
 * than all results of a network together.  If that is too much, the operation
 * is made for a slice of the batch and run slice by slice, adding up the
 * gradients of weights.  Slices of 64 rows are 1-4 % slower than 128, and the
 * cost per example does not depend on the batch. */
#include "kernels/cpu/dnn_priv.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/mem.h"

#include <string.h>

/* If an operation needs more floats of scratch memory, it runs in slices of at
 * most this many rows and at least half of that. */
#define MUCH_SCRATCH (16 << 20)
#define MOST_ROWS    64

#define FLOAT_LINE (PL_CACHE_LINE / (int64_t)sizeof(float))

pl_status pl_dnn_check(dnnl_status_t status, const char *what)
{
    if (status == dnnl_success)
        return PL_OK;
    if (status == dnnl_out_of_memory)
        return PL_FAIL(PL_NOMEM, "oneDNN: no memory to %s", what);
    return PL_FAIL(PL_UNSUPPORTED, "oneDNN cannot %s (its status %d)", what,
                   (int)status);
}

bool pl_dnn_usable(const pl_kernels *kernels)
{
    return strcmp(kernels->name, "avx512") == 0 ||
           strcmp(kernels->name, "avx2") == 0;
}

bool pl_dnn_blocked(const pl_kernels *kernels, int64_t channels)
{
    return channels >= kernels->lanes;
}

/* Images in the caller's layout; `any`: in the primitive's choice. */
static pl_status describe_images(pl_dnn_shape *out, const pl_dnn_opts *opts,
                                 bool dst, dnnl_data_type_t type,
                                 dnnl_format_tag_t tag)
{
    const pl_conv *c = &opts->sizes;
    dnnl_dims_t dims = { opts->batch, dst ? c->outs : c->channels,
                         dst ? c->out_height : c->height,
                         dst ? c->out_width : c->width };
    return pl_dnn_shape_new(out, 4, dims, type, tag);
}

static dnnl_format_tag_t given_tag(const pl_dnn_opts *opts, int64_t channels)
{
    if (!pl_dnn_blocked(opts->kernels, channels))
        return dnnl_nchw;
    return opts->kernels->lanes == 16 ? dnnl_nChw16c : dnnl_nChw8c;
}

static pl_status describe_weights(pl_dnn_shape *out, const pl_conv *c,
                                  dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    dnnl_dims_t dims = { c->outs, c->channels, c->kernel_h, c->kernel_w };
    return pl_dnn_shape_new(out, 4, dims, type, tag);
}

static pl_status describe_bias(pl_dnn_shape *out, const pl_conv *c)
{
    dnnl_dims_t dims = { c->outs };
    return pl_dnn_shape_new(out, 1, dims, dnnl_f32, dnnl_x);
}

/* A gradient has the layout of its tensor. */
static pl_dnn_shape_ref description_of(const pl_dnn_layer *d, int id)
{
    switch (id) {
    case DNNL_ARG_SRC:
    case DNNL_ARG_DIFF_SRC:
        return d->src;
    case DNNL_ARG_WEIGHTS:
    case DNNL_ARG_DIFF_WEIGHTS:
        return d->weights;
    case DNNL_ARG_BIAS:
    case DNNL_ARG_DIFF_BIAS:
        return d->bias;
    default:
        return d->dst;
    }
}

static bool is_dense(const pl_dnn_opts *opts)
{
    return opts->kind >= PL_DNN_DENSE;
}

static const pl_dnn_types plain_types = { dnnl_f32, dnnl_f32, dnnl_f32 };

/* Factors are rounded, the result is not. */
static pl_dnn_types types_of(const pl_dnn_opts *opts, pl_dnn_kind kind)
{
    pl_dnn_types types = { dnnl_bf16, dnnl_bf16, dnnl_bf16 };
    if (!opts->bf16)
        return plain_types;
    if (kind == PL_DNN_CONV_SRC || kind == PL_DNN_DENSE_SRC)
        types.src = dnnl_f32;
    else if (kind == PL_DNN_CONV_WEIGHTS || kind == PL_DNN_DENSE_WEIGHTS)
        types.weights = dnnl_f32;
    else
        types.dst = dnnl_f32;
    return types;
}

/* `any`: in the layout that the primitive chooses. */
static pl_status describe(pl_dnn_layer *d, const pl_dnn_opts *opts,
                          pl_dnn_types types, bool any)
{
    const pl_conv *c = &opts->sizes;
    dnnl_format_tag_t free = dnnl_format_tag_any;
    if (is_dense(opts))
        return pl_dnn_dense_describe(d, opts, types);
    PL_TRY(describe_images(&d->src, opts, false, types.src,
                           any ? free : given_tag(opts, c->channels)));
    PL_TRY(describe_images(&d->dst, opts, true, types.dst,
                           any ? free : given_tag(opts, c->outs)));
    PL_TRY(describe_weights(&d->weights, c, types.weights,
                            any ? free : dnnl_oihw));
    return describe_bias(&d->bias, c);
}

static void close_layer(pl_dnn_layer *d)
{
    pl_dnn_shape_free(d->src);
    pl_dnn_shape_free(d->weights);
    pl_dnn_shape_free(d->bias);
    pl_dnn_shape_free(d->dst);
}

/* The caller's scratch memory, and the activation of the result. */
static pl_status make_attributes(dnnl_primitive_attr_t *out, bool relu)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t after = NULL;
    dnnl_status_t s = dnnl_primitive_attr_create(&attr);
    if (s == dnnl_success)
        s = dnnl_primitive_attr_set_scratchpad_mode(attr,
                                                    dnnl_scratchpad_mode_user);
    if (s == dnnl_success && relu)
        s = dnnl_post_ops_create(&after);
    if (s == dnnl_success && relu)
        s = pl_dnn_append_relu(after);
    if (s == dnnl_success && relu)
        s = dnnl_primitive_attr_set_post_ops(attr, after);
    dnnl_post_ops_destroy(after);
    if (s != dnnl_success)
        dnnl_primitive_attr_destroy(attr);
    else
        *out = attr;
    return pl_dnn_check(s, "set attributes");
}

/* The primitive of one kind, or of the forward layer. */
static pl_status describe_kind(const pl_dnn_op *op, const pl_dnn_opts *opts,
                               pl_dnn_kind kind,
                               const_dnnl_primitive_attr_t attr,
                               const_dnnl_primitive_desc_t forward,
                               dnnl_primitive_desc_t *out)
{
    pl_dnn_layer any = { 0 };
    pl_status status = describe(&any, opts, types_of(opts, kind), true);
    if (status == PL_OK)
        status = pl_dnn_check(pl_dnn_layer_create(out, op->engine, opts, kind,
                                                  &any, attr, forward),
                              "compute the layer");
    close_layer(&any);
    return status;
}

/* A gradient refers to the forward operation. */
static pl_status describe_primitive(pl_dnn_op *op, const pl_dnn_opts *opts,
                                    dnnl_primitive_desc_t *out)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t forward = NULL;
    pl_dnn_kind first = is_dense(opts) ? PL_DNN_DENSE : PL_DNN_CONV;
    pl_status status;
    PL_TRY(make_attributes(&attr, opts->relu));
    if (opts->kind != first)
        PL_TRY_OUT(status,
                   describe_kind(op, opts, first, attr, NULL, &forward));
    status = describe_kind(op, opts, opts->kind, attr, forward, out);
out:
    dnnl_primitive_desc_destroy(forward);
    dnnl_primitive_attr_destroy(attr);
    return status;
}

static int64_t lines(pl_dnn_shape_ref shape)
{
    int64_t floats =
        (int64_t)(dnnl_memory_desc_get_size(shape) + sizeof(float) - 1) /
        (int64_t)sizeof(float);
    return (floats + FLOAT_LINE - 1) / FLOAT_LINE * FLOAT_LINE;
}

static pl_status make_reorder(const pl_dnn_op *op, dnnl_primitive_t *out,
                              pl_dnn_shape_ref from, pl_dnn_shape_ref to)
{
    dnnl_primitive_desc_t desc = NULL;
    pl_status status =
        pl_dnn_check(dnnl_reorder_primitive_desc_create(&desc, from, op->engine,
                                                        to, op->engine, NULL),
                     "describe a change of layout");
    if (status == PL_OK)
        status =
            pl_dnn_check(dnnl_primitive_create(out, desc), "change a layout");
    dnnl_primitive_desc_destroy(desc);
    return status;
}

/* Add a reorder if the layouts of caller and primitive differ. */
static pl_status set_argument(pl_dnn_op *op, int index, pl_dnn_shape_ref given,
                              const_dnnl_primitive_desc_t desc)
{
    pl_dnn_arg *arg = &op->args[index];
    PL_TRY(pl_dnn_shape_copy(&arg->given, given));
    PL_TRY(pl_dnn_shape_copy(
        &arg->native,
        dnnl_primitive_desc_query_md(desc, dnnl_query_exec_arg_md, arg->id)));
    if (dnnl_memory_desc_equal(given, arg->native) != 0)
        return PL_OK;
    arg->temp = op->scratch;
    op->scratch += lines(arg->native);
    return arg->written ? make_reorder(op, &arg->reorder, arg->native, given)
                        : make_reorder(op, &arg->reorder, given, arg->native);
}

#define READS(name, rows)                                                      \
    {                                                                          \
        .id = DNNL_ARG_##name, .batched = (rows)                               \
    }
#define WRITES(name, rows)                                                     \
    {                                                                          \
        .id = DNNL_ARG_##name, .batched = (rows), .written = true              \
    }

static pl_status make_layer(pl_dnn_op *op, const pl_dnn_opts *opts)
{
    /* In the order of PL_DNN_FIRST ... */
    static const pl_dnn_arg kinds[][PL_DNN_ARGS] = {
        [PL_DNN_CONV] = { READS(SRC, true), READS(WEIGHTS, false),
                          READS(BIAS, false), WRITES(DST, true) },
        [PL_DNN_CONV_SRC] = { READS(DIFF_DST, true),
                              READS(WEIGHTS, false),
                              { .id = 0 },
                              WRITES(DIFF_SRC, true) },
        [PL_DNN_CONV_WEIGHTS] = { READS(DIFF_DST, true), READS(SRC, true),
                                  WRITES(DIFF_BIAS, false),
                                  WRITES(DIFF_WEIGHTS, false) },
        [PL_DNN_DENSE] = { READS(SRC, true), READS(WEIGHTS, false),
                           READS(BIAS, false), WRITES(DST, true) },
        [PL_DNN_DENSE_SRC] = { READS(DIFF_DST, true),
                               READS(WEIGHTS, false),
                               { .id = 0 },
                               WRITES(DIFF_SRC, true) },
        [PL_DNN_DENSE_WEIGHTS] = { READS(DIFF_DST, true),
                                   READS(SRC, true),
                                   { .id = 0 },
                                   WRITES(DIFF_WEIGHTS, false) },
    };
    pl_dnn_layer given = { 0 };
    dnnl_primitive_desc_t desc = NULL;
    pl_status status;
    PL_TRY_OUT(status, describe(&given, opts, plain_types, false));
    PL_TRY_OUT(status, describe_primitive(op, opts, &desc));
    for (int i = 0; i < PL_DNN_ARGS; i++) {
        op->args[i] = kinds[opts->kind][i];
        if (i == PL_DNN_BIAS && !opts->bias)
            op->args[i].id = 0;
        if (op->args[i].id != 0)
            PL_TRY_OUT(status,
                       set_argument(op, i,
                                    description_of(&given, op->args[i].id),
                                    desc));
    }
    PL_TRY_OUT(status,
               pl_dnn_shape_copy(&op->work, dnnl_primitive_desc_query_md(
                                                desc, dnnl_query_exec_arg_md,
                                                DNNL_ARG_SCRATCHPAD)));
    op->work_at = op->scratch;
    op->scratch += lines(op->work);
    status = pl_dnn_check(dnnl_primitive_create(&op->primitive, desc),
                          "make an operation");
out:
    close_layer(&given);
    dnnl_primitive_desc_destroy(desc);
    return status;
}

/* Memory for a slice's share of a sum over slices. */
static void add_spares(pl_dnn_op *op)
{
    for (int i = 0; i < PL_DNN_ARGS; i++) {
        pl_dnn_arg *arg = &op->args[i];
        if (arg->id == 0 || !arg->written || arg->batched)
            continue;
        arg->spare = op->scratch;
        op->scratch += lines(arg->native);
    }
}

/* The largest divisor of the batch that is at most MOST_ROWS. */
static int64_t slice_of(int64_t batch)
{
    for (int64_t rows = MOST_ROWS; rows >= MOST_ROWS / 2; rows--)
        if (batch % rows == 0)
            return rows;
    return batch;
}

static void drop_primitives(pl_dnn_op *op)
{
    for (int i = 0; i < PL_DNN_ARGS; i++) {
        dnnl_primitive_destroy(op->args[i].reorder);
        pl_dnn_shape_free(op->args[i].given);
        pl_dnn_shape_free(op->args[i].native);
        op->args[i] = (pl_dnn_arg) { .id = 0 };
    }
    dnnl_primitive_destroy(op->primitive);
    pl_dnn_shape_free(op->work);
    op->primitive = NULL;
    op->work = NULL;
    op->scratch = 0;
}

static pl_status make_slices(pl_dnn_op *op, const pl_dnn_opts *opts)
{
    pl_dnn_opts part = *opts;
    part.batch = opts->slice > 0 ? opts->slice : opts->batch;
    PL_TRY(make_layer(op, &part));
    if (opts->slice == 0 && !is_dense(opts) && op->scratch > MUCH_SCRATCH &&
        slice_of(opts->batch) < opts->batch) {
        drop_primitives(op);
        part.batch = slice_of(opts->batch);
        PL_TRY(make_layer(op, &part));
    }
    op->slice = part.batch;
    if (op->slice < op->batch)
        add_spares(op);
    return PL_OK;
}

static pl_status make_blocking(pl_dnn_op *op, const pl_dnn_opts *opts)
{
    pl_dnn_arg *from = &op->args[PL_DNN_FIRST], *to = &op->args[PL_DNN_RESULT];
    bool back = opts->kind == PL_DNN_UNBLOCK;
    *from = (pl_dnn_arg) { .id = DNNL_ARG_FROM, .batched = true };
    *to = (pl_dnn_arg) { .id = DNNL_ARG_TO, .batched = true, .written = true };
    dnnl_format_tag_t blocked = given_tag(opts, opts->sizes.channels);
    PL_TRY(describe_images(&from->given, opts, false, dnnl_f32,
                           back ? blocked : dnnl_nchw));
    PL_TRY(describe_images(&to->given, opts, false, dnnl_f32,
                           back ? dnnl_nchw : blocked));
    return make_reorder(op, &op->primitive, from->given, to->given);
}

pl_status pl_dnn_op_new(pl_dnn_op **out, const pl_dnn_opts *opts)
{
    PL_ASSERT(pl_dnn_usable(opts->kernels));
    pl_dnn_op *op;
    PL_TRY(PL_NEW(op, 1));
    op->kernels = opts->kernels;
    op->batch = opts->batch;
    op->slice = opts->batch;
    op->threads = pl_dnn_threads(opts->threads);
    pl_dnn_limit_isa(opts->kernels);
    omp_set_num_threads(op->threads); /* the operation divides its work among
                                         these threads */
    pl_status status = pl_dnn_check(
        dnnl_engine_create(&op->engine, dnnl_cpu, 0), "start its engine");
    if (status == PL_OK)
        status = opts->kind == PL_DNN_BLOCK || opts->kind == PL_DNN_UNBLOCK
                     ? make_blocking(op, opts)
                     : make_slices(op, opts);
    if (status != PL_OK) {
        pl_dnn_op_free(op);
        return status;
    }
    *out = op;
    return PL_OK;
}

void pl_dnn_op_free(pl_dnn_op *op)
{
    if (op == NULL)
        return;
    drop_primitives(op);
    dnnl_engine_destroy(op->engine);
    pl_mem_free(op);
}

int64_t pl_dnn_op_scratch(const pl_dnn_op *op)
{
    return op->scratch;
}

/* dnn_priv.h - shared by the files of this folder. */
#ifndef PL_KERNELS_CPU_DNN_PRIV_H
#define PL_KERNELS_CPU_DNN_PRIV_H

#include "kernels/cpu/dnn.h"

#include <dnnl.h>

/* A description of memory, on the heap: oneDNN 3 keeps them there, and so do
 * our wrappers for oneDNN 2 (version.c). */
#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t pl_dnn_shape;
typedef const_dnnl_memory_desc_t pl_dnn_shape_ref;
#else
typedef dnnl_memory_desc_t *pl_dnn_shape;
typedef const dnnl_memory_desc_t *pl_dnn_shape_ref;
#endif

/* One argument of an operation.  Sizes in the scratch memory are in floats. */
typedef struct pl_dnn_arg {
    int id; /* DNNL_ARG_..., 0: none */
    bool written;
    bool batched;
    pl_dnn_shape given, native; /* of one slice, if batched */
    dnnl_primitive_t reorder;   /* NULL: the layouts are the same */
    int64_t temp;               /* offset of the memory in the native layout */
    int64_t spare; /* offset of a slice's share of a sum over slices */
} pl_dnn_arg;

struct pl_dnn_op {
    dnnl_engine_t engine;
    dnnl_primitive_t primitive;
    pl_dnn_arg args[PL_DNN_ARGS];
    const pl_kernels *kernels;
    int64_t batch;
    int64_t slice; /* rows per slice; divides the batch */
    int threads;
    pl_dnn_shape work; /* the primitive's own scratch memory */
    int64_t work_at;
    int64_t scratch; /* total */
};

/* The four descriptions of a layer, and the types of three; a bias is
 * float32. */
typedef struct pl_dnn_layer {
    pl_dnn_shape src, weights, bias, dst;
} pl_dnn_layer;

typedef struct pl_dnn_types {
    dnnl_data_type_t src, weights, dst;
} pl_dnn_types;

/* A dense layer, row-major. */
pl_status pl_dnn_dense_describe(pl_dnn_layer *out, const pl_dnn_opts *opts,
                                pl_dnn_types types) PL_MUST_CHECK;

/* --- version.c: what differs between oneDNN 2 and 3 --------------------- */

pl_status pl_dnn_shape_new(pl_dnn_shape *out, int ndims, const dnnl_dims_t dims,
                           dnnl_data_type_t type,
                           dnnl_format_tag_t tag) PL_MUST_CHECK;
pl_status pl_dnn_shape_copy(pl_dnn_shape *out,
                            pl_dnn_shape_ref from) PL_MUST_CHECK;
void pl_dnn_shape_free(pl_dnn_shape shape); /* NULL is fine */
dnnl_status_t pl_dnn_append_relu(dnnl_post_ops_t after);

/* The convolution or dense layer of one kind; a gradient refers to the
 * `forward` one. */
dnnl_status_t pl_dnn_layer_create(dnnl_primitive_desc_t *out,
                                  dnnl_engine_t engine, const pl_dnn_opts *opts,
                                  pl_dnn_kind kind, const pl_dnn_layer *layer,
                                  const_dnnl_primitive_attr_t attr,
                                  const_dnnl_primitive_desc_t forward);

/* Converts oneDNN's status to ours; `what` is the action that failed. */
pl_status pl_dnn_check(dnnl_status_t status, const char *what) PL_MUST_CHECK;

/* Limit oneDNN to instructions that these kernels use, and disable AMX where it
 * would crash. */
void pl_dnn_limit_isa(const pl_kernels *kernels);

/* Sets the OpenMP threads of the calling thread. */
void omp_set_num_threads(int threads); /* of libgomp */

#endif

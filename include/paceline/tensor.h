/* tensor.h - element types and shapes.
 *
 * Threads: pure functions. */
#ifndef PACELINE_TENSOR_H
#define PACELINE_TENSOR_H

#include <paceline/base.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define PL_DTYPE_LIST(X)                                                       \
    X(FLOAT32, "float32", 4)                                                   \
    X(UINT8, "uint8", 1)                                                       \
    X(INT32, "int32", 4)                                                       \
    X(INT64, "int64", 8)

typedef enum pl_dtype {
#define PL_DTYPE_ENUM(name, text, bytes) PL_##name,
    PL_DTYPE_LIST(PL_DTYPE_ENUM)
#undef PL_DTYPE_ENUM
} pl_dtype;

const char *pl_dtype_name(pl_dtype dtype);
int64_t pl_dtype_bytes(pl_dtype dtype);

#define PL_MAX_RANK 6

/* The first dimension of a tensor with one value per example.  Its size is
 * known only when a graph is planned for a batch size. */
#define PL_BATCH (-1)

typedef struct pl_shape {
    int rank; /* 0: a scalar */
    int64_t dim[PL_MAX_RANK];
} pl_shape;

/* PL_SHAPE(PL_BATCH, 784), PL_SHAPE(10, 784) */
#ifdef __cplusplus
extern "C++" {
template <typename... Size> constexpr pl_shape pl_shape_of(Size... size)
{
    return pl_shape { (int)sizeof...(size), { (int64_t)size... } };
}
}
#define PL_SHAPE(...) pl_shape_of(__VA_ARGS__)
#define PL_SCALAR     pl_shape_of()
#else
#define PL_SHAPE(...)                                                          \
    ((pl_shape) {                                                              \
        (int)(sizeof((int64_t[]) { __VA_ARGS__ }) / sizeof(int64_t)),          \
        { __VA_ARGS__ } })
#define PL_SCALAR ((pl_shape) { 0, { 0 } })
#endif

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif

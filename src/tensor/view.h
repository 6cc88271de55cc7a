/* view.h - how an operator reads a batch: in place.
 *
 * The rows of a batch are scattered over a data set's memory, often as uint8. A
 * view describes where and how to read them, so that a kernel selects, converts
 * and scales rows on the fly and no batch is copied.
 *
 * Threads: a plain value; the data set owns the memory. */
#ifndef PL_TENSOR_VIEW_H
#define PL_TENSOR_VIEW_H

#include "base/assert.h"
#include "paceline/tensor.h"

#include <stddef.h>

typedef struct pl_view {
    const void *data;      /* row 0 of the source */
    const uint32_t *index; /* row r is source row index[r]; NULL: row r */
    int64_t stride;        /* elements between source rows */
    pl_dtype dtype;
    float scale; /* a value is scale * element */
} pl_view;

static inline const uint8_t *pl_view_row_u8(const pl_view *view, int64_t row)
{
    int64_t source = view->index != NULL ? (int64_t)view->index[row] : row;
    return (const uint8_t *)view->data + source * view->stride;
}

static inline const float *pl_view_row_f32(const pl_view *view, int64_t row)
{
    int64_t source = view->index != NULL ? (int64_t)view->index[row] : row;
    return (const float *)view->data + source * view->stride;
}

/* The integer at column 0 of a row (labels): uint8, int32 or int64. */
static inline int64_t pl_view_label(const pl_view *view, int64_t row)
{
    int64_t source = view->index != NULL ? (int64_t)view->index[row] : row;
    int64_t at = source * view->stride;
    if (view->dtype == PL_UINT8)
        return ((const uint8_t *)view->data)[at];
    if (view->dtype == PL_INT32)
        return ((const int32_t *)view->data)[at];
    PL_ASSERT(view->dtype == PL_INT64); /* labels are integers */
    return ((const int64_t *)view->data)[at];
}

/* Rows [first, ...) of a view. */
pl_view pl_view_from(const pl_view *view, int64_t first);

#endif

#include "tensor/view.h"

#include "base/assert.h"

int64_t pl_view_label(const pl_view *view, int64_t row)
{
    int64_t source = view->index != NULL ? (int64_t)view->index[row] : row;
    int64_t at = source * view->stride;
    switch (view->dtype) {
    case PL_UINT8:
        return ((const uint8_t *)view->data)[at];
    case PL_INT32:
        return ((const int32_t *)view->data)[at];
    case PL_INT64:
        return ((const int64_t *)view->data)[at];
    case PL_FLOAT32:
        break;
    }
    PL_ASSERT(view->dtype != PL_FLOAT32); /* labels are integers */
    return 0;
}

pl_view pl_view_from(const pl_view *view, int64_t first)
{
    pl_view rest = *view;
    if (rest.index != NULL)
        rest.index += first;
    else
        rest.data = (const char *)rest.data +
                    first * rest.stride * pl_dtype_bytes(rest.dtype);
    return rest;
}

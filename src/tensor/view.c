/* The rows of a view from `first` on; the other functions are inline. */
#include "tensor/view.h"

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

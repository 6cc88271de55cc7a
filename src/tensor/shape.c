/* Shape arithmetic, with limits checked so that an element count never
 * overflows. */
#include "tensor/shape.h"

#include <stdio.h>

bool pl_shape_equal(pl_shape a, pl_shape b)
{
    if (a.rank != b.rank)
        return false;
    for (int d = 0; d < a.rank; d++)
        if (a.dim[d] != b.dim[d])
            return false;
    return true;
}

bool pl_shape_batched(pl_shape shape)
{
    return shape.rank > 0 && shape.dim[0] == PL_BATCH;
}

int64_t pl_shape_row(pl_shape shape)
{
    return pl_shape_count(shape, 1);
}

int64_t pl_shape_count(pl_shape shape, int64_t batch)
{
    int64_t count = 1;
    for (int d = 0; d < shape.rank; d++)
        count *= shape.dim[d] == PL_BATCH ? batch : shape.dim[d];
    return count;
}

const char *pl_shape_text(pl_shape shape, char text[PL_SHAPE_TEXT])
{
    size_t used = 0;
    text[used++] = '[';
    for (int d = 0; d < shape.rank && used < PL_SHAPE_TEXT; d++) {
        size_t room = PL_SHAPE_TEXT - used;
        const char *comma = d == 0 ? "" : ", ";
        int length = d == 0 && shape.dim[0] == PL_BATCH
                         ? snprintf(text + used, room, "batch")
                         : snprintf(text + used, room, "%s%lld", comma,
                                    (long long)shape.dim[d]);
        used += (size_t)length;
    }
    if (used > PL_SHAPE_TEXT - 2) /* very long shapes are cut off */
        used = PL_SHAPE_TEXT - 2;
    text[used] = ']';
    text[used + 1] = '\0';
    return text;
}

pl_status pl_shape_check(pl_shape shape)
{
    char text[PL_SHAPE_TEXT];
    if (shape.rank < 0 || shape.rank > PL_MAX_RANK)
        return PL_FAIL(PL_SHAPE, "a shape has %d dimensions, at most %d",
                       shape.rank, PL_MAX_RANK);
    int64_t count = 1;
    for (int d = pl_shape_batched(shape) ? 1 : 0; d < shape.rank; d++) {
        if (shape.dim[d] <= 0)
            return PL_FAIL(PL_SHAPE, "dimension %d of shape %s is not positive",
                           d, pl_shape_text(shape, text));
        if (shape.dim[d] > PL_SHAPE_ELEMENTS / count)
            return PL_FAIL(PL_SHAPE, "shape %s has more than 2^40 elements",
                           pl_shape_text(shape, text));
        count *= shape.dim[d];
    }
    return PL_OK;
}

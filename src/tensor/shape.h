/* shape.h - arithmetic on shapes; the types are public (paceline/tensor.h).
 *
 * Threads: pure functions. */
#ifndef PL_TENSOR_SHAPE_H
#define PL_TENSOR_SHAPE_H

#include "paceline/tensor.h"

#include <stdbool.h>

#define PL_SHAPE_ELEMENTS ((int64_t)1 << 40) /* the maximum */
#define PL_SHAPE_TEXT     128

bool pl_shape_equal(pl_shape a, pl_shape b);

/* True when the first dimension is PL_BATCH. */
bool pl_shape_batched(pl_shape shape);

/* Elements of one example: all dimensions but PL_BATCH multiplied. */
int64_t pl_shape_row(pl_shape shape);

/* All elements, with PL_BATCH as `batch`. */
int64_t pl_shape_count(pl_shape shape, int64_t batch);

/* "[batch, 28, 28]"; returns `text`. */
const char *pl_shape_text(pl_shape shape, char text[PL_SHAPE_TEXT]);

/* PL_SHAPE when a dimension is not positive (PL_BATCH may be first) or the
 * element count exceeds 2^40. */
pl_status pl_shape_check(pl_shape shape) PL_MUST_CHECK;

#endif

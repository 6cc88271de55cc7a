/* element.h - numbers in files: of any type and byte order.
 *
 * Threads: pure functions. */
#ifndef PL_DATA_DENSE_ELEMENT_H
#define PL_DATA_DENSE_ELEMENT_H

#include "paceline/tensor.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum pl_element_kind {
    PL_ELEMENT_UNSIGNED,
    PL_ELEMENT_SIGNED,
    PL_ELEMENT_FLOAT, /* of 4 or 8 bytes */
} pl_element_kind;

typedef struct pl_element {
    pl_element_kind kind;
    int bytes; /* 1, 2, 4 or 8 */
    bool big;  /* the most significant byte first */
} pl_element;

#define PL_ELEMENT_TEXT 16

/* "uint8", "float64"; returns `text`. */
const char *pl_element_name(pl_element element, char text[PL_ELEMENT_TEXT]);

/* True when a view can read these in place; the type goes to *dtype. */
bool pl_element_in_place(pl_element element, const void *at, pl_dtype *dtype);

/* The elements as float32.  Not for bytes of examples, which stay bytes
 * (pl_view divides them). */
void pl_element_floats(pl_element element, const uint8_t *from, size_t count,
                       float *to);

/* Labels as int32.  PL_FORMAT names the first that is not a label; PL_USAGE
 * when the type has no whole numbers. */
pl_status pl_element_labels(pl_element element, const uint8_t *from,
                            size_t count, int32_t *to) PL_MUST_CHECK;

#endif

/* set.h - a data set of dense examples in memory or in a mapped file, made by
 * the readers of arrays, tables and images.
 *
 * Threads: a set may be shared once made. */
#ifndef PL_DATA_DENSE_SET_H
#define PL_DATA_DENSE_SET_H

#include "data/dataset.h"
#include "data/dense/element.h"
#include "data/source.h"

/* The parts of a set, which takes ownership of `name`, `map`, `memory`,
 * `labels`, `targets` and `row_names`. */
typedef struct pl_dense_parts {
    char *name;       /* required */
    pl_map map;       /* holds `data`, or ... */
    void *memory;     /* ... this does; neither: `data` is borrowed */
    const void *data; /* required: [count, shape] */
    pl_dtype dtype;   /* of data: PL_UINT8 or PL_FLOAT32 */
    int64_t count;    /* examples; at least 1 */
    pl_shape shape;   /* of one example */
    int32_t *labels;  /* [count]; NULL: no labels... */
    float *targets;   /* ... or numbers: [count, classes] */
    char **row_names; /* [count], in one piece of memory; NULL: none */
    int32_t classes;  /* default: the largest label + 1; of targets required */
} pl_dense_parts;

/* Takes ownership of the parts, also when it fails. */
pl_status pl_dense_set_new(pl_dataset **out,
                           pl_dense_parts *parts) PL_MUST_CHECK;

void pl_dense_parts_close(pl_dense_parts *parts); /* a zeroed one is fine */

/* Give `parts` the count * shape elements at `from`, which is in parts->map or
 * parts->memory: in place when a view can read them, otherwise converted into
 * memory of their own. */
pl_status pl_dense_take_elements(pl_dense_parts *parts, pl_element element,
                                 const uint8_t *from) PL_MUST_CHECK;

/* Bring the channels of images [H, W, C] to the front, as models expect them,
 * when `channels` says that they are last, or leaves it open and the sizes are
 * unambiguous (at most 4 channels).  The data is copied. */
pl_status pl_dense_channels_first(pl_dense_parts *parts,
                                  pl_channel_order channels) PL_MUST_CHECK;

/* PL_USAGE: the source has no test examples of its own. */
pl_status pl_dense_no_test(const char *name) PL_MUST_CHECK;

#endif

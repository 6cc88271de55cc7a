/* set.h - a data set of dense examples that all lie in memory or in a mapped
 * file: what the readers of arrays, tables and images end in.
 *
 * Threads: a set may be shared once made. */
#ifndef PL_DATA_DENSE_SET_H
#define PL_DATA_DENSE_SET_H

#include "data/dataset.h"
#include "data/dense/element.h"
#include "data/source.h"

/* What a set is made of.  `name`, `map`, `memory`, `labels`,
 * `targets` and `row_names` become the set's. */
typedef struct pl_dense_parts {
    char *name;       /* required */
    pl_map map;       /* what `data` lies in, or ... */
    void *memory;     /* ... this; neither: it is borrowed for good */
    const void *data; /* required: [count, shape] */
    pl_dtype dtype;   /* of data: PL_UINT8 or PL_FLOAT32 */
    int64_t count;    /* examples; at least 1 */
    pl_shape shape;   /* of one example */
    int32_t *labels;  /* [count]; NULL: not labelled... */
    float *targets;   /* ... or by numbers: [count, classes] */
    char **row_names; /* [count], in one piece of memory; NULL: none */
    int32_t classes;  /* default: the largest label + 1; of targets required */
} pl_dense_parts;

/* The parts are taken, also when the call fails. */
pl_status pl_dense_set_new(pl_dataset **out,
                           pl_dense_parts *parts) PL_MUST_CHECK;

void pl_dense_parts_close(pl_dense_parts *parts); /* a zeroed one is fine */

/* Let `parts` have count * shape elements that begin at `from`, which lies in
 * parts->map or parts->memory: in place where a view can read them, else
 * converted into memory of its own. */
pl_status pl_dense_take_elements(pl_dense_parts *parts, pl_element element,
                                 const uint8_t *from) PL_MUST_CHECK;

/* Bring the channels of images [H, W, C] to the front, as models expect them,
 * where `channels` says that they are last, or leaves it open and the sizes
 * leave no doubt (at most 4 channels).  The data is copied. */
pl_status pl_dense_channels_first(pl_dense_parts *parts,
                                  pl_channel_order channels) PL_MUST_CHECK;

/* PL_USAGE: the source has no test examples of its own. */
pl_status pl_dense_no_test(const char *name) PL_MUST_CHECK;

#endif

/* record.h - one dense example: where its parts are in a tf.train.Example.
 *
 * Threads: pure functions. */
#ifndef PL_DATA_EXAMPLES_RECORD_H
#define PL_DATA_EXAMPLES_RECORD_H

#include "data/source.h"

typedef struct pl_example_parts {
    const uint8_t *data; /* bytes, or an encoded FloatList */
    size_t bytes;
    const char *name; /* of their feature */
    bool floats;
    bool labelled;
    int64_t label;
    int64_t height, width, depth; /* 0: not given */
} pl_example_parts;

/* PL_NOTFOUND when no feature holds an example. */
pl_status pl_example_parts_find(pl_example_parts *out, const uint8_t *data,
                                size_t bytes,
                                const pl_source_opts *opts) PL_MUST_CHECK;

/* The floats; PL_FORMAT when their number is not `count`. */
pl_status pl_example_floats(const pl_example_parts *parts, float *to,
                            size_t count) PL_MUST_CHECK;
/* How many there are. */
pl_status pl_example_float_count(const pl_example_parts *parts,
                                 size_t *count) PL_MUST_CHECK;

/* True when the message has a feature of that name. */
bool pl_example_has(const uint8_t *data, size_t bytes, const char *name);

#endif

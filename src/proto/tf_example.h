/* tf_example.h - tf.train.Example, read in place.
 *
 * Three lists of an example are found by their names, everything else is
 * skipped.  Nothing is copied or allocated: a list points into the message
 * until it is unpacked.  The wire format is checked strictly; packed and single
 * elements, repeated keys (the last one counts) and unknown fields are handled
 * by the rules of protocol buffers.
 *
 * Threads: any. */
#ifndef PL_PROTO_TF_EXAMPLE_H
#define PL_PROTO_TF_EXAMPLE_H

#include "paceline/base.h"

#include <stddef.h>
#include <stdint.h>

typedef enum pl_tf_kind {
    PL_TF_NONE,  /* absent */
    PL_TF_EMPTY, /* present, without a list */
    PL_TF_BYTES,
    PL_TF_FLOATS,
    PL_TF_INTS,
} pl_tf_kind;

/* A FloatList or an Int64List inside the message. */
typedef struct pl_tf_list {
    const char *name;  /* of the feature; given */
    size_t name_bytes; /* given */
    pl_tf_kind kind;   /* found, like the rest */
    const uint8_t *data;
    size_t bytes;
} pl_tf_list;

/* Find the lists.  PL_FORMAT: the message is malformed. */
pl_status pl_tf_example_find(const uint8_t *data, size_t bytes,
                             pl_tf_list *lists, int count) PL_MUST_CHECK;

/* The elements of a list of that kind.  `out` has room for one per byte of the
 * list (floats: per four). */
pl_status pl_tf_list_ints(const pl_tf_list *list, int64_t *out,
                          size_t *count) PL_MUST_CHECK;
pl_status pl_tf_list_floats(const pl_tf_list *list, float *out,
                            size_t *count) PL_MUST_CHECK;

/* An example to be written. */
typedef struct pl_tf_example {
    const char *label_name, *index_name, *value_name;
    int64_t label;
    const uint64_t *ids;
    const float *values; /* NULL: none */
    size_t count;
} pl_tf_example;

/* The most bytes it takes; and write it, returning its bytes. */
size_t pl_tf_example_room(const pl_tf_example *example);
size_t pl_tf_example_write(const pl_tf_example *example, uint8_t *out);

#endif

/* examples.h - TFRecord files of dense examples, as TensorFlow's own scripts
 * write MNIST and CIFAR: the pixels as bytes, raw or as a PNG or JPEG file, or
 * numbers as floats, with an integer label.
 *
 * Threads: any. */
#ifndef PL_DATA_EXAMPLES_EXAMPLES_H
#define PL_DATA_EXAMPLES_EXAMPLES_H

#include "data/sparse/files.h"

/* True when a source tfrecord:PLACE holds dense examples: the first one has
 * bytes or floats under a usual name or that of opts->image_feature, and no
 * ids.  Packed files need the name. */
bool pl_examples_are_dense(const char *place, const pl_source_opts *opts);

pl_status pl_examples_open(pl_dataset **out, const char *place, pl_split split,
                           const pl_source_opts *opts) PL_MUST_CHECK;
/* The same for bytes in memory, which must stay valid: for tests. */
pl_status pl_examples_open_memory(pl_dataset **out, const uint8_t *data,
                                  size_t bytes,
                                  const pl_source_opts *opts) PL_MUST_CHECK;

#endif

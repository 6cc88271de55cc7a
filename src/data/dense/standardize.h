/* standardize.h - a dense set with mean 0 and deviation 1.
 *
 * A table has a mean and a deviation for each feature, images have one for each
 * channel.  They are computed from the training examples and kept in the
 * encoding; a feature that never changes is only shifted.
 *
 * Threads: any. */
#ifndef PL_DATA_DENSE_STANDARDIZE_H
#define PL_DATA_DENSE_STANDARDIZE_H

#include "data/dataset.h"
#include "data/dense/encoding.h"

/* Replace *out, which is owned by the new set on success, by one whose features
 * are float32 in memory.  Values missing in `encoding` are learned. */
pl_status pl_standardize(pl_dataset **out, pl_encoding *encoding) PL_MUST_CHECK;

#endif

/* synthetic.h - fake examples of any shape, to test and to time a model.
 *
 * Noise with a faint brightness pattern for each class, so that a loss falls:
 * uint8 features, int32 labels, everything a function of the seed.  Both
 * splits have the same patterns and different noise.
 *
 * Threads: any. */
#ifndef PL_DATA_SYNTHETIC_H
#define PL_DATA_SYNTHETIC_H

#include "data/source.h"

/* Uses shape (required), classes, examples and seed.  By default there are
 * 10,000 examples, or as many as fit 64 MB but at least 256; the test split has
 * a tenth of the examples, at least 256 if available. */
pl_status pl_synthetic_open(pl_dataset **out, pl_split split,
                            const pl_source_opts *opts) PL_MUST_CHECK;

#endif

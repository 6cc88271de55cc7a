/* synthetic_sparse.h - fake clicks: millions of features, 39 per example.
 *
 * 13 fields of 16 buckets, like counts on a logarithmic scale, and 26 fields of
 * categories whose ranks are distributed by Zipf's law (exponent 1).  Ids are
 * numbered approximately by frequency: rank by rank, with the fields
 * interleaved.  All values are 1.  Every feature has a hidden weight; a label
 * is drawn from their logistic model, so a trained model is better than a
 * guess, but cannot be perfect.  Everything is a function of the seed; both
 * splits have the same hidden weights.
 *
 * Threads: any. */
#ifndef PL_DATA_SYNTHETIC_SPARSE_H
#define PL_DATA_SYNTHETIC_SPARSE_H

#include "data/source.h"

#define PL_CLICK_FEATURES  33762578
#define PL_CLICK_NON_ZEROS 39

/* Uses examples (default 200,000), features (default PL_CLICK_FEATURES, at
 * least 256), seed and threads.  The test split has a tenth of the examples, at
 * least 256 if available. */
pl_status pl_synthetic_sparse_open(pl_dataset **out, pl_split split,
                                   const pl_source_opts *opts) PL_MUST_CHECK;

#endif

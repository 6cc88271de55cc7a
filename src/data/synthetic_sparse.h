/* synthetic_sparse.h - fake clicks: millions of features, 39 an example.
 *
 * 13 fields of 16 buckets, like counts on a logarithmic scale, and 26 fields
 * of categories whose ranks are distributed by Zipf's law (exponent 1).  Ids
 * are numbered about by frequency: rank by rank, the fields side by side.  All
 * values are 1.  Every feature has a hidden weight; a label is drawn from the
 * logistic model they make, so a trained model can be told from a guess, and
 * cannot be perfect.  Everything is a function of the seed; both splits have
 * the same hidden weights.
 *
 * Threads: any. */
#ifndef PL_DATA_SYNTHETIC_SPARSE_H
#define PL_DATA_SYNTHETIC_SPARSE_H

#include "data/source.h"

#define PL_CLICK_FEATURES  33762578
#define PL_CLICK_NON_ZEROS 39

/* Uses examples (default 200,000), features (default PL_CLICK_FEATURES, at
 * least 256), seed and threads.  The test split has a tenth of the examples,
 * at least 256 if there are so many. */
pl_status pl_synthetic_sparse_open(pl_dataset **out, pl_split split,
                                   const pl_source_opts *opts) PL_MUST_CHECK;

#endif

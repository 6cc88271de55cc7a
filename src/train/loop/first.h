/* first.h - describes initial parameter values instead of sending them.
 *
 * A table of millions of weights begins as zeros or as random numbers from the
 * seed.  A task that holds a range of it fills that range itself, from a JSON
 * description: the seed, and for each tensor its name, its place in the block
 * and its initializer.
 *
 * Threads: pure functions. */
#ifndef PL_TRAIN_LOOP_FIRST_H
#define PL_TRAIN_LOOP_FIRST_H

#include "base/json/json.h"
#include "nn/model.h"

/* For a network of vectors, such as a sparse network. */
pl_status pl_first_describe(pl_json **out, const pl_network *network,
                            uint64_t seed) PL_MUST_CHECK;

typedef struct pl_first_range {
    int64_t first, count;
} pl_first_range;

/* Fill params[0 .. part.count-1], the range of the block that begins at
 * part.first.  A description from a peer is not trusted: PL_FORMAT,
 * PL_USAGE. */
pl_status pl_first_fill(const pl_json *description, pl_first_range part,
                        float *params) PL_MUST_CHECK;

#endif

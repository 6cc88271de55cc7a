/* first.h - the first values of parameters, said instead of sent.
 *
 * A table of millions of weights begins as zeros, or as numbers that follow
 * from the seed.  Who holds a part of it makes that part itself, from a
 * description as JSON: the seed, and of each tensor its name, its place in the
 * block and its initializer.
 *
 * Threads: pure functions. */
#ifndef PL_TRAIN_LOOP_FIRST_H
#define PL_TRAIN_LOOP_FIRST_H

#include "base/json/json.h"
#include "nn/model.h"

/* Of a network of vectors, as sparse ones are. */
pl_status pl_first_describe(pl_json **out, const pl_network *network,
                            uint64_t seed) PL_MUST_CHECK;

typedef struct pl_first_range {
    int64_t first, count;
} pl_first_range;

/* Fill params[0 .. part.count-1], the part of the block that begins at
 * part.first.  What comes from a peer is not trusted: PL_FORMAT, PL_USAGE. */
pl_status pl_first_fill(const pl_json *description, pl_first_range part,
                        float *params) PL_MUST_CHECK;

#endif

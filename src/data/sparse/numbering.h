/* numbering.h - new numbers for ids, the most frequent first.
 *
 * A table whose most frequent weights are adjacent is faster, and Hogwild's
 * threads have copies of the first ones (kernels/hogwild.h).  A numbering is
 * made from the counts of a data set, and kept in a file to number other data
 * alike: a line for each id, in the order of the new numbers.
 *
 * Threads: one at a time; once finished, lookups from any. */
#ifndef PL_DATA_SPARSE_NUMBERING_H
#define PL_DATA_SPARSE_NUMBERING_H

#include "data/dataset.h"

#define PL_NUMBERING_NONE (-1)

typedef struct pl_numbering pl_numbering;

pl_status pl_numbering_new(pl_numbering **out) PL_MUST_CHECK;
void pl_numbering_free(pl_numbering *numbering); /* NULL is fine */

/* Count the ids of a batch; then give each its number, ties in the order of
 * their ids. */
pl_status pl_numbering_count(pl_numbering *numbering,
                             const pl_batch *batch) PL_MUST_CHECK;
pl_status pl_numbering_finish(pl_numbering *numbering) PL_MUST_CHECK;

pl_status pl_numbering_save(const pl_numbering *numbering,
                            const char *path) PL_MUST_CHECK;
pl_status pl_numbering_load(pl_numbering **out, const char *path) PL_MUST_CHECK;
/* The same from text in memory, called `name` in messages. */
pl_status pl_numbering_parse(pl_numbering **out, const char *text, size_t bytes,
                             const char *name) PL_MUST_CHECK;

/* How many ids have a number. */
int64_t pl_numbering_size(const pl_numbering *numbering);

/* Identifies a numbering, never 0: the CRC32C of its ids as u64, little-endian,
 * in the order of their numbers; 1 where that is 0. */
uint32_t pl_numbering_mark(const pl_numbering *numbering);

/* The new number of an id, or PL_NUMBERING_NONE. */
int64_t pl_numbering_find(const pl_numbering *numbering, uint64_t id);

#endif

/* renumber.h - batches with new ids, for `data convert --renumber`.
 *
 * Threads: one. */
#ifndef PL_APP_DATA_RENUMBER_H
#define PL_APP_DATA_RENUMBER_H

#include "app/data/pass.h"
#include "data/sparse/numbering.h"
#include "data/sparse/rows.h"

typedef struct pl_renumber {
    pl_numbering *numbering;
    pl_sparse_rows rows; /* of the last batch */
    int64_t left_out;    /* non-zeros whose id has no number */
} pl_renumber;

/* Read the numbering from `path`.  If the file does not exist, compute it from
 * all examples of the source and write it there. */
pl_status pl_renumber_init(pl_renumber *renumber, const char *path,
                           const char *source, const pl_source_opts *opts,
                           bool quiet) PL_MUST_CHECK;
void pl_renumber_close(pl_renumber *renumber); /* a zeroed one is fine */

/* The same batch with its new ids; valid until the next call. */
pl_status pl_renumber_batch(pl_renumber *renumber, const pl_batch *batch,
                            pl_batch *out) PL_MUST_CHECK;

#endif

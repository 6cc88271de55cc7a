/* set.h - a data set of sparse examples in files.
 *
 * Small files are decoded once and shuffled as a whole, like dense sets.
 * Larger ones, or any when --shuffle-buffer is given, are read in windows: see
 * stream.h.  Either way the number of examples is known from the start, since
 * counting lines or record lengths is cheap.
 *
 * Threads: a set may be shared once made. */
#ifndef PL_DATA_SPARSE_SET_H
#define PL_DATA_SPARSE_SET_H

#include "base/thread.h"
#include "data/sparse/formats/format.h"

typedef struct pl_sparse_set {
    pl_dataset base;
    const pl_sparse_format *format;
    pl_source_opts opts; /* complete; texts are borrowed */
    pl_sparse_file *files;
    int32_t file_count;
    pl_sparse_blocks blocks; /* constant except `bad` */
    uint64_t bound;          /* ids are below this */
    pl_sparse_rows rows;     /* all examples; empty: streamed */
    bool in_memory;
    pl_mutex lock;
    int64_t bad;      /* examples skipped so far; guarded by lock, */
    unsigned labels;  /* as are PL_LABEL_... seen, */
    uint64_t largest; /* and the largest id */
} pl_sparse_set;

/* The files that match `pattern`; PL_NOTFOUND when none does. */
pl_status pl_sparse_open(pl_dataset **out, const pl_sparse_format *format,
                         const char *pattern,
                         const pl_source_opts *opts) PL_MUST_CHECK;

/* The same for bytes in memory, which must stay valid, named "memory": for
 * tests. */
pl_status pl_sparse_open_memory(pl_dataset **out,
                                const pl_sparse_format *format,
                                const uint8_t *data, size_t bytes,
                                const pl_source_opts *opts) PL_MUST_CHECK;

/* Replace `rows` by the examples of block number `index`.  Bad ones are counted
 * once per block. */
pl_status pl_sparse_set_decode(pl_sparse_set *set, int64_t index,
                               pl_sparse_rows *rows) PL_MUST_CHECK;

/* Malformed examples that were skipped so far. */
int64_t pl_sparse_set_bad(pl_sparse_set *set);

/* True when the set is one of these. */
bool pl_sparse_set_is(const pl_dataset *set);

#endif

/* loader.h - the thread that decodes the windows of a stream.
 *
 * Two windows: one in use, one being made.  Taking a window also names the next
 * one to make.
 *
 * Threads: driven by one. */
#ifndef PL_DATA_SPARSE_LOADER_H
#define PL_DATA_SPARSE_LOADER_H

#include "data/sparse/plan.h"

typedef struct pl_loader pl_loader;

/* A window by its epoch and number. */
typedef struct pl_loader_key {
    int64_t epoch, window;
} pl_loader_key;

/* Both must outlive the loader. */
pl_status pl_loader_new(pl_loader **out, pl_sparse_set *set,
                        const pl_stream_share *share,
                        const pl_reader_opts *opts) PL_MUST_CHECK;
void pl_loader_free(pl_loader *loader); /* NULL is fine */

/* The examples of a window, valid until the next call, which will probably take
 * `next` (epoch -1: none). */
pl_status pl_loader_take(pl_loader *loader, pl_loader_key key,
                         pl_loader_key next,
                         const pl_sparse_rows **rows) PL_MUST_CHECK;

#endif

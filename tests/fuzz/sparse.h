/* sparse.h - what the fuzz targets of sparse formats have in common. */
#ifndef PL_TESTS_FUZZ_SPARSE_H
#define PL_TESTS_FUZZ_SPARSE_H

#include "base/assert.h"
#include "data/sparse/set.h"

/* Whatever was accepted reads to the end, and all of it is sound. */
static inline void fuzz_pass(pl_dataset *set)
{
    pl_reader *reader;
    pl_batch batch;
    PL_ASSERT(pl_reader_new(
                  &reader, set,
                  &(pl_reader_opts) { .batch = 3, .one_pass = true }) == PL_OK);
    while (pl_reader_next(reader, &batch) == PL_OK && batch.rows > 0) {
        for (int64_t r = 0; r < batch.rows; r++) {
            int64_t label = pl_view_label(&batch.labels, r);
            PL_ASSERT(label == 0 || label == 1);
            PL_ASSERT(batch.row_start[r] <= batch.row_start[r + 1]);
        }
        for (int64_t i = batch.row_start[0]; i < batch.row_start[batch.rows];
             i++)
            PL_ASSERT(batch.ids[i] < (uint64_t)set->feature_count);
    }
    pl_reader_free(reader);
}

/* The first byte chooses the settings. */
static inline void fuzz_sparse(const pl_sparse_format *format,
                               const uint8_t *data, size_t bytes)
{
    if (bytes == 0)
        return;
    pl_dataset *set;
    pl_source_opts opts = {
        .threads = 1,
        .skip_bad = data[0] & 1 ? 3 : 0,
        .features = data[0] & 2 ? 1000 : 0,
        .shuffle_buffer = data[0] & 4 ? 2 : 0,
    };
    if (pl_sparse_open_memory(&set, format, data + 1, bytes - 1, &opts) !=
        PL_OK)
        return;
    fuzz_pass(set);
    pl_dataset_free(set);
}

#endif

/* memory.h - the inside of the public pl_data (paceline/data.h), and its data
 * set.
 *
 * A data set that is opened here is small: it points into the pl_data, which
 * must outlive it.  So each task of a job opens its own, and pl_dataset_keep of
 * one does not affect the others.
 *
 * Threads: a pl_data may be opened from any thread at the same time. */
#ifndef PL_DATA_MEMORY_MEMORY_H
#define PL_DATA_MEMORY_MEMORY_H

#include "data/dataset.h"
#include "paceline/data.h"

struct pl_data {
    pl_data_info info;
    char *name;
    pl_view features;      /* dense arrays */
    const int32_t *labels; /* NULL: none, or... */
    const float *targets;  /* ... numbers: [rows, info.classes] */
    const float *weights;  /* of the rows; NULL: all 1 */
    /* CSR; with 32-bit indices the first two are NULL: they are converted a
     * batch at a time, since a copy would double the memory. */
    const int64_t *row_start;
    const uint64_t *ids;
    const int32_t *row_start_32, *ids_32;
    const float *values; /* NULL: all 1 */
    pl_data_make *make;  /* callback; NULL: arrays */
    void *context;
    void *copies[5]; /* of borrowed arrays: freed with the data */
    int copy_count;
};

/* `local`: each worker reads all of it. */
pl_status pl_memory_open(pl_dataset **out, const pl_data *data,
                         bool local) PL_MUST_CHECK;

/* A reader that makes its batches row by row (gather.c): for rows that are not
 * in memory in the form of a batch. */
pl_status pl_gather_reader_new(pl_reader **out, pl_dataset *set,
                               const pl_data *data, int64_t first,
                               const pl_reader_opts *opts) PL_MUST_CHECK;

#endif

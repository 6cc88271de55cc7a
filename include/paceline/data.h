/* data.h - examples that a program supplies: arrays in memory, or a function
 * that generates them.
 *
 * A pl_data is a set of examples with their labels.  Any number of trainings
 * (paceline/train.h), tests and predictions (paceline/predict.h) may use it,
 * also at the same time.
 *
 * Arrays are borrowed: they must not change until the data and every training
 * that uses it have been freed.  With `copy` the library keeps a copy, and the
 * arrays may be freed as soon as the call returns.
 *
 * Every struct here may be zeroed first; a field that is 0 has its default.
 *
 * Threads: create and free a pl_data from one thread at a time; use it from
 * any. */
#ifndef PACELINE_DATA_H
#define PACELINE_DATA_H

#include <paceline/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct pl_data pl_data;

/* Examples of a fixed shape, one row each: a matrix, images, ... */
typedef struct pl_data_dense {
    const void *features;  /* required; rows in C order */
    int32_t dtype;         /* PL_FLOAT32 or PL_UINT8; default PL_FLOAT32 */
    int64_t rows;          /* required, >= 1 */
    pl_shape example;      /* of one row: PL_SHAPE(28, 28); required */
    int64_t stride;        /* elements from one row to the next; default: those
                              of an example */
    float scale;           /* an element x reads as scale * x; default 1 for
                              float32, 1/255 for uint8 */
    const int32_t *labels; /* [rows], from 0; NULL: none, for predictions */
    int32_t classes;       /* labels are below this; default: the largest
                              label + 1 */
    const float *targets;  /* instead of labels, for regression: numbers to be
                              predicted, [rows, target_count] */
    int32_t target_count;  /* numbers of a row; default 1 */
    const float *weights;  /* [rows], 0 or more: the weight of each row in
                              training; ignored in tests; NULL: all 1 */
    const char *name;      /* for messages and records; default "memory" */
    bool copy;
} pl_data_dense;

/* PL_USAGE for inconsistent arrays; the message has the row of the first wrong
 * label. */
pl_status pl_data_from_dense(pl_data **out,
                             const pl_data_dense *arrays) PL_MUST_CHECK;

/* Examples as compressed sparse rows, in the layout of scipy.sparse.csr_matrix.
 * The non-zeros of row r are the elements indptr[r] to indptr[r + 1] - 1 of
 * `indices` and `values`. */
typedef struct pl_data_csr {
    int64_t rows;          /* required, >= 1 */
    int64_t columns;       /* ids are below this; required, at most 2^32 - 1 */
    int32_t index_bits;    /* of indptr and of indices: 32 or 64, signed;
                              required */
    const void *indptr;    /* [rows + 1], begins with 0; required */
    const void *indices;   /* [indptr[rows]], each row in any order */
    const float *values;   /* [indptr[rows]]; NULL: all 1 */
    const int32_t *labels; /* [rows], 0 or 1; NULL: none, for predictions */
    const float *weights;  /* as for dense rows */
    const char *name;      /* default "memory" */
    bool copy;
} pl_data_csr;

/* PL_USAGE as above; the message has the row of the first index that is out of
 * range.  Borrowed 32-bit indices are not copied either: each batch is widened
 * separately. */
pl_status pl_data_from_csr(pl_data **out,
                           const pl_data_csr *arrays) PL_MUST_CHECK;

/* Write the examples with the numbers index[0] .. index[rows - 1], each below
 * the `rows` of the data, to the rows of `features`, and their labels to
 * `labels`.  The same number must always give the same example, or a run cannot
 * be repeated or resumed.  A result other than 0 fails the training.
 *
 * Called on the training threads, with several workers also concurrently.  Must
 * not call the library. */
typedef int pl_data_make(void *context, const uint32_t *index, int64_t rows,
                         float *features, int32_t *labels);

/* Examples that are generated on demand. */
typedef struct pl_data_callback {
    pl_data_make *make; /* required */
    void *context;      /* passed to make */
    int64_t rows;       /* how many examples an epoch has; required, at most
                           2^32 - 1 */
    pl_shape example;   /* of one; required */
    int32_t classes;    /* required */
    const char *name;   /* default "callback" */
} pl_data_callback;

pl_status pl_data_from_callback(pl_data **out,
                                const pl_data_callback *source) PL_MUST_CHECK;

typedef struct pl_data_info {
    int64_t rows;
    int64_t columns;  /* of sparse data; otherwise 0 */
    pl_shape example; /* of dense data */
    int32_t classes;  /* with numeric labels: the numbers per row */
    bool sparse;
    bool labelled;
    bool numeric; /* labels are numbers */
} pl_data_info;
void pl_data_describe(const pl_data *data, pl_data_info *out);

/* NULL is fine.  Trainings that use the data must have been freed. */
void pl_data_free(pl_data *data);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif

/* dataset.h - data sets, and the order of their examples.
 *
 * A data set hands out batches through a reader.  Sets that fit in memory (IDX,
 * digits, synthetic) give random access to rows and share one reader that
 * shuffles, then shards; streamed and sparse sets have their own reader behind
 * the same calls.
 *
 * Order (docs/design.md): in an epoch's keyed permutation, worker k of N with
 * M micro-batches of B takes at step s, for micro-batch m, the positions
 * [((s N + k) M + m) B, + B).  An epoch has floor(D / (N M B)) steps; the
 * positions after the last step are left out; since every epoch has its own
 * permutation, these are other examples each time.  A reader with keep_rest,
 * for a single worker only, reads them as a last, smaller batch instead.
 *
 * Threads: a data set may be shared once made; a reader belongs to one
 * thread. */
#ifndef PL_DATA_DATASET_H
#define PL_DATA_DATASET_H

#include "base/file/map.h"
#include "base/position.h"
#include "paceline/base.h"
#include "tensor/shape.h"
#include "tensor/view.h"

#include <stdbool.h>
#include <stdint.h>

/* One batch; its data is valid until the reader's next call. */
typedef struct pl_batch {
    int64_t rows;
    pl_view features; /* dense: [rows, features of an example] */
    pl_view labels;   /* integers, one a row; of a numeric set float32 */
    pl_view weights;  /* float32, one a row; no data: all equal */
    /* Sparse: the non-zeros of row r are [row_start[s], row_start[s + 1]),
     * where s is row_index[r], or r where that is NULL;
     * ids in any order.  Labels are 0 or 1. */
    const int64_t *row_start; /* NULL for dense batches */
    const uint32_t *row_index;
    const uint64_t *ids;
    const float *values; /* NULL: all 1 */
} pl_batch;

typedef struct pl_reader_opts {
    int64_t batch;         /* rows a batch; required, >= 1 */
    int32_t micro_batches; /* batches a step; default 1 */
    int32_t worker;        /* which of the workers this is; default 0 */
    int32_t workers;       /* default 1 */
    uint64_t seed;
    bool one_pass;  /* in file order, once, remainder kept: for testing */
    bool keep_rest; /* the last batch of an epoch has the remaining examples, so
                       none is left out; one worker, one micro-batch */
} pl_reader_opts;

typedef struct pl_dataset pl_dataset;

/* How images are changed each time they are read for training; zero: not. */
typedef struct pl_augment {
    bool flip;     /* mirror every second one, left to right */
    int32_t shift; /* move by up to so many pixels, filled with 0 */
    float crop;    /* crop to at least this share of each side */
} pl_augment;
typedef struct pl_reader pl_reader;

#define PL_READS_TEXT 160

typedef struct pl_reader_ops {
    pl_status (*next)(pl_reader *reader, pl_batch *out);
    void (*position)(const pl_reader *reader, pl_position *out);
    pl_status (*seek)(pl_reader *reader, const pl_position *position);
    void (*go)(pl_reader *reader, int64_t step);
    void (*describe)(const pl_reader *reader, char text[PL_READS_TEXT]);
    void (*free)(pl_reader *reader);
} pl_reader_ops;

struct pl_reader {
    const pl_reader_ops *ops;
    int64_t steps_per_epoch; /* -1: known only at the end */
    int64_t left_out; /* examples that an epoch of all workers leaves out */
};

typedef struct pl_dataset_ops {
    const char *kind;
    void (*free)(pl_dataset *set);
    /* Optional: a reader of its own.  Default: the shuffling reader over
     * `features` and `labels` below. */
    pl_status (*reader_new)(pl_reader **out, pl_dataset *set,
                            const pl_reader_opts *opts);
    /* Optional: pl_dataset_keep of a set with a reader of its own. */
    pl_status (*keep)(pl_dataset *set, int64_t first, int64_t count);
    /* The file that batches point into, when it can be changed by its owner;
     * NULL: none.  Default: none. */
    const pl_map *(*source)(const pl_dataset *set);
} pl_dataset_ops;

struct pl_dataset {
    const pl_dataset_ops *ops;
    char *name;         /* "mnist:data/mnist", for messages and records */
    int64_t count;      /* examples; -1: streamed, not known */
    pl_shape shape;     /* of one example, without the batch: [28, 28] */
    int32_t classes;    /* labels are 0 .. classes-1 */
    bool numeric;       /* labels are `classes` numbers per row instead */
    int64_t held_bytes; /* of memory, besides mapped files */
    bool local;         /* each worker has its own: not sharded */
    bool sparse;
    int64_t feature_count; /* sparse: ids are below it; 0 for dense sets */
    uint32_t numbering;    /* sparse: the mark of renumbered ids, see
                              sparse/numbering.h; 0: unchanged */
    pl_view features; /* index NULL; rows of pl_shape_row(shape) elements */
    pl_view labels;
    pl_view weights; /* as in pl_batch */
    /* Sparse sets in memory, as in pl_batch; others have their own reader. */
    const int64_t *row_start; /* [count + 1] */
    const uint64_t *ids;
    const float *values;
    pl_augment augment;           /* dense: for training readers */
    const char *const *row_names; /* of the examples, "cat/1.png"; or NULL */
};

void pl_dataset_free(pl_dataset *set); /* NULL is fine */

/* Keep only the examples first .. first+count-1 of a set without readers; a
 * stream keeps the blocks that begin there.  PL_UNSUPPORTED when that is
 * impossible. */
pl_status pl_dataset_keep(pl_dataset *set, int64_t first,
                          int64_t count) PL_MUST_CHECK;

/* PL_IO when the file that batches were read from has lost bytes: results since
 * the last check are invalid.  `thorough` costs a system call and also detects
 * a truncation that no read has hit. */
pl_status pl_dataset_check(const pl_dataset *set, bool thorough) PL_MUST_CHECK;

/* PL_USAGE when the set has too few examples for one step. */
pl_status pl_reader_new(pl_reader **out, pl_dataset *set,
                        const pl_reader_opts *opts) PL_MUST_CHECK;
void pl_reader_free(pl_reader *reader); /* NULL is fine */

/* The next batch.  A reader without one_pass never ends; with it, rows == 0
 * means that the pass is over. */
pl_status pl_reader_next(pl_reader *reader, pl_batch *out) PL_MUST_CHECK;

void pl_reader_position(const pl_reader *reader, pl_position *out);
/* PL_UNSUPPORTED: a position of another order, such as of another number of
 * workers. */
pl_status pl_reader_seek(pl_reader *reader,
                         const pl_position *position) PL_MUST_CHECK;
/* Continue with step number `step` of the run, from 0. */
void pl_reader_go(pl_reader *reader, int64_t step);

/* For readers: the PL_USAGE error of a set that is too small for one step, with
 * a batch that would fit; `share`: the examples of the worker with the
 * fewest. */
pl_status pl_reader_too_few(const pl_dataset *set, const pl_reader_opts *opts,
                            int64_t share) PL_MUST_CHECK;

/* What it reads of the set, as text to follow "reads ". */
void pl_reader_describe(const pl_reader *reader, char text[PL_READS_TEXT]);

#endif

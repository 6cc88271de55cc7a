/* dataset.h - where examples come from, and in which order.
 *
 * A data set hands out batches through a reader.  Sets that fit in memory
 * (IDX, digits, synthetic) give random access to rows and share one reader
 * that shuffles, then shards; streamed and sparse sets bring their own reader
 * behind the same calls.
 *
 * Order (docs/design.md): in an epoch's keyed permutation, worker k of N with
 * M micro-batches of B takes at step s, for micro-batch m, the positions
 * [((s N + k) M + m) B, + B).  An epoch has floor(D / (N M B)) steps; the
 * positions behind the last step are left out, and since every epoch has a
 * permutation of its own, they hold other examples each time.  A reader with
 * keep_rest, which only one worker can have, reads them as a last, smaller
 * batch instead.
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

/* One batch; what it points to lives until the reader's next call. */
typedef struct pl_batch {
    int64_t rows;
    pl_view features; /* dense: [rows, features of an example] */
    pl_view labels;   /* integers, one a row; of a numeric set float32 */
    pl_view weights;  /* float32, one a row; no data: all count alike */
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
    bool keep_rest; /* the last batch of an epoch is what is left, so that no
                       example is left out; one worker, one micro-batch */
} pl_reader_opts;

typedef struct pl_dataset pl_dataset;

/* How images are changed each time they are read for training; zero: not. */
typedef struct pl_augment {
    bool flip;     /* mirror every second one, left to right */
    int32_t shift; /* move by up to so many pixels; 0 comes in */
    float crop;    /* cut out a part of at least this share of each side */
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
    /* The file that batches point into, where its owner may change it; NULL:
     * none.  Default: none. */
    const pl_map *(*source)(const pl_dataset *set);
} pl_dataset_ops;

struct pl_dataset {
    const pl_dataset_ops *ops;
    char *name;         /* "mnist:data/mnist", for messages and records */
    int64_t count;      /* examples; -1: streamed, not known */
    pl_shape shape;     /* of one example, without the batch: [28, 28] */
    int32_t classes;    /* labels are 0 .. classes-1 */
    bool numeric;       /* labels are not: they are `classes` numbers a row */
    int64_t held_bytes; /* of memory, beside mapped files */
    bool local;         /* each worker has its own: not shared out */
    bool sparse;
    int64_t feature_count; /* sparse: ids are below it; 0 for dense sets */
    uint32_t numbering;    /* sparse: the mark of renumbered ids, see
                              sparse/numbering.h; 0: as they came */
    pl_view features; /* index NULL; rows of pl_shape_row(shape) elements */
    pl_view labels;
    pl_view weights; /* as in pl_batch */
    /* Sparse sets in memory, as in pl_batch; others bring a reader. */
    const int64_t *row_start; /* [count + 1] */
    const uint64_t *ids;
    const float *values;
    pl_augment augment;           /* dense: of what training readers give */
    const char *const *row_names; /* of the examples, "cat/1.png"; or NULL */
};

void pl_dataset_free(pl_dataset *set); /* NULL is fine */

/* Keep only the examples first .. first+count-1 of a set that no reader reads
 * yet; a stream keeps the blocks that begin there.  PL_UNSUPPORTED where that
 * cannot be done. */
pl_status pl_dataset_keep(pl_dataset *set, int64_t first,
                          int64_t count) PL_MUST_CHECK;

/* PL_IO when the file that batches were read from has lost bytes: what was
 * made of them since the last check is worthless.  `thorough` costs a system
 * call and also finds bytes that were lost without a trace in memory. */
pl_status pl_dataset_check(const pl_dataset *set, bool thorough) PL_MUST_CHECK;

/* PL_USAGE when the set has too few examples for one step. */
pl_status pl_reader_new(pl_reader **out, pl_dataset *set,
                        const pl_reader_opts *opts) PL_MUST_CHECK;
void pl_reader_free(pl_reader *reader); /* NULL is fine */

/* The next batch.  A reader without one_pass goes on for ever; with it,
 * rows == 0 says that the pass is over. */
pl_status pl_reader_next(pl_reader *reader, pl_batch *out) PL_MUST_CHECK;

void pl_reader_position(const pl_reader *reader, pl_position *out);
/* PL_UNSUPPORTED: a position of another order, as of other workers. */
pl_status pl_reader_seek(pl_reader *reader,
                         const pl_position *position) PL_MUST_CHECK;
/* Continue with step number `step` of the run, from 0. */
void pl_reader_go(pl_reader *reader, int64_t step);

/* For readers: the PL_USAGE of a set that is too small for one step, with the
 * batch that is not; `share`: the examples of the worker with the fewest. */
pl_status pl_reader_too_few(const pl_dataset *set, const pl_reader_opts *opts,
                            int64_t share) PL_MUST_CHECK;

/* What it reads of the set, for people, behind "reads ". */
void pl_reader_describe(const pl_reader *reader, char text[PL_READS_TEXT]);

#endif

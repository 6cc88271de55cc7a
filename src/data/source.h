/* source.h - data sets by name: --data SRC and --test-data SRC.
 *
 *   digits          built in: generated once, kept in a cache file
 *   mnist:DIR       the four MNIST files in DIR, plain or .gz
 *   idx:DIR         the same names, any image size and class count
 *   idx:IMAGES,LABELS
 *                   any two IDX files, of any element type
 *   npy:FILE,LABELS NumPy arrays; or one .npz archive of both
 *   npz:FILE[,IMAGES,LABELS]
 *                   an archive, with the names of its arrays
 *   csv:FILE        a table of numbers, one column of which is the label
 *   images:DIR      PNG and JPEG files, a folder for each class
 *   synthetic       fake inputs of the model's shape
 *   synthetic-sparse
 *                   fake clicks: 39 of millions of features an example
 *   libsvm:FILE     sparse examples as text, one per line
 *   tfrecord:FILE   the same as records of tf.train.Example
 *   criteo:FILE     click logs of 1 + 13 + 26 columns
 *   cache:FILE      the same, as `data convert` writes them
 *
 * FILE may be a pattern (data/day-*.gz) and gzip, zlib or zstd.
 *
 * Threads: any. */
#ifndef PL_DATA_SOURCE_H
#define PL_DATA_SOURCE_H

#include "data/dataset.h"
#include "data/dense/encoding.h"

/* The file formats of sparse examples: one file of sparse/formats/ and one row
 * here each. */
#define PL_SPARSE_FORMATS(X)                                                   \
    X(libsvm)                                                                  \
    X(tfrecord)                                                                \
    X(criteo)                                                                  \
    X(cache)

/* "digits | mnist:DIR | ..." */
#define PL_SPARSE_FORMAT_TEXT(name) " | " #name ":FILE"
#define PL_SOURCES_TEXT                                                        \
    "digits | mnist:DIR | idx:DIR | npy:FILE,LABELS | npz:FILE | csv:FILE | "  \
    "images:DIR | synthetic | synthetic-sparse" PL_SPARSE_FORMATS(             \
        PL_SPARSE_FORMAT_TEXT)

typedef enum pl_split {
    PL_SPLIT_TRAIN,
    PL_SPLIT_TEST,
} pl_split;

typedef enum pl_integers {
    PL_INTEGERS_LOG,    /* the logarithm is the value */
    PL_INTEGERS_BUCKET, /* the logarithm gives the feature */
} pl_integers;

/* Where the channels of images are in an example. */
typedef enum pl_channel_order {
    PL_CHANNELS_AUTO, /* last, when the sizes are unambiguous */
    PL_CHANNELS_FIRST,
    PL_CHANNELS_LAST,
} pl_channel_order;

typedef enum pl_colors {
    PL_COLORS_AUTO, /* those of the first image */
    PL_COLORS_GRAY,
    PL_COLORS_RGB,
} pl_colors;

typedef enum pl_header {
    PL_HEADER_AUTO, /* by the first two lines */
    PL_HEADER_YES,
    PL_HEADER_NO,
} pl_header;

typedef struct pl_source_opts {
    const char *cache_dir;  /* for generated data; NULL: generate in memory */
    pl_shape shape;         /* synthetic: of one example */
    int32_t classes;        /* synthetic; default 10 */
    int64_t examples;       /* synthetic; default 10,000, sparse: 200,000 */
    int64_t features;       /* sparse: ids are below this; default: of the
                               data, synthetic-sparse: 33,762,578 */
    double holdout;         /* the last part of the training data is the test
                               data; 0: each source's own */
    int64_t train_examples; /* train only on the last so many; default: all */
    uint64_t seed;          /* synthetic */
    int32_t threads;        /* to generate or decode with; default: the cores */
    bool no_shard;          /* each worker reads all its examples */
    /* Sparse examples in files; all texts must outlive the set. */
    int64_t shuffle_buffer;    /* examples; 0: small sets whole, otherwise
                                  32768 */
    int64_t skip_bad;          /* bad examples to skip */
    int64_t unpack_ratio;      /* packed files: see data/pack/unpack.h */
    const char *label_feature; /* tfrecord: names of the features; default */
    const char *index_feature; /* "label", "index" and "value"; without */
    const char *value_feature; /* values all are 1 */
    pl_integers integers;      /* criteo: the encoding of integers */
    uint32_t numbering;        /* of ids that are written to a cache */
    /* Dense examples; all texts must outlive the call. */
    pl_encoding *encoding; /* of training data; NULL: not kept */
    bool own_test;         /* a separate test part is required */
    bool unlabelled;       /* labels may be missing: to predict, count */
    bool numeric;          /* labels are numbers: those of npy, npz and csv */
    bool allow_missing;    /* numbers may be missing (NaN): to count */
    bool standardize;      /* mean 0, deviation 1 */
    double scale;          /* factor for the values in the file; 0: bytes are
                              divided by 255, all else is kept */
    const char *augment;   /* of training images: data/dense/augment.h */
    const char *example_shape; /* "28,28": of the values of an example */
    const char *image_feature; /* tfrecord: the feature with dense values */
    pl_channel_order channels; /* arrays */
    const char *image_size;    /* "64x64"; images; default: of the first */
    pl_colors colors;          /* images */
    const char *label_column, *delimiter, *categories, *ignore_columns,
        *fill_missing; /* csv */
    pl_header header;  /* csv */
    /* Optional: called during long operations. */
    void (*progress)(const char *what, int64_t done, int64_t all);
    bool any_ids; /* feature_count may be unknown, and is then 0 */
} pl_source_opts;

/* "criteo" for "criteo:FILE", a static string; "" for an unknown source. */
const char *pl_source_name(const char *source);
/* True for the name of a format of sparse examples in files. */
bool pl_source_is_format(const char *name);

/* Apply `opts` to a set that was not opened by pl_source_open: keep its
 * held-out part or the rest, the last train_examples of training data, and
 * encode its values. */
pl_status pl_source_prepare(pl_dataset **set, pl_split split,
                            const pl_source_opts *opts) PL_MUST_CHECK;
/* True when a source has dense examples, judging by its name or, for
 * tfrecord:FILE, by its first example. */
bool pl_source_is_dense(const char *source, const pl_source_opts *opts);

/* PL_USAGE for an unknown source (the nearest known one is suggested). */
pl_status pl_source_open(pl_dataset **out, const char *source, pl_split split,
                         const pl_source_opts *opts) PL_MUST_CHECK;

#endif

/* source.c - opens the data set that a source names: a built-in one, or files
 * of a sparse format; and separates the held-out part. */
#include "data/source.h"

#include "base/mem.h"
#include "base/param/param.h"
#include "data/csv/csv.h"
#include "data/dense/augment.h"
#include "data/dense/standardize.h"
#include "data/digits/digits.h"
#include "data/examples/examples.h"
#include "data/idx/idx.h"
#include "data/images/image_set.h"
#include "data/npy/npy.h"
#include "data/sparse/set.h"
#include "data/synthetic.h"
#include "data/synthetic_sparse.h"

#include <stdlib.h>
#include <string.h>

static pl_status open_digits(pl_dataset **out, const char *folder,
                             pl_split split, const pl_source_opts *opts)
{
    (void)folder;
    return pl_digits_open(out, split, opts);
}

static pl_status open_synthetic(pl_dataset **out, const char *folder,
                                pl_split split, const pl_source_opts *opts)
{
    (void)folder;
    return pl_synthetic_open(out, split, opts);
}

static pl_status open_synthetic_sparse(pl_dataset **out, const char *folder,
                                       pl_split split,
                                       const pl_source_opts *opts)
{
    (void)folder;
    return pl_synthetic_sparse_open(out, split, opts);
}

static const struct source {
    const char *name;
    const char *takes; /* what follows the colon; NULL: nothing */
    pl_status (*open)(pl_dataset **out, const char *folder, pl_split split,
                      const pl_source_opts *opts);
} sources[] = {
    { "digits", NULL, open_digits },
    { "mnist", "DIR", pl_idx_mnist_open },
    { "idx", "DIR", pl_idx_dataset_open },
    { "npy", "FILE", pl_npy_open },
    { "npz", "FILE", pl_npz_open },
    { "csv", "FILE", pl_csv_open },
    { "images", "DIR", pl_images_open },
    { "synthetic", NULL, open_synthetic },
    { "synthetic-sparse", NULL, open_synthetic_sparse },
};

#define SOURCES (sizeof sources / sizeof sources[0])

#define FORMAT(name) &pl_##name##_format,

const pl_sparse_format *const *pl_sparse_formats(void)
{
    static const pl_sparse_format *const list[] = { PL_SPARSE_FORMATS(FORMAT)
                                                        NULL };
    return list;
}

bool pl_source_is_format(const char *name)
{
    for (const pl_sparse_format *const *f = pl_sparse_formats(); *f != NULL;
         f++)
        if (strcmp((*f)->name, name) == 0)
            return true;
    return false;
}

#define COUNT(name) +1
#define FORMATS     (PL_SPARSE_FORMATS(COUNT))

static pl_status unknown(const char *text, size_t length)
{
    const char *names[SOURCES + FORMATS + 1] = { NULL };
    for (size_t i = 0; i < SOURCES; i++)
        names[i] = sources[i].name;
    for (size_t i = 0; i < FORMATS; i++)
        names[SOURCES + i] = pl_sparse_formats()[i]->name;
    char *word;
    PL_TRY(pl_mem_format(&word, "%.*s", (int)length, text));
    const char *nearest = pl_param_nearest(word, names);
    pl_status status =
        nearest != NULL
            ? PL_FAIL(PL_USAGE,
                      "unknown data source '%s'; did you mean '%s'? (%s)", word,
                      nearest, PL_SOURCES_TEXT)
            : PL_FAIL(PL_USAGE, "unknown data source '%s', expected %s", word,
                      PL_SOURCES_TEXT);
    pl_mem_free(word);
    return status;
}

/* A resolved source: one of `sources`, or a file format. */
typedef struct opener {
    const struct source *source;
    const pl_sparse_format *format; /* NULL: not a file of sparse examples */
    const char *name, *takes;
} opener;

static bool is_name(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

static bool find(const char *text, size_t length, opener *out)
{
    for (size_t i = 0; i < SOURCES; i++)
        if (is_name(sources[i].name, text, length)) {
            *out = (opener) { .source = &sources[i],
                              .name = sources[i].name,
                              .takes = sources[i].takes };
            return true;
        }
    for (const pl_sparse_format *const *f = pl_sparse_formats(); *f != NULL;
         f++)
        if (is_name((*f)->name, text, length)) {
            *out =
                (opener) { .format = *f, .name = (*f)->name, .takes = "FILE" };
            return true;
        }
    return false;
}

static pl_status open_found(const opener *found, pl_dataset **out,
                            const char *place, pl_split split,
                            const pl_source_opts *opts)
{
    if (found->format == &pl_tfrecord_format &&
        pl_examples_are_dense(place, opts))
        return pl_examples_open(out, place, split, opts);
    if (found->format != NULL)
        return pl_sparse_open(out, found->format, place, opts);
    return found->source->open(out, place, split, opts);
}

const char *pl_source_name(const char *source)
{
    opener found;
    return find(source, strcspn(source, ":"), &found) ? found.name : "";
}

bool pl_source_is_dense(const char *source, const pl_source_opts *opts)
{
    opener found;
    size_t length = strcspn(source, ":");
    if (!find(source, length, &found))
        return false;
    if (found.format == &pl_tfrecord_format)
        return source[length] != '\0' &&
               pl_examples_are_dense(source + length + 1, opts);
    return found.format == NULL && found.source->open != open_synthetic_sparse;
}

/* The last examples are for testing, all others for training. */
static pl_status keep_part(pl_dataset *set, pl_split split, double holdout)
{
    int64_t test = (int64_t)(holdout * (double)set->count);
    if (set->count > 0 && (test < 1 || test >= set->count))
        return PL_FAIL(PL_USAGE,
                       "--holdout %g: that would be %lld of the %lld examples "
                       "of %s",
                       holdout, (long long)test, (long long)set->count,
                       set->name);
    int64_t train = set->count > 0 ? set->count - test : 0;
    return split == PL_SPLIT_TRAIN ? pl_dataset_keep(set, 0, train)
                                   : pl_dataset_keep(set, train, test);
}

/* Only the last `count` examples are for training. */
static pl_status keep_last(pl_dataset *set, int64_t count)
{
    if (set->count < 0)
        return PL_FAIL(PL_USAGE,
                       "--train-examples %lld: the number of examples of %s "
                       "is known only at its end; convert it: data convert %s "
                       "cache:FILE",
                       (long long)count, set->name, set->name);
    if (count > set->count)
        return PL_FAIL(PL_USAGE,
                       "--train-examples %lld: %s has %lld examples to train "
                       "on",
                       (long long)count, set->name, (long long)set->count);
    return pl_dataset_keep(set, set->count - count, count);
}

static pl_status check_labels(const pl_dataset *set, const pl_source_opts *opts)
{
    if (opts->numeric && !set->numeric && set->labels.data != NULL)
        return PL_FAIL(PL_USAGE,
                       "%s has classes as labels, but this --loss needs "
                       "numbers; give them as npy:EXAMPLES,LABELS, npz:FILE or "
                       "csv:FILE",
                       set->name);
    if (!opts->numeric && set->numeric)
        return PL_FAIL(PL_USAGE,
                       "%s has numbers as labels: give --loss squared-error or "
                       "huber",
                       set->name);
    if (set->sparse || set->labels.data != NULL || opts->unlabelled)
        return PL_OK;
    return PL_FAIL(PL_USAGE, "%s has no labels to train or test with%s",
                   set->name,
                   strncmp(set->name, "npy:", 4) == 0
                       ? "; add their file: npy:EXAMPLES,LABELS"
                   : strncmp(set->name, "images:", 7) == 0
                       ? "; put the images of each class into a folder"
                       : "");
}

/* "28,28" instead of the source's shape. */
static pl_status reshape(pl_dataset *set, const char *text)
{
    pl_shape shape = PL_SCALAR;
    const char *at = text;
    char found[PL_SHAPE_TEXT];
    do {
        char *end;
        long long size = strtoll(at, &end, 10);
        if (end == at || size < 1 || shape.rank == PL_MAX_RANK - 1 ||
            (*end != ',' && *end != '\0'))
            return PL_FAIL(PL_USAGE,
                           "--example-shape %s: expected sizes separated by "
                           "commas, such as 28,28 or 3,32,32",
                           text);
        shape.dim[shape.rank++] = size;
        at = end + (*end == ',');
    } while (at[-1] == ',');
    if (pl_shape_check(shape) != PL_OK ||
        pl_shape_row(shape) != pl_shape_row(set->shape))
        return PL_FAIL(PL_USAGE,
                       "--example-shape %s: examples of %s have the shape %s, "
                       "which is another number of values",
                       text, set->name, pl_shape_text(set->shape, found));
    set->shape = shape;
    return PL_OK;
}

/* Generated examples do not support these options. */
static pl_status check_made(const pl_dataset *set, pl_split split,
                            const pl_source_opts *opts)
{
    const char *flag = opts->standardize ? "standardize"
                       : opts->scale > 0 ? "scale"
                       : opts->augment != NULL && split == PL_SPLIT_TRAIN
                           ? "augment"
                           : NULL;
    if (set->features.data != NULL || flag == NULL)
        return PL_OK;
    return PL_FAIL(PL_USAGE,
                   "--%s: the examples of %s are made when they are needed; "
                   "change them where they are made",
                   flag, set->name);
}

/* Apply scale, standardization and augmentation. */
static pl_status encode(pl_dataset **set, pl_split split,
                        const pl_source_opts *opts)
{
    pl_encoding here = { .learned = NULL };
    if ((*set)->sparse)
        return PL_OK;
    PL_TRY(check_made(*set, split, opts));
    if (opts->example_shape != NULL)
        PL_TRY(reshape(*set, opts->example_shape));
    if (opts->scale > 0)
        (*set)->features.scale = (float)opts->scale;
    if (opts->standardize) {
        pl_status status = pl_standardize(
            set, opts->encoding != NULL ? opts->encoding : &here);
        pl_encoding_close(&here);
        PL_TRY(status);
    }
    if (opts->augment != NULL && split == PL_SPLIT_TRAIN)
        return pl_augment_parse(&(*set)->augment, opts->augment);
    return PL_OK;
}

pl_status pl_source_prepare(pl_dataset **set, pl_split split,
                            const pl_source_opts *opts)
{
    if (opts->holdout > 0)
        PL_TRY(keep_part(*set, split, opts->holdout));
    if (split == PL_SPLIT_TRAIN && opts->train_examples > 0)
        PL_TRY(keep_last(*set, opts->train_examples));
    PL_TRY(check_labels(*set, opts));
    return encode(set, split, opts);
}

pl_status pl_source_open(pl_dataset **out, const char *source, pl_split split,
                         const pl_source_opts *opts)
{
    static const pl_source_opts defaults;
    size_t length = strcspn(source, ":");
    const char *rest = source + length;
    opener found;
    if (!find(source, length, &found))
        return unknown(source, length > 64 ? 64 : length);
    if (found.takes != NULL && (rest[0] == '\0' || rest[1] == '\0'))
        return PL_FAIL(PL_USAGE,
                       "data source '%s' does not name a %s, "
                       "expected %s:%s",
                       source, found.takes[0] == 'D' ? "folder" : "file",
                       found.name, found.takes);
    if (found.takes == NULL && rest[0] != '\0')
        return PL_FAIL(PL_USAGE,
                       "data source '%s', expected '%s' with nothing after it",
                       source, found.name);
    opts = opts != NULL ? opts : &defaults;
    bool part = opts->holdout > 0;
    pl_dataset *set;
    PL_TRY(open_found(&found, &set, found.takes != NULL ? rest + 1 : NULL,
                      part ? PL_SPLIT_TRAIN : split, opts));
    pl_status status = pl_source_prepare(&set, split, opts);
    set->local = opts->no_shard;
    if (status == PL_OK)
        *out = set;
    else
        pl_dataset_free(set);
    return status;
}

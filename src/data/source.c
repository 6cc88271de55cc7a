#include "data/source.h"

#include "base/mem.h"
#include "base/param.h"
#include "data/digits.h"
#include "data/idx.h"
#include "data/sparse/set.h"
#include "data/synthetic.h"
#include "data/synthetic_sparse.h"

#include <string.h>

static pl_status open_digits(pl_dataset **out, const char *folder,
                             pl_split split, const pl_source_opts *opts)
{
    (void)folder;
    return pl_digits_open(out, split, opts);
}

static pl_status open_mnist(pl_dataset **out, const char *folder,
                            pl_split split, const pl_source_opts *opts)
{
    (void)opts;
    return pl_idx_dataset_open(out, folder, split, true);
}

static pl_status open_idx(pl_dataset **out, const char *folder, pl_split split,
                          const pl_source_opts *opts)
{
    (void)opts;
    return pl_idx_dataset_open(out, folder, split, false);
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

static pl_status open_libsvm(pl_dataset **out, const char *files,
                             pl_split split, const pl_source_opts *opts)
{
    (void)split;
    return pl_sparse_open(out, &pl_libsvm_format, files, opts);
}

static pl_status open_cache(pl_dataset **out, const char *files, pl_split split,
                            const pl_source_opts *opts)
{
    (void)split;
    return pl_sparse_open(out, &pl_cache_format, files, opts);
}

static pl_status open_tfrecord(pl_dataset **out, const char *files,
                               pl_split split, const pl_source_opts *opts)
{
    (void)split;
    return pl_sparse_open(out, &pl_tfrecord_format, files, opts);
}

static pl_status open_criteo(pl_dataset **out, const char *files,
                             pl_split split, const pl_source_opts *opts)
{
    (void)split;
    return pl_sparse_open(out, &pl_criteo_format, files, opts);
}

static const struct source {
    const char *name;
    const char *takes; /* what follows the colon; NULL: nothing */
    pl_status (*open)(pl_dataset **out, const char *folder, pl_split split,
                      const pl_source_opts *opts);
} sources[] = {
    { "digits", NULL, open_digits },
    { "mnist", "DIR", open_mnist },
    { "idx", "DIR", open_idx },
    { "synthetic", NULL, open_synthetic },
    { "synthetic-sparse", NULL, open_synthetic_sparse },
    { "libsvm", "FILE", open_libsvm },
    { "tfrecord", "FILE", open_tfrecord },
    { "criteo", "FILE", open_criteo },
    { "cache", "FILE", open_cache },
};

#define SOURCES (sizeof sources / sizeof sources[0])

static pl_status unknown(const char *text, size_t length)
{
    const char *names[SOURCES + 1] = { NULL };
    for (size_t i = 0; i < SOURCES; i++)
        names[i] = sources[i].name;
    char *word;
    PL_TRY(pl_mem_format(&word, "%.*s", (int)length, text));
    const char *nearest = pl_param_nearest(word, names);
    pl_status status =
        nearest != NULL
            ? PL_FAIL(PL_USAGE,
                      "unknown data source '%s', did you mean '%s'? (%s)", word,
                      nearest, pl_source_list())
            : PL_FAIL(PL_USAGE, "unknown data source '%s', expected %s", word,
                      pl_source_list());
    pl_mem_free(word);
    return status;
}

/* The last examples are for testing, all others for training. */
static pl_status keep_part(pl_dataset *set, pl_split split, double holdout)
{
    int64_t test = (int64_t)(holdout * (double)set->count);
    if (set->count > 0 && (test < 1 || test >= set->count))
        return PL_FAIL(
            PL_USAGE, "--holdout %g: that is %lld of the %lld examples of %s",
            holdout, (long long)test, (long long)set->count, set->name);
    int64_t train = set->count > 0 ? set->count - test : 0;
    return split == PL_SPLIT_TRAIN ? pl_dataset_keep(set, 0, train)
                                   : pl_dataset_keep(set, train, test);
}

pl_status pl_source_open(pl_dataset **out, const char *source, pl_split split,
                         const pl_source_opts *opts)
{
    static const pl_source_opts defaults;
    size_t length = strcspn(source, ":");
    const char *rest = source + length;
    const struct source *found = NULL;
    for (size_t i = 0; i < SOURCES && found == NULL; i++)
        if (strlen(sources[i].name) == length &&
            memcmp(sources[i].name, source, length) == 0)
            found = &sources[i];
    if (found == NULL)
        return unknown(source, length > 64 ? 64 : length);
    if (found->takes != NULL && (rest[0] == '\0' || rest[1] == '\0'))
        return PL_FAIL(PL_USAGE, "data source '%s' names no %s, expected %s:%s",
                       source, found->takes[0] == 'D' ? "folder" : "file",
                       found->name, found->takes);
    if (found->takes == NULL && rest[0] != '\0')
        return PL_FAIL(PL_USAGE,
                       "data source '%s', expected '%s' with nothing behind it",
                       source, found->name);
    opts = opts != NULL ? opts : &defaults;
    bool part = opts->holdout > 0;
    pl_dataset *set;
    PL_TRY(found->open(&set, found->takes != NULL ? rest + 1 : NULL,
                       part ? PL_SPLIT_TRAIN : split, opts));
    pl_status status = part ? keep_part(set, split, opts->holdout) : PL_OK;
    set->local = opts->no_shard;
    if (status == PL_OK)
        *out = set;
    else
        pl_dataset_free(set);
    return status;
}

const char *pl_source_list(void)
{
    return "digits | mnist:DIR | idx:DIR | synthetic | synthetic-sparse | "
           "libsvm:FILE | tfrecord:FILE | criteo:FILE | cache:FILE";
}

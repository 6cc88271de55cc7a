/* writer.c - finds the kind of file that a target names. */
#include "data/dense/writer.h"

#include "data/idx/idx.h"

#include <string.h>

static pl_status write_idx(const pl_dataset *set, const char *place,
                           pl_split split, const pl_encoding *encoding)
{
    (void)encoding;
    return pl_dataset_write_idx(set, place, split);
}

static const struct kind {
    const char *name;
    bool numeric; /* supports numbers as labels */
    pl_status (*write)(const pl_dataset *set, const char *place, pl_split split,
                       const pl_encoding *encoding);
} kinds[] = {
    { "npy:", true, pl_npy_write },
    { "npz:", true, pl_npz_write },
    { "csv:", true, pl_csv_write },
    { "idx:", false, write_idx },
    { "images:", false, pl_images_write },
    { "tfrecord:", false, pl_examples_write },
};

static const struct kind *find(const char *target)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t bytes = strlen(kinds[i].name);
        if (strncmp(target, kinds[i].name, bytes) == 0 && target[bytes] != '\0')
            return &kinds[i];
    }
    return NULL;
}

pl_status pl_dense_write_check(const char *target)
{
    return find(target) != NULL
               ? PL_OK
               : PL_FAIL(PL_USAGE,
                         "dense examples cannot be written to '%s', expected "
                         "%s",
                         target, PL_DENSE_TARGETS_TEXT);
}

pl_status pl_dense_write(const pl_dataset *set, const char *target,
                         pl_split split, const pl_encoding *encoding)
{
    const struct kind *kind = find(target);
    PL_TRY(pl_dense_write_check(target));
    if (set->numeric && !kind->numeric)
        return PL_FAIL(PL_USAGE,
                       "%s has numbers as labels, which cannot be written to "
                       "%s: write npy:FILE,LABELS, npz:FILE or csv:FILE",
                       set->name, target);
    PL_TRY(kind->write(set, target + strlen(kind->name), split, encoding));
    return pl_dataset_check(set, true);
}

/* writer.h - writes dense examples to files that the sources of source.h read.
 *
 * Values are written unscaled, as stored in the set.  Files appear complete or
 * not at all.
 *
 * Threads: any. */
#ifndef PL_DATA_DENSE_WRITER_H
#define PL_DATA_DENSE_WRITER_H

#include "data/source.h"

/* "npy:FILE,LABELS | npz:FILE | ...", for messages. */
#define PL_DENSE_TARGETS_TEXT                                                  \
    "npy:FILE,LABELS, npz:FILE, csv:FILE, idx:DIR, images:DIR or "             \
    "tfrecord:FILE"

/* PL_USAGE when `target` is not one of these. */
pl_status pl_dense_write_check(const char *target) PL_MUST_CHECK;

/* Write a whole set.  `split` names the files of idx:DIR and the arrays of
 * npz:FILE; `encoding` the classes of images, and may be NULL. */
pl_status pl_dense_write(const pl_dataset *set, const char *target,
                         pl_split split,
                         const pl_encoding *encoding) PL_MUST_CHECK;

/* The kinds of files, in their folders. */
pl_status pl_npy_write(const pl_dataset *set, const char *place, pl_split split,
                       const pl_encoding *encoding) PL_MUST_CHECK;
pl_status pl_npz_write(const pl_dataset *set, const char *place, pl_split split,
                       const pl_encoding *encoding) PL_MUST_CHECK;
pl_status pl_csv_write(const pl_dataset *set, const char *place, pl_split split,
                       const pl_encoding *encoding) PL_MUST_CHECK;
pl_status pl_images_write(const pl_dataset *set, const char *place,
                          pl_split split,
                          const pl_encoding *encoding) PL_MUST_CHECK;
pl_status pl_examples_write(const pl_dataset *set, const char *place,
                            pl_split split,
                            const pl_encoding *encoding) PL_MUST_CHECK;

#endif

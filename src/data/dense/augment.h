/* augment.h - images that are changed a little, differently in each epoch:
 * mirrored, moved, cut.
 *
 * What becomes of an image is a function of seed, epoch and its number in the
 * set, so every worker, thread and resumed run makes the same of it.
 *
 * Threads: as for readers. */
#ifndef PL_DATA_DENSE_AUGMENT_H
#define PL_DATA_DENSE_AUGMENT_H

#include "data/dataset.h"

/* "flip,shift:4,crop:0.8"; PL_USAGE names the word that is none. */
pl_status pl_augment_parse(pl_augment *out, const char *text) PL_MUST_CHECK;

/* The reader of a set that has an augmentation; the options are complete. */
pl_status pl_augment_reader_new(pl_reader **out, const pl_dataset *set,
                                const pl_reader_opts *opts) PL_MUST_CHECK;

/* For tests: one image of [channels, height, width], as the key makes it. */
void pl_augment_image(const pl_augment *augment, uint64_t key, pl_shape shape,
                      pl_dtype dtype, const void *from, void *to);

#endif

/* augment.h - augmentation: images are mirrored, moved and cropped, differently
 * in each epoch.
 *
 * The result is a function of seed, epoch and the image's number in the set, so
 * it is the same for every worker, thread and resumed run.
 *
 * Threads: as for readers. */
#ifndef PL_DATA_DENSE_AUGMENT_H
#define PL_DATA_DENSE_AUGMENT_H

#include "data/dataset.h"

/* "flip,shift:4,crop:0.8"; PL_USAGE names the unknown word. */
pl_status pl_augment_parse(pl_augment *out, const char *text) PL_MUST_CHECK;

/* The reader of a set that has an augmentation; the options are complete. */
pl_status pl_augment_reader_new(pl_reader **out, const pl_dataset *set,
                                const pl_reader_opts *opts) PL_MUST_CHECK;

/* For tests: augment one image of [channels, height, width] by the key. */
void pl_augment_image(const pl_augment *augment, uint64_t key, pl_shape shape,
                      pl_dtype dtype, const void *from, void *to);

#endif

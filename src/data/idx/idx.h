/* idx.h - IDX files: the format of MNIST, plain or gzip.
 *
 * An IDX file is 0, 0, the element type, the number of dimensions, each
 * dimension as a big-endian uint32, then the elements, last dimension
 * fastest.  We take type 0x08, unsigned bytes.  A plain file is mapped and
 * read in place; a gzip file is unpacked into memory.
 *
 * Nothing in a file is believed before it is checked: a header must state
 * exactly the bytes that follow, and a gzip file may not state more than
 * deflate can make of its size, so no memory is allocated that no data backs.
 *
 * Threads: any; a pl_idx may be read by all once made. */
#ifndef PL_DATA_IDX_IDX_H
#define PL_DATA_IDX_IDX_H

#include "base/file/file.h"
#include "data/dataset.h"
#include "data/source.h"

#include <stddef.h>

typedef struct pl_idx {
    pl_shape shape;      /* rank 1 or more, all positive */
    const uint8_t *data; /* pl_shape_row(shape) elements */
    uint8_t *unpacked;   /* where they lie if the file was gzip, else NULL */
    pl_map map;          /* where they lie if the file is plain */
} pl_idx;

/* PL_FORMAT: one sentence on what was found and what was expected. */
pl_status pl_idx_init(pl_idx *idx, const char *path) PL_MUST_CHECK;

/* The same for a file's bytes in memory, which must outlive the pl_idx. */
pl_status pl_idx_init_memory(pl_idx *idx, const uint8_t *bytes,
                             size_t count) PL_MUST_CHECK;
void pl_idx_close(pl_idx *idx);

/* Have the elements in memory, also those of a plain file, so that what was
 * checked stays true. */
pl_status pl_idx_own(pl_idx *idx) PL_MUST_CHECK;

/* Write a plain IDX file; it appears complete or not at all. */
pl_status pl_idx_write(const char *path, pl_shape shape,
                       const uint8_t *data) PL_MUST_CHECK;

/* The images and labels of one split in `folder`: train-images-idx3-ubyte and
 * train-labels-idx1-ubyte, or t10k-..., each plain or with .gz, also with a
 * dot before idx.  `mnist` asks for 28 x 28 and 10 classes; otherwise classes
 * are counted over the labels of both splits. */
pl_status pl_idx_dataset_open(pl_dataset **out, const char *folder,
                              pl_split split, bool mnist) PL_MUST_CHECK;

/* Write a set of uint8 images as the two plain files of a split.  Makes the
 * folder; PL_UNSUPPORTED when the set does not fit the format. */
pl_status pl_dataset_write_idx(const pl_dataset *set, const char *folder,
                               pl_split split) PL_MUST_CHECK;

#endif

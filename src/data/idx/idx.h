/* idx.h - IDX files: the format of MNIST, plain or gzip.
 *
 * An IDX file is 0, 0, the element type, the number of dimensions, each
 * dimension as a big-endian uint32, then the elements, last dimension
 * fastest, most significant byte first.  A plain file is mapped and read in
 * place; a gzip file is unpacked into memory.
 *
 * Everything in a file is checked: a header must state exactly the bytes that
 * follow, and a gzip file may not state more than deflate can expand it to, so
 * memory is only allocated for data that exists.
 *
 * Threads: any; a pl_idx may be read by all once made. */
#ifndef PL_DATA_IDX_IDX_H
#define PL_DATA_IDX_IDX_H

#include "base/file/file.h"
#include "data/dataset.h"
#include "data/dense/element.h"
#include "data/source.h"

#include <stddef.h>

typedef struct pl_idx {
    pl_shape shape; /* rank 1 or more, all positive */
    pl_element element;
    const uint8_t *data; /* pl_shape_row(shape) elements */
    uint8_t *unpacked;   /* holds them if the file was gzip, otherwise NULL */
    pl_map map;          /* holds them if the file is plain */
} pl_idx;

/* PL_FORMAT: the message has what was found and what was expected. */
pl_status pl_idx_init(pl_idx *idx, const char *path) PL_MUST_CHECK;

/* The same for a file's bytes in memory, which must outlive the pl_idx. */
pl_status pl_idx_init_memory(pl_idx *idx, const uint8_t *bytes,
                             size_t count) PL_MUST_CHECK;
void pl_idx_close(pl_idx *idx);

/* Write a plain IDX file of PL_UINT8 or PL_FLOAT32 elements; it appears
 * complete or not at all. */
pl_status pl_idx_write(const char *path, pl_shape shape, pl_dtype dtype,
                       const void *data) PL_MUST_CHECK;

/* The examples and labels of one split in the folder `place`: files whose names
 * begin with train-images and train-labels, or t10k-... or test-..., each
 * plain or gzip.  Classes are counted over the labels of both splits.  Or
 * "EXAMPLES,LABELS", any two files; or one of examples without labels. */
pl_status pl_idx_dataset_open(pl_dataset **out, const char *place,
                              pl_split split,
                              const pl_source_opts *opts) PL_MUST_CHECK;

/* The same for a folder with 28 x 28 images of bytes and 10 classes. */
pl_status pl_idx_mnist_open(pl_dataset **out, const char *folder,
                            pl_split split,
                            const pl_source_opts *opts) PL_MUST_CHECK;

/* Write a set as the two plain files of a split.  Makes the folder;
 * PL_UNSUPPORTED when the set does not fit the format. */
pl_status pl_dataset_write_idx(const pl_dataset *set, const char *folder,
                               pl_split split) PL_MUST_CHECK;

#endif

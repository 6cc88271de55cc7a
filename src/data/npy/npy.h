/* npy.h - NumPy's array files: .npy, and .npz, a zip archive of them.
 *
 * An array is read in place; one that is compressed in an archive is unpacked
 * into memory.  Every size in a file is checked against its bytes.
 *
 * Threads: any. */
#ifndef PL_DATA_NPY_NPY_H
#define PL_DATA_NPY_NPY_H

#include "data/dense/element.h"
#include "data/dense/set.h"

/* The head of an array. */
typedef struct pl_npy {
    pl_element element;
    pl_shape shape;    /* all dimensions positive */
    size_t head_bytes; /* the elements follow */
} pl_npy;

/* Read the head from the first `bytes` of an array of `all` bytes. PL_FORMAT
 * when it is malformed or does not match the elements that follow;
 * PL_UNSUPPORTED for Fortran order and types that are not numbers. */
pl_status pl_npy_parse(pl_npy *out, const uint8_t *data, size_t bytes,
                       uint64_t all) PL_MUST_CHECK;

/* The most bytes that pl_npy_parse needs. */
#define PL_NPY_HEAD_MOST 65536

/* "npy:IMAGES[,LABELS]", each a .npy file, or one .npz archive, in which the
 * arrays of a split are found by their names; "npz:FILE[,IMAGES,LABELS]" names
 * them. */
pl_status pl_npy_open(pl_dataset **out, const char *place, pl_split split,
                      const pl_source_opts *opts) PL_MUST_CHECK;
pl_status pl_npz_open(pl_dataset **out, const char *place, pl_split split,
                      const pl_source_opts *opts) PL_MUST_CHECK;

/* Write a head for pl_npy_parse: format 1.0, little-endian.  Returns the bytes
 * of the head, at most PL_NPY_WRITE_MOST. */
#define PL_NPY_WRITE_MOST 256
size_t pl_npy_head(uint8_t out[PL_NPY_WRITE_MOST], const char *descr,
                   pl_shape shape);

#endif

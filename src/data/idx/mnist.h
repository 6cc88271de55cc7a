/* mnist.h - the four files of MNIST, and whether a file is one of them.
 *
 * Identified by the SHA-256 of their unpacked content: mirrors may have packed
 * the same images again.
 *
 * Threads: any. */
#ifndef PL_DATA_IDX_MNIST_H
#define PL_DATA_IDX_MNIST_H

#include "paceline/base.h"

#define PL_MNIST_FILES 4

typedef struct pl_mnist_file {
    const char *name;   /* "train-images-idx3-ubyte.gz" */
    int64_t bytes;      /* unpacked */
    const char *sha256; /* of these, in hexadecimal */
} pl_mnist_file;

extern const pl_mnist_file pl_mnist_files[PL_MNIST_FILES];

/* PL_FORMAT when `path` does not hold `file`, packed by gzip or not;
 * PL_NOTFOUND when it does not exist. */
pl_status pl_mnist_check(const pl_mnist_file *file,
                         const char *path) PL_MUST_CHECK;

#endif

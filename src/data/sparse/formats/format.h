/* format.h - the interface of a file format of sparse examples.
 *
 * A file is mapped (packed ones after unpacking), cut into blocks of whole
 * examples, and decoded block by block, by any thread, in any order.
 * Everything in a file is checked; a bad example is an error that names its
 * place or, within --skip-bad, is skipped.
 *
 * A mapped file can change at any time.  So split and count read each byte
 * once and check what they use; decode gets a copy of its block.
 *
 * Threads: split runs on one thread; count and decode on any, each with a
 * pl_decode of its own. */
#ifndef PL_DATA_SPARSE_FORMATS_FORMAT_H
#define PL_DATA_SPARSE_FORMATS_FORMAT_H

#include "base/error.h"
#include "base/file/file.h"
#include "data/source.h"
#include "data/sparse/formats/writer.h"
#include "data/sparse/rows.h"

#define PL_SPARSE_ID_MOST ((uint64_t)INT64_MAX - 1)

typedef struct pl_sparse_file {
    char *path;
    pl_map map;          /* of the file, or of its unpacked content */
    const uint8_t *data; /* the bytes read: usually the map */
    size_t bytes;
    bool packed;
} pl_sparse_file;

typedef struct pl_sparse_block {
    int32_t file;
    uint64_t offset, bytes; /* in the file's data */
    int64_t rows;           /* examples, bad ones too */
    int64_t bad;            /* of these, as far as known */
} pl_sparse_block;

typedef struct pl_sparse_blocks {
    pl_sparse_block *list;
    int64_t count, room;
} pl_sparse_blocks;

/* Which labels were seen: 0 and -1 must not be mixed. */
#define PL_LABEL_ZERO  1u
#define PL_LABEL_MINUS 2u

#define PL_SPARSE_SPARE 64 /* bytes after a copied block */

/* One block being decoded. */
typedef struct pl_decode {
    const pl_sparse_file *file;
    const pl_sparse_block *block;
    const uint8_t *data; /* decode: the block's bytes, unchanged even if the
                            file changes */
    size_t spare;        /* readable bytes after them */
    const pl_source_opts *opts;
    uint64_t bound;   /* ids are below this */
    int64_t allowed;  /* bad examples that may be skipped */
    int64_t bad;      /* bad examples found; the last one in `last` */
    pl_error *last;   /* NULL: not wanted */
    uint64_t largest; /* id seen */
    unsigned labels;  /* PL_LABEL_... seen */
} pl_decode;

typedef struct pl_sparse_format {
    const char *name; /* of the source */
    /* Optional: the number of features without --features. */
    int64_t features;
    /* Optional: true when these bytes are not packed, although they may look
     * packed. */
    bool (*plain)(const uint8_t *data, size_t bytes);
    /* Append the blocks of file number `index`, of about `target` bytes. */
    pl_status (*split)(pl_sparse_blocks *blocks, const pl_decode *decode,
                       int32_t index, uint64_t target);
    /* Optional: the examples of a block, when split leaves them at 0. */
    pl_status (*count)(const pl_decode *decode, int64_t *rows);
    /* Append the examples of a block to `rows`: no more than split or count
     * found (pl_decode_check_rows), since the file may have changed. */
    pl_status (*decode)(pl_decode *decode, pl_sparse_rows *rows);
    /* Optional: the largest id + 1 as stated in the file; otherwise a pass over
     * the data finds it. */
    pl_status (*width)(const pl_sparse_file *file, int64_t *features);
    /* Optional: how the ids of a file were renumbered; default 0. */
    uint32_t (*numbering)(const pl_sparse_file *file);
    /* Optional: how files of this format are written. */
    const pl_sparse_writer_ops *writer;
} pl_sparse_format;

#define PL_DECLARE_FORMAT(name)                                                \
    extern const pl_sparse_format pl_##name##_format;
PL_SPARSE_FORMATS(PL_DECLARE_FORMAT)
#undef PL_DECLARE_FORMAT

/* Writers of the formats with two source files. */
extern const pl_sparse_writer_ops pl_cache_writer, pl_libsvm_writer,
    pl_tfrecord_writer;

/* All formats, NULL-terminated. */
const pl_sparse_format *const *pl_sparse_formats(void);

pl_status pl_sparse_blocks_add(pl_sparse_blocks *blocks,
                               pl_sparse_block block) PL_MUST_CHECK;

/* PL_IO when a block has more good examples than were counted in it. */
pl_status pl_decode_check_rows(const pl_decode *decode,
                               int64_t rows) PL_MUST_CHECK;

/* An example was bad, and the message is set: PL_OK to skip it, otherwise
 * `status`. */
pl_status pl_decode_pass(pl_decode *decode, pl_status status) PL_MUST_CHECK;

#endif

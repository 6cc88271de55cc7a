/* tfrecord.h - the frame around each record of a TFRecord file.
 *
 * Length (u64), its masked CRC32C (u32), the record, its masked CRC32C (u32).
 *
 * Threads: any. */
#ifndef PL_DATA_SPARSE_TFRECORD_H
#define PL_DATA_SPARSE_TFRECORD_H

#define PL_TFRECORD_HEAD 12
#define PL_TFRECORD_TAIL 4

/* What --label-feature and its like say by default. */
#define PL_TFRECORD_LABEL "label"
#define PL_TFRECORD_INDEX "index"
#define PL_TFRECORD_VALUE "value"

#endif

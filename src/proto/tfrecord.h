/* tfrecord.h - the frame around each record of a TFRecord file, such as
 * TensorBoard's event files.
 *
 * Length (u64), its masked CRC32C (u32), the record, its masked CRC32C (u32).
 *
 * Threads: any. */
#ifndef PL_PROTO_TFRECORD_H
#define PL_PROTO_TFRECORD_H

#include <stddef.h>
#include <stdint.h>

#define PL_TFRECORD_HEAD 12
#define PL_TFRECORD_TAIL 4

/* The checksum as stored in the frame. */
uint32_t pl_tfrecord_sum(const uint8_t *data, size_t bytes);

/* Put the frame around the `bytes` at frame + PL_TFRECORD_HEAD; returns the
 * total size. */
size_t pl_tfrecord_seal(uint8_t *frame, size_t bytes);

#endif

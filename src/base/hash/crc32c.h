/* crc32c.h - the Castagnoli checksum of files and records.
 *
 * CRC-32C as in RFC 3720 (polynomial 0x1EDC6F41, reflected), by the processor's
 * own instruction where it has one.  It detects damage, not tampering.
 *
 * Threads: any. */
#ifndef PL_BASE_HASH_CRC32C_H
#define PL_BASE_HASH_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Extend the checksum `crc` by `data`; start with 0. */
uint32_t pl_crc32c(uint32_t crc, const void *data, size_t bytes);

/* The same by table, on any processor; for tests. */
uint32_t pl_crc32c_table(uint32_t crc, const void *data, size_t bytes);

/* As TFRecord stores it, so that a checksum over data that holds checksums
 * stays useful. */
static inline uint32_t pl_crc32c_mask(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

#endif

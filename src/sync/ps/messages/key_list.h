/* key_list.h - a compact encoding of sorted keys, for messages.
 *
 * Keys are distinct and rise, so their differences are small.  They are encoded
 * in blocks of 32: one byte, the width in bits of the block's largest
 * difference, then the differences in that many bits each.  The keys of a
 * batch, spread over a table, take about 2 bytes each; docs/formats/wire.md
 * describes the bytes.
 *
 * Threads: pure functions. */
#ifndef PL_SYNC_PS_MESSAGES_KEY_LIST_H
#define PL_SYNC_PS_MESSAGES_KEY_LIST_H

#include "paceline/base.h"

#include <stddef.h>
#include <stdint.h>

/* Keys are below this, counted from the first of their range. */
#define PL_KEY_LIST_MOST ((uint64_t)1 << 48)

/* No list of `count` keys takes more bytes than this. */
size_t pl_key_list_room(int64_t count);

/* Write `count` keys, sorted and distinct, counted from `first`, to `out` of
 * pl_key_list_room(count) bytes; returns the bytes used. */
size_t pl_key_list_write(int64_t count, const uint64_t *keys, uint64_t first,
                         uint8_t *out);

/* Read `count` keys, counted from the first of a range of `limit`; *used: the
 * bytes read.  PL_FORMAT: keys do not rise, or are out of range. */
pl_status pl_key_list_read(int64_t count, const uint8_t *in, size_t bytes,
                           uint64_t limit, uint64_t *keys,
                           size_t *used) PL_MUST_CHECK;

#endif

/* mem.h - heap memory that can be counted and made to fail.
 *
 * Every allocation of the library goes through here, so that a test can fail
 * the n-th one and see that nothing leaks.  Memory is zeroed.
 *
 * Threads: any.  The fault counter belongs to the thread that set it, so a
 * test's background threads are not hit by chance. */
#ifndef PL_BASE_MEM_H
#define PL_BASE_MEM_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stddef.h>

#define PL_CACHE_LINE 64

/* `count` zeroed elements; NULL when there is no memory or the product
 * overflows.  count 0 gives a pointer that may be freed. */
void *pl_mem_alloc(size_t count, size_t size);

/* The same, aligned to a cache line; from 4 MiB on in huge pages where the
 * system has them. */
void *pl_mem_alloc_aligned(size_t count, size_t size);

/* Resize memory of pl_mem_alloc; new bytes are not zeroed.  On failure the old
 * memory stays valid. */
void *pl_mem_resize(void *memory, size_t count, size_t size);

void pl_mem_free(void *memory); /* NULL is fine */

/* PL_OK, or PL_NOMEM with a message when `memory` is NULL. */
pl_status pl_mem_check(const void *memory, size_t count,
                       size_t size) PL_MUST_CHECK;

/* PL_TRY(PL_NEW(x, n)): x becomes n zeroed elements. */
#define PL_NEW(pointer, count)                                                 \
    pl_mem_check((pointer) = pl_mem_alloc((count), sizeof *(pointer)),         \
                 (count), sizeof *(pointer))
#define PL_NEW_ALIGNED(pointer, count)                                         \
    pl_mem_check((pointer) = pl_mem_alloc_aligned((count), sizeof *(pointer)), \
                 (count), sizeof *(pointer))

/* PL_TRY(PL_RESIZE(x, n)): x keeps its elements and has n; on failure it is
 * unchanged.  PL_TRY(PL_GROW(x, used, room)): x, whose `room` elements (a
 * size_t) are counted by `used`, has room for one more. */
#define PL_RESIZE(pointer, count)                                              \
    pl_mem_resize_at(&(pointer), (count), sizeof *(pointer))
#define PL_GROW(pointer, used, room)                                           \
    pl_mem_grow_at(&(pointer), (used), &(room), sizeof *(pointer))
pl_status pl_mem_resize_at(void *where, size_t count,
                           size_t size) PL_MUST_CHECK;
pl_status pl_mem_grow_at(void *where, size_t used, size_t *room,
                         size_t size) PL_MUST_CHECK;

/* A copy of `text`, or a formatted string, in *out. */
pl_status pl_mem_copy_text(char **out, const char *text) PL_MUST_CHECK;
pl_status pl_mem_format(char **out, const char *format, ...) PL_MUST_CHECK
    PL_PRINTF(2, 3);

/* Test support: the allocation after `nth` successful ones of this thread
 * fails, once.  pl_mem_fail_off ends this and returns whether one failed. */
void pl_mem_fail_at(long nth);
bool pl_mem_fail_off(void);

/* Allocations not yet freed, of all threads, and their bytes as the system
 * counts them. */
long pl_mem_live(void);
int64_t pl_mem_live_bytes(void);

/* For zlib's zalloc and zfree, so that tests can fail its allocations, too. */
void *pl_mem_zlib_alloc(void *opaque, unsigned items, unsigned size);
void pl_mem_zlib_free(void *opaque, void *memory);

/* For programs, once, before threads: keep freed blocks of up to 32 MB for
 * reuse.  By default the C library returns each to the system, which zeroes it
 * again page by page; pieces of large messages are freed by the thousand. */
void pl_mem_keep_freed(void);

#endif

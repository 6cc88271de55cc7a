/* Counts every allocation, fails the n-th for tests, and aligns large blocks
 * to huge pages. Also tells the C library to keep large freed blocks instead
 * of returning them to the system at every step. */
#include "base/mem.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE  ((size_t)2 << 20)
#define FIRST_ROOM 16 /* elements of a list that grows */

static atomic_long live;
static atomic_llong live_bytes;
static _Thread_local long fail_countdown = -1; /* -1: off */
static _Thread_local bool fail_hit;

/* True when this allocation is the one a test wants to fail. */
static bool fault(void)
{
    if (fail_countdown < 0 || fail_countdown-- > 0)
        return false;
    fail_hit = true;
    return true;
}

/* Count an allocation (+1) or a free (-1). */
static void tally(void *memory, int sign)
{
    long long bytes = (long long)malloc_usable_size(memory);
    atomic_fetch_add_explicit(&live, sign, memory_order_relaxed);
    atomic_fetch_add_explicit(&live_bytes, sign * bytes, memory_order_relaxed);
}

void *pl_mem_alloc(size_t count, size_t size)
{
    size_t bytes = 0;
    if (fault() || __builtin_mul_overflow(count, size, &bytes))
        return NULL;
    void *memory = calloc(bytes == 0 ? 1 : bytes, 1);
    if (memory != NULL)
        tally(memory, 1);
    return memory;
}

void *pl_mem_alloc_aligned(size_t count, size_t size)
{
    size_t bytes = 0;
    if (fault() || __builtin_mul_overflow(count, size, &bytes) ||
        bytes > SIZE_MAX - HUGE_PAGE)
        return NULL;

    bool huge = bytes >= 2 * HUGE_PAGE;
    size_t align = huge ? HUGE_PAGE : PL_CACHE_LINE;
    bytes = bytes == 0 ? align : (bytes + align - 1) / align * align;
    void *memory = aligned_alloc(align, bytes);
    if (memory == NULL)
        return NULL;
    if (huge)
        madvise(memory, bytes, MADV_HUGEPAGE); /* a hint; failing is fine */
    memset(memory, 0, bytes);
    tally(memory, 1);
    return memory;
}

void *pl_mem_resize(void *memory, size_t count, size_t size)
{
    size_t bytes = 0;
    if (fault() || __builtin_mul_overflow(count, size, &bytes))
        return NULL;
    if (memory != NULL)
        tally(memory, -1);
    void *resized = realloc(memory, bytes == 0 ? 1 : bytes);
    if (resized != NULL)
        tally(resized, 1);
    else if (memory != NULL)
        tally(memory, 1);
    return resized;
}

void pl_mem_free(void *memory)
{
    if (memory == NULL)
        return;
    tally(memory, -1);
    free(memory);
}

pl_status pl_mem_check(const void *memory, size_t count, size_t size)
{
    if (memory != NULL)
        return PL_OK;
    return PL_FAIL(PL_NOMEM, "out of memory: %zu x %zu bytes", count, size);
}

/* `where` is the address of a pointer of any type: copied, not converted. */
pl_status pl_mem_resize_at(void *where, size_t count, size_t size)
{
    void *memory;
    memcpy(&memory, where, sizeof memory);
    void *resized = pl_mem_resize(memory, count, size);
    PL_TRY(pl_mem_check(resized, count, size));
    memcpy(where, &resized, sizeof resized);
    return PL_OK;
}

pl_status pl_mem_grow_at(void *where, size_t used, size_t *room, size_t size)
{
    if (used < *room)
        return PL_OK;
    size_t more = 2 * *room + FIRST_ROOM;
    PL_TRY(pl_mem_resize_at(where, more, size));
    *room = more;
    return PL_OK;
}

pl_status pl_mem_copy_text(char **out, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy;
    PL_TRY(PL_NEW(copy, bytes));
    memcpy(copy, text, bytes);
    *out = copy;
    return PL_OK;
}

pl_status pl_mem_format(char **out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        return PL_FAIL(PL_NUMERIC, "cannot format '%s'", format);

    char *text;
    PL_TRY(PL_NEW(text, (size_t)length + 1));
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    *out = text;
    return PL_OK;
}

void pl_mem_fail_at(long nth)
{
    fail_countdown = nth;
    fail_hit = false;
}

bool pl_mem_fail_off(void)
{
    fail_countdown = -1;
    return fail_hit;
}

long pl_mem_live(void)
{
    return atomic_load(&live);
}

int64_t pl_mem_live_bytes(void)
{
    return atomic_load(&live_bytes);
}

void *pl_mem_zlib_alloc(void *opaque, unsigned items, unsigned size)
{
    (void)opaque;
    return pl_mem_alloc(items, size);
}

void pl_mem_zlib_free(void *opaque, void *memory)
{
    (void)opaque;
    pl_mem_free(memory);
}

#define KEEP_BLOCK (32 << 20)  /* the most that mallopt accepts */
#define KEEP_TOP   (256 << 20) /* at the end of the heap */

void pl_mem_keep_freed(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, KEEP_BLOCK);
    (void)mallopt(M_TRIM_THRESHOLD, KEEP_TOP);
}

/* buffer.h - text, or other bytes, that grow.
 *
 * What fails for want of memory is remembered: the calls after it do nothing,
 * and pl_buffer_status tells.  So a page is put together without a check a
 * line.
 *
 * Threads: one. */
#ifndef PL_BASE_BUFFER_H
#define PL_BASE_BUFFER_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct pl_buffer {
    char *data; /* with a NUL behind it; NULL: nothing was put */
    size_t bytes;
    size_t room;
    bool failed;
} pl_buffer;

void pl_buffer_close(pl_buffer *buffer); /* a zeroed one is fine */
void pl_buffer_clear(pl_buffer *buffer); /* empty, with the memory kept */

/* PL_OK, or PL_NOMEM with a message. */
pl_status pl_buffer_status(const pl_buffer *buffer) PL_MUST_CHECK;

/* So many bytes more, for the caller to write; NULL: no memory.  Until the
 * next call. */
void *pl_buffer_grow(pl_buffer *buffer, size_t bytes);
void pl_buffer_put(pl_buffer *buffer, const void *data, size_t bytes);
void pl_buffer_text(pl_buffer *buffer, const char *text);
void pl_buffer_format(pl_buffer *buffer, const char *format, ...)
    PL_PRINTF(2, 3);

/* Write what was put to the output `path` (pl_file_output). */
pl_status pl_buffer_save(const pl_buffer *buffer,
                         const char *path) PL_MUST_CHECK;

#endif

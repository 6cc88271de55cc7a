/* buffer.h - growable buffers of text or other bytes.
 *
 * A failed allocation is remembered: later calls do nothing and
 * pl_buffer_status returns the error, so a page is assembled without checking
 * each call.
 *
 * Threads: one. */
#ifndef PL_BASE_BUFFER_H
#define PL_BASE_BUFFER_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct pl_buffer {
    char *data; /* NUL-terminated; NULL: nothing was put */
    size_t bytes;
    size_t room;
    bool failed;
} pl_buffer;

void pl_buffer_close(pl_buffer *buffer); /* a zeroed one is fine */
void pl_buffer_clear(pl_buffer *buffer); /* empty, with the memory kept */

/* PL_OK, or PL_NOMEM with a message. */
pl_status pl_buffer_status(const pl_buffer *buffer) PL_MUST_CHECK;

/* Append `bytes` bytes for the caller to fill; NULL: out of memory.  Valid
 * until the next call. */
void *pl_buffer_grow(pl_buffer *buffer, size_t bytes);
void pl_buffer_put(pl_buffer *buffer, const void *data, size_t bytes);
void pl_buffer_text(pl_buffer *buffer, const char *text);
void pl_buffer_format(pl_buffer *buffer, const char *format, ...)
    PL_PRINTF(2, 3);

/* Write the contents to the output `path` (pl_file_output). */
pl_status pl_buffer_save(const pl_buffer *buffer,
                         const char *path) PL_MUST_CHECK;

#endif

/* Growth by doubling; after a failed allocation the buffer ignores further
 * writes and reports once. */
#include "base/buffer.h"

#include "base/file/file.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define FIRST_ROOM 256

void pl_buffer_close(pl_buffer *buffer)
{
    pl_mem_free(buffer->data);
    *buffer = (pl_buffer) { 0 };
}

void pl_buffer_clear(pl_buffer *buffer)
{
    buffer->bytes = 0;
    buffer->failed = false;
}

pl_status pl_buffer_status(const pl_buffer *buffer)
{
    if (buffer->failed)
        return PL_FAIL(PL_NOMEM, "out of memory: more than %zu bytes",
                       buffer->bytes);
    return PL_OK;
}

/* Make room for `bytes` more bytes and a NUL. */
static bool reserve(pl_buffer *buffer, size_t bytes)
{
    if (buffer->failed)
        return false;
    if (bytes < buffer->room - buffer->bytes)
        return true;
    if (bytes > SIZE_MAX / 4 - buffer->bytes) {
        buffer->failed = true;
        return false;
    }
    size_t room = 2 * (buffer->bytes + bytes) + FIRST_ROOM;
    char *grown = pl_mem_resize(buffer->data, room, 1);
    buffer->failed = grown == NULL;
    if (grown == NULL)
        return false;
    buffer->data = grown;
    buffer->room = room;
    return true;
}

void *pl_buffer_grow(pl_buffer *buffer, size_t bytes)
{
    if (!reserve(buffer, bytes))
        return NULL;
    char *at = buffer->data + buffer->bytes;
    buffer->bytes += bytes;
    at[bytes] = '\0';
    return at;
}

void pl_buffer_put(pl_buffer *buffer, const void *data, size_t bytes)
{
    char *at = pl_buffer_grow(buffer, bytes);
    if (at != NULL && bytes > 0)
        memcpy(at, data, bytes);
}

void pl_buffer_text(pl_buffer *buffer, const char *text)
{
    pl_buffer_put(buffer, text, strlen(text));
}

void pl_buffer_format(pl_buffer *buffer, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (bytes < 0 || !reserve(buffer, (size_t)bytes))
        return;
    va_start(args, format);
    vsnprintf(buffer->data + buffer->bytes, (size_t)bytes + 1, format, args);
    va_end(args);
    buffer->bytes += (size_t)bytes;
}

pl_status pl_buffer_save(const pl_buffer *buffer, const char *path)
{
    PL_TRY(pl_buffer_status(buffer));
    return pl_file_output(path, buffer->data, buffer->bytes);
}

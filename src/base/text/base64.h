/* base64.h - bytes as text, RFC 4648 with padding and without line breaks.
 *
 * Threads: any. */
#ifndef PL_BASE_TEXT_BASE64_H
#define PL_BASE_TEXT_BASE64_H

#include "paceline/base.h"

#include <stddef.h>

/* Bytes of the text, with its NUL. */
#define PL_BASE64_TEXT(bytes) (((bytes) + 2) / 3 * 4 + 1)

/* `out` has PL_BASE64_TEXT(bytes). */
void pl_base64_encode(char *out, const void *data, size_t bytes);

/* PL_FORMAT when it is not base64 or more than `room` bytes; the message does
 * not show the text. */
pl_status pl_base64_decode(void *out, size_t room, size_t *bytes,
                           const char *text) PL_MUST_CHECK;

#endif

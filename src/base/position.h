/* position.h - where a reader stands in its data.
 *
 * Opaque bytes that only the reader understands; a checkpoint keeps them as
 * hexadecimal text.
 *
 * Threads: a value. */
#ifndef PL_BASE_POSITION_H
#define PL_BASE_POSITION_H

#include "paceline/base.h"

#include <stdint.h>

#define PL_POSITION_BYTES 64
#define PL_POSITION_TEXT  (2 * PL_POSITION_BYTES + 1)

typedef struct pl_position {
    uint8_t bytes[PL_POSITION_BYTES];
    uint32_t used;
} pl_position;

void pl_position_text(const pl_position *position, char text[PL_POSITION_TEXT]);

/* PL_FORMAT when the text is not a position. */
pl_status pl_position_parse(pl_position *out, const char *text) PL_MUST_CHECK;

#endif

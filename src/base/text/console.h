/* console.h - writes to standard error without waiting for its reader.
 *
 * A pipe without a reader, or a terminal stopped by Ctrl-S, eventually has no
 * room, and a plain write would block the logging thread, and with it the
 * training, forever.  Lines without room are dropped; the next line that has
 * room reports how many.
 *
 * The descriptor is not made non-blocking: that flag belongs to the open file,
 * which other processes share.  Pipes and terminals are opened a second time.
 *
 * Threads: any; a text of at most PL_CONSOLE_BYTES is written whole. */
#ifndef PL_BASE_TEXT_CONSOLE_H
#define PL_BASE_TEXT_CONSOLE_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stddef.h>

#define PL_CONSOLE_BYTES 4096 /* an atomic write to a pipe: PIPE_BUF */

/* Write lines; false: they were dropped and counted. */
bool pl_console_write(const char *text, size_t bytes);
/* The same, formatted; more than PL_CONSOLE_BYTES is cut off. */
bool pl_console_print(const char *format, ...) PL_PRINTF(1, 2);
/* A line that is soon redrawn: dropping it loses nothing, so it is not
 * counted. */
bool pl_console_redraw(const char *text, size_t bytes);
/* Write why the process ends: a slow reader gets a second to make room. */
void pl_console_last(const char *text, size_t bytes);

#endif

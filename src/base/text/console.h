/* console.h - standard error, written to without ever waiting for its reader.
 *
 * A pipe without a reader, or a terminal stopped by Ctrl-S, has no room after
 * a while, and a plain write would hold the thread that logs, and with it the
 * training, for good.  What has no room is dropped; the next line that has
 * room says how many lines were.
 *
 * The descriptor is not made non-blocking: that flag belongs to the open file,
 * which other processes share.  Pipes and terminals are opened once more.
 *
 * Threads: any; a text of at most PL_CONSOLE_BYTES is written whole. */
#ifndef PL_BASE_TEXT_CONSOLE_H
#define PL_BASE_TEXT_CONSOLE_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stddef.h>

#define PL_CONSOLE_BYTES 4096 /* what a pipe takes at once: PIPE_BUF */

/* Write lines; false: they were dropped and counted. */
bool pl_console_write(const char *text, size_t bytes);
/* The same, formatted; what is longer than PL_CONSOLE_BYTES is cut. */
bool pl_console_print(const char *format, ...) PL_PRINTF(1, 2);
/* A line that is drawn again soon: dropping it loses nothing, so it is not
 * counted. */
bool pl_console_redraw(const char *text, size_t bytes);
/* The reason why the process ends: a slow reader gets a second to make room. */
void pl_console_last(const char *text, size_t bytes);

#endif

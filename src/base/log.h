/* log.h - log lines.
 *
 * Levels go by volume: error and warn when something needs attention, info a
 * few per run, debug per object, trace per step.  No function logs an error and
 * also returns it.
 *
 * The levels are public, as is the call to receive the lines: pl_log_to in
 * paceline/base.h.
 *
 * Writing to standard error never blocks (base/text/console.h): a line that has
 * no room there is dropped and counted.
 *
 * Threads: any; a line is written whole. */
#ifndef PL_BASE_LOG_H
#define PL_BASE_LOG_H

#include "paceline/base.h"

/* A sink gets one line without its newline; text from files and peers is quoted
 * by pl_quote_line. */
typedef pl_log_callback pl_log_sink;

/* Where lines go from now on; NULL is standard error.  Lines above `most` are
 * not formatted, and none before the first call: a library prints nothing
 * unless a program asks for it. */
void pl_log_set(pl_log_sink *sink, void *context, pl_log_level most);

/* A second sink, which gets a copy of every line that is made; NULL: none.
 * When it returns, the previous one is no longer called. */
void pl_log_copy(pl_log_sink *sink, void *context);

void pl_log(pl_log_level level, const char *format, ...) PL_PRINTF(2, 3);
/* A continuation line: without "warning: ". */
void pl_log_more(pl_log_level level, const char *format, ...) PL_PRINTF(2, 3);

#endif

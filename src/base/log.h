/* log.h - lines for the person who watches.
 *
 * Levels go by volume: error and warn when something needs attention, info a
 * few per run, debug per object, trace per step.  Nobody logs an error and
 * also returns it.
 *
 * The levels are public, as is the way to get the lines: pl_log_to in
 * paceline/base.h.
 *
 * Standard error is not waited for (base/text/console.h): a line that has no
 * room there is dropped and counted.
 *
 * Threads: any; a line is written whole. */
#ifndef PL_BASE_LOG_H
#define PL_BASE_LOG_H

#include "paceline/base.h"

/* A sink gets one line without its newline; what a file or a peer put into it
 * is quoted by pl_quote_line. */
typedef pl_log_callback pl_log_sink;

/* Where lines go from now on; NULL is standard error.  Lines above `most`
 * are not made at all, and none before the first call: what a library has to
 * say is not printed unless a program wants it. */
void pl_log_set(pl_log_sink *sink, void *context, pl_log_level most);

/* A second sink, which gets a copy of every line that is made; NULL: none.
 * When it returns, the one before is not called any more. */
void pl_log_copy(pl_log_sink *sink, void *context);

void pl_log(pl_log_level level, const char *format, ...) PL_PRINTF(2, 3);
/* A further line of what was said before: without "warning: ". */
void pl_log_more(pl_log_level level, const char *format, ...) PL_PRINTF(2, 3);

#endif

/* quote.h - foreign text in generated output, one function per language.
 *
 * Names of flags, runs and hosts, log lines and messages of peers come from
 * files and processes of other users.  Code that writes such a text into a
 * page, a script, a table, a log or a terminal must use the function for that
 * language.
 *
 * Threads: any. */
#ifndef PL_BASE_TEXT_QUOTE_H
#define PL_BASE_TEXT_QUOTE_H

#include "base/buffer.h"

/* For one line of a terminal or a log: control characters (C0, DEL, C1, the
 * line and paragraph separators) and what is not UTF-8 become \xNN, byte by
 * byte; all else is unchanged, so quoting twice changes nothing.  Writes at
 * most `room` (1 or more) bytes with the NUL, never half an escape or
 * character, and returns `to`. */
char *pl_quote_line(char *to, size_t room, const char *text);

/* The same, appended. */
void pl_quote_terminal(pl_buffer *out, const char *text);

/* Text or an attribute's value in HTML. */
void pl_quote_html(pl_buffer *out, const char *text);

/* A JSON string with its quotes, also fit for a script element. */
void pl_quote_json(pl_buffer *out, const char *text);

/* The value of a label of OpenMetrics, with its quotes. */
void pl_quote_label(pl_buffer *out, const char *text);

/* A cell of RFC 4180, on one line.  A text that a spreadsheet would take for a
 * formula gets an apostrophe in front; a plain number does not. */
void pl_quote_csv(pl_buffer *out, const char *text);
/* Is this a plain decimal number: "-1", "0.5", "1e-3"? */
bool pl_quote_is_number(const char *text);

/* A string of gnuplot with its quotes.  Gnuplot expands nothing in single
 * quotes; what could end them or the line becomes '_'. */
void pl_quote_gnuplot(pl_buffer *out, const char *text);

/* A word as a shell reads it back; one with control characters, which the
 * terminal would interpret, in the $'' of bash. */
void pl_quote_shell(pl_buffer *out, const char *word);

/* Make `text` the name of a file in one's own folder: letters, digits, '.',
 * '-' and '_' stay, all else becomes '-', as does a leading dot. */
void pl_quote_file_name(char *text);

#endif

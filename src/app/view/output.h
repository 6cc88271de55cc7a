/* output.h - files that the user named on the command line.
 *
 * base/file/file.h (pl_file_output etc.) writes them.  This file treats "-" as
 * standard output, and keeps lines about a file out of that file.
 *
 * Threads: one. */
#ifndef PL_APP_VIEW_OUTPUT_H
#define PL_APP_VIEW_OUTPUT_H

#include <stdio.h>

/* The path of an output flag's value: "-" is /dev/stdout.  Earlier output is
 * flushed, so that it precedes what is written there. */
const char *pl_output_path(const char *given);

/* Where to print a line about the file: standard output, or standard error when
 * the file is standard output itself. */
FILE *pl_output_notices(const char *path);

/* Columns of the terminal; 0: not a terminal, lines may have any length. */
int pl_output_columns(FILE *file);

#endif

/* output.h - files that the user named on the command line.
 *
 * The writing is base/file/file.h's (pl_file_output and its kin); here is what
 * only a program knows: "-" is standard output, and what is printed about a
 * file must not end up in it.
 *
 * Threads: one. */
#ifndef PL_APP_VIEW_OUTPUT_H
#define PL_APP_VIEW_OUTPUT_H

#include <stdio.h>

/* The path of an output flag's value: "-" is /dev/stdout.  What was printed
 * so far is flushed, so that it comes before what is written there. */
const char *pl_output_path(const char *given);

/* Where a line about the file belongs: standard output, or standard error when
 * the file is standard output itself. */
FILE *pl_output_notices(const char *path);

/* Columns of the terminal; 0: the file is none, and lines may be of any
 * length. */
int pl_output_columns(FILE *file);

#endif

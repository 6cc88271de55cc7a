/* command_line.h - the command line of a task, rebuilt from the options.
 *
 * Threads: one. */
#ifndef PL_APP_OPTIONS_COMMAND_LINE_H
#define PL_APP_OPTIONS_COMMAND_LINE_H

#include "app/options/options.h"

typedef struct pl_command_line {
    char **argv; /* NULL-terminated; it owns all words */
    size_t count;
} pl_command_line;

/* "PROGRAM train MODEL ..." with all given flags (the model's included), the
 * filled-in flags of the cluster, and `run` as the run folder; without --role,
 * --index and --control. */
pl_status pl_command_line_init(pl_command_line *line, const pl_options *options,
                               const char *program,
                               const char *run) PL_MUST_CHECK;
/* The number of leading words of `argv` that `launch` does not pass on: a flag
 * that it turns into the cluster of the tasks itself, and its value. */
int pl_command_line_kept(const pl_options *options, int argc, char **argv);
/* Append a word, or "--name number". */
pl_status pl_command_line_add(pl_command_line *line,
                              const char *word) PL_MUST_CHECK;
pl_status pl_command_line_number(pl_command_line *line, const char *name,
                                 int64_t number) PL_MUST_CHECK;
void pl_command_line_close(pl_command_line *line); /* a zeroed one is fine */

#endif

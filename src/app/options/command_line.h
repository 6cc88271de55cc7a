/* command_line.h - the command line of a task, rebuilt from the options.
 *
 * Threads: one. */
#ifndef PL_APP_OPTIONS_COMMAND_LINE_H
#define PL_APP_OPTIONS_COMMAND_LINE_H

#include "app/options/options.h"

typedef struct pl_command_line {
    char **argv; /* NULL at the end; all its own */
    size_t count;
} pl_command_line;

/* "PROGRAM train MODEL ..." with all flags the user gave (the model's, too),
 * the cluster's as they were filled in, and `run` as the run folder; without
 * --role, --index and --control. */
pl_status pl_command_line_init(pl_command_line *line, const pl_options *options,
                               const char *program,
                               const char *run) PL_MUST_CHECK;
/* How many words `argv` starts with that `launch` does not pass on: a flag that
 * it turns into the cluster of the tasks itself, and its value. */
int pl_command_line_kept(const pl_options *options, int argc, char **argv);
/* More behind it: a word, "--name number". */
pl_status pl_command_line_add(pl_command_line *line,
                              const char *word) PL_MUST_CHECK;
pl_status pl_command_line_number(pl_command_line *line, const char *name,
                                 int64_t number) PL_MUST_CHECK;
void pl_command_line_close(pl_command_line *line); /* a zeroed one is fine */

#endif

/* help.h - the help of the program and its commands.
 *
 *   paceline                    what to try first
 *   paceline --help             all commands
 *   paceline COMMAND --help     three examples, the flags most people need
 *   ... --help all              all its flags
 *   ... --help FLAG             one flag: its reason, default and range
 *
 * Threads: one. */
#ifndef PL_CLI_HELP_HELP_H
#define PL_CLI_HELP_HELP_H

#include "cli/commands.h"

#include <stdio.h>

typedef struct pl_help {
    const pl_app *app;         /* required */
    const pl_command *command; /* required */
    const char *usage;         /* default: the command's */
    const char *about;         /* default: the command's */
    const pl_param_group *groups;
    size_t group_count;
    const pl_param_facts *facts; /* NULL: all flags have an effect */
    const char *topic;           /* of pl_help_topic */
} pl_help;

/* Print the help.  PL_USAGE when the topic is not a flag. */
pl_status pl_help_print(const pl_help *help) PL_MUST_CHECK;

/* The word after --help: "all" or the name of a flag; NULL: none. */
const char *pl_help_topic(int argc, char **argv);

/* Suggest first commands. */
void pl_help_first(const pl_app *app, FILE *file);
/* List all commands. */
void pl_help_commands(const pl_app *app, FILE *file);

/* PL_USAGE: "unknown command \"trian\"; did you mean train?" */
pl_status pl_help_unknown(const pl_app *app, const char *name) PL_MUST_CHECK;

#endif

/* docs.h - documents made from the tables of commands and flags.
 *
 * Threads: one. */
#ifndef PL_CLI_DOCS_DOCS_H
#define PL_CLI_DOCS_DOCS_H

#include "app/options/options.h"
#include "cli/commands.h"

/* True for `train` and for commands that take its flags. */
bool pl_docs_takes_train_flags(const pl_command *command);
/* A command's own flags as a group with that title. */
pl_param_group pl_docs_flags(const pl_command *command, const char *title);

/* paceline(1): all commands. */
void pl_docs_man(const pl_options *options);
/* paceline-NAME(1). */
void pl_docs_man_of(const pl_command *command, const pl_options *options);
/* docs/options.md */
void pl_docs_options(const pl_options *options);
/* Completion scripts. */
void pl_docs_bash(const pl_app *app, const pl_options *options);
void pl_docs_zsh(const pl_app *app, const pl_options *options);

#endif

/* version.h - the program's version and features.
 *
 * Threads: one. */
#ifndef PL_CLI_HELP_VERSION_H
#define PL_CLI_HELP_VERSION_H

#include "paceline/base.h"

/* Print version and commit, and what this build and this host support: MPI,
 * oneDNN, instruction sets. */
pl_status pl_print_version(void) PL_MUST_CHECK;

#endif

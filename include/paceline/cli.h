/* cli.h - the command line as one call. */
#ifndef PACELINE_CLI_H
#define PACELINE_CLI_H

#include <paceline/nn.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The whole `paceline` program with the built-in models and, unless it is NULL,
 * `mine`.  Returns the exit status for main(). */
int pl_app_main(int argc, char **argv, const pl_model *mine);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif

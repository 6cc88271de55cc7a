/* arguments.h - a program's settings of a training as the words of a command
 * line, so that one table reads both.
 *
 * Threads: one. */
#ifndef PL_APP_LIBRARY_ARGUMENTS_H
#define PL_APP_LIBRARY_ARGUMENTS_H

#include "app/options/options.h"
#include "paceline/train.h"

typedef struct pl_arguments {
    char **argv; /* the flags after `train MODEL` */
    int argc;
    size_t room;
} pl_arguments;

/* `options` has the flags of the model.  PL_USAGE for a text with an unclosed
 * quote, and for a name without a value. */
pl_status pl_arguments_init(pl_arguments *arguments, const pl_train_opts *opts,
                            const pl_options *options) PL_MUST_CHECK;
/* Add "--name=value", or without a value "--name". */
pl_status pl_arguments_add(pl_arguments *arguments, const char *name,
                           const char *value) PL_MUST_CHECK;
void pl_arguments_close(pl_arguments *arguments); /* a zeroed one is fine */

#endif

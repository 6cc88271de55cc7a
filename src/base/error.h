/* error.h - carrying an error from one thread to another.
 *
 * The codes, PL_FAIL and PL_TRY are public: paceline/base.h.
 *
 * Threads: a pl_error is the caller's; fill it in the failing thread, raise it
 * in the thread that joined. */
#ifndef PL_BASE_ERROR_H
#define PL_BASE_ERROR_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stddef.h>

#define PL_ERROR_BYTES 2048 /* longer messages are truncated */

typedef struct pl_error {
    pl_status status;
    char message[PL_ERROR_BYTES];
} pl_error;

/* Copy `status` and this thread's message into *error. */
void pl_error_save(pl_error *error, pl_status status);

/* The length of a message without the place in our source, " [file:line]",
 * which means nothing to a user. */
size_t pl_error_words(const char *text);

/* Whether pl_error_message ends with the place; by default it does. */
void pl_error_places(bool shown);

/* Make *error this thread's error; returns its status. */
pl_status pl_error_raise(const pl_error *error);

#endif

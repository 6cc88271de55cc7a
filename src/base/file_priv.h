/* file_priv.h - what file.c and folder.c share.
 *
 * Threads: any. */
#ifndef PL_BASE_FILE_PRIV_H
#define PL_BASE_FILE_PRIV_H

#include "base/file.h"

#include <errno.h>

/* True, with errno set, when this system call is the one a test wants to
 * fail.  Asked before every call but those that only clean up. */
bool pl_file_fault(void);

/* Make a system call that may fail on purpose, again when a signal broke it
 * off. */
#define PL_SYSTEM_CALL(result, call)                                           \
    do {                                                                       \
        (result) = pl_file_fault() ? -1 : (call);                              \
    } while ((result) < 0 && errno == EINTR)

/* "write a/b: No space left on device; free some space ..." from errno. */
pl_status pl_file_fail_errno(const char *verb, const char *path, bool writing);

/* The part of `path` behind the last slash. */
const char *pl_file_last_name(const char *path);

/* Flush the folder that holds `path`, so that its new name lasts. */
pl_status pl_file_flush_folder_of(const char *path) PL_MUST_CHECK;

#endif

/* file_priv.h - what file.c, folder.c, map.c and output.c share.
 *
 * Threads: any. */
#ifndef PL_BASE_FILE_FILE_PRIV_H
#define PL_BASE_FILE_FILE_PRIV_H

#include "base/file/file.h"

#include <errno.h>
#include <sys/stat.h>

/* True, with errno set, when this system call is the one a test wants to fail.
 * Checked before every call except those that only clean up. */
bool pl_file_fault(void);

/* Make a system call that a test can fail; retry it when a signal interrupts
 * it. */
#define PL_SYSTEM_CALL(result, call)                                           \
    do {                                                                       \
        (result) = pl_file_fault() ? -1 : (call);                              \
    } while ((result) < 0 && errno == EINTR)

/* "write a/b: No space left on device; free some space ..." from errno. */
pl_status pl_file_fail_errno(const char *verb, const char *path, bool writing);

/* Open a regular file, and only that; PL_IO for a FIFO or a device. */
pl_status pl_file_open_to_read(int *out, const char *path,
                               struct stat *info) PL_MUST_CHECK;

/* The part of `path` after the last slash. */
const char *pl_file_last_name(const char *path);

/* Flush the folder that holds `path`, so that its new name is durable. */
pl_status pl_file_flush_folder_of(const char *path) PL_MUST_CHECK;

/* The resolved target of an output that a user named. */
typedef struct pl_output {
    char *path;  /* with all links followed */
    int file;    /* write to this directly; -1: replace `path` */
    bool exists; /* a regular file is replaced, which has: */
    uid_t owner;
    gid_t group;
    mode_t mode;
} pl_output;

/* A failure names the path, and the link that led there. */
pl_status pl_output_init(pl_output *output, const char *path) PL_MUST_CHECK;
void pl_output_close(pl_output *output);

#endif

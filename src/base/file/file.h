/* file.h - whole files: read, replace atomically; mapping them is map.h.
 *
 * Two kinds of files are written.  Files in our own folders (run folders,
 * checkpoints) replace whatever has their name: links are not followed. Outputs
 * are files that a user named: links are followed, as with `cat > NAME`.
 *
 * Errors name the path, the system's error and, where there is one, the remedy.
 * A file or folder to read that does not exist is PL_NOTFOUND, lack of memory
 * PL_NOMEM, any other system error PL_IO.
 *
 * Threads: any; the fault counter belongs to the thread that set it. */
#ifndef PL_BASE_FILE_FILE_H
#define PL_BASE_FILE_FILE_H

#include "base/file/map.h"
#include "paceline/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The whole file as NUL-terminated text (pl_mem_free); PL_FORMAT when it is
 * longer than `most` bytes or contains a NUL.  A file that is not regular, and
 * might never end, is PL_IO. */
pl_status pl_file_read_text(char **out, const char *path,
                            size_t most) PL_MUST_CHECK;

/* Read at most the last room - 1 bytes of a regular file, NUL-terminated;
 * *bytes counts them, *first is their offset in the file.  A file may grow or
 * shrink meanwhile. */
pl_status pl_file_read_end(const char *path, char *text, size_t room,
                           size_t *bytes, int64_t *first) PL_MUST_CHECK;

/* A file that appears under its name complete, or not at all: written to a
 * temporary name that begins with a dot, flushed to disk, then renamed.  A
 * failed commit leaves the old file, or, when only flushing the folder
 * failed, the new one. */
typedef struct pl_file_writer pl_file_writer;
pl_status pl_file_writer_new(pl_file_writer **out,
                             const char *path) PL_MUST_CHECK;
pl_status pl_file_writer_put(pl_file_writer *writer, const void *data,
                             size_t bytes) PL_MUST_CHECK;
pl_status pl_file_writer_commit(pl_file_writer *writer) PL_MUST_CHECK;
void pl_file_writer_free(pl_file_writer *writer); /* uncommitted: removed */

/* The three calls above for one piece of memory. */
pl_status pl_file_replace(const char *path, const void *data,
                          size_t bytes) PL_MUST_CHECK;

/* A writer of an output.  A symbolic link's target is replaced, not the link,
 * and the new file has the owner (where permitted) and mode of the old one.
 * Anything else is written to directly: a device, a descriptor of this process
 * (/dev/stdout), or a FIFO, whose reader is awaited for up to a minute
 * (PL_TIMEOUT).  Folders, sockets, and names in a folder that does not exist
 * are refused. */
pl_status pl_file_writer_new_output(pl_file_writer **out,
                                    const char *path) PL_MUST_CHECK;

/* The same for one piece of memory. */
pl_status pl_file_output(const char *path, const void *data,
                         size_t bytes) PL_MUST_CHECK;

/* The same for rows that are read while more are written: a regular file is
 * truncated and grows in place.  The caller closes *out. */
pl_status pl_file_stream(int *out, const char *path) PL_MUST_CHECK;

bool pl_file_exists(const char *path);

/* Make a folder and its parents, flushed; existing ones are fine. */
pl_status pl_file_make_folder(const char *path) PL_MUST_CHECK;
/* The same, but only the parents are flushed: for folders whose files are not
 * flushed either, such as logs and events. */
pl_status pl_file_make_folder_unflushed(const char *path) PL_MUST_CHECK;

/* Rename a folder or file, then flush the folder that holds it. */
pl_status pl_file_rename(const char *from, const char *to) PL_MUST_CHECK;

/* Remove a file, or a folder and its contents; links are not followed, and a
 * missing path is fine. */
pl_status pl_file_remove_all(const char *path) PL_MUST_CHECK;

/* "folder/name" in *out. */
pl_status pl_file_join(char **out, const char *folder,
                       const char *name) PL_MUST_CHECK;

/* The names in a folder except "." and "..", sorted; *names is one allocation
 * (pl_mem_free). */
pl_status pl_file_list(char ***names, size_t *count,
                       const char *folder) PL_MUST_CHECK;

/* Test support: the system call for I/O after `nth` successful ones of this
 * thread fails with `error` (an errno value), once. */
void pl_file_fail_at(long nth, int error);
bool pl_file_fail_off(void);

#endif

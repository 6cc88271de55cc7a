/* download.h - one file from a web server, resumed after an interruption.
 *
 * Uses libcurl, loaded at first use: linking it and its thirty dependencies
 * would cost every task of every job 5 ms.
 *
 * Threads: any; a file is written by one at a time. */
#ifndef PL_NET_HTTP_DOWNLOAD_H
#define PL_NET_HTTP_DOWNLOAD_H

#include "base/clock.h"
#include "paceline/base.h"

#include <stdatomic.h>

typedef struct pl_download_opts {
    const char *url;              /* required: http or https */
    const char *path;             /* required: the bytes it has are not
                                     requested again */
    int64_t most;                 /* required: bytes that are accepted */
    pl_deadline deadline;         /* required */
    const atomic_bool *interrupt; /* ends it when set; NULL: none */
    /* Optional: called about once a second; `all` is 0 until it is known. */
    void (*show)(void *context, int64_t bytes, int64_t all);
    void *context;
} pl_download_opts;

/* One attempt.  PL_OK when the server has nothing more to send: a digest must
 * then verify the file.  PL_AGAIN when a retry may help: the connection failed
 * or broke, the server is busy, or it cannot resume (then the file was
 * truncated).  PL_NOTFOUND when the server refuses, PL_USAGE for a malformed
 * address, PL_FORMAT for more than `most` bytes, PL_TIMEOUT at the deadline,
 * PL_INTERRUPTED. */
pl_status pl_download(const pl_download_opts *opts) PL_MUST_CHECK;

#endif

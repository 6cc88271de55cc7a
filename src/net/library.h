/* library.h - libraries that are loaded at first use.
 *
 * Linking a library that one command needs would cost every process the time to
 * load it and its dependencies.  It is never unloaded: it has threads and
 * tables of its own.
 *
 * Threads: any. */
#ifndef PL_NET_LIBRARY_H
#define PL_NET_LIBRARY_H

#include "paceline/base.h"

#include <stddef.h>

typedef struct pl_library_call {
    const char *name;
    void *at; /* of the pointer to the function */
} pl_library_call;

/* Load `file` ("libcurl.so.4") and find its functions; an error names its
 * `package`. */
pl_status pl_library_load(const char *file, const char *package,
                          const pl_library_call *calls,
                          size_t count) PL_MUST_CHECK;

#endif

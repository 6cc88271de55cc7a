/* get.h - `data get mnist`: downloads the files from a mirror and verifies
 * them.
 *
 * Threads: one; several processes may get the same folder at once. */
#ifndef PL_APP_DATA_GET_H
#define PL_APP_DATA_GET_H

#include "paceline/base.h"

#include <stdbool.h>

typedef struct pl_data_get_opts {
    const char *from;  /* URL of a folder of files; NULL: the mirrors */
    const char *out;   /* required; created if missing */
    int64_t timeout_s; /* required; for the whole command */
    bool quiet;        /* no progress */
} pl_data_get_opts;

/* Get the files that are missing or damaged in `out`. */
pl_status pl_data_get_mnist(const pl_data_get_opts *opts) PL_MUST_CHECK;

#endif

/* pass.h - one pass over a source of sparse examples, with progress.
 *
 * For `data convert` and `data stats`.
 *
 * Threads: one. */
#ifndef PL_APP_DATA_PASS_H
#define PL_APP_DATA_PASS_H

#include "data/source.h"

#include <stdbool.h>

typedef struct pl_data_pass {
    const char *source;
    const char *verb; /* "converted", for the progress line */
    const pl_source_opts *opts;
    bool quiet;
    /* Called with each batch. */
    pl_status (*use)(void *context, const pl_batch *batch);
    void *context;
    /* Results. */
    int64_t examples, bad;
    uint32_t numbering; /* of the source's ids; set from the first batch on */
    double seconds;
} pl_data_pass;

pl_status pl_data_pass_run(pl_data_pass *pass) PL_MUST_CHECK;

/* `data convert SRC DST` and `data stats SRC`. */
typedef struct pl_data_convert_opts {
    const char *source, *target; /* both required */
    const pl_source_opts *opts;
    const char *renumber; /* file of the new ids; NULL: keep the ids */
    pl_split split;       /* of dense examples */
    bool quiet;
} pl_data_convert_opts;
pl_status pl_data_convert(const pl_data_convert_opts *opts) PL_MUST_CHECK;
typedef struct pl_data_stats_opts {
    const char *source; /* required, as is */
    const pl_source_opts *opts;
    pl_split split;      /* of dense examples */
    const char *picture; /* file for a picture of some examples; NULL: none */
    bool json, quiet;
} pl_data_stats_opts;
pl_status pl_data_stats(const pl_data_stats_opts *opts) PL_MUST_CHECK;

#endif

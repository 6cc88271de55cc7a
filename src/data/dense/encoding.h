/* encoding.h - how training data was encoded: the names of its classes, the
 * values of its categories, mean and deviation.
 *
 * A run keeps it (run.json and the checkpoints), so that test and prediction
 * data are read in the same way.
 *
 * Threads: one at a time; all may read. */
#ifndef PL_DATA_DENSE_ENCODING_H
#define PL_DATA_DENSE_ENCODING_H

#include "base/json/json.h"

#define PL_ENCODING_COLUMNS 16384 /* the most with a mean each */

typedef struct pl_encoding {
    pl_json *learned; /* object; NULL: nothing yet */
    bool fixed;       /* complete: sets are read by it */
} pl_encoding;

void pl_encoding_close(pl_encoding *encoding); /* a zeroed one is fine */

/* Restore what a run has kept; `learned` is copied and may be NULL. */
pl_status pl_encoding_init(pl_encoding *encoding,
                           const pl_json *learned) PL_MUST_CHECK;

/* Its text for the settings of a checkpoint; *out stays NULL when nothing was
 * learned. */
pl_status pl_encoding_text(const pl_encoding *encoding,
                           char **out) PL_MUST_CHECK;

/* A list of texts under a name: "classes", or the values of a column, in an
 * object of their own. */
pl_status pl_encoding_set_texts(pl_encoding *encoding, const char *column,
                                char *const *texts, size_t count) PL_MUST_CHECK;
/* The same; *count is 0 when nothing was learned.  *out is a list of borrowed
 * texts (pl_mem_free). */
pl_status pl_encoding_texts(const pl_encoding *encoding, const char *column,
                            const char ***out, size_t *count) PL_MUST_CHECK;

/* Numbers under "mean" or "deviation"; the caller frees *out (pl_mem_free);
 * NULL when nothing was learned. */
pl_status pl_encoding_set_numbers(pl_encoding *encoding, const char *name,
                                  const double *numbers,
                                  size_t count) PL_MUST_CHECK;
pl_status pl_encoding_numbers(const pl_encoding *encoding, const char *name,
                              double **out, size_t *count) PL_MUST_CHECK;

/* The name of a class; NULL when it has none. */
const char *pl_encoding_class(const pl_encoding *encoding, int64_t index);

#endif

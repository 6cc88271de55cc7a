/* predict_sparse.h - the predictions of a sparse model, one line per example.
 *
 * Threads: one. */
#ifndef PL_APP_PREDICT_PREDICT_SPARSE_H
#define PL_APP_PREDICT_PREDICT_SPARSE_H

#include "app/train/trained.h"

typedef struct pl_predict_sparse_opts {
    const char *source; /* libsvm:FILE ...; required */
    bool json;          /* one line of JSON per example */
    bool several;       /* several sources: lines name theirs */
} pl_predict_sparse_opts;

/* Print number and probability of label 1 for every example of a source, in
 * order. */
pl_status pl_predict_sparse(pl_trained *trained,
                            const pl_predict_sparse_opts *opts) PL_MUST_CHECK;

#endif

/* predictor.h - the output of a network for many examples, computed by several
 * threads.
 *
 * The rows of a run are split into parts, each computed by one thread.  The
 * size of a part does not depend on the number of threads, so neither does
 * any result.
 *
 * Threads: driven by one thread; uses the given pool. */
#ifndef PL_APP_PREDICT_PREDICTOR_H
#define PL_APP_PREDICT_PREDICTOR_H

#include "base/thread.h"
#include "nn/model.h"
#include "tensor/view.h"

typedef struct pl_predictor pl_predictor;

typedef struct pl_predictor_opts {
    const pl_network *network; /* required; borrowed, as all here */
    pl_pool *pool;             /* required */
    const pl_kernels *kernels; /* default: the best of this processor */
    int64_t part;              /* the most rows of a part; default 64 */
} pl_predictor_opts;

pl_status pl_predictor_new(pl_predictor **out,
                           const pl_predictor_opts *opts) PL_MUST_CHECK;
void pl_predictor_free(pl_predictor *predictor); /* NULL is fine */

/* The most rows of one run. */
int64_t pl_predictor_room(const pl_predictor *predictor);

/* The logits of the first `rows` examples of a view, [rows, classes]; valid
 * until the next run. */
const float *pl_predictor_run(pl_predictor *predictor, const pl_view *examples,
                              int64_t rows);

#endif

/* score.c - one pass of a network over a test set, on all threads of the
 * job. */
#include "app/predict/score.h"

#include "train/loop/loop.h"

pl_status pl_score_set(const pl_job *job, pl_dataset *set, int64_t batch,
                       pl_confusion *confusion, pl_score *out)
{
    batch = pl_loop_eval_batch(set, batch);
    pl_compute *compute;
    PL_TRY(pl_compute_new(&compute, &(pl_compute_opts) {
                                        .network = job->network,
                                        .batch = batch,
                                        .pool = job->pool,
                                        .kernels = job->kernels,
                                        .forward = true,
                                    }));
    pl_status status =
        pl_loop_evaluate(compute, set, batch, NULL, confusion, out);
    pl_compute_free(compute);
    return status;
}

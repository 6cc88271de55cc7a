/* try_job.c - opens data and model once, before anything is created: errors in
 * them are reported once and not by every task, and generated data is generated
 * once. */
#include "app/launch/try_job.h"

#include "app/train/job.h"

pl_status pl_try_job(const pl_options *options, const pl_cluster *cluster,
                     int64_t *per_epoch)
{
    const pl_train_options *train = &options->train;
    pl_job job;
    pl_reader *reader = NULL;
    PL_TRY(pl_job_init(&job, &(pl_job_opts) { .options = options }));
    pl_status status =
        pl_reader_new(&reader, job.train,
                      &(pl_reader_opts) {
                          .batch = train->batch,
                          .micro_batches = (int32_t)train->micro_batches,
                          .workers = cluster->workers,
                          .seed = (uint64_t)train->seed,
                      });
    int64_t steps = train->steps_per_epoch;
    if (status == PL_OK && steps == 0)
        steps = reader->steps_per_epoch;
    if (steps > 0)
        *per_epoch =
            steps * (train->mode == PL_TRAIN_MODE_SYNC ? 1 : cluster->workers);
    pl_reader_free(reader);
    pl_job_close(&job);
    return status;
}

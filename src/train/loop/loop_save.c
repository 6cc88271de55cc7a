/* Checkpoints: decides from which position of the data a resumed run goes on,
 * and which failure ends the run. */
#include "train/loop/loop_priv.h"

#include "base/log.h"

/* A checkpoint that fails in mid-run is a warning: the one before still
 * counts, and the next may succeed.  The last one's failure is the run's. */
pl_status pl_loop_save(pl_loop *l, bool last)
{
    uint64_t begin = pl_ticks_now();
    pl_sync *sync = l->opts->sync;
    PL_TRY(pl_dataset_check(l->opts->train, true));
    if (l->ahead != NULL && l->other == NULL) {
        PL_TRY(pl_loop_align_ahead(l));
        pl_ahead_position(l->ahead, &l->result->progress.position);
    } else {
        pl_loop_align_reader(l);
        pl_reader_position(l->reader, &l->result->progress.position);
    }
    pl_status status = sync->ops->save(sync, &l->result->progress, last);
    uint64_t end = pl_ticks_now();
    pl_trace_span(l->opts->trace, 0, "checkpoint", l->result->progress.step,
                  begin, end);
    l->result->save_seconds += pl_loop_seconds(end - begin);
    if (status == PL_OK)
        pl_recorder_checkpoint(&l->recorder, l->result->progress.step);
    if (status == PL_OK || last)
        return status;
    if (status != PL_AGAIN)
        pl_log(PL_LOG_WARN, "checkpoint of step %lld: %s",
               (long long)l->result->progress.step, pl_error_message());
    return PL_OK;
}

pl_status pl_loop_save_last(pl_loop *l)
{
    pl_loop_sum_up(l);
    l->result->ended = true;
    pl_status status = pl_loop_save(l, true);
    if (status == PL_NUMERIC) /* the last update was one too many */
        l->course.stopped_by = PL_STOPPED_NAN;
    return status;
}

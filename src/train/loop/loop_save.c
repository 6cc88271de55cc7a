/* Checkpoints: decides from which position in the data a resumed run continues,
 * and which failure ends the run. */
#include "train/loop/loop_priv.h"

#include "base/log.h"

#include <math.h>

#define LATE_S 10

/* Record the position in the data and the state of the tests, for a resume. */
static pl_status note_position(pl_loop *l)
{
    pl_progress *progress = &l->result->progress;
    PL_TRY(pl_dataset_check(l->opts->train, true));
    progress->best_loss =
        isfinite(l->course.best_loss) ? l->course.best_loss : 0;
    progress->worse = l->course.worse;
    if (l->ahead != NULL && l->other == NULL) {
        PL_TRY(pl_loop_align_ahead(l));
        pl_ahead_position(l->ahead, &progress->position);
    } else {
        pl_loop_align_reader(l);
        pl_reader_position(l->reader, &progress->position);
    }
    return PL_OK;
}

/* `complete`: wait until the checkpoint is complete. */
static pl_status save(pl_loop *l, bool complete)
{
    uint64_t begin = pl_ticks_now();
    pl_sync *sync = l->opts->sync;
    int64_t step = l->result->progress.step;
    pl_status status = sync->ops->save(sync, &l->result->progress, complete);
    uint64_t end = pl_ticks_now();
    pl_trace_span(l->opts->trace, 0, "checkpoint", step, begin, end);
    l->result->save_seconds += pl_loop_seconds(end - begin);
    if (status == PL_AGAIN)
        return status; /* skipped */
    l->result->saves++;
    l->save_begun = begin;
    l->late = false;
    if (status == PL_OK)
        pl_recorder_checkpoint(&l->recorder, step);
    return status;
}

/* A checkpoint skipped because the previous one is still being written is
 * reported only, and only once, if that takes so long that the disk may be
 * hung. */
static void warn_of_late(pl_loop *l)
{
    double limit = l->opts->late_save_s > 0 ? l->opts->late_save_s : LATE_S;
    double took = pl_loop_seconds(pl_ticks_now() - l->save_begun);
    if (l->late || took < limit)
        return;
    l->late = true;
    pl_log(PL_LOG_WARN,
           "checkpoint of step %lld skipped: the one before it is still being "
           "written after %.0f s; is its disk slow, or does it hang?",
           (long long)l->result->progress.step, took);
}

/* A failed checkpoint in mid-run is a warning: the previous one is still valid,
 * and the next may succeed. */
static void warn_of(pl_loop *l, pl_status status)
{
    if (status == PL_AGAIN)
        warn_of_late(l);
    else if (status != PL_OK)
        pl_log(PL_LOG_WARN, "checkpoint of step %lld: %s",
               (long long)l->result->progress.step, pl_error_message());
}

pl_status pl_loop_save(pl_loop *l)
{
    PL_TRY(note_position(l));
    warn_of(l, save(l, false));
    return PL_OK;
}

/* The parameters tested last are in a complete checkpoint. */
static pl_status keep_best(pl_loop *l)
{
    const pl_loop_opts *opts = l->opts;
    PL_TRY(opts->keep_best(opts->context, l->course.step, &l->result->test));
    pl_course_kept(&l->course);
    return PL_OK;
}

pl_status pl_loop_save_best(pl_loop *l)
{
    pl_loop_sum_up(l);
    PL_TRY(note_position(l));
    pl_status status = save(l, true);
    warn_of(l, status == PL_OK ? keep_best(l) : status);
    return PL_OK;
}

/* If the final checkpoint fails, so does the run. */
static pl_status save_end(pl_loop *l)
{
    PL_TRY(note_position(l));
    PL_TRY(save(l, true));
    return l->course.best_due ? keep_best(l) : PL_OK;
}

pl_status pl_loop_save_last(pl_loop *l)
{
    pl_loop_sum_up(l);
    l->result->ended = true;
    pl_status status = save_end(l);
    if (status == PL_NUMERIC) /* the last update made the parameters invalid */
        l->course.stopped_by = PL_STOPPED_NAN;
    return status;
}

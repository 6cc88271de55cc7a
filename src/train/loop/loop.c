/* Performs the acts that the course of a training (course.c) selects, from
 * joining the job to leaving it, and adds up where the time went. */
#include "train/loop/loop_priv.h"

#include "base/clock.h"
#include "base/host/group.h"
#include "base/log.h"

#include <math.h>

double pl_loop_seconds(uint64_t ticks)
{
    return (double)ticks * pl_ticks_ns() * 1e-9;
}

void pl_loop_forget_batch(pl_loop *l)
{
    pl_recorder_flush(&l->recorder, l->batch.rows > 0);
    l->batch.rows = 0;
}

/* Join the job; a running job reports where to continue. */
static pl_status join(pl_loop *l)
{
    const pl_loop_opts *opts = l->opts;
    pl_sync *sync = opts->sync;
    int64_t step = l->result->progress.step;
    bool joined = l->course.joined;
    pl_standing at = { .step = step,
                       .start = l->result->progress,
                       .restored = INT64_MAX,
                       .deal = l->deal };
    pl_reader_position(l->reader, &at.start.position);
    PL_TRY(sync->ops->join(sync, &at));
    l->next_read = opts->own_pace ? at.own : at.step;
    if (at.step != step || at.own > 0 || joined)
        pl_loop_go(l, l->next_read);
    if (l->ahead != NULL)
        pl_ahead_reset(l->ahead, at.ahead);
    PL_TRY(pl_loop_deal_join(l, &at));
    pl_loop_share_end(l);
    pl_course_joined(&l->course, &at);
    l->restored = at.restored < at.step ? at.restored : at.step;
    l->result->progress.step = at.step;
    l->result->progress.examples += (at.step - step) * l->update_examples;
    return PL_OK;
}

/* Join; after a rollback, count the steps made again. */
static pl_status join_or_rejoin(pl_loop *l)
{
    PL_TRY(join(l));
    int64_t step = l->course.step;
    if (l->before < 0)
        return PL_OK;
    pl_recorder_restart(&l->recorder, step, l->before, l->restored);
    if (l->restored < l->before) {
        l->result->rolled_back += l->before - l->restored;
        pl_log(PL_LOG_WARN, "rolled back from step %lld to step %lld",
               (long long)l->before, (long long)l->restored);
    }
    l->before = -1;
    pl_log(PL_LOG_INFO, "continuing at step %lld", (long long)step);
    return PL_OK;
}

/* PL_LOOP_COMPUTE is not traced here: compute traces its own operators. */
void pl_loop_spent_until(pl_loop *l, pl_loop_phase p, uint64_t ticks)
{
    static const char *const names[] = { [PL_LOOP_INPUT] = "read",
                                         [PL_LOOP_SEND] = "send",
                                         [PL_LOOP_WAIT] = "wait" };
    if (p != PL_LOOP_COMPUTE)
        pl_trace_span(l->opts->trace, 0, names[p], l->result->progress.step + 1,
                      l->mark, ticks);
    l->phase_ticks[p] += ticks - l->mark;
    l->mark = ticks;
}

void pl_loop_spent(pl_loop *l, pl_loop_phase p)
{
    pl_loop_spent_until(l, p, pl_ticks_now());
}

double pl_loop_trained(const pl_loop *l)
{
    double seconds = l->opts->start.seconds;
    for (int p = 0; p < PL_LOOP_PHASES; p++)
        seconds += pl_loop_seconds(l->phase_ticks[p]);
    return seconds;
}

void pl_loop_sum_up(pl_loop *l)
{
    pl_loop_result *result = l->result;
    double s[PL_LOOP_PHASES];
    for (int p = 0; p < PL_LOOP_PHASES; p++)
        s[p] = pl_loop_seconds(l->phase_ticks[p]);
    result->phases = (pl_phases) {
        .input_s = s[PL_LOOP_INPUT],
        .compute_s = s[PL_LOOP_COMPUTE],
        .send_s = s[PL_LOOP_SEND],
        .wait_s = s[PL_LOOP_WAIT],
    };
    pl_steal steal = pl_steal_read("");
    result->throttled_s = pl_group_throttled("") - l->throttled_s;
    result->stolen_share = pl_steal_share(&l->steal, &steal);
    result->usual_step_s = pl_histogram_quantile(&l->own_steps, 0.5);
    result->progress.seconds = pl_loop_trained(l);
    pl_recorder_end(&l->recorder, result->own_examples, result->dropped);
    if (l->epoch_updates > 0)
        result->epochs =
            (double)result->progress.step / (double)l->epoch_updates;
    result->train_loss = pl_losses_mean(&l->recorder.losses);
    result->tested = l->course.tested;
}

void pl_loop_arrive(pl_loop *l, int64_t step)
{
    pl_progress *progress = &l->result->progress;
    progress->examples += (step - progress->step) * l->update_examples;
    progress->step = step;
    pl_course_arrived(&l->course, step);
}

/* Wait for parameters that can be tested or saved. */
static pl_status pause_job(pl_loop *l)
{
    pl_sync *sync = l->opts->sync;
    int64_t step = l->result->progress.step;
    if (l->course.pauses_for == PL_ACT_TEST)
        pl_recorder_flush(&l->recorder, true);
    if (l->course.pauses_for == PL_ACT_SAVE)
        pl_loop_sum_up(l);
    l->paused = pl_ticks_now();
    if (sync->ops->pause == NULL)
        return PL_OK;
    PL_TRY(sync->ops->pause(sync, false, &step));
    pl_loop_arrive(l, step);
    return PL_OK;
}

static bool interrupted(const pl_loop *l)
{
    return l->opts->interrupt != NULL &&
           atomic_load_explicit(l->opts->interrupt, memory_order_relaxed);
}

/* Wait for the final parameters. */
static pl_status settle(pl_loop *l)
{
    pl_sync *sync = l->opts->sync;
    int64_t step = l->result->progress.step;
    if (sync->ops->pause == NULL)
        return PL_OK;
    PL_TRY(sync->ops->pause(sync, true, &step));
    pl_loop_arrive(l, step);
    return PL_OK;
}

static pl_status stop(pl_loop *l)
{
    pl_sync *sync = l->opts->sync;
    if (sync->ops->stop == NULL)
        return PL_OK;
    return sync->ops->stop(sync, pl_stopped_text(l->course.stopped_by));
}

static pl_status leave(pl_loop *l)
{
    pl_loop_sum_up(l);
    pl_recorder_end_epoch(&l->recorder);
    l->result->ended = true;
    return l->opts->sync->ops->finish(l->opts->sync);
}

static pl_status act(pl_loop *l, pl_act what)
{
    switch (what) {
    case PL_ACT_JOIN:
        return join_or_rejoin(l);
    case PL_ACT_SHARE:
        return pl_loop_share(l);
    case PL_ACT_STEP:
        return pl_loop_step(l);
    case PL_ACT_RECORD:
        return pl_loop_histograms(l);
    case PL_ACT_PAUSE:
        return pause_job(l);
    case PL_ACT_TEST:
    case PL_ACT_TEST_LAST:
        return pl_loop_test(l, what == PL_ACT_TEST_LAST);
    case PL_ACT_SAVE:
        return pl_loop_save(l);
    case PL_ACT_SAVE_BEST:
        return pl_loop_save_best(l);
    case PL_ACT_SUM_UP:
        pl_recorder_flush(&l->recorder, true);
        pl_loop_sum_up(l);
        return PL_OK;
    case PL_ACT_STOP:
        return stop(l);
    case PL_ACT_SETTLE:
        return settle(l);
    case PL_ACT_SAVE_LAST:
        return pl_loop_save_last(l);
    case PL_ACT_LEAVE:
        return leave(l);
    case PL_ACT_END:
        break;
    }
    return PL_OK;
}

/* The servers' state was lost: continue from the step to which the job rolled
 * back. */
static void go_back(pl_loop *l)
{
    pl_log(PL_LOG_WARN, "%s", pl_error_message());
    if (l->before < 0)
        l->before = l->result->progress.step;
    pl_course_rolled(&l->course);
}

/* An act as the monitors show it. */
static pl_activity activity_of(pl_act what)
{
    switch (what) {
    case PL_ACT_JOIN:
        return PL_ACTIVITY_JOIN;
    case PL_ACT_TEST:
    case PL_ACT_TEST_LAST:
        return PL_ACTIVITY_TEST;
    case PL_ACT_SAVE:
    case PL_ACT_SAVE_LAST:
        return PL_ACTIVITY_SAVE;
    default:
        return PL_ACTIVITY_TRAIN;
    }
}

static pl_status follow_course(pl_loop *l)
{
    pl_activity shown = PL_ACTIVITY_TRAIN;
    for (;;) {
        pl_act what = pl_course_next(&l->course, interrupted(l), l->mark);
        if (what == PL_ACT_END)
            return PL_OK;
        if (activity_of(what) != shown) {
            shown = activity_of(what);
            pl_recorder_activity(&l->recorder, shown);
        }
        pl_status status = act(l, what);
        if (status == PL_ROLLED)
            go_back(l);
        else
            PL_TRY(status);
        if (what != PL_ACT_STEP && what != PL_ACT_SHARE)
            l->mark = pl_ticks_now();
    }
}

pl_status pl_loop_run(const pl_loop_opts *opts, pl_loop_result *result)
{
    pl_loop l = { .opts = opts,
                  .result = result,
                  .before = -1,
                  .save_begun = pl_ticks_now(),
                  .throttled_s = pl_group_throttled(""),
                  .steal = pl_steal_read("") };
    *result = (pl_loop_result) { .progress = opts->start,
                                 .train_loss = { .loss = NAN },
                                 .target_step = -1 };
    pl_status status = pl_loop_open(&l);
    bool opened = status == PL_OK;
    if (opened)
        status = follow_course(&l);
    if (status == PL_NUMERIC) {
        pl_recorder_flush(&l.recorder, false);
        pl_loop_sum_up(&l);
    }
    result->stopped_by = l.course.stopped_by;
    result->tested = result->tested && (status == PL_OK || result->ended);
    /* An interrupted worker leaves; the job has not failed. */
    if (status != PL_OK && status != PL_INTERRUPTED && opened &&
        opts->sync->ops->abort != NULL)
        opts->sync->ops->abort(opts->sync, pl_error_message());
    pl_loop_close(&l);
    return status;
}

/* The course of a training.  Stages, in order, each with at most one act:
 *   JOIN; then, for each step: SHARE, STEP, DUE (decide what is due),
 *   RECORD, PAUSE and TEST, SAVE the best, PAUSE and SAVE; at the end: SUM_UP,
 *   STOP, SETTLE, PAUSE and TEST, SAVE, LEAVE, END.
 *
 * Invariants:
 *   C1  A worker makes a step only after it joined, and only if no reply since
 *       then said that the job is over.
 *   C2  After a rollback the next act is to join, and what is due is computed
 *       from the step at which the job then is.
 *   C3  Only the chief saves, settles and pauses the job.
 *   C4  A worker requests a share only when its own epoch ends, when it has
 *       read another's share to its end, or when a gradient was dropped.
 *   C5  No update comes between a test and the save of its parameters as the
 *       best: where others do not wait, the pause before the test holds them
 *       until then.
 *   C6  While the parameters are this worker's alone (midway), nothing is due
 *       and nothing stops. */
#include "train/loop/course.h"

#include <math.h>

enum {
    STAGE_JOIN,
    STAGE_SHARE,
    STAGE_STEP,
    STAGE_DUE,
    STAGE_RECORD,
    STAGE_PAUSE_TEST,
    STAGE_TEST,
    STAGE_SAVE_BEST,
    STAGE_PAUSE_SAVE,
    STAGE_SAVE,
    STAGE_STOP,
    STAGE_SETTLE,
    STAGE_PAUSE_LAST,
    STAGE_TEST_LAST,
    STAGE_SAVE_LAST,
    STAGE_LEAVE,
    STAGE_END,
};

const char *pl_stopped_text(pl_stopped_by stopped)
{
    static const char *const texts[] = {
        [PL_STOPPED_STEPS] = "steps",
        [PL_STOPPED_EPOCHS] = "epochs",
        [PL_STOPPED_STOP_LOSS] = "stop_loss",
        [PL_STOPPED_STOP_ACCURACY] = "stop_accuracy",
        [PL_STOPPED_PATIENCE] = "patience",
        [PL_STOPPED_INTERRUPT] = "interrupt",
        [PL_STOPPED_NAN] = "nan",
    };
    return texts[stopped];
}

/* Set when to test and save next after `step`. */
static void set_due(pl_course *c, int64_t step)
{
    const pl_course_opts *opts = &c->opts;
    pl_every never = { PL_EVERY_NEVER, 0 };
    pl_due_init(&c->eval, opts->eval_every, opts->pace, step);
    pl_due_init(&c->save, opts->follower ? never : opts->save_every, opts->pace,
                step);
    pl_due_init(&c->record, opts->histograms_every, opts->pace, step);
}

static pl_stopped_by by_itself(const pl_course *c)
{
    return c->opts.by_steps ? PL_STOPPED_STEPS : PL_STOPPED_EPOCHS;
}

void pl_course_init(pl_course *c, const pl_course_opts *opts, int64_t step)
{
    *c = (pl_course) {
        .opts = *opts,
        .step = step,
        .reads = opts->worker,
        .tested_step = -1,
        .target_step = -1,
        .best_loss = opts->best_loss > 0
                         ? fmin(opts->best_loss, opts->kept_loss)
                         : opts->kept_loss,
        .worse = opts->worse,
        .kept_loss = opts->kept_loss,
    };
    c->stopped_by = by_itself(c);
    set_due(c, step);
}

bool pl_course_is_over(const pl_course *c)
{
    return c->stop || c->step >= c->opts.end_step ||
           (c->own >= c->opts.end_own && c->reads == c->opts.worker);
}

/* C4 */
static bool share_is_due(const pl_course *c)
{
    if (!c->opts.shares || c->stop)
        return false;
    if (c->astray)
        return true;
    if (c->reads != c->opts.worker)
        return c->other_own >= c->other_end;
    return c->own % c->opts.per_epoch == 0 && c->own != c->asked;
}

static void look_what_is_due(pl_course *c, uint64_t ticks)
{
    c->test_due = c->save_due = c->record_due = false;
    if (c->midway)
        return; /* C6: remains due */
    bool over = pl_course_is_over(c);
    if (c->opts.foretells)
        ticks = c->begun_ticks;
    bool test = pl_due_now(&c->eval, c->step, ticks);
    bool save = pl_due_now(&c->save, c->step, ticks);
    bool record = pl_due_now(&c->record, c->step, ticks);
    c->test_due = test && !over && c->opts.tests;
    c->save_due = save && !over;
    c->record_due = record && !over;
}

bool pl_course_save_follows(const pl_course *c)
{
    bool best = c->opts.tests && c->opts.targets.keep_best;
    return !c->opts.follower &&
           (pl_due_then(&c->save, c->step + 1, c->begun_ticks) ||
            (best && pl_due_then(&c->eval, c->step + 1, c->begun_ticks)));
}

/* The last parameters are untested, and the run was not interrupted. */
static bool last_test_is_due(pl_course *c)
{
    if (c->tested_step == c->step && !c->opts.own_pace)
        return false;
    c->tested = false;
    return c->opts.tests && c->stopped_by != PL_STOPPED_INTERRUPT;
}

static bool was_decided(const pl_course *c)
{
    return c->stopped_by != by_itself(c) && c->stopped_by != PL_STOPPED_NAN;
}

/* Another step, or the end. */
static pl_act step_or_end(pl_course *c, bool interrupted, uint64_t ticks)
{
    bool over = pl_course_is_over(c);
    if (!over && (!interrupted || c->midway)) { /* C6 */
        c->stage = STAGE_DUE;
        c->begun_ticks = ticks;
        return PL_ACT_STEP; /* C1 */
    }
    if (!over)
        c->stopped_by = PL_STOPPED_INTERRUPT;
    c->stage = STAGE_STOP;
    return PL_ACT_SUM_UP;
}

/* Advance to stage `next`; returns whether this stage has an act. */
static bool take(pl_course *c, int next, bool wanted)
{
    c->stage = next;
    return wanted;
}

static bool take_pause(pl_course *c, int next, pl_act what, bool wanted)
{
    c->pauses_for = what;
    return take(c, next, wanted && !c->opts.follower); /* C3 */
}

pl_act pl_course_next(pl_course *c, bool interrupted, uint64_t ticks)
{
    bool chief = !c->opts.follower;
    switch (c->stage) {
    case STAGE_JOIN:
        c->stage = STAGE_SHARE;
        return PL_ACT_JOIN;
    case STAGE_SHARE:
        if (take(c, STAGE_STEP, share_is_due(c)))
            return PL_ACT_SHARE;
        /* fall through */
    case STAGE_STEP:
        return step_or_end(c, interrupted, ticks);
    case STAGE_DUE:
        look_what_is_due(c, ticks);
        /* fall through */
    case STAGE_RECORD:
        if (take(c, STAGE_PAUSE_TEST, c->record_due))
            return PL_ACT_RECORD;
        /* fall through */
    case STAGE_PAUSE_TEST:
        if (take_pause(c, STAGE_TEST, PL_ACT_TEST, c->test_due))
            return PL_ACT_PAUSE;
        /* fall through */
    case STAGE_TEST:
        if (take(c, STAGE_SAVE_BEST, c->test_due))
            return PL_ACT_TEST;
        /* fall through */
    case STAGE_SAVE_BEST: /* at the end the last checkpoint is kept instead */
        if (take(c, STAGE_PAUSE_SAVE, c->best_due && !c->stop)) {
            c->save_due = false;
            return PL_ACT_SAVE_BEST; /* C5 */
        }
        /* fall through */
    case STAGE_PAUSE_SAVE:
        c->save_due = c->save_due && !c->stop;
        if (take_pause(c, STAGE_SAVE, PL_ACT_SAVE, c->save_due))
            return PL_ACT_PAUSE;
        /* fall through */
    case STAGE_SAVE:
        if (take(c, STAGE_SHARE, c->save_due))
            return PL_ACT_SAVE;
        return pl_course_next(c, interrupted, ticks);
    case STAGE_STOP:
        if (take(c, STAGE_SETTLE, was_decided(c)))
            return PL_ACT_STOP;
        /* fall through */
    case STAGE_SETTLE:
        if (take(c, STAGE_PAUSE_LAST, chief))
            return PL_ACT_SETTLE;
        /* fall through */
    case STAGE_PAUSE_LAST:
        c->test_due = last_test_is_due(c);
        if (take_pause(c, STAGE_TEST_LAST, PL_ACT_TEST_LAST, c->test_due))
            return PL_ACT_PAUSE;
        /* fall through */
    case STAGE_TEST_LAST:
        if (take(c, STAGE_SAVE_LAST, c->test_due))
            return PL_ACT_TEST_LAST;
        /* fall through */
    case STAGE_SAVE_LAST:
        if (take(c, STAGE_LEAVE, chief))
            return PL_ACT_SAVE_LAST;
        /* fall through */
    case STAGE_LEAVE:
        c->stage = STAGE_END;
        return PL_ACT_LEAVE;
    default:
        return PL_ACT_END;
    }
}

/* Return to the worker's own share. */
static void go_home(pl_course *c)
{
    c->reads = c->opts.worker;
    c->astray = false;
    c->asked = 0; /* at the start there is no share to request */
}

void pl_course_joined(pl_course *c, const pl_standing *at)
{
    c->step = at->step;
    c->own = at->own;
    c->stop = at->over;
    c->midway = false;
    go_home(c);
    if (c->joined)
        set_due(c, at->step); /* C2 */
    c->joined = true;
}

void pl_course_shared(pl_course *c, const pl_share *share)
{
    bool astray = c->astray, out = c->reads != c->opts.worker;
    if (share->worker != c->opts.worker) {
        go_home(c);
        c->reads = share->worker;
        c->other_own = share->own;
        c->other_end = c->own;
        return;
    }
    /* The last gradient may have been dropped after it was counted: if a commit
     * reports on the gradient before, only the share shows it. */
    bool again = share->own != c->own;
    if (out || astray || again) {
        go_home(c);
        c->own = share->own;
    }
    c->asked = astray || again ? 0 : c->own;
}

void pl_course_stepped(pl_course *c, const pl_commit *commit)
{
    bool used = !commit->dropped && !commit->unsent;
    *(c->reads != c->opts.worker ? &c->other_own : &c->own) += used;
    c->astray = c->opts.shares && commit->dropped;
    c->stop = commit->stop;
    c->midway = commit->midway;
    c->step = commit->step;
    c->best_due = false;
}

static void decide_to_stop(pl_course *c, pl_stopped_by why)
{
    c->stopped_by = why;
    c->stop = true;
}

/* Check the test against the targets.  The first test that meets one ends the
 * training; a test after the last step cannot. */
static void look_at_targets(pl_course *c, double accuracy)
{
    const pl_targets *targets = &c->opts.targets;
    bool low = targets->stop_loss > 0 && c->test_loss <= targets->stop_loss;
    bool right =
        targets->stop_accuracy > 0 && accuracy >= targets->stop_accuracy;
    if ((low || right) && c->target_step < 0)
        c->target_step = c->step;
    if (c->stage > STAGE_STOP)
        return;
    if (low || right)
        decide_to_stop(c,
                       low ? PL_STOPPED_STOP_LOSS : PL_STOPPED_STOP_ACCURACY);
    else if (targets->patience > 0 && c->worse >= targets->patience)
        decide_to_stop(c, PL_STOPPED_PATIENCE);
}

void pl_course_tested(pl_course *c, double loss, double accuracy)
{
    bool again = c->tested_step == c->step; /* tested again at the end */
    c->tested_step = c->step;
    c->tested = true;
    c->test_loss = loss;
    if (c->opts.follower)
        return;
    c->best_due = c->opts.targets.keep_best && loss < c->kept_loss;
    if (loss < c->best_loss)
        c->worse = 0;
    else
        c->worse += !again;
    c->best_loss = fmin(c->best_loss, loss);
    look_at_targets(c, accuracy);
}

void pl_course_kept(pl_course *c)
{
    c->kept_loss = c->test_loss;
    c->best_due = false;
}

void pl_course_arrived(pl_course *c, int64_t step)
{
    c->step = step;
}

void pl_course_rolled(pl_course *c)
{
    c->stage = STAGE_JOIN;
    c->stop = c->best_due = false;
    c->stopped_by = by_itself(c);
}

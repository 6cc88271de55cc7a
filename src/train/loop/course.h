/* course.h - the course of a training: what a worker does next, from joining
 * the job to leaving it, without input or output.
 *
 * The loop (loop.h) asks for the next act, does it, and tells what came of it;
 * so does the simulator of parameter-server jobs (tests/sim), which computes
 * nothing.  When an act fails with PL_ROLLED the course goes on with joining.
 *
 * Threads: one course, one thread. */
#ifndef PL_TRAIN_LOOP_COURSE_H
#define PL_TRAIN_LOOP_COURSE_H

#include "train/loop/due.h"
#include "train/sync.h"

typedef enum pl_stopped_by {
    PL_STOPPED_STEPS,
    PL_STOPPED_EPOCHS,
    PL_STOPPED_STOP_LOSS,
    PL_STOPPED_INTERRUPT,
    PL_STOPPED_NAN,
} pl_stopped_by;
const char *pl_stopped_text(pl_stopped_by stopped); /* "stop_loss" */

typedef enum pl_act {
    PL_ACT_JOIN,   /* then pl_course_joined */
    PL_ACT_SHARE,  /* ask whose share to read on: pl_course_shared */
    PL_ACT_STEP,   /* pl_course_stepped */
    PL_ACT_RECORD, /* histograms */
    PL_ACT_PAUSE,  /* before `pauses_for`: pl_course_arrived */
    PL_ACT_TEST,   /* pl_course_tested */
    PL_ACT_SAVE,
    PL_ACT_SUM_UP,    /* no more steps are made */
    PL_ACT_STOP,      /* end the job for all workers */
    PL_ACT_SETTLE,    /* wait for the final parameters: pl_course_arrived */
    PL_ACT_TEST_LAST, /* pl_course_tested */
    PL_ACT_SAVE_LAST,
    PL_ACT_LEAVE,
    PL_ACT_END,
} pl_act;

typedef struct pl_course_opts {
    int32_t worker;
    bool follower;     /* not the chief: does not save, nor end the job */
    bool own_pace;     /* each gradient is an update */
    bool shares;       /* shares of others may be left to it */
    bool tests;        /* it has a test set */
    bool loose;        /* a test in mid-run is none of the last parameters */
    bool by_steps;     /* ends by --steps; else by --epochs */
    int64_t end_step;  /* of the job; or INT64_MAX */
    int64_t end_own;   /* of this worker's share; or INT64_MAX */
    int64_t per_epoch; /* gradients of a share in an epoch; 0: not known */
    pl_every eval_every, save_every, record_every;
    pl_due_pace pace;
    bool has_stop_loss;
    double stop_loss;
} pl_course_opts;

typedef struct pl_course {
    pl_course_opts opts;
    int stage;
    int64_t step; /* the job's */
    int64_t own;  /* gradients of the own share */
    bool joined;  /* once, at least */
    bool stop;    /* no more steps are to be made */
    pl_stopped_by stopped_by;
    int64_t tested_step; /* of the last test; -1: none */
    bool tested;         /* ... whose parameters are still the last */
    /* In own pace: whose share is read, another's from and up to here. */
    int32_t reads;
    int64_t other_own, other_end;
    bool astray;       /* a gradient was dropped: is this still ours? */
    int64_t asked;     /* at which `own` no share was left */
    pl_act pauses_for; /* PL_ACT_TEST, PL_ACT_TEST_LAST or PL_ACT_SAVE */
    pl_due eval, save, record;
    bool record_due, test_due, save_due;
} pl_course;

void pl_course_init(pl_course *course, const pl_course_opts *opts,
                    int64_t step);

/* What to do now.  `ticks` is the time (base/clock.h). */
pl_act pl_course_next(pl_course *course, bool interrupted, uint64_t ticks);

/* What came of it. */
void pl_course_joined(pl_course *course, const pl_standing *at);
void pl_course_shared(pl_course *course, const pl_share *share);
void pl_course_stepped(pl_course *course, const pl_commit *commit);
void pl_course_tested(pl_course *course, double loss);
void pl_course_arrived(pl_course *course, int64_t step);
/* PL_ROLLED: the next act is to join. */
void pl_course_rolled(pl_course *course);

/* SHARE: wait until the answer is sure to stay the same? */
static inline bool pl_course_waits(const pl_course *course)
{
    return course->own >= course->opts.end_own && !course->opts.follower;
}

#endif

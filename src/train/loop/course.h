/* course.h - the course of a training: what a worker does next, from joining
 * the job to leaving it, without input or output.
 *
 * The loop (loop.h) gets the next act, performs it, and reports the result; so
 * does the simulator of parameter-server jobs (tests/sim), which computes
 * nothing.  If an act fails with PL_ROLLED, the course continues with joining.
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
    PL_STOPPED_STOP_ACCURACY,
    PL_STOPPED_PATIENCE,
    PL_STOPPED_INTERRUPT,
    PL_STOPPED_NAN,
} pl_stopped_by;
const char *pl_stopped_text(pl_stopped_by stopped); /* "stop_loss" */

/* What tests decide; for the chief only.  A test is better than another if its
 * loss is lower. */
typedef struct pl_targets {
    double stop_loss;     /* end at a test with this loss or less; 0: off */
    double stop_accuracy; /* ... with this accuracy or more; 0: off */
    int64_t patience;     /* ... after this many tests without improvement; 0:
                             off */
    bool keep_best;       /* save the parameters of the best test */
} pl_targets;

/* Does anything depend on which parameters are tested, and when? */
static inline bool pl_targets_any(const pl_targets *targets)
{
    return targets->stop_loss > 0 || targets->stop_accuracy > 0 ||
           targets->patience > 0 || targets->keep_best;
}

typedef enum pl_act {
    PL_ACT_JOIN,   /* then pl_course_joined */
    PL_ACT_SHARE,  /* request a share: pl_course_shared */
    PL_ACT_STEP,   /* pl_course_stepped; or pl_course_arrived, at the end */
    PL_ACT_RECORD, /* histograms */
    PL_ACT_PAUSE,  /* before `pauses_for`: pl_course_arrived */
    PL_ACT_TEST,   /* pl_course_tested */
    PL_ACT_SAVE,
    PL_ACT_SAVE_BEST, /* the parameters tested last: pl_course_kept */
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
    bool own_pace;     /* each gradient is an update, and others continue during
                          a test, which is not of the last parameters */
    bool shares;       /* it may read the rest of others' shares */
    bool tests;        /* it has a test set */
    bool foretells;    /* what is due after a step is known when it begins */
    bool by_steps;     /* ends by --steps; otherwise by --epochs */
    int64_t end_step;  /* of the job; or INT64_MAX */
    int64_t end_own;   /* of this worker's share; or INT64_MAX */
    int64_t per_epoch; /* gradients of a share in an epoch; 0: not known */
    pl_every eval_every, save_every, histograms_every;
    pl_due_pace pace;
    pl_targets targets;
    double kept_loss; /* of the best existing checkpoint; or INFINITY */
    double best_loss; /* of the tests before a resumed run; 0: none */
    int64_t worse;    /* tests without improvement since */
} pl_course_opts;

typedef struct pl_course {
    pl_course_opts opts;
    int stage;
    int64_t step; /* the job's */
    int64_t own;  /* gradients of the own share */
    bool joined;  /* once, at least */
    bool stop;    /* no more steps are to be made */
    bool midway;  /* between two means of all workers' parameters */
    pl_stopped_by stopped_by;
    uint64_t begun_ticks; /* when the last step began */
    int64_t tested_step;  /* of the last test; -1: none */
    bool tested;          /* ... whose parameters are still the last */
    double test_loss;     /* of the last test ... */
    double best_loss;     /* ... of the best, and... */
    double kept_loss;     /* ... of the best that is saved; or INFINITY */
    int64_t worse;        /* tests since the best */
    int64_t target_step;  /* of the first test that met a target; -1: none */
    /* In own pace: whose share is read; another's from here, up to there. */
    int32_t reads;
    int64_t other_own, other_end;
    bool astray;       /* a gradient was dropped: is this still ours? */
    int64_t asked;     /* at which `own` no share was left */
    pl_act pauses_for; /* PL_ACT_TEST, PL_ACT_TEST_LAST or PL_ACT_SAVE */
    pl_due eval, save, record;
    bool record_due, test_due, save_due, best_due;
} pl_course;

void pl_course_init(pl_course *course, const pl_course_opts *opts,
                    int64_t step);

/* The next act.  `ticks` is the time (base/clock.h). */
pl_act pl_course_next(pl_course *course, bool interrupted, uint64_t ticks);

/* Results of acts. */
void pl_course_joined(pl_course *course, const pl_standing *at);
void pl_course_shared(pl_course *course, const pl_share *share);
void pl_course_stepped(pl_course *course, const pl_commit *commit);
void pl_course_tested(pl_course *course, double loss, double accuracy);
/* The parameters tested last are saved as the best. */
void pl_course_kept(pl_course *course);
void pl_course_arrived(pl_course *course, int64_t step);
/* PL_ROLLED: the next act is to join. */
void pl_course_rolled(pl_course *course);

/* Has this worker no more steps to make?  During a STEP, true if the job
 * continued meanwhile and made the last step. */
bool pl_course_is_over(const pl_course *course);

/* In the middle of a STEP, with opts.foretells: a save may follow it. */
bool pl_course_save_follows(const pl_course *course);

/* SHARE: wait until the reply is final? */
static inline bool pl_course_waits(const pl_course *course)
{
    return course->own >= course->opts.end_own && !course->opts.follower;
}

#endif

/* progress.h - shows the progress of a training on standard error.
 *
 * It is for one process, or for a job whose supervisor fills the metrics.  A
 * separate thread reads the metrics a few times a second, so that the training
 * is not delayed.  With a bar, a block of lines is redrawn below all other
 * output, which scrolls above it: log lines, and a line for each epoch.
 * Without one, plain lines appear at each epoch, and after a tenth of the run
 * or 10 s.
 *
 * Threads: start and stop from one. */
#ifndef PL_APP_VIEW_PROGRESS_H
#define PL_APP_VIEW_PROGRESS_H

#include "app/options/options.h"
#include "app/view/layout.h"
#include "base/record/metric.h"
#include "paceline/base.h"

#include <stdio.h>

typedef struct pl_progress_line pl_progress_line;

/* How it is shown. */
typedef enum pl_progress_kind {
    PL_PROGRESS_BAR,
    PL_PROGRESS_LINES,
    PL_PROGRESS_NONE, /* nothing is started */
} pl_progress_kind;

/* --quiet, --progress, or by default a bar where standard error is a terminal
 * that can redraw lines. */
pl_progress_kind pl_progress_chosen(const pl_train_options *train);

typedef struct pl_progress_opts {
    pl_metrics *metrics; /* required */
    FILE *file;          /* NULL: standard error, without blocking */
    pl_progress_kind kind;
    bool resumed;       /* it starts at the first step seen */
    int64_t start_step; /* of a resumed run, and its examples */
    int64_t start_examples;
    int64_t end_step;  /* 0: not known */
    int64_t per_epoch; /* steps; 0: not known */
    /* Optional: further facts about a job; called on the display's thread. */
    void (*fill)(void *context, pl_progress_view *view);
    void *context;
} pl_progress_opts;

pl_status pl_progress_start(pl_progress_line **out,
                            const pl_progress_opts *opts) PL_MUST_CHECK;
/* Show the last state, end the thread, free.  NULL is fine. */
void pl_progress_stop(pl_progress_line *line);

#endif

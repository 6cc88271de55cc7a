/* progress.h - the line that shows how a training goes.
 *
 * Of one process, or of a job whose supervisor fills the metrics.  A thread
 * of its own reads the metrics a few times a second, so showing
 * costs the training nothing.  On a terminal one line is redrawn, as wide as
 * there is room; elsewhere a plain line appears every few seconds and after
 * tests.
 *
 * Threads: start and stop from one. */
#ifndef PL_APP_VIEW_PROGRESS_H
#define PL_APP_VIEW_PROGRESS_H

#include "base/record/metric.h"
#include "paceline/base.h"

#include <stdio.h>

typedef struct pl_progress_line pl_progress_line;

typedef struct pl_progress_opts {
    pl_metrics *metrics; /* required */
    FILE *file;          /* NULL: standard error, not waited for */
    bool terminal;       /* redraw one line */
    int64_t start_step;  /* of a resumed run, and its examples */
    int64_t start_examples;
    int64_t end_step;  /* 0: not known */
    int64_t per_epoch; /* steps; 0: not known */
    /* Optional: more, to be put behind the rest; called on the thread that
     * shows. */
    void (*detail)(void *context, char *text, size_t room);
    void *context;
} pl_progress_opts;

pl_status pl_progress_start(pl_progress_line **out,
                            const pl_progress_opts *opts) PL_MUST_CHECK;
/* Show the last state, end the thread, free.  NULL is fine. */
void pl_progress_stop(pl_progress_line *line);

#define PL_PROGRESS_BYTES 512 /* of a line */

/* "3.21 M", "950", "12.5 k"; returns `text`. */
const char *pl_progress_number(double value, char text[16]);

#endif

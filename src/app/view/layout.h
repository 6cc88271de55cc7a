/* layout.h - the progress of a training, as text of a given width.
 *
 * Pure functions: a state and the size of the terminal in, lines out.  The
 * least important parts are shortened, then dropped, until the rest fits; no
 * line exceeds its width.
 *
 * Threads: any. */
#ifndef PL_APP_VIEW_LAYOUT_H
#define PL_APP_VIEW_LAYOUT_H

#include "base/record/metric.h"

#include <stddef.h>

#define PL_VIEW_WORKERS 16  /* the most workers with a row each */
#define PL_VIEW_TEXT    64  /* bytes of a task's state */
#define PL_VIEW_BYTES   256 /* of a row: at most 255 columns are used */

/* One worker of a job. */
typedef struct pl_progress_worker {
    int32_t index;
    int64_t steps;  /* its own */
    double rate;    /* examples a second */
    double waiting; /* share of the time; NAN: not known */
    int32_t restarts;
    char state[PL_VIEW_TEXT]; /* "restarting"; "": training */
} pl_progress_worker;

/* A training at one moment. */
typedef struct pl_progress_view {
    int64_t step, end_step;          /* end_step 0: not known */
    int64_t per_epoch;               /* steps; 0: not known */
    double loss;                     /* NAN: none yet */
    double test_loss, test_accuracy; /* of the last test; NAN: none yet */
    double rate;                     /* examples a second */
    double left_s;                   /* until the end; NAN: not known */
    int64_t dropped;                 /* gradients */
    char doing[PL_VIEW_TEXT];        /* "testing"; "": training */
    int32_t workers;                 /* of the job; 0: this process alone */
    pl_progress_worker worker[PL_VIEW_WORKERS]; /* the first of them */
} pl_progress_view;

/* The redrawn block: one line, and below it a row for each worker if the
 * terminal has room for them.  Writes the rows separated by '\n', stores their
 * widths in widths[0 ..], and returns their number. */
#define PL_VIEW_ROWS        (PL_VIEW_WORKERS + 2)
#define PL_VIEW_BLOCK_BYTES (PL_VIEW_ROWS * PL_VIEW_BYTES)
int pl_layout_block(const pl_progress_view *view, int columns, int rows,
                    char text[PL_VIEW_BLOCK_BYTES], int widths[PL_VIEW_ROWS]);

/* One line for a file or a dumb terminal. */
void pl_layout_line(const pl_progress_view *view, char text[PL_VIEW_BYTES]);

/* The permanent line of an epoch.  A job's rate is in the view, not in the
 * chief's epoch. */
void pl_layout_epoch(const pl_progress_view *view, const pl_epoch *epoch,
                     int columns, char text[PL_VIEW_BYTES]);

/* Bytes of the text that fit on a line of that many columns: up to a space, or
 * one longer word.  A number stays with its unit.  columns 0: all of it. */
size_t pl_layout_break(const char *text, size_t columns);

/* "3.21 M", "950", "12.5 k"; returns `text`. */
const char *pl_layout_number(double value, char text[16]);
/* "0:07", "12:30", "3:04:05"; returns `text`. */
const char *pl_layout_time(double seconds, char text[16]);

#endif

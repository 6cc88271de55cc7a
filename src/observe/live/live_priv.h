/* live_priv.h - shared by the files of the live page. */
#ifndef PL_OBSERVE_LIVE_LIVE_PRIV_H
#define PL_OBSERVE_LIVE_LIVE_PRIV_H

#include "base/buffer.h"
#include "base/record/timeline.h"
#include "base/text/duration.h"
#include "observe/live/live.h"
#include "observe/model/metric.h"
#include "observe/model/model.h"
#include "observe/report/page.h"
#include "observe/runs/curve.h"
#include "observe/runs/record.h"

#include <time.h>

#define PL_LIVE_RUN        "/run/"
#define PL_LIVE_OVERLAY    "/overlay/"
#define PL_LIVE_STOP       "/stop/"
#define PL_LIVE_SWEEP      "/sweep/"
#define PL_LIVE_LOG        "/log/"
#define PL_LIVE_STATE      64
#define PL_LIVE_TASK_STATE 320
#define PL_LIVE_COUNT      64
#define PL_LIVE_WAITS      320
#define PL_LIVE_SILENT_S   10 /* initially, tasks write every second */

/* The state of a task; unknown numbers are NAN. */
typedef struct pl_live_task {
    char *name;     /* "worker-0" */
    char host[256]; /* "": not known */
    char state[PL_LIVE_TASK_STATE];
    time_t written; /* time of its last record */
    bool lost;      /* or silent, in a run in progress */
    double step, rate, waiting, memory_mb;
    double stepped; /* time of that step, in seconds since 1970 */
    double sent_bytes, received_bytes;
    int restarts;
    pl_curves curves;
} pl_live_task;

typedef struct pl_live_tasks {
    pl_live_task *list;
    size_t count;
    pl_run_events events; /* of the run */
} pl_live_tasks;

/* The tasks that have recorded something.  Their curves are read, or taken from
 * `read` if it is not NULL. */
pl_status pl_live_tasks_init(pl_live_tasks *tasks, const pl_record *record,
                             pl_model_run *read) PL_MUST_CHECK;
void pl_live_tasks_close(pl_live_tasks *tasks); /* a zeroed one is fine */
/* Is it a worker or the chief? */
bool pl_live_task_trains(const pl_live_task *task);
/* Examples per second of the whole job: the sum over the workers that are not
 * lost.  In sync they make their steps together, so this is the job's step rate
 * times the global batch. */
double pl_live_tasks_rate(const pl_live_tasks *tasks);
/* What the workers wait for, or for how much of the time: "waiting: 37 to 55
 * %"; "" if they hardly wait. */
void pl_live_waits_text(const pl_live_tasks *tasks, char text[PL_LIVE_WAITS]);
/* One row per task. */
void pl_live_tasks_table(pl_buffer *out, const pl_live_tasks *tasks);

/* The state of a run; unknown numbers are NAN. */
typedef struct pl_live_run {
    const pl_record *record;
    bool running; /* has no summary, and wrote something recently */
    char state[PL_LIVE_STATE]; /* "running", "silent for 20 s", "done" */
    double step, loss, rate, left_s;
    const pl_metric *measure;  /* the measure of `test` */
    double test;               /* the newest test result, not scaled */
    const char *limit;         /* after the end; NULL: not known */
    char waits[PL_LIVE_WAITS]; /* while in progress; "": little is known */
    pl_curves curves;    /* of the chief; after the end only if requested */
    pl_live_tasks tasks; /* likewise */
} pl_live_run;

typedef enum pl_live_detail {
    PL_LIVE_NUMBERS, /* after the end: only the summary's numbers */
    PL_LIVE_CURVES,  /* ... and the chief's curves */
    PL_LIVE_TASKS,   /* ... and the tasks */
} pl_live_detail;
pl_status pl_live_run_init(pl_live_run *run, const pl_record *record,
                           pl_live_detail detail) PL_MUST_CHECK;
/* With the tasks, whose curves are taken from those already read. */
pl_status pl_live_run_take(pl_live_run *run, const pl_record *record,
                           pl_model_run *read) PL_MUST_CHECK;
void pl_live_run_close(pl_live_run *run);

/* Set the run's measure and test from its record or curves, which must be
 * set. */
void pl_live_take_test(pl_live_run *run);
/* Is a smaller value better? */
bool pl_live_less_is_better(const pl_metric *measure);
/* With unit: "98.04 %", "0.3443". */
const char *pl_live_test_text(const pl_metric *measure, double value,
                              char text[PL_LIVE_COUNT]);

/* Time of the last write in the folder, or in one of its folders; 0: nothing
 * there. */
pl_status pl_live_written(const char *folder, int depth,
                          time_t *out) PL_MUST_CHECK;
/* The curves over steps of a task ("worker-0") of the run; empty if they cannot
 * be read. */
pl_status pl_live_curves(pl_curves *curves, const char *run,
                         const char *task) PL_MUST_CHECK;
/* The last value of a curve; NAN: no curve.  *x, if not NULL, is its
 * position. */
double pl_live_last(const pl_curves *curves, const char *name, double *x);

/* The table of sweeps, each with its progress; nothing if there are none. */
void pl_live_sweeps(pl_buffer *out, const pl_records *records);
/* Does it have runs left to do? */
bool pl_live_sweep_goes_on(const pl_experiment *sweep);
/* Duration of silence: "20 s", "1:05:00", "10 days"; returns `text`. */
const char *pl_live_silence(double seconds, char text[PL_DURATION]);
/* A count with separators: 56,220. */
const char *pl_live_count(double value, char text[PL_LIVE_COUNT]);
/* The table of runs: those in progress first, then the newest. */
pl_status pl_live_table(pl_buffer *out,
                        const pl_records *records) PL_MUST_CHECK;
/* The main numbers of a run, and how to stop it. */
void pl_live_header(pl_buffer *out, const pl_live *live,
                    const pl_live_run *run);
/* Findings about the run, as a list of sentences. */
void pl_live_findings(pl_buffer *out, const pl_live_run *run);
/* Elements for the logs of a run. */
pl_status pl_live_logs(pl_page *page, const pl_record *record) PL_MUST_CHECK;
/* The end of the log "RUN/FILE"; PL_NOTFOUND: no such log. */
pl_status pl_live_log(const pl_records *records, const char *path,
                      pl_buffer *body, const char **type) PL_MUST_CHECK;
/* The run whose name a text begins with, up to its end or the mark: the one
 * with the longest name, since names may contain marks.  NULL: none. */
const pl_record *pl_live_first(const pl_records *records, const char *text,
                               char mark);
/* The run with this name; NULL: none. */
const pl_record *pl_live_find(const pl_records *records, const char *name);
/* The button that asks the run to stop, or where else that is possible. */
void pl_live_stop_button(pl_buffer *out, const pl_live *live,
                         const pl_record *record);
/* Characters that a URL's path may contain are kept; others become %XX. */
void pl_live_encode(pl_buffer *out, const char *text);

#endif

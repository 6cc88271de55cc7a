/* model.h - the data of reports: runs x flags x results x series x events, read
 * once from run folders.
 *
 * Reports, the live page and other users read only this, and no other file of a
 * run folder.  As JSON it is one document, from which figures.js draws:
 *
 *     {"metrics": {key: {"label", "unit", "scale", "result"}},
 *      "axes": [flag],                     flags that distinguish runs
 *      "apart": boolean,                   see pl_model_set_apart
 *      "runs": [{"name", "label", "part", "like", "colour", "model", "ended",
 *                "flags": {flag: text}, "results": {key: number},
 *                "published": {key: number}, "each": {"epoch", "examples"}}],
 *      "series": [{"run", "task", "metric", "x": [step], "t": [second],
 *                  "y": [value]}],         of resources without "x"
 *      "events": [{"run", "t", "step", "kind", "task", "text"}],
 *      "tests": [{"run", "step", "classes", "counts", "width", "height",
 *                 "channels", "wrong": [{"index", "label", "predicted",
 *                 "probability", "pixels"}]}],
 *      "pairs": [{"run", "transfers": [[from, to, bytes, messages]]}]}
 *
 * Numbers are as recorded; a metric's scale converts them to its unit.  "t"
 * counts from the start of the run, "each" is the progress per step.
 *
 * Threads: one at a time. */
#ifndef PL_OBSERVE_MODEL_MODEL_H
#define PL_OBSERVE_MODEL_MODEL_H

#include "base/buffer.h"
#include "base/record/confusion.h"
#include "base/record/timeline.h"
#include "observe/runs/curve.h"
#include "observe/runs/record.h"

#define PL_MODEL_AXES_MOST 32

/* Curves that one task, or the monitor of one host, recorded. */
typedef struct pl_model_task {
    char *name; /* "worker-0"; the name of a host; "all hosts" */
    bool host;
    bool sum;         /* of all hosts: curves of the job and of its roles */
    pl_curves curves; /* for a host, x is the time since its first line */
} pl_model_task;

typedef struct pl_model_run {
    pl_model_task *tasks; /* workers, servers, the sum of all hosts if there are
                             several, then each host */
    size_t count, room;
    pl_run_events events;
    pl_confusion confusion; /* of its last test; classes is 0: none */
    double begin;           /* seconds since 1970; NAN: nothing recorded */
} pl_model_run;

/* A part is a sweep, or the runs without a sweep. */
typedef struct pl_model_part {
    pl_records records; /* borrowed, must not be closed */
    size_t first;       /* of its runs */
    const char *axes[PL_MODEL_AXES_MOST];
    size_t axis_count;
    const char **values; /* [runs][axis_count] */
    size_t *like;        /* for each run the first that it repeats:
                            pl_records_first_like */
} pl_model_part;

typedef struct pl_runs_model {
    const pl_records *records;
    pl_model_run *runs; /* one per record */
    pl_model_part *parts;
    size_t part_count;
    pl_json *left_out; /* [{path, why}]: unreadable files */
    bool apart;        /* see pl_model_set_apart */
} pl_runs_model;

/* The records are borrowed until the model is closed.  A file that cannot be
 * read is left out; what precedes the damage is kept. */
pl_status pl_model_init(pl_runs_model *model,
                        const pl_records *records) PL_MUST_CHECK;
void pl_model_close(pl_runs_model *model); /* a zeroed one is fine */

/* Runs selected by hand: each is labelled by its name, not by its flags, and
 * none repeats another. */
void pl_model_set_apart(pl_runs_model *model);

/* The curve that represents the run: of all its hosts together if there are
 * several, otherwise of the first task that has one; NULL: none. */
const pl_curve *pl_model_curve(const pl_model_run *run, const char *metric);
/* Does any run have such a curve? */
bool pl_model_has_curve(const pl_runs_model *model, const pl_model_part *part,
                        const char *metric);

/* Does the run's summary have the traffic between each two of its tasks? */
bool pl_model_has_pairs(const pl_record *record);

/* The label of a run in figures: its flags that were varied, or its name if
 * those are too many or it was selected by hand. */
void pl_model_label(const pl_runs_model *model, const pl_model_part *part,
                    size_t run, char *text, size_t room);
/* The value of a flag of the part's run; "": not set, or without effect
 * there. */
const char *pl_model_flag(const pl_model_part *part, size_t run,
                          const char *flag);
/* Mean and standard deviation (of the sample; 0 for one run) of a result over
 * the runs that repeat run `first` of the part; NAN: none has it. */
double pl_model_mean(const pl_model_part *part, size_t first,
                     const char *metric, double *spread);
/* Is the flag a number in all runs of the part that have it, at least one? */
bool pl_model_is_numeric(const pl_model_part *part, const char *flag,
                         double *least, double *most);

/* The document's members without the enclosing braces.  Series are thinned
 * without losing visible peaks, and the whole stays below about 15 MB. */
void pl_model_json(const pl_runs_model *model, pl_buffer *out);

/* All points of all series as CSV: run, task, metric, step (not for hosts),
 * time in seconds since the start of the run, and value as recorded. */
pl_status pl_model_write_curves(const pl_runs_model *model,
                                const char *path) PL_MUST_CHECK;

#endif

/* model.h - what there is to look at: runs x flags x results x series x
 * events, read once from run folders.
 *
 * Reports, the live page and whoever else draws runs read this, and no file of
 * a run folder besides.  As JSON it is one document, which figures.js draws
 * from:
 *
 *     {"metrics": {key: {"label", "unit", "scale", "result"}},
 *      "axes": [flag],                     flags that set runs apart
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
 * Numbers are as they were recorded; a metric's scale makes its unit of them.
 * "t" counts from the start of the run, "each" is what one step stands for.
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

/* What one task, or the monitor of one host, recorded over time. */
typedef struct pl_model_task {
    char *name; /* "worker-0"; the name of a host; "all hosts" */
    bool host;
    bool sum;         /* over the hosts: curves of the job and of its roles */
    pl_curves curves; /* of a host: x is the time since its first line */
} pl_model_task;

typedef struct pl_model_run {
    pl_model_task *tasks; /* workers, servers, all hosts together where there
                             are several, then each host */
    size_t count, room;
    pl_run_events events;
    pl_confusion confusion; /* of its last test; classes is 0: none */
    double begin;           /* seconds since 1970; NAN: nothing was recorded */
} pl_model_run;

/* A part is a sweep, or the runs that belong to none. */
typedef struct pl_model_part {
    pl_records records; /* borrowed, not to be closed */
    size_t first;       /* of its runs */
    const char *axes[PL_MODEL_AXES_MOST];
    size_t axis_count;
    const char **values; /* [runs][axis_count] */
    size_t
        *like; /* of each run the first that it repeats: pl_records_first_like
                */
} pl_model_part;

typedef struct pl_runs_model {
    const pl_records *records;
    pl_model_run *runs; /* one for each record */
    pl_model_part *parts;
    size_t part_count;
    pl_json *left_out; /* [{path, why}]: what could not be read */
    bool apart;        /* see pl_model_set_apart */
} pl_runs_model;

/* The records are borrowed until the model goes.  A file that cannot be read
 * is left out; what stood before the damage is kept. */
pl_status pl_model_init(pl_runs_model *model,
                        const pl_records *records) PL_MUST_CHECK;
void pl_model_close(pl_runs_model *model); /* a zeroed one is fine */

/* Runs that were picked by hand: each goes by its name, not by its flags, and
 * none is a repetition of another. */
void pl_model_set_apart(pl_runs_model *model);

/* The curve that stands for the run: of all its hosts together where there are
 * several, otherwise of the first task that has one; NULL: none. */
const pl_curve *pl_model_curve(const pl_model_run *run, const char *metric);
/* Some run has such a curve. */
bool pl_model_has_curve(const pl_runs_model *model, const pl_model_part *part,
                        const char *metric);

/* The run's summary tells what went between each two of its tasks. */
bool pl_model_has_pairs(const pl_record *record);

/* What a run of the part is called in figures: its flags that were varied, or
 * its name where those are too many or it was picked by hand. */
void pl_model_label(const pl_runs_model *model, const pl_model_part *part,
                    size_t run, char *text, size_t room);
/* The value of a flag of the part's run; "": it has none, or the flag has no
 * effect there. */
const char *pl_model_flag(const pl_model_part *part, size_t run,
                          const char *flag);
/* Mean and standard deviation (of the sample; 0 of one run) of a result over
 * the runs that repeat run `first` of the part; NAN: none has it. */
double pl_model_mean(const pl_model_part *part, size_t first,
                     const char *metric, double *spread);
/* All runs of the part that have the flag have numbers; at least one does. */
bool pl_model_is_numeric(const pl_model_part *part, const char *flag,
                         double *least, double *most);

/* The document's members without the braces around them.  Series are thinned
 * such that no visible peak is lost, and the whole stays below about 15 MB. */
void pl_model_json(const pl_runs_model *model, pl_buffer *out);

/* All points of all series as CSV: run, task, metric, step (not of a host),
 * time in seconds since the start of the run, and value as it was recorded. */
pl_status pl_model_write_curves(const pl_runs_model *model,
                                const char *path) PL_MUST_CHECK;

#endif

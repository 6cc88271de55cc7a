/* report_priv.h - the sections of a report, one function each. */
#ifndef PL_OBSERVE_REPORT_REPORT_PRIV_H
#define PL_OBSERVE_REPORT_REPORT_PRIV_H

#include "base/buffer.h"
#include "base/json/json.h"
#include "observe/model/model.h"
#include "observe/report/page.h"

typedef struct pl_report {
    const pl_records *records;
    pl_runs_model model; /* of the records */
    pl_page *page;
    pl_buffer more; /* members of the page's document, each begins with "," */
} pl_report;

/* The figures of one part, chosen by what was varied: report_figures.c.
 * `prefix` begins their names and distinguishes sweeps. */
pl_status pl_report_figures(pl_report *report, size_t part, const char *prefix,
                            size_t most) PL_MUST_CHECK;

/* A metric by a flag, one line for each combination of the other flags, with
 * published values; or derived from it. report_lines.c */
typedef enum pl_report_derived {
    PL_REPORT_PLAIN,
    PL_REPORT_SPEEDUP,    /* relative to the value at the line's first x... */
    PL_REPORT_EFFICIENCY, /* ... as a share of the ideal for x, in % */
} pl_report_derived;
pl_status pl_report_lines(const pl_model_part *part, const char *flag,
                          const char *metric, pl_report_derived derived,
                          pl_figure *figure) PL_MUST_CHECK;

/* What limited each run: detail/limits.c */
pl_status pl_report_limits(pl_report *report) PL_MUST_CHECK;
/* Results of classifiers by class: detail/classes.c */
pl_status pl_report_classes(pl_report *report) PL_MUST_CHECK;
/* Bytes sent between tasks: detail/pairs.c */
pl_status pl_report_pairs(pl_report *report) PL_MUST_CHECK;
/* Where the time of traced runs went: detail/operators.c */
pl_status pl_report_operators(pl_report *report) PL_MUST_CHECK;
/* Append the activity of the tasks of traced run `run` in a few steps to a
 * list: detail/timeline.c */
pl_status pl_report_timeline(pl_json *const *traces, size_t count, size_t run,
                             pl_buffer *out) PL_MUST_CHECK;
/* The model's graph by device: detail/graph.c */
pl_status pl_report_graph(pl_report *report) PL_MUST_CHECK;
/* Time and steps of each worker: report_workers.c */
pl_status pl_report_workers(pl_report *report) PL_MUST_CHECK;
/* Resources of the tasks, by their own counters: report_usage.c */
pl_status pl_report_usage(pl_report *report) PL_MUST_CHECK;
/* Resources of each host over time: report_resources.c */
pl_status pl_report_resources(pl_report *report) PL_MUST_CHECK;

#endif

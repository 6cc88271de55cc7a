/* compare.h - runs side by side: their differences and their results.
 *
 * Threads: one at a time. */
#ifndef PL_OBSERVE_COMPARE_COMPARE_H
#define PL_OBSERVE_COMPARE_COMPARE_H

#include "observe/runs/record.h"
#include "observe/runs/table.h"

/* One row per run: its name, the flags that differ between runs, the results,
 * and published results (experiment.h).  With `mean`, runs that differ only in
 * the seed share a row: means with their standard deviations. */
pl_status pl_compare(pl_table **out, const pl_records *records,
                     bool mean) PL_MUST_CHECK;

/* One row per run: its name, its bottleneck, memory by role, the steps of each
 * worker, and the bytes in and out of each server. */
pl_status pl_compare_tasks(pl_table **out, const pl_records *records,
                           bool mean) PL_MUST_CHECK;

/* Both in one table, for programs. */
pl_status pl_compare_all(pl_table **out, const pl_records *records,
                         bool mean) PL_MUST_CHECK;

/* The same for people: for each sweep, below its title, the flags that all runs
 * share, a table of results and one of tasks, findings in words (findings.h),
 * and notes on published values.  A table wider than `width` is split by
 * columns; 0: any width. */
pl_status pl_compare_print(const pl_records *records, bool mean, size_t width,
                           pl_buffer *out) PL_MUST_CHECK;

/* "all runs: softmax --lr 0.01 --epochs 10": flags that are the same in all
 * runs and not the default. */
void pl_compare_common(const pl_records *records, pl_buffer *out);

/* Append notes on the published values of one sweep's runs, one sentence per
 * line. */
void pl_compare_notes(const pl_records *part, pl_buffer *out);

/* The names of all results in the summary; NULL-terminated. */
const char *const *pl_compare_results(void);

/* The flags that distinguish the runs, except the seed; at most `room`.  The
 * names live as long as the records. */
size_t pl_compare_args(const pl_records *records, const char **names,
                       size_t room);

/* True if a flag is redundant given another one of `names`: the number of
 * servers, for example, mostly follows from the strategy. */
bool pl_compare_follows(const pl_records *records, const char *const *names,
                        size_t count, const char *name);

/* "mode sync, workers 2": run `run` by the flags of `names` except `without`;
 * "all runs" if none is left. */
void pl_compare_label(const pl_records *records, size_t run,
                      const char *const *names, size_t count,
                      const char *without, char *text, size_t room);

/* True if some runs differ only in the seed. */
bool pl_compare_repeats(const pl_records *records);

/* Mean and standard deviation (of the sample; 0 for one run) of a number of the
 * summary, over the runs like run `first`; NAN if none has it. */
double pl_compare_mean(const pl_records *records, size_t first, const char *key,
                       double *spread);

#endif

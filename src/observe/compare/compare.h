/* compare.h - runs side by side: what sets them apart, and what came of it.
 *
 * Threads: one at a time. */
#ifndef PL_OBSERVE_COMPARE_COMPARE_H
#define PL_OBSERVE_COMPARE_COMPARE_H

#include "observe/runs/record.h"
#include "observe/runs/table.h"

/* A row a run: its name, the flags that are not the same in all runs, the
 * results, beside them what was published (experiment.h).  With `mean`, runs
 * that differ in nothing but the seed share a row: means with their standard
 * deviations. */
pl_status pl_compare(pl_table **out, const pl_records *records,
                     bool mean) PL_MUST_CHECK;

/* A row a run: its name, what limited it, memory by role, the steps of each
 * worker, and what went in and out of each server. */
pl_status pl_compare_tasks(pl_table **out, const pl_records *records,
                           bool mean) PL_MUST_CHECK;

/* Both in one table: for programs. */
pl_status pl_compare_all(pl_table **out, const pl_records *records,
                         bool mean) PL_MUST_CHECK;

/* The same for people: for each sweep, below its title, the flags that all runs
 * share, a table of results and one of tasks, what they show in words
 * (findings.h), and what is to be known of published values.  A table wider
 * than `width` is cut by columns; 0: it may be of any width. */
pl_status pl_compare_print(const pl_records *records, bool mean, size_t width,
                           pl_buffer *out) PL_MUST_CHECK;

/* "all runs: softmax --lr 0.01 --epochs 10": what is alike in all of them and
 * not left at its default. */
void pl_compare_common(const pl_records *records, pl_buffer *out);

/* Append what is to be known of the published values of one sweep's runs, a
 * sentence a line. */
void pl_compare_notes(const pl_records *part, pl_buffer *out);

/* The names of all results, as in the summary; NULL-terminated. */
const char *const *pl_compare_results(void);

/* The flags that set the runs apart, but for the seed; at most `room`.  The
 * names live as long as the records. */
size_t pl_compare_args(const pl_records *records, const char **names,
                       size_t room);

/* True for a flag that says no more than another one of `names`: how many
 * servers there are, mostly, follows from the strategy. */
bool pl_compare_follows(const pl_records *records, const char *const *names,
                        size_t count, const char *name);

/* "mode sync, workers 2": run `run` by the flags of `names`, but for `without`;
 * "all runs" when none is left. */
void pl_compare_label(const pl_records *records, size_t run,
                      const char *const *names, size_t count,
                      const char *without, char *text, size_t room);

/* True when some runs differ in nothing but the seed. */
bool pl_compare_repeats(const pl_records *records);

/* Mean and standard deviation (of the sample; 0 of one run) of a number of
 * the summary, over the runs like run `first`; NAN when none has it. */
double pl_compare_mean(const pl_records *records, size_t first, const char *key,
                       double *spread);

#endif

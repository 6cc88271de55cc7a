/* compare_priv.h - shared by the files of the comparison: columns about the
 * tasks of a run.
 *
 * Threads: one at a time. */
#ifndef PL_OBSERVE_COMPARE_COMPARE_PRIV_H
#define PL_OBSERVE_COMPARE_COMPARE_PRIV_H

#include "observe/compare/compare.h"

/* True if the table would have a column. */
bool pl_compare_has_tasks(const pl_records *records);
void pl_compare_add_tasks(pl_table *table, const pl_records *records);
/* The cells of run `index`; with `mean`, means over the runs like it. */
void pl_compare_put_tasks(pl_table *table, const pl_records *records,
                          size_t index, bool mean);

#endif

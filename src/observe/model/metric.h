/* metric.h - the numbers that figures show: label, unit, and whether a run has
 * one as a result or many over time.
 *
 * A metric is a row of the table in metric.c.  A metric without a row is
 * labelled with its key.
 *
 * Threads: any. */
#ifndef PL_OBSERVE_MODEL_METRIC_H
#define PL_OBSERVE_MODEL_METRIC_H

#include "observe/runs/record.h"

typedef struct pl_metric {
    const char *key;   /* as in summary.json, events/ or resources/ */
    const char *label; /* "test accuracy" */
    const char *unit;  /* "%"; "": none */
    double scale;      /* converts recorded values to the unit */
    bool result;       /* one per run: pl_metric_result */
} pl_metric;

/* All rows, in the order in which they are offered. */
const pl_metric *pl_metrics(size_t *count);
/* NULL: no row. */
const pl_metric *pl_metric_find(const char *key);

/* "test accuracy [%]"; the key if there is no row. */
void pl_metric_label(const char *key, char *text, size_t room);

/* The result of a run before scaling: a number of its summary, or of its tasks,
 * for example its workers: their mean, for memory the largest; NAN: none.
 */
double pl_metric_result(const pl_record *record, const char *key);

#endif

/* events.h - writes what a task records to a TensorBoard event file.
 *
 * A thread of its own takes scalars and histograms from the metrics, so
 * recording costs the training nothing; when it does not keep up, the metrics
 * drop and count (base/record/metric.h).  It looks 20 times a second and writes
 * once a second, or when a quarter of a megabyte has come together.
 *
 * A file that cannot be written is said once, as a warning; what comes after
 * is counted as dropped, and the training goes on.
 *
 * Threads: start and stop from one, which may also put. */
#ifndef PL_OBSERVE_RECORD_EVENTS_H
#define PL_OBSERVE_RECORD_EVENTS_H

#include "base/record/metric.h"
#include "proto/event.h"

typedef struct pl_events pl_events;

typedef struct pl_events_opts {
    pl_metrics *metrics; /* required; its scalars are taken from here on */
    const char *folder;  /* required: made, with a file of its own in it */
    int64_t start_step;  /* of a resumed run; else 0 */
} pl_events_opts;

pl_status pl_events_start(pl_events **out,
                          const pl_events_opts *opts) PL_MUST_CHECK;
/* Write the rest, end the thread, free.  NULL is fine. */
void pl_events_stop(pl_events *events);

/* Records of event.h: fill the buffer between the two calls. */
pl_buffer *pl_events_begin(pl_events *events);
void pl_events_end(pl_events *events);

/* What was recorded but is not in the file. */
uint64_t pl_events_dropped(const pl_events *events);

#endif

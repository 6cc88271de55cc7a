/* events.h - writes what a task records to a TensorBoard event file.
 *
 * A separate thread takes scalars and histograms from the metrics, so recording
 * costs the training nothing; if it does not keep up, the metrics drop records
 * and count them (base/record/metric.h).  It polls 20 times per second and
 * writes once per second, or when a quarter of a megabyte is buffered.
 *
 * A file that cannot be written is reported once, as a warning; later records
 * are counted as dropped, and the training continues.
 *
 * Threads: start and stop from one thread, which may also put. */
#ifndef PL_OBSERVE_RECORD_EVENTS_H
#define PL_OBSERVE_RECORD_EVENTS_H

#include "base/record/metric.h"
#include "proto/event.h"

typedef struct pl_events pl_events;

typedef struct pl_events_opts {
    pl_metrics *metrics; /* required; its scalars are taken from now on */
    const char *folder;  /* required: created, with a new file in it */
    int64_t start_step;  /* of a resumed run; otherwise 0 */
} pl_events_opts;

pl_status pl_events_start(pl_events **out,
                          const pl_events_opts *opts) PL_MUST_CHECK;
/* Write the rest, end the thread, free.  NULL is fine. */
void pl_events_stop(pl_events *events);

/* Between the two calls the caller fills the buffer with records of event.h. */
pl_buffer *pl_events_begin(pl_events *events);
void pl_events_end(pl_events *events);

/* The number of records that are not in the file. */
uint64_t pl_events_dropped(const pl_events *events);

#endif

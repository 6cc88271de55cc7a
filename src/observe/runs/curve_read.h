/* curve_read.h - curves from a run's event files and resource tables.
 *
 * docs/formats/run.md describes both.  What is not a finite number is passed
 * over.
 *
 * Threads: any. */
#ifndef PL_OBSERVE_RUNS_CURVE_READ_H
#define PL_OBSERVE_RUNS_CURVE_READ_H

#include "observe/runs/curve.h"

/* Add the scalars of an event file, one curve a tag, x is the step.  A last
 * record that is cut short is that of a run that goes on; PL_FORMAT when the
 * file is damaged, with what stood before the damage added.  `what` names it
 * in messages. */
pl_status pl_events_read(pl_curves *curves, const uint8_t *data, size_t bytes,
                         const char *what) PL_MUST_CHECK;

/* Where the first whole record begins in a piece of an event file that was cut
 * anywhere; `bytes`: nowhere. */
size_t pl_events_first(const uint8_t *data, size_t bytes);

/* Add the columns of a table of resources, one curve each, x is the time in
 * seconds since the first line.  The last line may be cut short. */
pl_status pl_resources_read(pl_curves *curves, const char *text, size_t bytes,
                            const char *what) PL_MUST_CHECK;

#endif

/* curve_read.h - curves from a run's event files and resource tables.
 *
 * docs/formats/run.md describes both.  Values that are not finite are skipped.
 *
 * Threads: any. */
#ifndef PL_OBSERVE_RUNS_CURVE_READ_H
#define PL_OBSERVE_RUNS_CURVE_READ_H

#include "observe/runs/curve.h"

/* Add the scalars of an event file, one curve per tag, x is the step.  A
 * truncated last record is ignored, since the run may be in progress; PL_FORMAT
 * if the file is damaged, after adding what precedes the damage.  `what` names
 * it in messages. */
pl_status pl_events_read(pl_curves *curves, const uint8_t *data, size_t bytes,
                         const char *what) PL_MUST_CHECK;

/* Offset of the first whole record in a piece of an event file that begins
 * anywhere; `bytes`: none. */
size_t pl_events_first(const uint8_t *data, size_t bytes);

/* Add the columns of a resources table, one curve each, x is the time in
 * seconds since the first line.  The last line may be truncated. */
pl_status pl_resources_read(pl_curves *curves, const char *text, size_t bytes,
                            const char *what) PL_MUST_CHECK;

#endif

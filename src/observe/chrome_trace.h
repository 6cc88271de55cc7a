/* chrome_trace.h - a recorded trace as a file for trace viewers.
 *
 * Writes the JSON that chrome://tracing and Perfetto open: one complete event
 * ("ph": "X") a span, in microseconds since the recorder's birth, one row a
 * lane.  "otherData" holds the calendar time of the birth and how many spans
 * were dropped.
 *
 * Threads: the caller's; the lanes must stand still. */
#ifndef PL_OBSERVE_CHROME_TRACE_H
#define PL_OBSERVE_CHROME_TRACE_H

#include "base/trace.h"
#include "paceline/base.h"

#include <stdint.h>

typedef struct pl_chrome_trace_opts {
    const char *process; /* the name of the whole; default "paceline" */
    int32_t pid;         /* tells merged traces apart; default 0 */
} pl_chrome_trace_opts;

/* The file appears complete or not at all.  opts NULL: all defaults. */
pl_status pl_chrome_trace_write(const pl_trace *trace, const char *path,
                                const pl_chrome_trace_opts *opts) PL_MUST_CHECK;

#endif

/* chrome_trace.h - a recorded trace as a file for trace viewers.
 *
 * Writes the JSON that chrome://tracing and Perfetto open: one complete event
 * ("ph": "X") a span, in microseconds since the recorder's birth, one row a
 * lane.  "otherData" holds what `paceline profile` needs: the times of the
 * birth, how far the clock of the job is ahead, how many spans were dropped,
 * the operators and what the machine can do.
 *
 * Threads: the caller's; the lanes must stand still. */
#ifndef PL_OBSERVE_RECORD_CHROME_TRACE_H
#define PL_OBSERVE_RECORD_CHROME_TRACE_H

#include "base/host/skew.h"
#include "base/record/trace.h"
#include "paceline/base.h"

#include <stdint.h>

/* What the spans of a name are. */
typedef struct pl_trace_operator {
    const char *name;
    const char *op;    /* "conv2d" */
    const char *shape; /* of the result */
    double flop;       /* of one step; 0: it moves data */
    double bytes;      /* read and written in one step */
} pl_trace_operator;

typedef struct pl_chrome_trace_opts {
    const char *process; /* the name of the whole; default "paceline" */
    int32_t pid;         /* tells merged traces apart; default 0 */
    pl_skew skew;        /* of the clock that all tasks compare theirs with */
    const pl_trace_operator *operators;
    int operator_count;
    double gflops, gbytes; /* a second, at most, of one operator; 0: not
                              known */
} pl_chrome_trace_opts;

/* The file appears complete or not at all.  opts NULL: all defaults. */
pl_status pl_chrome_trace_write(const pl_trace *trace, const char *path,
                                const pl_chrome_trace_opts *opts) PL_MUST_CHECK;

#endif

/* chrome_trace.h - a recorded trace as a file for trace viewers.
 *
 * Writes the JSON that chrome://tracing and Perfetto open: one complete event
 * ("ph": "X") per span, in microseconds since the recorder's start, one row per
 * lane.  "otherData" holds the input of `paceline profile`: the start times,
 * how far the clock of the job is ahead, how many spans were dropped, the
 * operators and the limits of the machine.
 *
 * Threads: the caller's; no lane may record meanwhile. */
#ifndef PL_OBSERVE_RECORD_CHROME_TRACE_H
#define PL_OBSERVE_RECORD_CHROME_TRACE_H

#include "base/host/skew.h"
#include "base/record/trace.h"
#include "paceline/base.h"

#include <stdint.h>

/* Describes the spans with one name. */
typedef struct pl_trace_operator {
    const char *name;
    const char *op;    /* "conv2d" */
    const char *shape; /* of the result */
    double flop;       /* per step; 0: it moves data */
    double bytes;      /* read and written per step */
} pl_trace_operator;

typedef struct pl_chrome_trace_opts {
    const char *process; /* name of the process; default "paceline" */
    int32_t pid;         /* distinguishes merged traces; default 0 */
    pl_skew skew;        /* of the clock with which all tasks compare theirs */
    const pl_trace_operator *operators;
    int operator_count;
    double gflops, gbytes; /* limits per second of an operator; 0: unknown */
} pl_chrome_trace_opts;

/* The file appears complete or not at all.  opts NULL: all defaults. */
pl_status pl_chrome_trace_write(const pl_trace *trace, const char *path,
                                const pl_chrome_trace_opts *opts) PL_MUST_CHECK;

#endif

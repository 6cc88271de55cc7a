/* trace.h - spans: what ran when, on which thread.
 *
 * A recorder has one bounded buffer per thread, filled without locks; when it
 * is full, further spans are counted and dropped.  A recorder that is off costs
 * one branch per span.
 *
 * Threads: thread t writes only to lane t; read after the run (or while the
 * lanes stand still). */
#ifndef PL_BASE_RECORD_TRACE_H
#define PL_BASE_RECORD_TRACE_H

#include "base/clock.h"
#include "paceline/base.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct pl_trace pl_trace;

typedef struct pl_trace_opts {
    int32_t lanes; /* required, >= 1: threads that record */
    uint32_t room; /* spans a lane holds; default 65536 */
} pl_trace_opts;

typedef struct pl_span {
    const char *name; /* lives as long as the recorder: a node's name */
    uint64_t begin;   /* ticks */
    uint64_t end;
    int64_t step;
    int64_t bytes; /* that it read and wrote; 0: not counted */
} pl_span;

pl_status pl_trace_new(pl_trace **out, const pl_trace_opts *opts) PL_MUST_CHECK;
void pl_trace_free(pl_trace *trace); /* NULL is fine */

/* A new recorder is off.  Switched by the thread that drives the lanes. */
void pl_trace_switch(pl_trace *trace, bool on);
bool pl_trace_on(const pl_trace *trace); /* NULL: off */

void pl_trace_span(pl_trace *trace, int lane, const char *name, int64_t step,
                   uint64_t begin, uint64_t end);
/* The same for an operator whose work differs between calls. */
void pl_trace_moved(pl_trace *trace, int lane, const char *name, int64_t step,
                    uint64_t begin, uint64_t end, int64_t bytes);
/* When a span begins: ticks, or 0 where the recorder is off, so that a span
 * that is not recorded does not read the clock. */
static inline uint64_t pl_trace_mark(const pl_trace *trace)
{
    return pl_trace_on(trace) ? pl_ticks_now() : 0;
}

int pl_trace_lanes(const pl_trace *trace);
uint32_t pl_trace_count(const pl_trace *trace, int lane);
const pl_span *pl_trace_get(const pl_trace *trace, int lane, uint32_t index);
uint64_t pl_trace_dropped(const pl_trace *trace);
/* Ticks and calendar time when the recorder was created. */
uint64_t pl_trace_begin(const pl_trace *trace);
int64_t pl_trace_begin_wall_ns(const pl_trace *trace);

#endif

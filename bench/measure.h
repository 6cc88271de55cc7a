/* measure.h - how long one call takes.
 *
 * Calls are counted until they fill a window of the given length; after a
 * warm-up several windows are timed.  The result is their median, with the
 * fastest and the slowest.
 *
 * Threads: any. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdint.h>

typedef struct measurement {
    double median, least, most;
} measurement;

typedef struct measure_opts {
    void (*run)(void *arg, int64_t times); /* required */
    void (*reset)(void *arg); /* between runs, not timed; may be NULL */
    void *arg;
    double window_s;   /* required */
    int64_t most_once; /* most `times` before a reset; default: no limit */
} measure_opts;

/* Nanoseconds per call. */
measurement measure(const measure_opts *opts);

/* Median, least and most of `count` values (reordered). */
measurement measure_summary(double *values, int count);

/* factor / each, as for "calls per second" from "seconds per call". */
measurement measure_inverse(measurement m, double factor);

/* Keep the compiler from removing a computation. */
static inline void measure_keep(const void *pointer)
{
    __asm__ volatile("" : : "r"(pointer) : "memory");
}

#define MEASURE_WINDOWS 5

#endif

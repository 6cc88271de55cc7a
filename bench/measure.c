#include "measure.h"

#include "base/clock.h"

#include <stdlib.h>

static double now_ns(void)
{
    return (double)pl_clock_now_ns(pl_clock_real());
}

/* Nanoseconds of `times` calls, without resets. */
static double time_calls(const measure_opts *opts, int64_t times)
{
    double spent = 0;
    while (times > 0) {
        int64_t now = opts->most_once > 0 && times > opts->most_once
                          ? opts->most_once
                          : times;
        if (opts->reset != NULL)
            opts->reset(opts->arg);
        double begin = now_ns();
        opts->run(opts->arg, now);
        spent += now_ns() - begin;
        times -= now;
    }
    return spent;
}

/* Double the number of calls until they fill a good part of a window; this is
 * also the warm-up. */
static int64_t calls_per_window(const measure_opts *opts)
{
    double wanted = opts->window_s * 1e9;
    int64_t times = 1;
    for (;;) {
        double spent = time_calls(opts, times);
        if (spent >= wanted / 4) {
            double fit = (double)times * wanted / spent;
            return fit < 1 ? 1 : (int64_t)fit;
        }
        times *= 2;
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

measurement measure_summary(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    int half = count / 2;
    return (measurement) {
        .median = count % 2 != 0 ? values[half]
                                 : (values[half - 1] + values[half]) / 2,
        .least = values[0],
        .most = values[count - 1],
    };
}

measurement measure_inverse(measurement m, double factor)
{
    return (measurement) {
        .median = factor / m.median,
        .least = factor / m.most,
        .most = factor / m.least,
    };
}

measurement measure(const measure_opts *opts)
{
    int64_t times = calls_per_window(opts);
    double ns[MEASURE_WINDOWS];
    for (int w = 0; w < MEASURE_WINDOWS; w++)
        ns[w] = time_calls(opts, times) / (double)times;
    return measure_summary(ns, MEASURE_WINDOWS);
}

/* histogram.h - where many numbers lie: how many in each bucket.
 *
 * Buckets grow with the distance from zero, four to a doubling, from 2^-40 to
 * 2^40 on both sides; what is nearer to zero is in the middle one.  They are
 * the sign, the exponent and two bits of the fraction of a float, so putting
 * one there costs about a nanosecond and no logarithm.
 *
 * Threads: the caller's. */
#ifndef PL_BASE_RECORD_HISTOGRAM_H
#define PL_BASE_RECORD_HISTOGRAM_H

#include <stdint.h>

#define PL_HISTOGRAM_SIDE    320 /* buckets on each side of the middle */
#define PL_HISTOGRAM_BUCKETS (2 * PL_HISTOGRAM_SIDE + 1)

typedef struct pl_histogram {
    int64_t count; /* of finite numbers; others are left out */
    double least, most, sum, sum_squares;
    int64_t buckets[PL_HISTOGRAM_BUCKETS]; /* from the least up */
} pl_histogram;

/* Add numbers; a zeroed one is empty. */
void pl_histogram_add(pl_histogram *histogram, const float *values,
                      int64_t count);

/* The upper end of a bucket, which is the lower one of the next. */
double pl_histogram_limit(int bucket);

/* The middle of the bucket that the `share` of all numbers from the least up
 * ends in: 0.5 is the median.  NAN where there is none. */
double pl_histogram_quantile(const pl_histogram *histogram, double share);

#endif

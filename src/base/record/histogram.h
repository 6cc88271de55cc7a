/* histogram.h - the distribution of many numbers: a count for each bucket.
 *
 * Buckets grow with the distance from zero, four to a doubling, from 2^-40 to
 * 2^40 on both sides; numbers nearer to zero are in the middle one.  A bucket
 * is the sign, the exponent and two bits of the fraction of a float, so adding
 * a number costs about a nanosecond and no logarithm.
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
    int64_t buckets[PL_HISTOGRAM_BUCKETS]; /* in ascending order */
} pl_histogram;

/* Add numbers; a zeroed one is empty. */
void pl_histogram_add(pl_histogram *histogram, const float *values,
                      int64_t count);

/* The upper end of a bucket, which is the lower one of the next. */
double pl_histogram_limit(int bucket);

/* The middle of the bucket that holds the quantile `share`: 0.5 is the median.
 * NAN when there are no numbers. */
double pl_histogram_quantile(const pl_histogram *histogram, double share);

#endif

/* Finds a float's bucket from its sign, exponent and first fraction bits,
 * without a logarithm. */
#include "base/record/histogram.h"

#include "base/assert.h"

#include <math.h>
#include <string.h>

#define FRACTION_BITS 2
#define SHIFT         (23 - FRACTION_BITS)
/* The exponent and fraction of 2^-40, where the side begins. */
#define SIDE_FIRST ((127 - 40) << FRACTION_BITS)

static int bucket_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    int at = (int)((bits & 0x7fffffffu) >> SHIFT) - SIDE_FIRST;
    if (at < 0)
        return PL_HISTOGRAM_SIDE;
    if (at >= PL_HISTOGRAM_SIDE)
        at = PL_HISTOGRAM_SIDE - 1;
    return (bits >> 31) != 0 ? PL_HISTOGRAM_SIDE - 1 - at
                             : PL_HISTOGRAM_SIDE + 1 + at;
}

void pl_histogram_add(pl_histogram *histogram, const float *values,
                      int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double value = (double)values[i];
        if (!isfinite(value))
            continue;
        if (histogram->count == 0 || value < histogram->least)
            histogram->least = value;
        if (histogram->count == 0 || value > histogram->most)
            histogram->most = value;
        histogram->count++;
        histogram->sum += value;
        histogram->sum_squares += value * value;
        histogram->buckets[bucket_of(values[i])]++;
    }
}

/* The float whose exponent and fraction are `at` after the side's first. */
static double edge(int at)
{
    uint32_t bits = (uint32_t)(SIDE_FIRST + at) << SHIFT;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

double pl_histogram_limit(int bucket)
{
    PL_ASSERT(bucket >= 0 && bucket < PL_HISTOGRAM_BUCKETS);
    if (bucket < PL_HISTOGRAM_SIDE)
        return -edge(PL_HISTOGRAM_SIDE - 1 - bucket);
    return edge(bucket - PL_HISTOGRAM_SIDE);
}

double pl_histogram_quantile(const pl_histogram *histogram, double share)
{
    double left = share * (double)histogram->count;
    for (int i = 0; i < PL_HISTOGRAM_BUCKETS; i++) {
        left -= (double)histogram->buckets[i];
        if (histogram->buckets[i] > 0 && left <= 0)
            return i == 0
                       ? histogram->least
                       : (pl_histogram_limit(i - 1) + pl_histogram_limit(i)) /
                             2;
    }
    return NAN;
}

/* peak.h - loops that only compute or only move data, to measure the limits.
 *
 * The same loops exist for each vector width, like the kernels.
 *
 * Threads: any; each call works on its own memory. */
#ifndef PL_KERNELS_PEAK_H
#define PL_KERNELS_PEAK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct pl_peak {
    const char *name; /* "avx512": the kernels of this width */
    int lanes;
    bool fused;                  /* one instruction multiplies and adds */
    int chains;                  /* independent multiply-adds per turn */
    float (*fma)(int64_t turns); /* chains * lanes multiply-adds per turn */
    /* The sum of n floats; n is a multiple of 128, as below. */
    float (*read)(int64_t n, const float *src);
    void (*saxpy)(int64_t n, float factor, const float *src, float *dst);
} pl_peak;

/* Loops that this processor supports, widest first; ended by one without
 * name. */
const pl_peak *pl_peak_list(void);

#endif

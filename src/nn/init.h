/* init.h - initial values of parameters.
 *
 * Element i of a parameter is a function of (seed, parameter name, i) only.
 *
 * Threads: pure functions. */
#ifndef PL_NN_INIT_H
#define PL_NN_INIT_H

#include "paceline/tensor.h"

/* Fill `data` by `spec`: zeros, ones, uniform:A, normal:S, glorot, he.  A
 * shape [out, in, ...] has fans in * rest and out * rest.  PL_USAGE for an
 * unknown spec. */
pl_status pl_init_fill(const char *spec, pl_shape shape, uint64_t seed,
                       const char *name, float *data) PL_MUST_CHECK;

/* The same for elements first .. first+count-1, written to data[0] and on. */
pl_status pl_init_fill_part(const char *spec, pl_shape shape, uint64_t seed,
                            const char *name, int64_t first, int64_t count,
                            float *data) PL_MUST_CHECK;

/* PL_OK if `spec` is valid. */
pl_status pl_init_check(const char *spec) PL_MUST_CHECK;

#endif

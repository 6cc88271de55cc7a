/* tables.h - the kernel tables of this build; use backend.h to choose one. */
#ifndef PL_KERNELS_TABLES_H
#define PL_KERNELS_TABLES_H

#include "kernels/backend.h"

extern const pl_kernels pl_kernels_avx512;
extern const pl_kernels pl_kernels_avx2;
extern const pl_kernels pl_kernels_portable;
extern const pl_kernels pl_kernels_reference;

#endif

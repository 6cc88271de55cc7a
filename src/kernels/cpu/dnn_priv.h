/* dnn_priv.h - what the files of this folder share. */
#ifndef PL_KERNELS_CPU_DNN_PRIV_H
#define PL_KERNELS_CPU_DNN_PRIV_H

#include "kernels/cpu/dnn.h"

/* Keep oneDNN to instructions that these kernels use, and off AMX where it
 * would crash. */
void pl_dnn_limit_isa(const pl_kernels *kernels);

/* The threads of OpenMP that the calling thread drives from here on. */
void omp_set_num_threads(int threads); /* of libgomp */

#endif

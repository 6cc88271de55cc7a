/* Instantiates the loops that measure the machine's limits (multiply-adds,
 * reading, saxpy) for each instruction set. They use no kernel table: a
 * benchmark compares the kernels with the limits of the processor. */
#include "kernels/peak.h"

#include <stddef.h>

#if defined(__x86_64__)
#define PEAK_NAME   avx512
#define PEAK_LANES  16
#define PEAK_TARGET __attribute__((target("avx512f")))
#include "kernels/peak_loops.inc"

#define PEAK_NAME   avx2
#define PEAK_LANES  8
#define PEAK_TARGET __attribute__((target("avx2,fma")))
#include "kernels/peak_loops.inc"
#endif

#define PEAK_NAME   portable
#define PEAK_LANES  4
#define PEAK_TARGET /* supported by every processor of this kind */
#include "kernels/peak_loops.inc"

#define CHAINS 12

#if defined(__x86_64__)
static const pl_peak list_x86[] = {
    { "avx512", 16, true, CHAINS, fma_avx512, read_avx512, saxpy_avx512 },
    { "avx2", 8, true, CHAINS, fma_avx2, read_avx2, saxpy_avx2 },
    { "portable", 4, false, CHAINS, fma_portable, read_portable,
      saxpy_portable },
    { .name = NULL },
};

const pl_peak *pl_peak_list(void)
{
    if (__builtin_cpu_supports("avx512f"))
        return list_x86;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return list_x86 + 1;
    return list_x86 + 2;
}
#else
const pl_peak *pl_peak_list(void)
{
    static const pl_peak list[] = {
        { "portable", 4, true, CHAINS, fma_portable, read_portable,
          saxpy_portable },
        { .name = NULL },
    };
    return list;
}
#endif

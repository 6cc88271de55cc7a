/* Chooses the kernel table: the first one in `all`, fastest first, that the
 * processor supports. Also computes the scratch sizes of convolutions, which
 * are the same for all tables. */
#include "kernels/backend.h"

#include "kernels/tables.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static const pl_kernels *const all[] = {
#if defined(__x86_64__)
    &pl_kernels_avx512, &pl_kernels_avx2,
#endif
    &pl_kernels_portable, &pl_kernels_reference, NULL
};

static bool supported(const pl_kernels *kernels)
{
#if defined(__x86_64__)
    if (kernels == &pl_kernels_avx512)
        return __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
    if (kernels == &pl_kernels_avx2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    (void)kernels;
    return true;
}

int64_t pl_conv_scratch(const pl_conv *conv, int lanes)
{
    int64_t taps = conv->kernel_h * conv->kernel_w;
    return (PL_CONV_OUTS * taps + PL_CONV_FOLDED + lanes) * lanes;
}

int64_t pl_conv_src_scratch(const pl_conv *conv, int lanes)
{
    int64_t turned =
        conv->outs * conv->channels * conv->kernel_h * conv->kernel_w;
    int64_t spread = conv->outs * ((conv->out_height - 1) * conv->stride + 1) *
                     ((conv->out_width - 1) * conv->stride + 1);
    return turned + (conv->stride > 1 ? spread * lanes : 0);
}

int64_t pl_conv_block_scratch(const pl_conv_block *block, int lanes)
{
    return PL_CONV_OUTS * block->window.size * block->conv.out_width * lanes;
}

const pl_kernels *pl_kernels_best(void)
{
    size_t best = 0;
    while (!supported(all[best]))
        best++;
    return all[best];
}

const pl_kernels *pl_kernels_find(const char *name)
{
    for (size_t i = 0; all[i] != NULL; i++)
        if (strcmp(all[i]->name, name) == 0)
            return supported(all[i]) ? all[i] : NULL;
    return NULL;
}

const pl_kernels *const *pl_kernels_all(void)
{
    return all;
}

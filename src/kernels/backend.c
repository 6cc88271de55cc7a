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
    if (conv->pad == 0)
        return 0;
    return conv->channels * (conv->height + 2 * conv->pad) *
           (conv->width + 2 * conv->pad) * lanes;
}

int64_t pl_conv_src_scratch(const pl_conv *conv, int lanes)
{
    int64_t spread = conv->outs * (conv->height + conv->kernel_h - 1) *
                     (conv->width + conv->kernel_w - 1);
    int64_t weights =
        conv->outs * conv->channels * conv->kernel_h * conv->kernel_w;
    return spread * lanes + weights;
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

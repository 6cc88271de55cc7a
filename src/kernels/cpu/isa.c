/* Limits which instruction sets oneDNN may use: those of the chosen kernel
 * table, and no AMX where the hypervisor hides the tile description. Under
 * ThreadSanitizer, which cannot see into libgomp, oneDNN gets one thread. */
#include "kernels/cpu/dnn_priv.h"

#include <stdio.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Some virtual machines announce AMX but hide the CPUID leaf that describes its
 * tiles; oneDNN then configures none and dies of an illegal instruction. */
static bool amx_without_tiles(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & 1u << 24) == 0)
        return false;
    return !__get_cpuid_count(0x1d, 0, &a, &b, &c, &d) || a == 0;
#else
    return false;
#endif
}

void pl_dnn_limit_isa(const pl_kernels *kernels)
{
    /* Works only before the process's first operation and fails afterwards: the
     * earlier choice is correct, if not the fastest. */
    if (strcmp(kernels->name, "avx2") == 0)
        (void)dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
    else if (amx_without_tiles())
        (void)dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16);
}

bool pl_dnn_has_bf16(const pl_kernels *kernels)
{
    if (strcmp(kernels->name, "avx512") != 0)
        return false;
    pl_dnn_limit_isa(kernels);
    unsigned isa = (unsigned)dnnl_get_effective_cpu_isa();
    return (isa & dnnl_cpu_isa_avx512_core_bf16) ==
           dnnl_cpu_isa_avx512_core_bf16;
}

void pl_dnn_describe(char text[PL_DNN_TEXT])
{
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, PL_DNN_TEXT, "oneDNN %d.%d.%d (instruction set %#x)",
             v->major, v->minor, v->patch,
             (unsigned)dnnl_get_effective_cpu_isa());
}

int pl_dnn_threads(int wanted)
{
#if defined(__SANITIZE_THREAD__)
    (void)wanted;
    return 1;
#else
    return wanted > 1 ? wanted : 1;
#endif
}

const char *pl_dnn_version(char text[PL_DNN_VERSION])
{
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, PL_DNN_VERSION, "%d.%d.%d", version->major, version->minor,
             version->patch);
    return text;
}

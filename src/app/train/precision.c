/* Refuses --precision bf16 where it would change nothing: on processors without
 * AVX512_BF16, beside other kernels, and for small layers, which our own
 * kernels compute in float32. */
#include "app/train/precision.h"

#include "kernels/cpu/dnn.h"

static pl_status check_processor(const pl_kernels *kernels)
{
    if (pl_dnn_has_bf16(kernels))
        return PL_OK;
    if (kernels != pl_kernels_best())
        return PL_FAIL(PL_USAGE,
                       "--precision bf16: the kernels %s compute in float32; "
                       "leave out one of the two flags",
                       kernels->name);
    return PL_FAIL(PL_USAGE, "--precision bf16: this processor has no "
                             "instructions for it (AVX512_BF16); leave it out");
}

pl_status pl_precision_check(const pl_job *job, const pl_network *network)
{
    const pl_options *options = job->options;
    pl_compute_size size;
    if (!pl_options_bf16(&options->train))
        return PL_OK;
    PL_TRY(check_processor(job->kernels));
    PL_TRY(pl_compute_memory(
        &(pl_compute_opts) {
            .network = network,
            .batch = options->train.batch,
            .threads = (int)options->train.threads,
            .kernels = job->kernels,
            .bf16 = true,
        },
        &size));
    if (size.large)
        return PL_OK;
    return PL_FAIL(PL_USAGE,
                   "--precision bf16: no layer of %s is large enough to gain "
                   "by it; leave it out",
                   options->model->name);
}

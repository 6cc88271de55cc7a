#include "train/optim.h"

#include "base/mem.h"
#include "base/param.h"
#include "train/optim/optims.h"

#include <string.h>

const pl_optim_ops *const *pl_optim_list(void)
{
    static const pl_optim_ops *const list[] = {
        &pl_optim_sgd,     &pl_optim_momentum, &pl_optim_adam,
        &pl_optim_adagrad, &pl_optim_rmsprop,  NULL
    };
    return list;
}

/* For a number whose 0, the default, is of use too. */
static double number(double given, double fallback)
{
    if (given == 0)
        return fallback;
    return given > 0 ? given : 0;
}

static pl_optim_opts resolve(const pl_optim_opts *opts)
{
    pl_optim_opts r = *opts;
    r.name = r.name != NULL ? r.name : "sgd";
    r.momentum = number(r.momentum, 0.9);
    r.beta1 = number(r.beta1, 0.9);
    r.beta2 = number(r.beta2, 0.999);
    r.rho = number(r.rho, 0.9);
    r.initial_sum = number(r.initial_sum, 0.1);
    r.epsilon = r.epsilon != 0 ? r.epsilon : 1e-8;
    return r;
}

static pl_status find_ops(const char *name, const pl_optim_ops **out)
{
    for (const pl_optim_ops *const *ops = pl_optim_list(); *ops != NULL; ops++)
        if (strcmp((*ops)->name, name) == 0) {
            *out = *ops;
            return PL_OK;
        }
    return PL_FAIL(PL_USAGE,
                   "optimizer \"%s\" is unknown; expected sgd, momentum, "
                   "adam, adagrad or rmsprop",
                   name);
}

static pl_status new_slot(pl_optim *optim, const pl_params *params,
                          pl_params **out)
{
    PL_TRY(pl_params_like(out, params));
    if (optim->ops->initial != NULL)
        optim->kernels->fill(pl_params_block_count(*out),
                             (float)optim->ops->initial(&optim->opts),
                             pl_params_block(*out));
    return PL_OK;
}

pl_status pl_optim_new(pl_optim **out, const pl_optim_opts *opts,
                       const pl_params *params, const pl_kernels *kernels)
{
    pl_optim *optim;
    PL_TRY(PL_NEW(optim, 1));
    optim->opts = resolve(opts);
    optim->kernels = kernels;
    optim->args.decay = (float)optim->opts.weight_decay;
    optim->args.momentum = (float)optim->opts.momentum;
    optim->args.beta2 = (float)optim->opts.beta2;
    optim->args.epsilon = (float)optim->opts.epsilon;
    pl_status status;
    PL_TRY_OUT(status, find_ops(optim->opts.name, &optim->ops));
    for (int i = 0; i < optim->ops->slot_count; i++)
        PL_TRY_OUT(status, new_slot(optim, params, &optim->slots[i]));
    *out = optim;
    return PL_OK;
out:
    pl_optim_free(optim);
    return status;
}

void pl_optim_free(pl_optim *optim)
{
    if (optim == NULL)
        return;
    for (int i = 0; i < PL_MAX_SLOTS; i++)
        pl_params_free(optim->slots[i]);
    pl_mem_free(optim);
}

void pl_optim_begin(pl_optim *optim, int64_t update, double lr)
{
    optim->args.lr = (float)lr;
    if (optim->ops->begin != NULL)
        optim->ops->begin(optim, update);
}

void pl_optim_update(const pl_optim *optim, int64_t first, int64_t count,
                     const float *grad, float *block)
{
    float *slots[PL_MAX_SLOTS] = { NULL };
    for (int i = 0; i < optim->ops->slot_count; i++)
        slots[i] = pl_params_block(optim->slots[i]) + first;
    optim->ops->update(optim, count, grad, block + first, slots);
}

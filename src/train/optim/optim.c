/* Applies an optimizer to ranges of the parameter block, and to gathered
 * keys of sparse tables by the same kernels, 256 keys at a time. */
#include "train/optim/optim.h"

#include "base/mem.h"
#include "base/param/param.h"

#include <string.h>

#define PART 256 /* keys updated at once, in the first-level cache */

#define OPS(kind, name) [PL_OPTIM_##kind] = &pl_optim_##name,

const pl_optim_ops *const *pl_optim_list(void)
{
    static const pl_optim_ops *const list[] = { PL_OPTIM_LIST(OPS)[PL_OPTIMS] =
                                                    NULL };
    return list;
}

/* For an option whose default is 0, but where 0 is also meaningful. */
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
    r.beta = number(r.beta, 1);
    return r;
}

static pl_status find_kind(const char *name, pl_optim_kind *out)
{
    const pl_optim_ops *const *list = pl_optim_list();
    for (int kind = 0; kind < PL_OPTIMS; kind++)
        if (strcmp(list[kind]->name, name) == 0) {
            *out = (pl_optim_kind)kind;
            return PL_OK;
        }
    return PL_FAIL(PL_USAGE, "optimizer \"%s\" is unknown; expected %s", name,
                   PL_OPTIM_CHOICES);
}

static void fill_slot(const pl_optim *optim, pl_params *slot, double value)
{
    optim->kernels->fill(pl_params_block_count(slot), (float)value,
                         pl_params_block(slot));
}

static double initial(const pl_optim *optim)
{
    return optim->ops->initial != NULL ? optim->ops->initial(&optim->opts) : 0;
}

/* Untouched memory costs nothing. */
static pl_status new_slot(const pl_optim *optim, const pl_params *params,
                          pl_params **out)
{
    PL_TRY(pl_params_like(out, params));
    if (initial(optim) != 0)
        fill_slot(optim, *out, initial(optim));
    return PL_OK;
}

pl_status pl_optim_new(pl_optim **out, const pl_optim_opts *opts,
                       const pl_params *params, const pl_kernels *kernels)
{
    pl_optim *optim;
    PL_TRY(PL_NEW(optim, 1));
    optim->opts = resolve(opts);
    optim->kernels = kernels;
    optim->averaged = INT64_MAX;
    optim->args.decay = (float)optim->opts.weight_decay;
    optim->args.momentum = (float)optim->opts.momentum;
    optim->args.nesterov = optim->opts.nesterov;
    optim->args.beta2 = (float)optim->opts.beta2;
    optim->args.epsilon = (float)optim->opts.epsilon;
    optim->args.beta = (float)optim->opts.beta;
    pl_status status;
    PL_TRY_OUT(status, find_kind(optim->opts.name, &optim->kind));
    optim->ops = pl_optim_list()[optim->kind];
    for (int i = 0; i < optim->ops->slot_count; i++)
        PL_TRY_OUT(status, new_slot(optim, params, &optim->slots[i]));
    if (optim->opts.outer)
        PL_TRY_OUT(status, pl_params_like(&optim->outer, params));
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
    pl_params_free(optim->outer);
    pl_mem_free(optim);
}

void pl_optim_average(pl_optim *optim, int64_t first, double rate)
{
    optim->averaged = first;
    optim->average_rate = (float)rate;
}

/* Elements of a range that precede the running averages. */
static int64_t trained_of(const pl_optim *optim, int64_t first, int64_t count)
{
    int64_t trained = optim->averaged - first;
    if (trained >= count)
        return count;
    return trained > 0 ? trained : 0;
}

void pl_optim_mean(const pl_optim *optim, int64_t first, int64_t count,
                   int32_t terms, float *sum)
{
    int64_t trained = trained_of(optim, first, count);
    if (trained < count && terms > 1)
        optim->kernels->scale(count - trained, 1.0f / (float)terms,
                              sum + trained, sum + trained);
}

void pl_optim_reset(pl_optim *optim)
{
    for (int i = 0; i < optim->ops->slot_count; i++)
        fill_slot(optim, optim->slots[i], initial(optim));
    if (optim->outer != NULL)
        fill_slot(optim, optim->outer, 0);
}

pl_planes pl_optim_planes(const pl_optim *optim, float *block)
{
    pl_planes planes = { .count = 1 + optim->ops->slot_count,
                         .data = { block } };
    for (int i = 0; i < optim->ops->slot_count; i++) {
        planes.data[1 + i] = pl_params_block(optim->slots[i]);
        planes.slots[1 + i] = optim->ops->slots[i];
    }
    if (optim->outer != NULL) {
        planes.data[planes.count] = pl_params_block(optim->outer);
        planes.slots[planes.count++] = "outer";
    }
    return planes;
}

void pl_optim_begin(pl_optim *optim, int64_t update, double lr)
{
    optim->args.lr = (float)lr;
    if (optim->ops->begin != NULL)
        optim->ops->begin(&optim->opts, update, &optim->args);
    optim->table_args = optim->args;
    optim->table_args.l1 = (float)optim->opts.l1;
    if (optim->ops->l2)
        optim->table_args.l2 = (float)optim->opts.l2;
    else
        optim->table_args.decay =
            (float)(optim->opts.weight_decay + optim->opts.l2);
}

void pl_optim_update(const pl_optim *optim, int64_t first, int64_t count,
                     const float *grad, float *block)
{
    float *slots[PL_MAX_SLOTS] = { NULL };
    if (optim->frozen != NULL)
        pl_frozen_before_change(optim->frozen, first, count);
    int64_t trained = trained_of(optim, first, count);
    if (trained < count)
        optim->kernels->average(count - trained, optim->average_rate,
                                grad + trained, block + first + trained);
    if (trained == 0)
        return;
    count = trained;
    for (int i = 0; i < optim->ops->slot_count; i++)
        slots[i] = pl_params_block(optim->slots[i]) + first;
    optim->kernels->update[optim->kind](count, &optim->args, grad,
                                        block + first, slots);
}

static void gather(int64_t count, const uint64_t *keys, const float *from,
                   float *to)
{
    for (int64_t k = 0; k < count; k++)
        to[k] = from[keys[k]];
}

static void scatter(int64_t count, const uint64_t *keys, const float *from,
                    float *to)
{
    for (int64_t k = 0; k < count; k++)
        to[keys[k]] = from[k];
}

void pl_optim_update_keys(const pl_optim *optim, int64_t first, int64_t count,
                          const uint64_t *keys, const float *grad, float *block)
{
    float param[PART], values[PL_MAX_SLOTS][PART];
    float *slots[PL_MAX_SLOTS], *local[PL_MAX_SLOTS];
    int slot_count = optim->ops->slot_count;
    if (optim->frozen != NULL)
        pl_frozen_before_keys(optim->frozen, first, UINT64_MAX, keys, count);
    for (int i = 0; i < slot_count; i++) {
        slots[i] = pl_params_block(optim->slots[i]) + first;
        local[i] = values[i];
    }
    for (; count > 0; count -= PART, keys += PART, grad += PART) {
        int64_t n = count < PART ? count : PART;
        gather(n, keys, block + first, param);
        for (int i = 0; i < slot_count; i++)
            gather(n, keys, slots[i], local[i]);
        optim->kernels->update[optim->kind](n, &optim->table_args, grad, param,
                                            local);
        scatter(n, keys, param, block + first);
        for (int i = 0; i < slot_count; i++)
            scatter(n, keys, local[i], slots[i]);
    }
}

/* optim.h - optimizers as kernels: how a gradient changes its parameters.
 *
 * An optimizer is one file of this folder and one row of PL_OPTIM_LIST.  The
 * file is compiled once per instruction set for its vector update, and once
 * without vectors for its reference update and its description.  All follow
 * the formulas in docs/optimizers.md.
 *
 * An update treats each element alike and uses no fused multiply-add, so that
 * vector body, tail and reference round alike: threads and parameter servers
 * may split a range anywhere without changing a bit.
 *
 * Threads: any, on disjoint ranges. */
#ifndef PL_KERNELS_OPTIM_OPTIM_H
#define PL_KERNELS_OPTIM_OPTIM_H

#include <stdbool.h>
#include <stdint.h>

/* Every optimizer: its enumerator and its command line name. */
#define PL_OPTIM_LIST(X)                                                       \
    X(SGD, sgd)                                                                \
    X(MOMENTUM, momentum)                                                      \
    X(ADAM, adam)                                                              \
    X(ADAGRAD, adagrad)                                                        \
    X(RMSPROP, rmsprop)                                                        \
    X(FTRL, ftrl)

#define PL_OPTIM_ENUM(kind, name) PL_OPTIM_##kind,
typedef enum pl_optim_kind {
    PL_OPTIM_LIST(PL_OPTIM_ENUM) PL_OPTIMS
} pl_optim_kind;
#undef PL_OPTIM_ENUM

/* "sgd|momentum|...", the format of choices in flag tables. */
#define PL_OPTIM_CHOICE(kind, name) "|" #name
#define PL_OPTIM_CHOICES            (&("" PL_OPTIM_LIST(PL_OPTIM_CHOICE))[1])

#define PL_MAX_SLOTS 2

/* Hyperparameters; omitted ones have the default. */
typedef struct pl_optim_opts {
    const char *name;    /* in PL_OPTIM_LIST; default sgd */
    double weight_decay; /* default 0 */
    double momentum;     /* momentum; default 0.9 */
    bool nesterov;       /* momentum: use Nesterov's variant */
    double beta1;        /* adam; default 0.9 */
    double beta2;        /* adam; default 0.999 */
    double rho;          /* rmsprop; default 0.9; below 0 counts as 0 */
    double initial_sum;  /* adagrad; default 0.1; below 0 counts as 0 */
    double epsilon;      /* adam, adagrad, rmsprop; default 1e-8 */
    double beta;         /* ftrl; default 1; below 0 counts as 0 */
    double l1, l2;       /* of sparse tables; default 0 */
    bool outer;          /* also keep the outer momentum of --local-steps */
} pl_optim_opts;

/* Scalar inputs of an update. */
typedef struct pl_update {
    float lr;
    float decay;    /* weight decay: the gradient becomes g + decay * p */
    float momentum; /* momentum, or Adam's beta 1 */
    bool nesterov;
    float beta2; /* Adam's beta 2, or RMSprop's rho */
    float epsilon;
    float correct1; /* Adam: 1 / (1 - beta1^t) */
    float correct2; /* Adam: 1 / (1 - beta2^t) */
    float beta;     /* FTRL */
    float l1, l2;
} pl_update;

/* Apply the gradient g to n parameters p; p and the slots change in place. */
typedef void pl_update_kernel(int64_t n, const pl_update *u, const float *g,
                              float *p, float *const *slots);

/* The description of an optimizer. */
typedef struct pl_optim_ops {
    const char *name;
    int slot_count;
    const char *slots[PL_MAX_SLOTS]; /* their names in a checkpoint */
    double sparse_lr; /* default for sparse models: one that learns in every
                         mode, even from stale gradients */
    /* Optional: initial value of the slots' elements; default 0. */
    double (*initial)(const pl_optim_opts *opts);
    /* Optional: set values that depend on the update number, from 1. */
    void (*begin)(const pl_optim_opts *opts, int64_t update, pl_update *u);
    bool l1; /* reads pl_update.l1; others reject --l1 */
    bool l2; /* reads pl_update.l2; for others L2 is weight decay */
} pl_optim_ops;

#define PL_OPTIM_DECLARE(kind, name)                                           \
    extern const pl_optim_ops pl_optim_##name;                                 \
    pl_update_kernel pl_update_##name##_reference;
PL_OPTIM_LIST(PL_OPTIM_DECLARE)
#undef PL_OPTIM_DECLARE

/* The proximal step of L1 (Duchi and Singer 2009, section 2.1): moves by `by`
 * towards zero, but not beyond. */
static inline float pl_optim_shrink(float param, float by)
{
    if (param > by)
        return param - by;
    return param < -by ? param + by : param * 0.0f; /* NaN stays NaN */
}

#endif

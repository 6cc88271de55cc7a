/* optims.h - the optimizers, one file each. */
#ifndef PL_TRAIN_OPTIM_OPTIMS_H
#define PL_TRAIN_OPTIM_OPTIMS_H

#include "train/optim.h"

extern const pl_optim_ops pl_optim_sgd;
extern const pl_optim_ops pl_optim_momentum;
extern const pl_optim_ops pl_optim_adam;
extern const pl_optim_ops pl_optim_adagrad;
extern const pl_optim_ops pl_optim_rmsprop;
extern const pl_optim_ops pl_optim_ftrl;

/* The proximal step of L1 (Duchi and Singer 2009, section 2.1): `by` nearer
 * to zero, and not beyond. */
static inline float pl_optim_shrink(float param, float by)
{
    if (param > by)
        return param - by;
    return param < -by ? param + by : param * 0.0f; /* NaN stays NaN */
}

#endif

/* optims.h - the optimizers, one file each. */
#ifndef PL_TRAIN_OPTIM_OPTIMS_H
#define PL_TRAIN_OPTIM_OPTIMS_H

#include "train/optim.h"

extern const pl_optim_ops pl_optim_sgd;
extern const pl_optim_ops pl_optim_momentum;
extern const pl_optim_ops pl_optim_adam;
extern const pl_optim_ops pl_optim_adagrad;
extern const pl_optim_ops pl_optim_rmsprop;

#endif

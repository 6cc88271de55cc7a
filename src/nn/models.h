/* models.h - the built-in models, one file each. */
#ifndef PL_NN_MODELS_H
#define PL_NN_MODELS_H

#include "paceline/nn.h"

extern const pl_model pl_model_softmax;
extern const pl_model pl_model_mlp;
extern const pl_model pl_model_lenet;
extern const pl_model pl_model_alexnet;
extern const pl_model pl_model_resnet18;
extern const pl_model pl_model_sparse;

#endif

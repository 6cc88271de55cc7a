/* options_priv.h - what the files that hold the flags of `train` share. */
#ifndef PL_APP_OPTIONS_OPTIONS_PRIV_H
#define PL_APP_OPTIONS_OPTIONS_PRIV_H

#include "app/options/options.h"

#define PL_OPTION_FIELD(f) offsetof(pl_train_options, f)

/* The flags of a job of several processes: options_cluster.c. */
extern const pl_param pl_options_cluster[];
extern const size_t pl_options_cluster_count;

#endif

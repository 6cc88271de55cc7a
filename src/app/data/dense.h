/* dense.h - `data convert` and `data stats` of dense examples.
 *
 * Threads: one. */
#ifndef PL_APP_DATA_DENSE_H
#define PL_APP_DATA_DENSE_H

#include "app/data/pass.h"

pl_status pl_data_convert_dense(const pl_data_convert_opts *opts) PL_MUST_CHECK;
pl_status pl_data_stats_dense(const pl_data_stats_opts *opts) PL_MUST_CHECK;

/* Write some examples of each class as one PNG file: a row a class. */
pl_status pl_data_picture(const pl_dataset *set,
                          const char *path) PL_MUST_CHECK;

#endif

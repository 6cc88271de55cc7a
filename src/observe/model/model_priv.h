/* model_priv.h - the readers of a model's parts. */
#ifndef PL_OBSERVE_MODEL_MODEL_PRIV_H
#define PL_OBSERVE_MODEL_MODEL_PRIV_H

#include "observe/model/model.h"

/* Add the records in events/ and resources/ of the run folder. */
pl_status pl_model_read_tasks(pl_runs_model *model, pl_model_run *run,
                              const char *path) PL_MUST_CHECK;
pl_status pl_model_read_hosts(pl_runs_model *model, pl_model_run *run,
                              const char *path) PL_MUST_CHECK;
/* Add the sum over the hosts, which are the tasks from `first` on, before them;
 * model_hosts.c */
pl_status pl_model_add_hosts(pl_model_run *run, size_t first) PL_MUST_CHECK;

/* <path>/confusion.json; model_tests.c */
pl_status pl_model_read_test(pl_runs_model *model, pl_model_run *run,
                             const char *path) PL_MUST_CHECK;
void pl_model_tests_json(const pl_runs_model *model, pl_buffer *out);
void pl_model_pairs_json(const pl_runs_model *model, pl_buffer *out);

#endif

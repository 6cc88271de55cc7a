#include "cli/train_local.h"

pl_status pl_train_local(const pl_app *app, pl_options *options,
                         const pl_cluster *cluster)
{
    (void)app;
    (void)options;
    return PL_FAIL(PL_UNSUPPORTED,
                   "a job of %d workers and %d parameter servers: not there "
                   "yet",
                   cluster->workers, cluster->ps);
}

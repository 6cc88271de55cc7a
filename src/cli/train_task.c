#include "cli/train_task.h"

pl_status pl_train_task(const pl_app *app, pl_options *options,
                        const pl_cluster *cluster, pl_task task,
                        pl_control *control)
{
    (void)app;
    (void)options;
    (void)cluster;
    (void)control;
    return PL_FAIL(PL_UNSUPPORTED, "%s %d: not there yet",
                   pl_role_text(task.role), task.index);
}

/* part.h - which task of which job this process is.
 *
 * Determined from the flags and TF_CONFIG: --cluster takes precedence over
 * --workers and --ps, and these over TF_CONFIG.
 *
 * Threads: one. */
#ifndef PL_APP_TASK_PART_H
#define PL_APP_TASK_PART_H

#include "app/options/options.h"
#include "job/cluster/cluster.h"

typedef enum pl_part_kind {
    PL_PART_ALONE,      /* the whole job */
    PL_PART_SUPERVISOR, /* start the tasks of `cluster` on this machine */
    PL_PART_TASK,       /* be `task` of `cluster` */
} pl_part_kind;

typedef struct pl_part {
    pl_part_kind kind;
    pl_cluster cluster; /* a supervised task's has no addresses yet */
    pl_task task;       /* of PL_PART_TASK */
    int32_t beside;     /* workers on this host, if a launcher set it; or 0 */
} pl_part;

/* Call before pl_options_resolve.  Fills in the cluster's flags that were left
 * out (workers and ps also from the cluster), --batch from --global-batch, and
 * --threads.  `tf_config` is the text of TF_CONFIG, or NULL.  PL_USAGE for
 * incompatible flags. */
pl_status pl_part_init(pl_part *part, pl_options *options,
                       const char *tf_config) PL_MUST_CHECK;
void pl_part_close(pl_part *part); /* a zeroed one is fine */

#endif

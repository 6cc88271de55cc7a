/* Decides whether a task was started for the training that the job runs. */
#include "job/member/settings.h"

#include <string.h>

pl_status pl_settings_compare(const pl_json *task, const char *where,
                              const pl_json *job, const char *job_where)
{
    const pl_json *value;
    const char *key;
    void *walk = NULL;
    while (pl_json_next(job, &walk, &key, &value)) {
        const char *agreed, *own = "nothing";
        PL_TRY(pl_json_as_text(value, key, &agreed));
        if (pl_json_has(task, key))
            PL_TRY(pl_json_get_text(task, key, &own));
        if (strcmp(own, agreed) != 0)
            return PL_FAIL(PL_USAGE,
                           "the tasks were started with different settings: "
                           "--%s is %s %s and %s %s",
                           key, own, where, agreed, job_where);
    }
    return PL_OK;
}

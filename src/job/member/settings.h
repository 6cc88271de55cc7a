/* settings.h - the settings that all tasks of a job must share.
 *
 * Threads: any. */
#ifndef PL_JOB_MEMBER_SETTINGS_H
#define PL_JOB_MEMBER_SETTINGS_H

#include "base/json/json.h"

/* Compares a task's settings with the job's; both are objects of
 * texts.  PL_USAGE names the first one that differs, with both values and
 * where each was found ("here", "at worker 2"). */
pl_status pl_settings_compare(const pl_json *task, const char *where,
                              const pl_json *job,
                              const char *job_where) PL_MUST_CHECK;

#endif

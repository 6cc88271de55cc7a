/* profile.h - where the time went, operator by operator, from the trace files
 * of a run (observe/record/chrome_trace.h).
 *
 * The time of a span excludes the spans inside it, so the shares of a table add
 * up.
 *
 * Threads: one thread. */
#ifndef PL_OBSERVE_RUNS_PROFILE_H
#define PL_OBSERVE_RUNS_PROFILE_H

#include "base/json/json.h"
#include "observe/runs/table.h"

typedef struct pl_profile pl_profile;

pl_status pl_profile_new(pl_profile **out) PL_MUST_CHECK;
void pl_profile_free(pl_profile *profile); /* NULL is fine */

/* Add the trace of a task.  `what` names the file in messages. */
pl_status pl_profile_add(pl_profile *profile, const pl_json *trace,
                         const char *what) PL_MUST_CHECK;

/* Spans that did not fit in the traces. */
int64_t pl_profile_dropped(const pl_profile *profile);

/* Rows shown together: the tasks of one role. */
typedef struct pl_profile_part {
    const pl_profile *profile;
    const char *role; /* "worker"; NULL in all parts: no such column */
} pl_profile_part;

/* One row per operator, part by part, the longest first in each, with its share
 * of the part's time; the caller frees it. */
pl_status pl_profile_table(const pl_profile_part *parts, size_t count,
                           const char *name, const char *title,
                           pl_table **out) PL_MUST_CHECK;

/* An operator's share of the time in all operators, excluding waiting, reading,
 * tests and checkpoints. */
typedef struct pl_profile_share {
    const char *name; /* owned by the profile */
    double share;
} pl_profile_share;
/* At most `most` of them, the largest first; returns their number. */
size_t pl_profile_longest(const pl_profile *profile, pl_profile_share *out,
                          size_t most);

/* All traces as one, with each event on the clock of the first task, from its
 * start; `traces` in the order of their process numbers. */
pl_status pl_profile_merge(pl_json *const *traces, size_t count,
                           pl_json **out) PL_MUST_CHECK;

#endif

/* findings_priv.h - what the files of the rules share.
 *
 * Threads: any. */
#ifndef PL_OBSERVE_FINDINGS_FINDINGS_PRIV_H
#define PL_OBSERVE_FINDINGS_FINDINGS_PRIV_H

#include "observe/findings/findings.h"
#include "observe/findings/line.h"

/* Of more lines than this, none has a sentence of its own. */
#define PL_FINDING_LINES 4
/* Of accuracy: without repetitions, less is kept. */
#define PL_FINDING_KEPT 0.003

typedef struct pl_finding {
    const pl_records *records;
    pl_line_flags flags; /* that set the runs apart */
    pl_buffer *out;
} pl_finding;

/* How the sentence about a line begins: "mode sync: test accuracy"; of the only
 * line "Test accuracy".  `what` may be "". */
void pl_finding_subject(const pl_finding *f, const pl_line *line,
                        const char *what);

/* The run ended by meeting --stop-loss or --stop-accuracy. */
bool pl_finding_is_met(const pl_record *record);
/* What the batch changes on the way to the target (targets.c). */
pl_status pl_finding_targets(const pl_finding *f) PL_MUST_CHECK;

/* Rules about what grows with a flag (growth.c): examples/s with the batch,
 * memory with batch and workers. */
pl_status pl_finding_saturation(const pl_finding *f) PL_MUST_CHECK;
pl_status pl_finding_memory(const pl_finding *f) PL_MUST_CHECK;

/* Rules about pairs of runs that differ in one flag only (pairs.c): what each
 * value of a flag of words changes, as async against sync, how long workers
 * wait in sync and in async, and what sparse traffic saves. */
void pl_finding_pairs(const pl_finding *f);
void pl_finding_waiting(const pl_finding *f);
void pl_finding_traffic(const pl_finding *f);

/* Rules about workers (workers.c): what more of them change on the way to a
 * target; why averaging loses accuracy where there are more workers; and
 * whether those that do not wait for each other share the steps evenly. */
pl_status pl_finding_way(const pl_finding *f) PL_MUST_CHECK;
pl_status pl_finding_averaging(const pl_finding *f) PL_MUST_CHECK;
void pl_finding_shares(const pl_finding *f);

/* Rules about single runs (runs.c): tasks that were lost, and runs whose
 * times are in doubt: too short, or on cores that others used. */
void pl_finding_faults(const pl_finding *f);
void pl_finding_doubts(const pl_finding *f);

/* How far results are from those that a report published (published.c). */
void pl_finding_published(const pl_finding *f);

#endif

/* findings_priv.h - shared by the files of the rules.
 *
 * Threads: any. */
#ifndef PL_OBSERVE_FINDINGS_FINDINGS_PRIV_H
#define PL_OBSERVE_FINDINGS_FINDINGS_PRIV_H

#include "observe/findings/findings.h"
#include "observe/findings/line.h"

/* With more lines than this, none has its own sentence. */
#define PL_FINDING_LINES 4
/* Smaller differences in accuracy count as none, without repetitions. */
#define PL_FINDING_KEPT 0.003

typedef struct pl_finding {
    const pl_records *records;
    pl_line_flags flags; /* that distinguish the runs */
    pl_buffer *out;
} pl_finding;

/* The beginning of a sentence about a line: "mode sync: test accuracy"; for the
 * only line "Test accuracy".  `what` may be "". */
void pl_finding_subject(const pl_finding *f, const pl_line *line,
                        const char *what);

/* Did the run end by meeting --stop-loss or --stop-accuracy? */
bool pl_finding_is_met(const pl_record *record);
/* How the batch changes the steps and time to the target (targets.c). */
pl_status pl_finding_targets(const pl_finding *f) PL_MUST_CHECK;

/* Rules about what grows with a flag (growth.c): examples/s with the batch,
 * memory with batch and workers. */
pl_status pl_finding_saturation(const pl_finding *f) PL_MUST_CHECK;
pl_status pl_finding_memory(const pl_finding *f) PL_MUST_CHECK;

/* Rules about pairs of runs that differ in one flag only (pairs.c): what each
 * value of a choice flag changes, how long workers wait in sync and in async,
 * and what sparse traffic saves. */
void pl_finding_pairs(const pl_finding *f);
void pl_finding_waiting(const pl_finding *f);
void pl_finding_traffic(const pl_finding *f);

/* Rules about workers (workers.c): how more of them change the steps and time
 * to a target; why averaging loses accuracy with more workers; and whether
 * workers that do not wait for each other share the steps evenly. */
pl_status pl_finding_way(const pl_finding *f) PL_MUST_CHECK;
pl_status pl_finding_averaging(const pl_finding *f) PL_MUST_CHECK;
void pl_finding_shares(const pl_finding *f);

/* Rules about single runs (runs.c): lost tasks, and runs whose times are
 * doubtful: too short, or on cores that others used. */
void pl_finding_faults(const pl_finding *f);
void pl_finding_doubts(const pl_finding *f);

/* How far results are from those in a published report (published.c). */
void pl_finding_published(const pl_finding *f);

#endif

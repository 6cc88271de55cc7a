/* findings_priv.h - what the files of the rules share.
 *
 * Threads: any. */
#ifndef PL_OBSERVE_FINDINGS_FINDINGS_PRIV_H
#define PL_OBSERVE_FINDINGS_FINDINGS_PRIV_H

#include "observe/findings/findings.h"
#include "observe/findings/line.h"

typedef struct pl_finding {
    const pl_records *records;
    pl_line_flags flags; /* that set the runs apart */
    pl_buffer *out;
} pl_finding;

/* Rules about pairs of runs that differ in one flag only (pairs.c): what sync
 * changes against async, and what sparse traffic saves. */
void pl_finding_mode(const pl_finding *f);
void pl_finding_traffic(const pl_finding *f);

#endif

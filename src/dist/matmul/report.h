/* report.h - what each worker tells of its part, and the sum of it.
 *
 * Threads: one. */
#ifndef PL_DIST_MATMUL_REPORT_H
#define PL_DIST_MATMUL_REPORT_H

#include "base/json.h"
#include "dist/matmul/mover.h"

typedef struct pl_matmul_report {
    int32_t index;
    char host[65];
    double seconds; /* from the common begin to the end of its part */
    double waited;  /* of these, for blocks to arrive */
    double flops;
    int64_t fetched; /* bytes of others' blocks */
    int64_t checked; /* entries compared with the exact ones */
    int64_t wrong;   /* of these */
    double trace;    /* of the traces: its share */
} pl_matmul_report;

/* As JSON; the caller frees *out. */
pl_status pl_matmul_report_text(const pl_matmul_report *report,
                                char **out) PL_MUST_CHECK;
/* PL_FORMAT, PL_PEER: not understood. */
pl_status pl_matmul_report_parse(pl_matmul_report *out, const char *text,
                                 size_t bytes) PL_MUST_CHECK;

/* Worker 0: the result of the job, from all reports.  PL_NUMERIC when an
 * entry was wrong. */
pl_status pl_matmul_report_sum(pl_json **out, const pl_matmul_report *own,
                               const pl_mover *mover,
                               const pl_matmul_job *job) PL_MUST_CHECK;

#endif

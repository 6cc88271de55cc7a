/* report.h - the report of each worker, and the result of the job.
 *
 * Threads: one. */
#ifndef PL_MATMUL_REPORT_H
#define PL_MATMUL_REPORT_H

#include "base/json/fields.h"
#include "matmul/mover.h"

typedef struct pl_matmul_report {
    int32_t index;
    char host[65];
    double seconds; /* from the common start to the end of its part */
    double waited;  /* of these, waiting for blocks */
    double flops;
    int64_t fetched; /* bytes of others' blocks */
    int64_t checked; /* entries compared with the exact ones */
    int64_t wrong;   /* of these */
    double trace;    /* its share of the traces */
} pl_matmul_report;

extern const pl_fields pl_matmul_report_fields;

/* The result of a job, which --json prints. */
typedef struct pl_matmul_result {
    pl_matmul_op op;
    int64_t n;
    int32_t blocks, workers;
    double seconds; /* of the slowest worker */
    double gflops;
    int64_t bytes_moved;
    bool verified;
    int64_t checked; /* entries */
    double trace;    /* NAN: it was not computed */
    pl_matmul_report *per_worker;
    size_t worker_count;
} pl_matmul_result;
extern const pl_fields pl_matmul_result_fields;

/* Worker 0: the result of the job, from all reports; the caller closes it
 * (pl_fields_close).  PL_NUMERIC when an entry was wrong. */
pl_status pl_matmul_report_sum(pl_matmul_result *out,
                               const pl_matmul_report *own,
                               const pl_mover *mover,
                               const pl_matmul_job *job) PL_MUST_CHECK;

#endif

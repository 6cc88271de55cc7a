/* ops_case.h - one case of an operator, ready to run without a plan.
 *
 * Every node has memory of its own, so forward and backward run separately and
 * any number of times.
 *
 * Threads: one. */
#ifndef BENCH_OPS_CASE_H
#define BENCH_OPS_CASE_H

#include "graph/graph.h"

/* The total work of one direction. */
typedef struct ops_work {
    int first, last; /* nodes; those without run() are skipped */
    int steps;       /* nodes that run; 0: nothing to measure */
    double flops;    /* 2 per multiply-add; 0: count bytes instead */
    double bytes;    /* read and written */
} ops_work;

typedef struct ops_case {
    pl_graph *graph;
    pl_exec_state state;
    int count; /* of nodes and of the lists below */
    void **data;
    int64_t padded; /* rows of a batch, padded to whole groups of lanes */
    float **workspaces, **scratches;
    pl_view *views;
    pl_op_run *runs;
    ops_work forward, backward;
} ops_case;

typedef struct ops_case_opts {
    const pl_op_case *shapes;
    const pl_kernels *kernels;
    bool uint8; /* input 0 holds bytes, as images do */
} ops_case_opts;

pl_status ops_case_init(ops_case *c, const ops_case_opts *opts) PL_MUST_CHECK;
void ops_case_close(ops_case *c);

/* Whether input 0 may be uint8 everywhere it is read. */
bool ops_case_reads_uint8(const ops_case *c);

void ops_case_run(const ops_case *c, const ops_work *work);

#endif

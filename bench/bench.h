/* bench.h - the parts of paceline-bench and what they share.
 *
 * A part measures one thing and prints one or more tables.  `limits` always
 * runs first when a later part states shares of a limit, so that both come from
 * the same run: a machine's speed drifts within the hour.
 *
 * Threads: one; parts use pools of their own. */
#ifndef BENCH_H
#define BENCH_H

#include "kernels/backend.h"
#include "kernels/peak.h"
#include "measure.h"
#include "table.h"

#include <stdbool.h>

/* Limits of the machine, per set of loops in pl_peak_list(). */
typedef struct limits {
    double gflops_one, gflops_all; /* multiply-adds, 1 and all threads */
    double cache_gbs;              /* saxpy of 192 KiB, 1 thread */
} limits;

#define MAX_PEAKS 4

typedef struct bench {
    double window_s; /* of one measurement; operators take a tenth */
    const char *program;
    const char *commit;
    int threads;                       /* all cores this process may use */
    limits limits[MAX_PEAKS];          /* in the order of pl_peak_list() */
    double read_gbs_one, read_gbs_all; /* memory, best loops */
    double saxpy_gbs_one, saxpy_gbs_all;
    bool has_cpu_limits, has_memory_limits;
    table table;
} bench;

/* Each prints its tables. */
pl_status bench_limits(bench *b) PL_MUST_CHECK;
pl_status bench_ops(bench *b) PL_MUST_CHECK;
pl_status bench_layers(bench *b) PL_MUST_CHECK;
pl_status bench_optim(bench *b) PL_MUST_CHECK;
pl_status bench_record(bench *b) PL_MUST_CHECK;
/* Part of bench_record; `every_ns`: the cost of each step. */
pl_status bench_record_share(bench *b, double every_ns) PL_MUST_CHECK;
pl_status bench_reader(bench *b) PL_MUST_CHECK;
pl_status bench_sparse_files(bench *b) PL_MUST_CHECK; /* of bench_reader */
pl_status bench_net(bench *b) PL_MUST_CHECK;
pl_status bench_allreduce(bench *b) PL_MUST_CHECK;
pl_status bench_train(bench *b) PL_MUST_CHECK;
pl_status bench_sparse(bench *b) PL_MUST_CHECK;
pl_status bench_alexnet(bench *b) PL_MUST_CHECK;

/* Measure the limits that a part needs, once, without printing them. */
pl_status bench_need_cpu_limits(bench *b) PL_MUST_CHECK;
pl_status bench_need_memory_limits(bench *b) PL_MUST_CHECK;

/* The limits of the loops with the vector width of a table's kernels. */
const limits *bench_limits_of(const bench *b, const pl_kernels *kernels);

/* The conditions of the measurement: processor, date, version, load. */
void bench_print_machine(const bench *b);

/* Processor time of the machine so far, and its use by others since. */
typedef struct load_mark {
    double busy_s, own_s, wall_s;
} load_mark;
load_mark bench_load_mark(void);
void bench_print_load(const bench *b, const load_mark *since);

#endif

/* worker.c - one worker of a matrix product: computes its blocks while the
 * mover fetches others, and checks samples of the result exactly. */
#include "matmul/worker.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "kernels/cpu/dnn.h"

#include <string.h>
#include <unistd.h>

#define SAMPLES       64        /* entries of the result to check */
#define TRACE_SAMPLES (1 << 22) /* entries of the pairs to check */

typedef struct worker {
    const pl_matmul_opts *opts;
    const pl_placement *p;
    pl_matmul_plan plan;
    pl_store *store;
    pl_mover *mover;
    char *job;
    float *result;        /* own blocks of C, consecutively */
    float **block;        /* [blocks * blocks]; NULL: not held */
    const float **row;    /* [blocks]: A_ik of the step */
    const float **column; /* [blocks]: B_kj of the step */
    double *trace;        /* [steps] */
    pl_matmul_report report;
} worker;

static double seconds_since(int64_t begin_ns)
{
    return (double)(pl_clock_now_ns(pl_clock_real()) - begin_ns) * 1e-9;
}

/* --- setup ------------------------------------------------------------ */

static void lay_out_result(worker *w)
{
    int32_t blocks = w->p->job.blocks;
    float *at = w->result;
    for (int32_t i = 0; i < blocks; i++)
        for (int32_t j = 0; j < blocks; j++)
            if (pl_placement_owner(w->p, i, j) == w->opts->worker) {
                w->block[i * blocks + j] = at;
                at += pl_placement_floats(w->p, i, j);
            }
}

/* The settings that must be the same at all workers. */
static pl_status describe(worker *w)
{
    const pl_matmul_job *job = &w->p->job;
    return pl_mem_format(&w->job,
                         "paceline %s, --op %s --n %lld --blocks %d "
                         "--workers %d --placement \"%s\" --seed %llu",
                         pl_version(),
                         job->op == PL_MATMUL_TRACE ? "trace" : "product",
                         (long long)job->n, job->blocks, job->workers,
                         w->opts->placed_by, (unsigned long long)job->seed);
}

static pl_status build(worker *w)
{
    size_t blocks = (size_t)w->p->job.blocks;
    PL_TRY(pl_matmul_plan_init(&w->plan, w->p, w->opts->worker));
    PL_TRY(pl_store_new(&w->store, w->p, w->opts->worker));
    PL_TRY(PL_NEW(w->row, blocks));
    PL_TRY(PL_NEW(w->column, blocks));
    PL_TRY(PL_NEW(w->trace, (size_t)w->plan.step_count));
    if (w->plan.result_floats > 0) {
        PL_TRY(PL_NEW(w->block, blocks * blocks));
        PL_TRY(PL_NEW_ALIGNED(w->result, (size_t)w->plan.result_floats));
        lay_out_result(w);
    }
    PL_TRY(describe(w));
    return pl_mover_new(&w->mover, &(pl_mover_opts) {
                                       .placement = w->p,
                                       .plan = &w->plan,
                                       .store = w->store,
                                       .worker = w->opts->worker,
                                       .job = w->job,
                                       .address = w->opts->address,
                                       .secret = w->opts->secret,
                                       .transport = w->opts->transport,
                                       .join_ms = w->opts->join_ms,
                                       .ended = w->opts->ended,
                                       .context = w->opts->context,
                                   });
}

static void tear_down(worker *w)
{
    pl_mover_free(w->mover);
    pl_store_free(w->store);
    pl_matmul_plan_close(&w->plan);
    pl_mem_free(w->job);
    pl_mem_free(w->result);
    pl_mem_free(w->block);
    pl_mem_free(w->row);
    pl_mem_free(w->column);
    pl_mem_free(w->trace);
}

/* --- the steps -------------------------------------------------------- */

/* A block of the step: an own or a fetched one. */
static const float *find_block(const worker *w, const pl_matmul_step *step,
                               const float *wants, pl_want id)
{
    const float *own = pl_store_block(w->store, id.matrix, id.i, id.j);
    for (int32_t k = step->want; own == NULL && k < step->last; k++) {
        const pl_want *want = &w->plan.wants[k];
        if (want->matrix == id.matrix && want->i == id.i && want->j == id.j)
            own = wants + want->at;
    }
    return own;
}

static int64_t length(const worker *w, int32_t block)
{
    return pl_matmul_first(&w->p->job, block + 1) -
           pl_matmul_first(&w->p->job, block);
}

static int threads_of(const worker *w)
{
    return w->opts->threads > 0 ? w->opts->threads : 1;
}

/* C_ij = A_ik B_kj, or added to it. */
static pl_status multiply_blocks(const worker *w, int32_t i, int32_t j,
                                 int32_t k, bool add)
{
    pl_dnn_product product = {
        .n = length(w, i),
        .m = length(w, j),
        .k = length(w, k),
        .add = add,
        .threads = threads_of(w),
    };
    if (!pl_dnn_gemm(&product, w->row[i], w->column[j],
                     w->block[i * w->p->job.blocks + j]))
        return PL_FAIL(PL_NOMEM, "no memory for a product of blocks");
    return PL_OK;
}

/* Add A_ik B_kj to all own C_ij. */
static pl_status multiply(worker *w, const pl_matmul_step *step,
                          const float *wants, bool first)
{
    int32_t blocks = w->p->job.blocks, k = step->i;
    for (int32_t line = 0; line < blocks; line++) {
        w->row[line] = find_block(w, step, wants,
                                  (pl_want) { PL_MATRIX_A, line, k, 0, 0, 0 });
        w->column[line] = find_block(
            w, step, wants, (pl_want) { PL_MATRIX_B, k, line, 0, 0, 0 });
    }
    for (int32_t i = 0; i < blocks; i++)
        for (int32_t j = 0; j < blocks; j++)
            if (w->block[i * blocks + j] != NULL)
                PL_TRY(multiply_blocks(w, i, j, k, !first));
    return PL_OK;
}

/* The first products of a process generate their kernels: do that before the
 * time is measured. */
static pl_status warm_up(const worker *w)
{
    enum {
        SIZE = 64
    };
    float zeros[SIZE * SIZE] = { 0 }, dst[SIZE * SIZE];
    pl_dnn_product product = { SIZE,  SIZE,  SIZE,         false,
                               false, false, threads_of(w) };
    for (int again = 0; again < 2; again++, product.add = true)
        if (!pl_dnn_gemm(&product, zeros, zeros, dst))
            return PL_FAIL(PL_NOMEM, "no memory for a small product");
    return PL_OK;
}

/* Only the diagonal of A_ij A_ji: entry (r, c) of one is multiplied by (c, r)
 * of the other.  Partial sums of a row are exact in a float. */
static double trace_of(const worker *w, const pl_matmul_step *step,
                       const float *wants)
{
    int64_t rows = length(w, step->i), columns = length(w, step->j);
    const float *a = find_block(
        w, step, wants, (pl_want) { PL_MATRIX_A, step->i, step->j, 0, 0, 0 });
    const float *b = find_block(
        w, step, wants, (pl_want) { PL_MATRIX_A, step->j, step->i, 0, 0, 0 });
    double sum = 0;
    for (int64_t r = 0; r < rows; r++) {
        float line = 0;
        for (int64_t c = 0; c < columns; c++)
            line += a[r * columns + c] * b[c * rows + r];
        sum += (double)line;
    }
    return sum;
}

static pl_status compute(worker *w)
{
    bool product = w->p->job.op == PL_MATMUL_PRODUCT;
    for (int32_t s = 0; s < w->plan.step_count; s++) {
        const pl_matmul_step *step = &w->plan.steps[s];
        const float *wants;
        int64_t begin_ns = pl_clock_now_ns(pl_clock_real());
        PL_TRY(pl_mover_await(w->mover, s, &wants));
        w->report.waited += seconds_since(begin_ns);
        if (product)
            PL_TRY(multiply(w, step, wants, s == 0));
        else
            w->trace[s] = trace_of(w, step, wants);
        pl_mover_release(w->mover, s);
    }
    return PL_OK;
}

/* --- checking --------------------------------------------------------- */

/* Check a few entries of own blocks, each computed again from the seed. */
static void check_product(worker *w)
{
    const pl_matmul_job *job = &w->p->job;
    uint64_t key = pl_rng_key(pl_rng_key_text(job->seed, "matmul sample"),
                              (uint64_t)w->opts->worker);
    for (uint32_t tried = 0;
         w->plan.result_floats > 0 && w->report.checked < SAMPLES; tried++) {
        int32_t i =
            (int32_t)pl_rng_below(key, 4 * tried, (uint32_t)job->blocks);
        int32_t j =
            (int32_t)pl_rng_below(key, 4 * tried + 1, (uint32_t)job->blocks);
        const float *block = w->block[i * job->blocks + j];
        if (block == NULL)
            continue;
        int64_t r = pl_rng_below(key, 4 * tried + 2, (uint32_t)length(w, i));
        int64_t c = pl_rng_below(key, 4 * tried + 3, (uint32_t)length(w, j));
        double exact = pl_entries_product(job, pl_matmul_first(job, i) + r,
                                          pl_matmul_first(job, j) + c);
        w->report.checked++;
        w->report.wrong += (double)block[r * length(w, j) + c] != exact;
    }
}

/* Check some of the pairs, spread evenly over all steps. */
static void check_traces(worker *w)
{
    int64_t entries = 0;
    int32_t every = 1;
    while ((double)every * TRACE_SAMPLES < w->plan.flops / 2)
        every++;
    for (int32_t s = 0; s < w->plan.step_count; s++) {
        const pl_matmul_step *step = &w->plan.steps[s];
        double times = step->i == step->j ? 1 : 2; /* tr XY = tr YX */
        w->report.trace += times * w->trace[s];
        if (s % every != 0)
            continue;
        entries += length(w, step->i) * length(w, step->j);
        w->report.wrong +=
            w->trace[s] != pl_entries_trace(&w->p->job, step->i, step->j);
    }
    w->report.checked = entries;
}

/* --- the run ---------------------------------------------------------- */

static pl_status meet(worker *w)
{
    char *const *addresses = w->opts->addresses;
    if (addresses == NULL)
        PL_TRY(w->opts->meet(w->opts->context, pl_mover_address(w->mover),
                             &addresses));
    return pl_mover_start(w->mover, addresses);
}

static void fill_report(worker *w)
{
    pl_mover_counts counts = pl_mover_count(w->mover);
    pl_matmul_report *report = &w->report;
    report->index = w->opts->worker;
    report->flops = w->plan.flops;
    report->fetched = counts.fetched_bytes;
    if (gethostname(report->host, sizeof report->host - 1) != 0)
        report->host[0] = '\0';
}

static pl_status run(worker *w, pl_matmul_result *out)
{
    PL_TRY(build(w));
    PL_TRY(meet(w));
    pl_store_fill(w->store);
    if (w->p->job.op == PL_MATMUL_PRODUCT)
        PL_TRY(warm_up(w));
    PL_TRY(pl_mover_ready(w->mover));
    int64_t begin_ns = pl_clock_now_ns(pl_clock_real());
    PL_TRY(compute(w));
    w->report.seconds = seconds_since(begin_ns);
    if (w->p->job.op == PL_MATMUL_PRODUCT)
        check_product(w);
    else
        check_traces(w);
    fill_report(w);
    char *text;
    PL_TRY(pl_fields_text(&pl_matmul_report_fields, &w->report, 0, &text));
    pl_status status = pl_mover_finish(w->mover, text);
    pl_mem_free(text);
    PL_TRY(status);
    return w->opts->worker == 0
               ? pl_matmul_report_sum(out, &w->report, w->mover, &w->p->job)
               : PL_OK;
}

pl_status pl_matmul_work(pl_matmul_result *out, const pl_matmul_opts *opts)
{
    worker w = { .opts = opts, .p = opts->placement };
    *out = (pl_matmul_result) { 0 };
    pl_status status = run(&w, out);
    tear_down(&w);
    return status;
}

/* The workers' reports and their total for the job: its time is that of the
 * slowest worker, and one wrong entry makes the whole result wrong. */
#include "matmul/report.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

/* Sums over all workers do not overflow. */
#define COUNT_MAX (INT64_MAX / PL_MATMUL_WORKERS_MAX)

static const pl_field report_rows[] = {
    { "index", PL_FIELD_INT(pl_matmul_report, index),
      .most = PL_MATMUL_WORKERS_MAX - 1 },
    { "host", PL_FIELD_CHARS(pl_matmul_report, host) },
    { "seconds", PL_FIELD_REAL(pl_matmul_report, seconds) },
    { "waited", PL_FIELD_REAL(pl_matmul_report, waited) },
    { "flops", PL_FIELD_REAL(pl_matmul_report, flops) },
    { "bytes_moved", PL_FIELD_INT(pl_matmul_report, fetched),
      .most = COUNT_MAX },
    { "checked", PL_FIELD_INT(pl_matmul_report, checked), .most = COUNT_MAX },
    { "wrong", PL_FIELD_INT(pl_matmul_report, wrong), .most = COUNT_MAX },
    { "trace", PL_FIELD_REAL(pl_matmul_report, trace) },
};
const pl_fields pl_matmul_report_fields =
    PL_FIELDS(pl_matmul_report, report_rows);

static const char *const ops[] = {
    [PL_MATMUL_TRACE] = "trace", [PL_MATMUL_PRODUCT] = "product", NULL
};

static const pl_field result_rows[] = {
    { "op", PL_FIELD_CHOICE(pl_matmul_result, op, ops) },
    { "n", PL_FIELD_INT(pl_matmul_result, n) },
    { "blocks", PL_FIELD_INT(pl_matmul_result, blocks) },
    { "workers", PL_FIELD_INT(pl_matmul_result, workers) },
    { "seconds", PL_FIELD_REAL(pl_matmul_result, seconds) },
    { "gflops", PL_FIELD_REAL(pl_matmul_result, gflops), .or_null = true },
    { "bytes_moved", PL_FIELD_INT(pl_matmul_result, bytes_moved) },
    { "verified", PL_FIELD_BOOL(pl_matmul_result, verified) },
    { "checked", PL_FIELD_INT(pl_matmul_result, checked) },
    { "trace", PL_FIELD_REAL(pl_matmul_result, trace), .when = PL_WHEN_SET,
      .or_null = true },
    { "per_worker",
      PL_FIELD_LIST(pl_matmul_result, per_worker, worker_count,
                    &pl_matmul_report_fields),
      .most = PL_MATMUL_WORKERS_MAX },
};
const pl_fields pl_matmul_result_fields =
    PL_FIELDS(pl_matmul_result, result_rows);

/* The report that worker `worker` sent. */
static pl_status take_report(const pl_mover *mover, int32_t worker,
                             pl_matmul_report *out)
{
    const char *text = pl_mover_report(mover, worker);
    pl_status status = pl_fields_parse(&pl_matmul_report_fields, text,
                                       strlen(text), "report", out);
    if (status == PL_OK && out->index != worker)
        status =
            PL_FAIL(PL_PEER, "its report is that of worker %d", out->index);
    return status == PL_OK ? PL_OK : pl_context(PL_PEER, "worker %d", worker);
}

/* PL_NUMERIC when an entry of a report is wrong. */
static pl_status check(const pl_matmul_result *result)
{
    int64_t wrong = 0;
    int32_t first = 0;
    for (size_t i = 0; i < result->worker_count; i++) {
        const pl_matmul_report *r = &result->per_worker[i];
        if (wrong == 0)
            first = r->index;
        wrong += r->wrong;
    }
    if (wrong == 0)
        return PL_OK;
    return PL_FAIL(PL_NUMERIC,
                   "%lld of %lld sampled entries are wrong, the first of them "
                   "from worker %d: its memory, processor or network corrupts "
                   "data",
                   (long long)wrong, (long long)result->checked, first);
}

static void add_up(pl_matmul_result *result)
{
    double flops = 0, trace = 0;
    for (size_t i = 0; i < result->worker_count; i++) {
        const pl_matmul_report *r = &result->per_worker[i];
        if (r->seconds > result->seconds)
            result->seconds = r->seconds;
        flops += r->flops;
        trace += r->trace;
        result->bytes_moved += r->fetched;
        result->checked += r->checked;
    }
    result->gflops =
        result->seconds > 0 ? flops / result->seconds * 1e-9 : (double)NAN;
    result->trace = result->op == PL_MATMUL_TRACE ? trace : (double)NAN;
}

pl_status pl_matmul_report_sum(pl_matmul_result *out,
                               const pl_matmul_report *own,
                               const pl_mover *mover, const pl_matmul_job *job)
{
    pl_matmul_result result = {
        .op = job->op,
        .n = job->n,
        .blocks = job->blocks,
        .workers = job->workers,
        .verified = true,
    };
    pl_status status = PL_NEW(result.per_worker, (size_t)job->workers);
    for (int32_t w = 0; status == PL_OK && w < job->workers; w++) {
        pl_matmul_report *row = &result.per_worker[result.worker_count++];
        *row = *own;
        if (w > 0)
            status = take_report(mover, w, row);
    }
    if (status == PL_OK) {
        add_up(&result);
        status = check(&result);
    }
    if (status == PL_OK)
        *out = result;
    else
        pl_fields_close(&pl_matmul_result_fields, &result);
    return status;
}

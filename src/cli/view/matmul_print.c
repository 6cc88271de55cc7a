/* matmul_print.c - the summary of a matrix product: time, traffic and rate of
 * each worker, compared with other placements and a product on one machine. */
#include "app/matmul/matmul.h"
#include "app/train/memory.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/text/quote.h"
#include "base/thread.h"
#include "kernels/cpu/dnn.h"
#include "matmul/entries.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- one process ------------------------------------------------------ */

typedef struct matrices {
    float *a, *b, *c;
} matrices;

static pl_status make_matrices(matrices *m, const pl_matmul_job *job)
{
    size_t count = (size_t)job->n * (size_t)job->n;
    pl_matmul_job whole = *job;
    whole.blocks = 1;
    PL_TRY(PL_NEW_ALIGNED(m->a, count));
    PL_TRY(PL_NEW_ALIGNED(m->b, count));
    PL_TRY(PL_NEW_ALIGNED(m->c, count));
    pl_entries_block(&whole, PL_MATRIX_A, 0, 0, m->a);
    pl_entries_block(&whole, PL_MATRIX_B, 0, 0, m->b);
    memset(m->c, 0, count * sizeof *m->c); /* touched, as on workers */
    return PL_OK;
}

static pl_status time_product(const matrices *m, const pl_matmul_job *job,
                              double *gflops)
{
    double n = (double)job->n;
    pl_dnn_product product = { .n = job->n,
                               .m = job->n,
                               .k = job->n,
                               .add = true,
                               .threads = pl_thread_cores() };
    int64_t begin_ns = pl_clock_now_ns(pl_clock_real());
    if (!pl_dnn_gemm(&product, m->a, m->b, m->c))
        return PL_FAIL(PL_NOMEM, "no memory for the product in one process");
    int64_t took_ns = pl_clock_now_ns(pl_clock_real()) - begin_ns;
    *gflops = 2 * n * n * n / (double)(took_ns > 0 ? took_ns : 1);
    return PL_OK;
}

/* The speed of the product in this process. */
static pl_status measure_single(const pl_matmul_command *command,
                                double *gflops)
{
    matrices m = { 0 };
    pl_status status = make_matrices(&m, &command->job);
    if (status == PL_OK)
        status = time_product(&m, &command->job, gflops);
    pl_mem_free(m.a);
    pl_mem_free(m.b);
    pl_mem_free(m.c);
    return status;
}

/* --- what is printed -------------------------------------------------- */

/* Bytes that a worker would move. */
typedef struct moved {
    int64_t bytes;
} moved;

static const pl_field moved_rows[] = {
    { NULL, PL_FIELD_INT(moved, bytes) },
};
static const pl_fields moved_fields = PL_FIELDS(moved, moved_rows);

typedef struct printed {
    pl_matmul_result result;
    double single_gflops, ratio; /* NAN: not measured */
    moved *others;
    size_t other_count;
    const char *placement, *other_placement;
    int64_t other_bytes_moved;
} printed;

static const pl_field printed_rows[] = {
    { NULL, PL_FIELD_INLINE(printed, result, &pl_matmul_result_fields) },
    { "single_gflops", PL_FIELD_REAL(printed, single_gflops),
      .when = PL_WHEN_SET, .or_null = true },
    { "ratio", PL_FIELD_REAL(printed, ratio), .when = PL_WHEN_SET,
      .or_null = true },
    { "other_per_worker",
      PL_FIELD_LIST(printed, others, other_count, &moved_fields),
      .most = PL_MATMUL_WORKERS_MAX },
    { "placement", PL_FIELD_TEXT(printed, placement) },
    { "other_placement", PL_FIELD_TEXT(printed, other_placement) },
    { "other_bytes_moved", PL_FIELD_INT(printed, other_bytes_moved) },
};
static const pl_fields printed_fields = PL_FIELDS(printed, printed_rows);

static bool is_best(const pl_matmul_command *command)
{
    return strcmp(command->flags.placement, "best") == 0;
}

/* The bytes that the other placement would move, for each worker and in
 * total. */
static pl_status add_other(const pl_matmul_command *command, printed *p)
{
    pl_placement other;
    p->placement = command->flags.placement;
    p->other_placement = is_best(command) ? PL_MATMUL_USUAL : "best";
    if (is_best(command))
        PL_TRY(pl_placement_parse(&other, &command->job, PL_MATMUL_USUAL));
    else
        PL_TRY(pl_placement_best(&other, &command->job));
    pl_status status = PL_NEW(p->others, (size_t)command->job.workers);
    for (int32_t w = 0; status == PL_OK && w < command->job.workers; w++) {
        int64_t bytes = (int64_t)sizeof(float) * pl_placement_moved(&other, w);
        p->others[p->other_count++].bytes = bytes;
        p->other_bytes_moved += bytes;
    }
    pl_placement_close(&other);
    return status;
}

static pl_status add_single(const pl_matmul_command *command, printed *p)
{
    p->single_gflops = p->ratio = NAN;
    if (!command->flags.compare)
        return PL_OK;
    PL_TRY(measure_single(command, &p->single_gflops));
    p->ratio = p->result.gflops / p->single_gflops;
    return PL_OK;
}

static void print_worker(const printed *p, size_t index)
{
    const pl_matmul_report *one = &p->result.per_worker[index];
    char name[80], moved_text[PL_BYTES_TEXT], else_moved[PL_BYTES_TEXT];
    printf("%6zu  %-16.16s %9.3f %9.3f %10.1f %10s %12s\n", index,
           pl_quote_line(name, sizeof name, one->host), one->seconds,
           one->waited, one->seconds > 0 ? one->flops / one->seconds * 1e-9 : 0,
           pl_memory_text(one->fetched, moved_text),
           pl_memory_text(p->others[index].bytes, else_moved));
}

static void print_table(const printed *p)
{
    const pl_matmul_result *r = &p->result;
    char moved_text[PL_BYTES_TEXT], else_moved[PL_BYTES_TEXT];
    printf("%6s  %-16s %9s %9s %10s %10s %12s\n", "worker", "host", "seconds",
           "waited", "GFLOP/s", "moved", "elsewhere");
    for (size_t w = 0; w < r->worker_count; w++)
        print_worker(p, w);
    printf("%6s  %-16s %9.3f %9s %10.1f %10s %12s\n\n", "all", "", r->seconds,
           "", r->gflops, pl_memory_text(r->bytes_moved, moved_text),
           pl_memory_text(p->other_bytes_moved, else_moved));
    if (r->op == PL_MATMUL_TRACE)
        printf("sum of the traces of A_ij A_ji: %.6f\n", r->trace);
    printf("placement %s moved %s; %s would have moved %s\n"
           "%lld sampled entries compared with the exact ones: all right\n",
           p->placement, moved_text, p->other_placement, else_moved,
           (long long)r->checked);
    if (!isnan(p->ratio))
        printf("one process on %d cores: %.1f GFLOP/s; the workers reach %.0f "
               "%% of it\n",
               pl_thread_cores(), p->single_gflops, 100 * p->ratio);
}

static pl_status print_json(const printed *p)
{
    char *text;
    PL_TRY(pl_fields_text(&printed_fields, p, 0, &text));
    printf("%s\n", text);
    pl_mem_free(text);
    return PL_OK;
}

pl_status pl_matmul_print(const pl_matmul_command *command,
                          const pl_matmul_result *result)
{
    printed p = { .result = *result };
    pl_status status = add_single(command, &p);
    if (status == PL_OK)
        status = add_other(command, &p);
    if (status == PL_OK && command->flags.json)
        status = print_json(&p);
    else if (status == PL_OK)
        print_table(&p);
    pl_mem_free(p.others);
    return status;
}

#include "base/clock.h"
#include "base/mem.h"
#include "base/quote.h"
#include "base/thread.h"
#include "cli/matmul.h"
#include "cli/memory.h"
#include "dist/matmul/entries.h"
#include "kernels/cpu/dnn.h"

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
    memset(m->c, 0, count * sizeof *m->c); /* as the workers' memory, there */
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

pl_status pl_matmul_compare(const pl_matmul_command *command, pl_json *result)
{
    matrices m = { 0 };
    double single = 1, spread;
    pl_status status = make_matrices(&m, &command->job);
    if (status == PL_OK)
        status = time_product(&m, &command->job, &single);
    pl_mem_free(m.a);
    pl_mem_free(m.b);
    pl_mem_free(m.c);
    PL_TRY(status);
    PL_TRY(pl_json_get_real(result, "gflops", &spread));
    PL_TRY(pl_json_set_real(result, "single_gflops", single));
    return pl_json_set_real(result, "ratio", spread / single);
}

/* --- the table -------------------------------------------------------- */

static bool is_best(const pl_matmul_command *command)
{
    return strcmp(command->flags.placement, "best") == 0;
}

static const char *other_name(const pl_matmul_command *command)
{
    return is_best(command) ? PL_MATMUL_USUAL : "best";
}

/* What the other placement would have moved, for each worker and in all. */
static pl_status add_other(const pl_matmul_command *command, pl_json *result)
{
    pl_placement other;
    pl_json *each;
    int64_t sum = 0;
    if (is_best(command))
        PL_TRY(pl_placement_parse(&other, &command->job, PL_MATMUL_USUAL));
    else
        PL_TRY(pl_placement_best(&other, &command->job));
    pl_status status = pl_json_new_array(&each);
    for (int32_t w = 0; status == PL_OK && w < command->job.workers; w++) {
        int64_t bytes = (int64_t)sizeof(float) * pl_placement_moved(&other, w);
        sum += bytes;
        status = pl_json_append_int(each, bytes);
        if (status != PL_OK)
            pl_json_free(each);
    }
    pl_placement_close(&other);
    PL_TRY(status);
    PL_TRY(pl_json_set_take(result, "other_per_worker", each));
    PL_TRY(pl_json_set_text(result, "placement", command->flags.placement));
    PL_TRY(pl_json_set_text(result, "other_placement", other_name(command)));
    return pl_json_set_int(result, "other_bytes_moved", sum);
}

static pl_status print_worker(const pl_json *result, size_t index)
{
    const pl_json *each, *others;
    const char *host;
    int64_t bytes, other;
    double seconds, waited, flops;
    char name[64], moved[PL_BYTES_TEXT], else_moved[PL_BYTES_TEXT];
    PL_TRY(pl_json_get_array(result, "per_worker", &each));
    PL_TRY(pl_json_get_array(result, "other_per_worker", &others));
    const pl_json *one = pl_json_at(each, index);
    PL_TRY(pl_json_get_text(one, "host", &host));
    PL_TRY(pl_json_get_int(one, "bytes_moved", 0, INT64_MAX, &bytes));
    PL_TRY(pl_json_int_at(others, index, 0, INT64_MAX, &other));
    PL_TRY(pl_json_get_real(one, "seconds", &seconds));
    PL_TRY(pl_json_get_real(one, "waited", &waited));
    PL_TRY(pl_json_get_real(one, "flops", &flops));
    printf("%6zu  %-16.16s %9.3f %9.3f %10.1f %10s %12s\n", index,
           pl_quote_line(name, sizeof name, host), seconds, waited,
           seconds > 0 ? flops / seconds * 1e-9 : 0,
           pl_memory_text(bytes, moved), pl_memory_text(other, else_moved));
    return PL_OK;
}

static pl_status print_table(const pl_matmul_command *command,
                             const pl_json *result)
{
    const pl_matmul_job *job = &command->job;
    int64_t bytes, other, checked;
    double seconds, gflops, trace, ratio, single;
    char moved[PL_BYTES_TEXT], else_moved[PL_BYTES_TEXT];
    PL_TRY(pl_json_get_real(result, "seconds", &seconds));
    PL_TRY(pl_json_get_real(result, "gflops", &gflops));
    PL_TRY(pl_json_get_int(result, "bytes_moved", 0, INT64_MAX, &bytes));
    PL_TRY(pl_json_get_int(result, "other_bytes_moved", 0, INT64_MAX, &other));
    PL_TRY(pl_json_get_int(result, "checked", 0, INT64_MAX, &checked));
    printf("%6s  %-16s %9s %9s %10s %10s %12s\n", "worker", "host", "seconds",
           "waited", "GFLOP/s", "moved", "elsewhere");
    for (int32_t w = 0; w < job->workers; w++)
        PL_TRY(print_worker(result, (size_t)w));
    printf("%6s  %-16s %9.3f %9s %10.1f %10s %12s\n\n", "all", "", seconds, "",
           gflops, pl_memory_text(bytes, moved),
           pl_memory_text(other, else_moved));
    if (job->op == PL_MATMUL_TRACE) {
        PL_TRY(pl_json_get_real(result, "trace", &trace));
        printf("sum of the traces of A_ij A_ji: %.6f\n", trace);
    }
    printf("placement %s moved %s; %s would have moved %s\n"
           "%lld sampled entries compared with the exact ones: all right\n",
           command->flags.placement, moved, other_name(command), else_moved,
           (long long)checked);
    if (!pl_json_has(result, "ratio"))
        return PL_OK;
    PL_TRY(pl_json_get_real(result, "ratio", &ratio));
    PL_TRY(pl_json_get_real(result, "single_gflops", &single));
    printf("one process on %d cores: %.1f GFLOP/s; the workers reach %.0f %% "
           "of it\n",
           pl_thread_cores(), single, 100 * ratio);
    return PL_OK;
}

pl_status pl_matmul_print(const pl_matmul_command *command, pl_json *result)
{
    PL_TRY(add_other(command, result));
    if (!command->flags.json)
        return print_table(command, result);
    char *text;
    PL_TRY(pl_json_text(result, 0, &text));
    printf("%s\n", text);
    pl_mem_free(text);
    return PL_OK;
}

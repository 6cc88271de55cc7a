#include "matmul/entries.h"
#include "matmul/report.h"
#include "matmul/worker.h"
#include "net/transport.h"
#include "support/unit.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

#include <stdatomic.h>
#include <string.h>

#define WORKERS  3
#define LIMIT_MS 60000

/* A job of several workers in this process. */
typedef struct job {
    pl_placement placement;
    const char *placed_by[WORKERS];
    pl_secret secret;
    bool tcp;
    atomic_bool end;
    pl_mutex lock;
    pl_cond met;
    int there;
    char *addresses[WORKERS];
    pl_matmul_result result; /* of worker 0 */
} job;

typedef struct member {
    job *job;
    int32_t worker;
} member;

static pl_status meet(void *context, const char *address,
                      char *const **addresses)
{
    member *m = context;
    job *j = m->job;
    pl_deadline deadline = pl_deadline_in_ms(pl_clock_real(), LIMIT_MS);
    pl_status status = PL_OK;
    pl_mutex_lock(&j->lock);
    status = pl_mem_copy_text(&j->addresses[m->worker], address);
    j->there++;
    pl_cond_broadcast(&j->met);
    while (status == PL_OK && j->there < j->placement.job.workers)
        status = pl_cond_wait_until(&j->met, &j->lock, deadline);
    pl_mutex_unlock(&j->lock);
    *addresses = j->addresses;
    return status;
}

static bool is_ended(void *context)
{
    member *m = context;
    return atomic_load(&m->job->end);
}

static pl_status work(void *arg)
{
    member *m = arg;
    pl_matmul_result result;
    pl_status status = pl_matmul_work(
        &result, &(pl_matmul_opts) {
                     .placement = &m->job->placement,
                     .placed_by = m->job->placed_by[m->worker],
                     .worker = m->worker,
                     .address = "127.0.0.1:0",
                     .secret = &m->job->secret,
                     .transport = m->job->tcp ? &pl_transport_tcp : NULL,
                     .join_ms = LIMIT_MS,
                     .meet = meet,
                     .ended = is_ended,
                     .context = m,
                 });
    if (result.worker_count > 0)
        m->job->result = result;
    return status;
}

static void open_job(job *j, pl_matmul_op op, const char *formula)
{
    pl_matmul_job what = { op, 130, 7, WORKERS, 42 };
    *j = (job) { 0 };
    assert_ok(pl_secret_make(&j->secret));
    assert_ok(pl_placement_parse(&j->placement, &what, formula));
    for (int w = 0; w < WORKERS; w++)
        j->placed_by[w] = formula;
    pl_mutex_init(&j->lock);
    pl_cond_init(&j->met);
}

static void close_job(job *j)
{
    pl_fields_close(&pl_matmul_result_fields, &j->result);
    pl_placement_close(&j->placement);
    for (int w = 0; w < WORKERS; w++)
        pl_mem_free(j->addresses[w]);
    pl_cond_close(&j->met);
    pl_mutex_close(&j->lock);
    assert_int_equal(0, pl_mem_live());
}

/* All workers on threads; the statuses of each. */
static void run_job(job *j, pl_status status[WORKERS])
{
    member members[WORKERS];
    pl_thread *threads[WORKERS];
    for (int32_t w = 0; w < WORKERS; w++) {
        members[w] = (member) { j, w };
        assert_ok(pl_thread_start(&threads[w], "worker", work, &members[w]));
    }
    for (int32_t w = 0; w < WORKERS; w++)
        status[w] = pl_thread_join(threads[w]);
}

static void run_well(job *j)
{
    pl_status status[WORKERS];
    run_job(j, status);
    for (int w = 0; w < WORKERS; w++)
        assert_int_equal(PL_OK, status[w]);
    assert_int_equal(WORKERS, j->result.worker_count);
}

static void assert_moved_as_counted(const job *j)
{
    for (int32_t w = 0; w < WORKERS; w++)
        assert_int_equal(4 * pl_placement_moved(&j->placement, w),
                         j->result.per_worker[w].fetched);
}

static void matmul_product_is_right_however_it_is_placed(void **state)
{
    (void)state;
    static const char *const formulas[] = { "(i+j)%W", "i*W/B", "1",
                                            "(i*B+j)%W" };
    for (size_t f = 0; f < sizeof formulas / sizeof *formulas; f++)
        for (int tcp = 0; tcp < 2; tcp++) {
            job j;
            open_job(&j, PL_MATMUL_PRODUCT, formulas[f]);
            j.tcp = tcp != 0;
            run_well(&j);
            assert_in_range(j.result.checked, 64, 1000);
            assert_true(j.result.verified);
            assert_moved_as_counted(&j);
            close_job(&j);
        }
}

/* The trace of the whole of A A, from the entries one by one. */
static double whole_trace(const pl_matmul_job *what)
{
    pl_matmul_job whole = *what;
    whole.blocks = 1;
    return pl_entries_trace(&whole, 0, 0);
}

static void matmul_traces_add_up_to_the_trace_of_the_square(void **state)
{
    (void)state;
    static const char *const formulas[] = { "(i+j)%W", "(i*B+j)%W" };
    for (size_t f = 0; f < 2; f++) {
        job j;
        open_job(&j, PL_MATMUL_TRACE, formulas[f]);
        run_well(&j);
        assert_true(j.result.trace == whole_trace(&j.placement.job));
        assert_moved_as_counted(&j);
        close_job(&j);
    }
}

static void matmul_workers_of_different_jobs_do_not_mix(void **state)
{
    (void)state;
    job j;
    pl_status status[WORKERS];
    open_job(&j, PL_MATMUL_PRODUCT, "(i+j)%W");
    j.placed_by[1] = "another";
    run_job(&j, status);
    assert_int_equal(0, j.result.worker_count);
    for (int w = 0; w < WORKERS; w++)
        assert_true(status[w] != PL_OK);
    close_job(&j);
}

static void matmul_ends_when_interrupted(void **state)
{
    (void)state;
    job j;
    pl_status status[WORKERS];
    open_job(&j, PL_MATMUL_PRODUCT, "(i+j)%W");
    atomic_store(&j.end, true);
    run_job(&j, status);
    for (int w = 0; w < WORKERS; w++)
        assert_true(status[w] == PL_INTERRUPTED || status[w] == PL_CLOSED);
    close_job(&j);
}

/* Blocks are cut from the same entries, wherever they are made. */
static void entries_do_not_depend_on_the_blocks(void **state)
{
    (void)state;
    pl_matmul_job whole = { PL_MATMUL_PRODUCT, 37, 1, 1, 9 }, cut = whole;
    static float all[37 * 37], block[37 * 37];
    cut.blocks = 5;
    pl_entries_block(&whole, PL_MATRIX_B, 0, 0, all);
    for (int32_t i = 0; i < 5; i++)
        for (int32_t j = 0; j < 5; j++) {
            int64_t r0 = pl_matmul_first(&cut, i),
                    c0 = pl_matmul_first(&cut, j);
            int64_t r1 = pl_matmul_first(&cut, i + 1);
            int64_t c1 = pl_matmul_first(&cut, j + 1);
            const float *at = block;
            pl_entries_block(&cut, PL_MATRIX_B, i, j, block);
            for (int64_t r = r0; r < r1; r++)
                for (int64_t c = c0; c < c1; c++)
                    assert_true(*at++ == all[r * 37 + c]);
        }
}

static void report_is_read_back(void **state)
{
    (void)state;
    pl_matmul_report report = { 3, "host", 1.5, 0.25, 1e9, 77, 64, 1, -2.5 },
                     back;
    char *text;
    assert_ok(pl_fields_text(&pl_matmul_report_fields, &report, 0, &text));
    assert_ok(pl_fields_parse(&pl_matmul_report_fields, text, strlen(text),
                              "report", &back));
    pl_mem_free(text);
    assert_int_equal(report.index, back.index);
    assert_string_equal(report.host, back.host);
    assert_int_equal(report.fetched, back.fetched);
    assert_int_equal(report.wrong, back.wrong);
    assert_true(report.trace == back.trace);
    assert_fails(PL_FORMAT, "index",
                 pl_fields_parse(&pl_matmul_report_fields, "{\"index\": 99}",
                                 13, "report", &back));
}

UNIT_TESTS(cmocka_unit_test(matmul_product_is_right_however_it_is_placed),
           cmocka_unit_test(matmul_traces_add_up_to_the_trace_of_the_square),
           cmocka_unit_test(matmul_workers_of_different_jobs_do_not_mix),
           cmocka_unit_test(matmul_ends_when_interrupted),
           cmocka_unit_test(entries_do_not_depend_on_the_blocks),
           cmocka_unit_test(report_is_read_back))

/* Started by mpirun with two and three ranks: all of them run these tests. */
#include "sync/allreduce/mpi/mpi.h"

#include "support/unit.h"

#include <stdlib.h>

#define FLOATS 100000
#define CUT    (16 * 1041) /* floats: more sums than are exchanged at once */
#define MOST   3           /* ranks */

static pl_deadline soon(void)
{
    return pl_deadline_in_ms(pl_clock_real(), 60000);
}

/* Rank r has (r + 1) * (i % 1000) at i: whole numbers, so sums are exact. */
static void fill(float *memory, int32_t rank)
{
    for (int i = 0; i < FLOATS; i++)
        memory[i] = (float)((rank + 1) * (i % 1000));
}

static void expect_sums(const float *memory, int32_t ranks)
{
    int all = ranks * (ranks + 1) / 2;
    for (int i = 0; i < FLOATS; i++)
        if (memory[i] != (float)(all * (i % 1000)))
            fail_msg("sum %d is %g, not %d", i, (double)memory[i],
                     all * (i % 1000));
}

static void sum_in_parts(pl_collective *c, int32_t ranks, bool more)
{
    int32_t ticket[8];
    int parts = 0;
    for (int64_t first = 0; first < FLOATS; first += CUT) {
        pl_sum_range range = {
            .first = first,
            .count = FLOATS - first < CUT ? FLOATS - first : CUT,
            .more = more,
        };
        assert_ok(c->ops->start(c, &range, &ticket[parts]));
        assert_int_equal(parts, ticket[parts]);
        parts++;
    }
    for (int i = parts - 1; i >= 0; i--) /* in any order */
        assert_ok(c->ops->wait(c, ticket[i], soon()));
    expect_sums(c->ops->memory(c), ranks);
    assert_ok(c->ops->quiet(c, soon()));
}

static void add_digits(void *total, const void *status)
{
    *(int64_t *)total = *(int64_t *)total * 10 + *(const int64_t *)status;
}

static void exchange_statuses(pl_collective *c, int32_t rank, int32_t ranks)
{
    int64_t mine[2] = { 1 + rank, 7 }, all[MOST][2], expected = 0;
    assert_ok(c->ops->offer(c, mine, sizeof mine, add_digits));
    assert_ok(c->ops->exchange(c, all, soon()));
    for (int64_t r = 1; r <= ranks; r++)
        expected = expected * 10 + r;
    assert_int_equal(expected, all[0][0]);
    assert_ok(c->ops->offer(c, mine, sizeof mine, NULL));
    assert_ok(c->ops->exchange(c, all, soon()));
    for (int64_t r = 0; r < (rank == 0 ? ranks : 1); r++) {
        assert_int_equal(1 + r, all[r][0]);
        assert_int_equal(7, all[r][1]);
    }
}

static void mpi_sums_and_exchanges(void **state)
{
    (void)state;
    pl_mpi_place told;
    assert_true(pl_mpi_launched(&told));
    assert_in_range(told.size, 2, MOST);
    assert_int_equal(told.size, told.local);
    pl_collective *c;
    assert_ok(pl_mpi_new(
        &c, &(pl_mpi_opts) { .floats = FLOATS, .workers = told.size }));
    pl_ranks ranks;
    assert_ok(c->ops->join(c, &ranks));
    assert_int_equal(told.rank, ranks.rank);
    assert_int_equal(told.size, ranks.count);
    for (int round = 0; round < 20; round++) {
        fill(c->ops->memory(c), ranks.rank);
        sum_in_parts(c, ranks.count, round % 2 == 0);
        exchange_statuses(c, ranks.rank, ranks.count);
    }
    assert_int_equal(20 * FLOATS * 4, c->ops->look(c).sent_bytes);
    c->ops->free(c);
    assert_int_equal(0, pl_mem_live());
}

static void mpi_reports_why_it_cannot_be_loaded(void **state)
{
    (void)state;
    pl_collective *c;
    pl_mpi_opts opts = { .floats = 16,
                         .workers = 2,
                         .module = "/nowhere/paceline-mpi.so" };
    assert_fails(PL_NOTFOUND, "--engine ring", pl_mpi_new(&c, &opts));
    opts.module = "libm.so.6"; /* a library, but not ours */
    assert_fails(PL_UNSUPPORTED, "libm.so.6 belongs to another version",
                 pl_mpi_new(&c, &opts));
}

static void mpi_survives_failed_allocations(void **state)
{
    (void)state;
    pl_collective *c;
    pl_mpi_opts opts = { .floats = 16, .workers = 2 };
    assert_survives_failed_allocations(pl_mpi_new(&c, &opts), c->ops->free(c));
}

UNIT_TESTS(cmocka_unit_test(mpi_reports_why_it_cannot_be_loaded),
           cmocka_unit_test(mpi_survives_failed_allocations),
           cmocka_unit_test(mpi_sums_and_exchanges))

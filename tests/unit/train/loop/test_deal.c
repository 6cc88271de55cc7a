#include "train/loop/deal.h"

#include "data/synthetic.h"
#include "support/unit.h"

#define WORKERS  4
#define BATCH    5
#define EXAMPLES 240 /* 12 steps of 4 workers, 16 of 3 */

/* A job in lock step: which workers make steps, and what each reads. */
typedef struct job {
    pl_dataset *data;
    pl_deal deal, next;
    bool deals;
    pl_workers present;
    pl_reader *reader[WORKERS]; /* NULL: absent */
    int32_t ranks;
    int64_t step;
    int read[EXAMPLES]; /* how often, since it was cleared */
} job;

static pl_workers some(unsigned set)
{
    pl_workers workers = { { 0 } };
    for (int32_t w = 0; w < WORKERS; w++)
        if ((set >> w & 1) != 0)
            pl_workers_add(&workers, w);
    return workers;
}

static void open_readers(job *j)
{
    j->ranks = pl_workers_count(&j->deal.workers);
    for (int32_t w = 0; w < WORKERS; w++) {
        pl_reader_free(j->reader[w]);
        j->reader[w] = NULL;
        if (!pl_workers_has(&j->present, w))
            continue;
        assert_ok(pl_reader_new(
            &j->reader[w], j->data,
            &(pl_reader_opts) { .batch = BATCH,
                                .seed = 7,
                                .workers = j->ranks,
                                .worker =
                                    pl_deal_rank(&j->deal, &j->present, w) }));
        pl_reader_go(
            j->reader[w],
            pl_deal_read(&j->deal, j->reader[w]->steps_per_epoch, j->step));
    }
}

static int64_t per_epoch(const job *j)
{
    return EXAMPLES / BATCH / j->ranks;
}

static void change(job *j, unsigned set)
{
    j->present = some(set);
    j->deals = !pl_workers_equal(&j->present, &j->deal.workers);
    if (j->deals)
        j->next = pl_deal_next(&j->deal, per_epoch(j), &j->present, j->step);
    open_readers(j);
}

static void make_step(job *j)
{
    if (j->deals && j->step >= j->next.step) {
        j->deal = j->next;
        j->deals = false;
        open_readers(j);
    }
    for (int32_t w = 0; w < WORKERS; w++) {
        pl_batch batch;
        if (j->reader[w] == NULL)
            continue;
        assert_ok(pl_reader_next(j->reader[w], &batch));
        for (int64_t r = 0; r < batch.rows; r++)
            j->read[batch.features.index[r]]++;
    }
    j->step++;
}

static void open_job(job *j)
{
    *j = (job) { .deal = pl_deal_first(WORKERS), .ranks = WORKERS };
    assert_ok(pl_synthetic_open(&j->data, PL_SPLIT_TRAIN,
                                &(pl_source_opts) {
                                    .examples = EXAMPLES,
                                    .shape = { .rank = 1, .dim = { 4 } },
                                    .seed = 1,
                                }));
    change(j, 15);
}

static void close_job(job *j)
{
    for (int32_t w = 0; w < WORKERS; w++)
        pl_reader_free(j->reader[w]);
    pl_dataset_free(j->data);
    assert_int_equal(0, pl_mem_live());
}

/* One epoch of the deal that begins now: every example is read once. */
static void check_epoch(job *j, int32_t ranks)
{
    memset(j->read, 0, sizeof j->read);
    make_step(j);
    assert_int_equal(ranks, j->ranks);
    for (int64_t i = 1; i < per_epoch(j); i++)
        make_step(j);
    for (int i = 0; i < EXAMPLES; i++)
        assert_int_equal(1, j->read[i]);
}

/* Whichever worker is lost, and whenever: from the next epoch on the others
 * read all. */
static void deal_gives_a_lost_share_to_the_others(void **state)
{
    (void)state;
    for (unsigned set = 1; set < 15; set += 2) /* the chief stays */
        for (int64_t lost_at = 0; lost_at < 24; lost_at += 5) {
            job j;
            open_job(&j);
            int32_t left = __builtin_popcount(set);
            if (EXAMPLES / BATCH % left != 0)
                fail();
            while (j.step < lost_at)
                make_step(&j);
            change(&j, set);
            while (j.step % 12 != 0)
                make_step(&j);
            check_epoch(&j, left);
            check_epoch(&j, left);
            close_job(&j);
        }
}

static void deal_gives_a_share_back(void **state)
{
    (void)state;
    job j;
    open_job(&j);
    for (int i = 0; i < 3; i++)
        make_step(&j);
    change(&j, 13);
    while (j.step < 12)
        make_step(&j);
    for (int i = 0; i < 5; i++) /* of 16 among three */
        make_step(&j);
    change(&j, 15);
    while (j.step < 12 + 16)
        make_step(&j);
    check_epoch(&j, 4);
    close_job(&j);
}

/* Before the epoch ends, one that comes back reads for one that is lost. */
static void deal_lets_one_read_for_another(void **state)
{
    (void)state;
    pl_deal deal = { .step = 5, .epoch = 1, .workers = some(13) };
    pl_workers present = some(11); /* 2 is lost, 1 is back */
    assert_int_equal(0, pl_deal_rank(&deal, &present, 0));
    assert_int_equal(1, pl_deal_rank(&deal, &present, 1));
    assert_int_equal(2, pl_deal_rank(&deal, &present, 3));
    present = some(15);
    assert_true(pl_deal_rank(&deal, &present, 1) < 3);
}

static void deal_begins_where_an_epoch_ends(void **state)
{
    (void)state;
    pl_deal now = { .step = 10, .epoch = 2, .workers = some(15) };
    pl_workers present = some(7);
    static const int64_t cases[][3] = {
        { 10, 10, 2 },
        { 11, 22, 3 },
        { 22, 22, 3 },
        { 23, 34, 4 },
    };
    for (size_t i = 0; i < 4; i++) {
        pl_deal next = pl_deal_next(&now, 12, &present, cases[i][0]);
        assert_int_equal(cases[i][1], next.step);
        assert_int_equal(cases[i][2], next.epoch);
        assert_int_equal(3, pl_workers_count(&next.workers));
    }
}

UNIT_TESTS(cmocka_unit_test(deal_gives_a_lost_share_to_the_others),
           cmocka_unit_test(deal_gives_a_share_back),
           cmocka_unit_test(deal_lets_one_read_for_another),
           cmocka_unit_test(deal_begins_where_an_epoch_ends))

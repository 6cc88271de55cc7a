/* Copies before changes, whatever the reader and the writers do.
 *
 * Invariants and the tests that check them:
 *   frozen F1  frozen_memory_is_read_as_it_was,
 *              frozen_keys_are_copied_before_they_change
 *   frozen F2  frozen_reader_and_writer_may_race
 *   frozen F3  frozen_changes_of_several_threads_wait_for_the_reader,
 *              frozen_changes_abandon_a_stalled_reader */
#include "state/frozen.h"

#include "base/thread.h"
#include "support/unit.h"

#include <sched.h>
#include <stdatomic.h>

#define COUNT  10
#define PIECE  4 /* pieces of 4, 4 and 2 floats a plane */
#define PLANES 2

typedef struct rig {
    float plane[PLANES][COUNT];
    pl_frozen *frozen;
} rig;

/* Element i of plane p is 100 p + i. */
static void fill(rig *r)
{
    for (int p = 0; p < PLANES; p++)
        for (int i = 0; i < COUNT; i++)
            r->plane[p][i] = (float)(100 * p + i);
}

static pl_status open_patient(rig *r, int64_t copies, int patience_ms)
{
    fill(r);
    return pl_frozen_new(
        &r->frozen,
        &(pl_frozen_opts) {
            .planes = { .count = 2, .data = { r->plane[0], r->plane[1] } },
            .count = COUNT,
            .piece = PIECE,
            .pool_bytes = (size_t)copies * PIECE * sizeof(float),
            .patience_ms = patience_ms,
        });
}

static pl_status open_rig(rig *r, int64_t copies)
{
    return open_patient(r, copies, 0);
}

/* Change the whole memory, if that is allowed. */
static bool change(rig *r)
{
    if (!pl_frozen_touch(r->frozen, 0, COUNT))
        return false;
    for (int p = 0; p < PLANES; p++)
        for (int i = 0; i < COUNT; i++)
            r->plane[p][i] = -1;
    return true;
}

/* Read [first, end) of a plane; all must be as at the beginning. */
static void read_range(rig *r, int plane, int64_t first, int64_t end)
{
    const float *data;
    for (int64_t at = first, count; at < end; at += count) {
        pl_frozen_read(r->frozen, plane, at, &data, &count);
        assert_true(count >= 1 && count <= PIECE);
        for (int64_t i = 0; i < count && at + i < end; i++)
            assert_true(data[i] == (float)(100 * plane + at + i));
    }
}

static void frozen_new_survives_each_failed_allocation(void **state)
{
    (void)state;
    rig r;
    assert_survives_failed_allocations(open_rig(&r, 1),
                                       pl_frozen_free(r.frozen));
    pl_frozen_free(NULL);
}

static void frozen_memory_is_read_as_it_was(void **state)
{
    (void)state;
    rig r;
    assert_ok(open_rig(&r, 6));
    pl_frozen_begin(r.frozen);
    assert_true(change(&r));
    read_range(&r, 0, 0, COUNT);
    read_range(&r, 1, 0, COUNT);
    pl_frozen_end(r.frozen);
    fill(&r); /* and once more, with nothing left of the first time */
    pl_frozen_begin(r.frozen);
    read_range(&r, 0, 0, 6);
    assert_true(change(&r));
    read_range(&r, 0, 6, COUNT);
    read_range(&r, 1, 3, COUNT);
    pl_frozen_end(r.frozen);
    pl_frozen_free(r.frozen);
    assert_int_equal(0, pl_mem_live());
}

static void frozen_change_waits_while_the_pool_is_full(void **state)
{
    (void)state;
    rig r;
    assert_ok(open_rig(&r, 4)); /* of 6 pieces */
    for (int round = 0; round < 2; round++) {
        fill(&r);
        pl_frozen_begin(r.frozen);
        assert_false(change(&r));
        assert_false(change(&r));
        read_range(&r, 0, 0, PIECE);
        assert_false(change(&r));
        read_range(&r, 0, PIECE, 2 * PIECE);
        assert_true(change(&r));
        read_range(&r, 0, 2 * PIECE, COUNT);
        read_range(&r, 1, 0, COUNT);
        pl_frozen_end(r.frozen);
    }
    pl_frozen_free(r.frozen);
}

/* The pool is there while there are copies, and no larger than it may be. */
static void frozen_pool_is_bounded_and_given_back(void **state)
{
    (void)state;
    rig r;
    assert_int_equal(1000, pl_frozen_pool(1000));
    assert_int_equal(64 << 20, pl_frozen_pool(100 << 20));
    assert_int_equal(1 << 30, pl_frozen_pool((int64_t)4 << 30));
    assert_ok(open_rig(&r, 4));
    assert_true(pl_frozen_touch(r.frozen, 0, COUNT)); /* nobody reads */
    int64_t live = pl_mem_live_bytes();
    pl_frozen_begin(r.frozen);
    assert_true(pl_frozen_touch(r.frozen, 9, 0));
    assert_int_equal(live, pl_mem_live_bytes());
    assert_false(change(&r));
    assert_in_range(pl_mem_live_bytes() - live, 4 * PIECE * sizeof(float),
                    4 * PIECE * sizeof(float) + 64);
    pl_frozen_end(r.frozen);
    assert_int_equal(live, pl_mem_live_bytes());
    pl_frozen_free(r.frozen);
}

/* Copies are made only of what is touched, once: two pieces a plane fit. */
static void frozen_only_what_changes_is_copied(void **state)
{
    (void)state;
    rig r;
    assert_ok(open_rig(&r, 4));
    pl_frozen_begin(r.frozen);
    assert_true(pl_frozen_touch(r.frozen, 3, 2));
    assert_true(pl_frozen_touch(r.frozen, 0, 8));
    r.plane[0][3] = r.plane[1][3] = r.plane[0][4] = r.plane[1][4] = 7;
    assert_true(pl_frozen_touch(r.frozen, 3, 2));
    assert_false(pl_frozen_touch(r.frozen, 8, 1));
    read_range(&r, 0, 0, COUNT);
    read_range(&r, 1, 0, COUNT);
    pl_frozen_end(r.frozen);
    pl_frozen_free(r.frozen);
}

static void frozen_without_memory_for_copies_waits(void **state)
{
    (void)state;
    rig r;
    assert_ok(open_rig(&r, 6));
    pl_frozen_begin(r.frozen);
    pl_mem_fail_at(0);
    assert_false(change(&r));
    assert_true(pl_mem_fail_off());
    assert_true(change(&r));
    read_range(&r, 0, 0, COUNT);
    read_range(&r, 1, 0, COUNT);
    pl_frozen_end(r.frozen);
    pl_frozen_free(r.frozen);
}

/* Ids beyond the table are not looked at. */
static void frozen_keys_are_copied_before_they_change(void **state)
{
    (void)state;
    rig r;
    const uint64_t ids[] = { 8, 1u << 31, 1, 8 };
    assert_ok(open_rig(&r, 4));
    pl_frozen_before_keys(r.frozen, 1, 9, ids, 4); /* nobody reads */
    pl_frozen_begin(r.frozen);
    pl_frozen_before_keys(r.frozen, 1, 9, ids, 4);
    r.plane[0][9] = r.plane[1][9] = r.plane[0][2] = r.plane[1][2] = -1;
    assert_false(pl_frozen_touch(r.frozen, 5, 1)); /* the pool is full */
    read_range(&r, 0, 0, COUNT);
    read_range(&r, 1, 0, COUNT);
    pl_frozen_end(r.frozen);
    pl_frozen_free(r.frozen);
}

static pl_status read_all(void *arg)
{
    rig *r = arg;
    read_range(r, 0, 0, COUNT);
    read_range(r, 1, 0, COUNT);
    pl_frozen_end(r->frozen);
    return PL_OK;
}

/* Any order of two threads gives the same reads. */
static void frozen_reader_and_writer_may_race(void **state)
{
    (void)state;
    rig r;
    assert_ok(open_rig(&r, 2));
    for (int round = 0; round < 200; round++) {
        pl_thread *reader;
        fill(&r);
        pl_frozen_begin(r.frozen);
        assert_ok(pl_thread_start(&reader, "reader", read_all, &r));
        while (!change(&r))
            continue;
        assert_ok(pl_thread_join(reader));
    }
    pl_frozen_free(r.frozen);
}

/* Each thread changes some of the floats when it may. */
typedef struct crowd {
    rig *rig;
    atomic_int waits;
} crowd;

static void change_one(void *arg, int item, int thread)
{
    crowd *c = arg;
    (void)thread;
    pl_frozen_before_change(c->rig->frozen, item, 1);
    for (int p = 0; p < PLANES; p++)
        c->rig->plane[p][item] = -1;
}

static void count_waits(void *context)
{
    atomic_fetch_add(&((crowd *)context)->waits, 1);
}

static void frozen_changes_of_several_threads_wait_for_the_reader(void **state)
{
    (void)state;
    rig r;
    crowd c = { .rig = &r };
    pl_pool *pool;
    assert_ok(open_rig(&r, 1));
    assert_ok(pl_pool_new(&pool, 3));
    pl_frozen_on_wait(r.frozen, count_waits, &c);
    for (int round = 0; round < 200; round++) {
        pl_thread *reader;
        fill(&r);
        pl_frozen_begin(r.frozen);
        assert_ok(pl_thread_start(&reader, "reader", read_all, &r));
        pl_pool_run(pool, COUNT, change_one, &c);
        assert_ok(pl_thread_join(reader));
        assert_true(r.plane[1][COUNT - 1] == -1);
    }
    pl_pool_free(pool);
    pl_frozen_free(r.frozen);
}

static pl_status end_late(void *arg)
{
    crowd *c = arg;
    while (atomic_load(&c->waits) == 0)
        sched_yield();
    pl_frozen_end(c->rig->frozen);
    return PL_OK;
}

/* A reader that gives up releases waiting changes. */
static void frozen_end_releases_waiting_changes(void **state)
{
    (void)state;
    rig r;
    crowd c = { .rig = &r };
    pl_thread *reader;
    assert_ok(open_rig(&r, 1));
    pl_frozen_on_wait(r.frozen, count_waits, &c);
    pl_frozen_begin(r.frozen);
    assert_ok(pl_thread_start(&reader, "reader", end_late, &c));
    pl_frozen_before_change(r.frozen, 0, COUNT);
    assert_ok(pl_thread_join(reader));
    assert_true(atomic_load(&c.waits) >= 1);
    pl_frozen_free(r.frozen);
}

/* Nothing reads: as when the disk hangs. */
static void frozen_changes_abandon_a_stalled_reader(void **state)
{
    (void)state;
    rig r;
    assert_ok(open_patient(&r, 1, 1));
    pl_frozen_begin(r.frozen);
    assert_false(pl_frozen_lost(r.frozen));
    pl_frozen_before_change(r.frozen, 0, COUNT); /* returns */
    assert_true(pl_frozen_lost(r.frozen));
    assert_true(change(&r));
    for (int64_t at = 0; at < COUNT; at += PIECE) { /* the reader is back */
        const float *data;
        int64_t count;
        pl_frozen_read(r.frozen, 0, at, &data, &count);
        assert_true(data[0] != -1);
    }
    pl_frozen_end(r.frozen);
    assert_true(pl_frozen_lost(r.frozen));
    fill(&r);
    pl_frozen_begin(r.frozen); /* the next one is whole again */
    assert_false(pl_frozen_lost(r.frozen));
    read_range(&r, 0, 0, COUNT);
    read_range(&r, 1, 0, COUNT);
    pl_frozen_end(r.frozen);
    pl_frozen_free(r.frozen);
    assert_int_equal(0, pl_mem_live());
}

static void frozen_touch_abandons_a_stalled_reader(void **state)
{
    (void)state;
    rig r;
    assert_ok(open_patient(&r, 1, 1));
    pl_frozen_begin(r.frozen);
    assert_false(change(&r));
    while (!change(&r))
        sched_yield();
    assert_true(pl_frozen_lost(r.frozen));
    pl_frozen_end(r.frozen);
    pl_frozen_free(r.frozen);
}

UNIT_TESTS(
    cmocka_unit_test(frozen_new_survives_each_failed_allocation),
    cmocka_unit_test(frozen_memory_is_read_as_it_was),
    cmocka_unit_test(frozen_change_waits_while_the_pool_is_full),
    cmocka_unit_test(frozen_pool_is_bounded_and_given_back),
    cmocka_unit_test(frozen_only_what_changes_is_copied),
    cmocka_unit_test(frozen_without_memory_for_copies_waits),
    cmocka_unit_test(frozen_keys_are_copied_before_they_change),
    cmocka_unit_test(frozen_reader_and_writer_may_race),
    cmocka_unit_test(frozen_changes_of_several_threads_wait_for_the_reader),
    cmocka_unit_test(frozen_end_releases_waiting_changes),
    cmocka_unit_test(frozen_changes_abandon_a_stalled_reader),
    cmocka_unit_test(frozen_touch_abandons_a_stalled_reader))

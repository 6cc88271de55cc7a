/* The ring's core: sums, the exchange, and membership.
 *
 * Invariants and the tests that check them:
 *   core E1     ring_exchange_gives_the_chief_all_statuses
 *   core E2     ring_exchange_gives_all_the_combined_status
 *   members R1  ring_drops_pieces_that_are_not_due
 *   members R2  ring_ends_when_a_worker_does_not_link
 *   sums R3     ring_drops_pieces_that_are_not_due,
 *               ring_drops_impossible_early_pieces
 *   sums R4     ring_sums_are_the_same_everywhere_for_any_cut,
 *               ring_sums_have_the_same_bits_where_they_are_nan
 *   sums R5     ring_sends_gradients_through_the_codec (test_codec.c) */
#include "sync/allreduce/ring/core.h"

#include "support/ring.h"

#include <stdlib.h>

/* What rank r has at place i before a sum. */
static float before(int32_t r, int64_t i)
{
    return (float)((i * 37 + r * 1009) % 513) * 0.37f - 41.3f;
}

static void fill(ring_net *net)
{
    for (int32_t w = 0; w < net->workers; w++)
        for (int64_t i = 0; i < net->floats; i++)
            net->node[w].memory[i] = before(w, i);
}

static int64_t rounded(int64_t count, int64_t grain)
{
    return (count + grain - 1) / grain * grain;
}

/* Sum all in ranges of about `size`, from the end; ranks start in an order
 * that is drawn. */
static void sum_all(ring_net *net, int64_t size)
{
    int64_t grain = pl_ring_core_ranks(net->node[0].core).grain;
    int32_t count = 0;
    size = rounded(size, grain);
    for (int64_t end = net->floats; end > 0; count++) {
        int64_t first = (end - 1) / size * size;
        uint32_t turn = ring_draw(net);
        for (int32_t k = 0; k < net->workers; k++) {
            int32_t w =
                (int32_t)((turn + (uint32_t)k) % (uint32_t)net->workers);
            assert_int_equal(
                count,
                pl_ring_core_start(
                    net->node[w].core,
                    &(pl_sum_range) { .first = first, .count = end - first }));
            if (ring_draw(net) % 2 == 0 && net->queued > 0)
                ring_deliver(net, 0);
        }
        end = first;
    }
    ring_settle(net);
    for (int32_t w = 0; w < net->workers; w++) {
        for (int32_t t = 0; t < count; t++)
            assert_true(pl_ring_core_summed(net->node[w].core, t));
        assert_true(pl_ring_core_is_quiet(net->node[w].core));
        pl_ring_core_quiet(net->node[w].core);
        assert_int_equal(0, pl_ring_core_refused(net->node[w].core));
    }
}

/* Stripe s is added up from rank s % n on. */
static float expected(const ring_net *net, int64_t i, int64_t grain)
{
    int32_t n = net->workers, r = (int32_t)(i / grain % n);
    float sum = before(r, i);
    for (int32_t k = 1; k < n; k++)
        sum += before((r + k) % n, i);
    return sum;
}

static void check_sums(ring_net *net)
{
    int64_t grain = pl_ring_core_ranks(net->node[0].core).grain;
    for (int64_t cut = net->floats; cut > net->floats / 5; cut -= cut / 3 + 1) {
        fill(net);
        sum_all(net, cut);
        for (int64_t i = 0; i < net->floats; i++)
            for (int32_t w = 0; w < net->workers; w++)
                if (net->node[w].memory[i] != expected(net, i, grain))
                    fail_msg("%d of %d, float %lld", w, net->workers,
                             (long long)i);
    }
}

static void ring_sums_are_the_same_everywhere_for_any_cut(void **state)
{
    (void)state;
    static const int64_t sizes[] = { 1, 15, 16, 100, 5000, 600000 };
    ring_net *net = malloc(sizeof *net);
    for (int32_t n = 1; n <= RING_FEW; n++)
        for (size_t s = 0; s < 2 * sizeof sizes / sizeof *sizes; s++) {
            ring_init(net, n, sizes[s / 2], (uint64_t)n * 10 + s);
            net->shared = s % 2 == 1;
            ring_form(net);
            check_sums(net);
            ring_close(net);
        }
    free(net);
    assert_int_equal(0, pl_mem_live());
}

static float in_rank_order(const ring_net *net, int64_t i)
{
    float sum = before(0, i);
    for (int32_t r = 1; r < net->workers; r++)
        sum += before(r, i);
    return sum;
}

/* The front half is a sum in the order of ranks, the back half a broadcast;
 * ranks start in an order that is drawn. */
static void order_and_broadcast(ring_net *net, int32_t from)
{
    int64_t grain = pl_ring_core_ranks(net->node[0].core).grain;
    int64_t half = rounded(net->floats / 2, grain);
    if (half > net->floats)
        half = net->floats;
    pl_sum_range ranges[] = {
        { .first = half,
          .count = net->floats - half,
          .kind = PL_SUM_BROADCAST,
          .from = from,
          .exact = true },
        { .count = half, .kind = PL_SUM_RANK_ORDER },
    };
    uint32_t turn = ring_draw(net);
    fill(net);
    for (int32_t k = 0; k < net->workers; k++)
        for (int i = half == net->floats ? 1 : 0; i < 2; i++) {
            uint32_t w = (turn + (uint32_t)k) % (uint32_t)net->workers;
            (void)pl_ring_core_start(net->node[w].core, &ranges[i]);
            if (ring_draw(net) % 2 == 0 && net->queued > 0)
                ring_deliver(net, 0);
        }
    ring_settle(net);
    for (int32_t w = 0; w < net->workers; w++) {
        assert_true(pl_ring_core_is_quiet(net->node[w].core));
        pl_ring_core_quiet(net->node[w].core);
        assert_int_equal(0, pl_ring_core_refused(net->node[w].core));
        for (int64_t i = 0; i < net->floats; i++) {
            float want = i < half ? in_rank_order(net, i) : before(from, i);
            if (net->node[w].memory[i] != want)
                fail_msg("%d of %d, from %d, float %lld", w, net->workers, from,
                         (long long)i);
        }
    }
}

static void ring_adds_in_rank_order_and_broadcasts(void **state)
{
    (void)state;
    static const int64_t sizes[] = { 16, 5000, 600000 };
    ring_net *net = malloc(sizeof *net);
    for (int32_t n = 1; n <= RING_FEW; n++)
        for (size_t s = 0; s < 2 * sizeof sizes / sizeof *sizes; s++) {
            ring_init(net, n, sizes[s / 2], (uint64_t)n * 20 + s);
            net->shared = s % 2 == 1;
            ring_form(net);
            for (int32_t from = 0; from < n; from++)
                order_and_broadcast(net, from);
            ring_close(net);
        }
    free(net);
    assert_int_equal(0, pl_mem_live());
}

/* Some ranks are a whole step ahead: what they send is kept. */
static void ring_keeps_pieces_of_later_sums(void **state)
{
    (void)state;
    for (int32_t n = 2; n <= RING_FEW; n++) {
        ring_net *net = malloc(sizeof *net);
        ring_init(net, n, 5000, (uint64_t)n);
        ring_form(net);
        int64_t grain = pl_ring_core_ranks(net->node[0].core).grain;
        for (int32_t step = 0; step < 10; step++) {
            int32_t last = (int32_t)(ring_draw(net) % (uint32_t)n);
            fill(net);
            for (int32_t k = 1; k <= n; k++) {
                pl_ring_core *core = net->node[(last + k) % n].core;
                pl_ring_core_start(core, &(pl_sum_range) { .count = 5000 });
                ring_settle(net); /* to ranks that have not started, too */
                assert_int_equal(k == n, pl_ring_core_summed(core, 0));
            }
            for (int32_t w = 0; w < n; w++) {
                assert_true(pl_ring_core_is_quiet(net->node[w].core));
                pl_ring_core_quiet(net->node[w].core);
                assert_int_equal(0, pl_ring_core_refused(net->node[w].core));
                for (int64_t i = 0; i < 5000; i++)
                    assert_true(net->node[w].memory[i] ==
                                expected(net, i, grain));
            }
        }
        ring_close(net);
        free(net);
    }
}

/* Two NaNs: the same bits at both ranks. */
static void ring_sums_have_the_same_bits_where_they_are_nan(void **state)
{
    (void)state;
    static const uint32_t nans[2] = { 0x7fc00001u, 0xffc00002u };
    ring_net *net = malloc(sizeof *net);
    ring_init(net, 2, 64, 1);
    ring_form(net);
    for (int32_t w = 0; w < 2; w++)
        for (int64_t i = 0; i < 64; i++)
            memcpy(&net->node[w].memory[i], &nans[w], sizeof nans[w]);
    sum_all(net, 64);
    assert_memory_equal(net->node[0].memory, net->node[1].memory,
                        64 * sizeof(float));
    ring_close(net);
    free(net);
}

static void add_numbers(void *total, const void *status)
{
    *(int64_t *)total = *(int64_t *)total * 10 + *(const int64_t *)status;
}

/* Combined in the order of ranks, in whichever order they arrive. */
static void ring_exchange_gives_all_the_combined_status(void **state)
{
    (void)state;
    ring_net *net = malloc(sizeof *net);
    ring_init(net, 4, 64, 3);
    ring_form(net);
    for (int64_t round = 0; round < 20; round++) {
        for (int32_t w = 3; w >= 0; w--) {
            int64_t status = w + 1;
            pl_ring_core_offer(net->node[w].core, &status, sizeof status,
                               add_numbers);
        }
        ring_settle(net);
        for (int32_t w = 0; w < 4; w++) {
            int64_t total;
            assert_true(pl_ring_core_exchanged(net->node[w].core));
            pl_ring_core_exchange(net->node[w].core, &total);
            assert_int_equal(1234, total);
        }
    }
    ring_close(net);
    free(net);
}

/* Without a combination the chief gets all, also when the next exchange has
 * begun elsewhere before it looks. */
static void ring_exchange_gives_the_chief_all_statuses(void **state)
{
    (void)state;
    ring_net *net = malloc(sizeof *net);
    ring_init(net, 3, 64, 3);
    ring_form(net);
    for (int32_t w = 0; w < 3; w++) {
        int64_t status = 10 + w;
        pl_ring_core_offer(net->node[w].core, &status, sizeof status, NULL);
    }
    ring_settle(net);
    for (int32_t w = 1; w < 3; w++) {
        int64_t total, status = 20 + w;
        pl_ring_core_exchange(net->node[w].core, &total);
        assert_int_equal(10, total);
        pl_ring_core_offer(net->node[w].core, &status, sizeof status, NULL);
    }
    ring_settle(net);
    int64_t all[3], status = 20;
    pl_ring_core_exchange(net->node[0].core, all);
    for (int32_t w = 0; w < 3; w++)
        assert_int_equal(10 + w, all[w]);
    pl_ring_core_offer(net->node[0].core, &status, sizeof status, NULL);
    pl_ring_core_exchange(net->node[0].core, all);
    for (int32_t w = 0; w < 3; w++)
        assert_int_equal(20 + w, all[w]);
    ring_close(net);
    free(net);
}

/* What passes through the chief until a ring of `workers` has formed and made
 * one status exchange of `bytes`. */
static int64_t chief_traffic(int32_t workers, size_t bytes)
{
    ring_net *net = malloc(sizeof *net);
    ring_init(net, workers, 64, 3);
    ring_form(net);
    uint8_t *status = calloc(1, bytes);
    for (int32_t w = 0; w < workers; w++)
        pl_ring_core_offer(net->node[w].core, status, bytes, add_numbers);
    ring_settle(net);
    for (int32_t w = 0; w < workers; w++)
        assert_true(pl_ring_core_exchanged(net->node[w].core));
    int64_t passed = net->hub_bytes;
    free(status);
    ring_close(net);
    free(net);
    return passed;
}

/* Each worker gets its place and one combined status, not what all the others
 * are: for each, two statuses and less than 2 KB to form. */
static void ring_traffic_of_the_chief_is_linear_in_workers(void **state)
{
    (void)state;
    const int64_t each = 2 * (int64_t)PL_COLLECTIVE_BYTES_MOST + 2048;
    int64_t few = chief_traffic(32, PL_COLLECTIVE_BYTES_MOST);
    int64_t many = chief_traffic(128, PL_COLLECTIVE_BYTES_MOST);
    print_message("through the chief: %lld bytes of 32, %lld of 128 workers\n",
                  (long long)few, (long long)many);
    assert_in_range(few, 1, 31 * each);
    assert_in_range(many, 1, 127 * each);
}

static void ring_names_a_status_of_another_size(void **state)
{
    (void)state;
    ring_net *net = malloc(sizeof *net);
    ring_init(net, 2, 64, 3);
    ring_form(net);
    pl_ring_core_offer(net->node[0].core, "12345678", 8, NULL);
    pl_ring_core_offer(net->node[1].core, "1234", 4, NULL);
    ring_settle(net);
    assert_fails(PL_PEER,
                 "the status of worker 1 has 4 bytes and the chief's 8",
                 pl_ring_core_outcome(net->node[0].core));
    assert_fails(PL_CLOSED, "the status of worker 1 has 4 bytes",
                 pl_ring_core_outcome(net->node[1].core));
    ring_close(net);
    free(net);
}

static void ring_notices_a_silent_worker_and_joins_again(void **state)
{
    (void)state;
    for (int32_t who = 0; who < 3; who++) {
        ring_net *net = malloc(sizeof *net);
        char says[64];
        ring_init(net, 3, 4096, (uint64_t)who);
        ring_form(net);
        fill(net);
        for (int32_t w = 0; w < 3; w++)
            if (w != who)
                pl_ring_core_start(net->node[w].core,
                                   &(pl_sum_range) { .count = 4096 });
        ring_settle(net);
        ring_stop_node(net, who);
        ring_pass(net, 1500);
        snprintf(says, sizeof says, "worker %d (%s) is lost", who,
                 ring_addresses[who]);
        for (int32_t w = 0; w < 3; w++)
            if (w != who)
                assert_fails(PL_ROLLED, says,
                             pl_ring_core_outcome(net->node[w].core));
        assert_int_equal(who, net->node[who == 0 ? 1 : 0].lost);
        for (int32_t w = 0; w < 3; w++)
            if (w != who)
                pl_ring_core_join(net->node[w].core, net->now_ns);
        ring_pass(net, 500);
        ring_start_node(net, who, PL_ON_LOSS_WAIT);
        ring_pass(net, 600);
        for (int32_t w = 0; w < 3; w++) {
            assert_ok(pl_ring_core_outcome(net->node[w].core));
            assert_true(pl_ring_core_formed(net->node[w].core));
        }
        assert_int_equal(1, pl_ring_core_restarts(net->node[0].core));
        fill(net);
        sum_all(net, 4096);
        ring_close(net);
        free(net);
    }
}

/* A restarted process is noticed before its silence is. */
static void ring_joins_again_when_a_new_process_comes(void **state)
{
    (void)state;
    for (int32_t who = 0; who < 2; who++) {
        ring_net *net = malloc(sizeof *net);
        ring_init(net, 2, 64, 1);
        ring_form(net);
        ring_stop_node(net, who);
        ring_start_node(net, who, PL_ON_LOSS_WAIT);
        ring_pass(net, 300);
        assert_fails(PL_ROLLED, who == 0 ? "was restarted" : "joins again",
                     pl_ring_core_outcome(net->node[1 - who].core));
        ring_close(net);
        free(net);
    }
}

static void ring_continues_without_a_lost_worker_on_request(void **state)
{
    (void)state;
    ring_net *net = malloc(sizeof *net);
    ring_init(net, 3, 64, 1);
    for (int32_t w = 0; w < 3; w++)
        ring_start_node(net, w, PL_ON_LOSS_CONTINUE);
    ring_pass(net, 300);
    ring_stop_node(net, 1);
    ring_pass(net, 1500);
    pl_ring_core_join(net->node[0].core, net->now_ns);
    pl_ring_core_join(net->node[2].core, net->now_ns);
    ring_pass(net, 300);
    assert_true(pl_ring_core_formed(net->node[0].core));
    pl_ranks ranks = pl_ring_core_ranks(net->node[2].core);
    assert_int_equal(2, ranks.count);
    assert_int_equal(1, ranks.rank);
    ring_close(net);
    free(net);
}

/* Workers that are not lost join again whenever their generation has ended, as
 * a worker's thread does. */
static void join_until_formed(ring_net *net, int64_t ms)
{
    for (; ms > 0; ms -= 100) {
        ring_pass(net, 100);
        for (int32_t w = 0; w < net->workers; w++) {
            pl_ring_core *core = net->node[w].core;
            if (core != NULL && pl_ring_core_outcome(core) == PL_ROLLED)
                pl_ring_core_join(core, net->now_ns);
        }
    }
}

static void check_survivors(ring_net *net)
{
    int32_t count = 0, rank = 0;
    for (int32_t w = 0; w < net->workers; w++)
        count += net->node[w].core != NULL;
    for (int32_t w = 0; w < net->workers; w++) {
        pl_ring_core *core = net->node[w].core;
        if (core == NULL)
            continue;
        assert_ok(pl_ring_core_outcome(core));
        assert_true(pl_ring_core_formed(core));
        pl_ranks ranks = pl_ring_core_ranks(core);
        assert_int_equal(count, ranks.count);
        assert_int_equal(rank++, ranks.rank);
    }
}

static ring_net *going_on(int32_t workers, uint64_t seed)
{
    ring_net *net = malloc(sizeof *net);
    ring_init(net, workers, 64, seed);
    for (int32_t w = 0; w < workers; w++)
        ring_start_node(net, w, PL_ON_LOSS_CONTINUE);
    ring_pass(net, 300);
    check_survivors(net);
    return net;
}

/* Every set of followers, lost at the same moment. */
static void ring_continues_after_simultaneous_losses(void **state)
{
    (void)state;
    for (uint32_t set = 1; set < 16; set++) {
        ring_net *net = going_on(5, set);
        for (int32_t w = 1; w < 5; w++)
            if ((set >> (w - 1) & 1) != 0)
                ring_stop_node(net, w);
        join_until_formed(net, 3000);
        check_survivors(net);
        ring_close(net);
        free(net);
    }
}

/* The second is lost at any tenth of a second after the first: before that is
 * noticed, during the rendezvous, while links are made, and when the ring is
 * formed. */
static void ring_continues_after_a_loss_in_a_rendezvous(void **state)
{
    (void)state;
    for (int64_t after = 0; after <= 2000; after += 100)
        for (int32_t second = 2; second < 5; second++) {
            ring_net *net = going_on(5, (uint64_t)after + (uint64_t)second);
            ring_stop_node(net, 1);
            join_until_formed(net, after);
            ring_stop_node(net, second);
            join_until_formed(net, 4000);
            check_survivors(net);
            assert_true(net->node[0].lost == 1 || net->node[0].lost == second);
            ring_close(net);
            free(net);
        }
}

/* The chief's new process finds that a worker it knew in its earlier life is
 * lost. */
static void ring_continues_after_losing_the_chief_and_another(void **state)
{
    (void)state;
    ring_net *net = going_on(4, 7);
    ring_stop_node(net, 0);
    ring_stop_node(net, 2);
    join_until_formed(net, 1500);
    ring_start_node(net, 0, PL_ON_LOSS_CONTINUE);
    join_until_formed(net, 3000);
    check_survivors(net);
    ring_close(net);
    free(net);
}

/* It lives, but its working thread never comes to the rendezvous. */
static void ring_continues_without_a_worker_that_never_joins(void **state)
{
    (void)state;
    ring_net *net = going_on(4, 9);
    ring_stop_node(net, 1);
    for (int64_t ms = 0; ms < 8000; ms += 100) {
        ring_pass(net, 100);
        for (int32_t w = 0; w < 4; w += 2)
            if (pl_ring_core_outcome(net->node[w].core) == PL_ROLLED)
                pl_ring_core_join(net->node[w].core, net->now_ns);
    }
    for (int32_t w = 0; w < 4; w += 2) {
        assert_ok(pl_ring_core_outcome(net->node[w].core));
        assert_int_equal(2, pl_ring_core_ranks(net->node[w].core).count);
    }
    assert_int_equal(3, net->node[0].lost);
    ring_close(net);
    free(net);
}

/* Where lost workers are waited for, each is declared lost, so that its
 * supervisor can restart it. */
static void ring_declares_each_worker_lost_while_it_waits(void **state)
{
    (void)state;
    ring_net *net = malloc(sizeof *net);
    ring_init(net, 4, 64, 1);
    ring_form(net);
    ring_stop_node(net, 1);
    ring_stop_node(net, 3);
    join_until_formed(net, 2500);
    assert_int_equal(3, net->node[0].lost);
    assert_int_equal(1, pl_ring_core_absent(net->node[0].core));
    ring_start_node(net, 1, PL_ON_LOSS_WAIT);
    ring_start_node(net, 3, PL_ON_LOSS_WAIT);
    join_until_formed(net, 1000);
    check_survivors(net);
    ring_close(net);
    free(net);
}

static void ring_gives_up_on_a_missing_worker(void **state)
{
    (void)state;
    ring_net *net = malloc(sizeof *net);
    ring_init(net, 3, 64, 1);
    ring_start_node(net, 0, PL_ON_LOSS_WAIT);
    ring_start_node(net, 1, PL_ON_LOSS_WAIT);
    ring_pass(net, 1000);
    assert_int_equal(2, pl_ring_core_absent(net->node[0].core));
    ring_pass(net, 8000);
    assert_fails(PL_TIMEOUT, "worker 2 (c:1) did not join within 8 s",
                 pl_ring_core_outcome(net->node[0].core));
    assert_fails(PL_CLOSED, "worker 2 (c:1)",
                 pl_ring_core_outcome(net->node[1].core));
    ring_close(net);
    ring_init(net, 2, 64, 1);
    ring_start_node(net, 1, PL_ON_LOSS_WAIT);
    ring_pass(net, 8500);
    assert_fails(PL_TIMEOUT, "worker 0 (a:1) did not join within 8 s",
                 pl_ring_core_outcome(net->node[1].core));
    ring_close(net);
    free(net);
}

/* It joins and lives, but is not reached by the worker before it. */
static void ring_ends_when_a_worker_does_not_link(void **state)
{
    (void)state;
    ring_net *net = malloc(sizeof *net);
    ring_init(net, 2, 64, 1);
    net->swallow = PL_FRAME_LINKED;
    net->swallows_all = true;
    ring_start_node(net, 0, PL_ON_LOSS_WAIT);
    ring_start_node(net, 1, PL_ON_LOSS_WAIT);
    ring_pass(net, 7000);
    assert_ok(pl_ring_core_outcome(net->node[0].core));
    ring_pass(net, 2000);
    assert_fails(PL_CLOSED,
                 "worker 1 (b:1) did not link to its neighbours "
                 "within 8 s (--join-timeout)",
                 pl_ring_core_outcome(net->node[0].core));
    assert_fails(PL_CLOSED, "did not link to its neighbours",
                 pl_ring_core_outcome(net->node[1].core));
    ring_close(net);
    free(net);
}

/* When all wait and nothing moves, every wait ends. */
static void ring_recovers_from_a_lost_message(void **state)
{
    (void)state;
    static const pl_frame_kind kinds[] = { PL_FRAME_PIECE, PL_FRAME_READY,
                                           PL_FRAME_DONE, PL_FRAME_EXCHANGE,
                                           PL_FRAME_EXCHANGED };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        ring_net *net = malloc(sizeof *net);
        int64_t status = 5;
        ring_init(net, 3, 4096, k);
        net->shared = kinds[k] == PL_FRAME_READY || kinds[k] == PL_FRAME_DONE;
        ring_form(net);
        net->swallow = kinds[k];
        for (int32_t w = 0; w < 3; w++) {
            pl_ring_core_offer(net->node[w].core, &status, sizeof status,
                               add_numbers);
            pl_ring_core_start(net->node[w].core,
                               &(pl_sum_range) { .count = 4096 });
            pl_ring_core_waiting(net->node[w].core, true);
        }
        ring_settle(net);
        ring_pass(net, 3000);
        for (int32_t w = 0; w < 3; w++)
            assert_fails(PL_ROLLED, "a message was lost",
                         pl_ring_core_outcome(net->node[w].core));
        ring_close(net);
        free(net);
    }
}

/* While a link is made, a message may overtake the one before it: that went
 * over TCP, this one through memory. */
static void ring_sums_when_one_ready_overtakes_another(void **state)
{
    (void)state;
    ring_net *net = malloc(sizeof *net);
    ring_init(net, 2, 4096, 1);
    net->shared = true;
    ring_form(net);
    fill(net);
    int64_t grain = pl_ring_core_ranks(net->node[0].core).grain;
    assert_int_equal(0, net->queued);
    pl_ring_core_start(net->node[1].core, &(pl_sum_range) { .count = grain });
    pl_ring_core_start(
        net->node[1].core,
        &(pl_sum_range) { .first = grain, .count = 4096 - grain });
    assert_int_equal(2, net->queued);
    assert_int_equal(PL_FRAME_READY, net->queue[0].frame.kind);
    assert_int_equal(PL_FRAME_READY, net->queue[1].frame.kind);
    ring_letter first = net->queue[0];
    net->queue[0] = net->queue[1];
    net->queue[1] = first;
    ring_settle(net);
    pl_ring_core_start(net->node[0].core, &(pl_sum_range) { .count = grain });
    pl_ring_core_start(
        net->node[0].core,
        &(pl_sum_range) { .first = grain, .count = 4096 - grain });
    ring_settle(net);
    for (int32_t w = 0; w < 2; w++) {
        assert_true(pl_ring_core_is_quiet(net->node[w].core));
        assert_int_equal(0, pl_ring_core_refused(net->node[w].core));
        for (int64_t i = 0; i < 4096; i++)
            assert_true(net->node[w].memory[i] == before(0, i) + before(1, i));
    }
    ring_close(net);
    free(net);
}

/* Start the sum of each worker whose ring is formed; true when all have. */
static bool start_formed(ring_net *net, bool started[])
{
    bool all = true;
    for (int32_t w = 0; w < net->workers; w++) {
        if (!started[w] && pl_ring_core_formed(net->node[w].core)) {
            started[w] = true;
            pl_ring_core_start(net->node[w].core,
                               &(pl_sum_range) { .count = net->floats });
        }
        all = all && started[w];
    }
    return all;
}

/* Each worker starts its sum as soon as its own ring is formed, when others
 * still link: messages of the sum reach them before. */
static void ring_sums_with_workers_that_formed_first(void **state)
{
    (void)state;
    ring_net *net = malloc(sizeof *net);
    for (uint64_t seed = 0; seed < 100; seed++) {
        bool started[3] = { false };
        ring_init(net, 3, 1000, seed);
        for (int32_t w = 0; w < 3; w++)
            ring_start_node(net, w, PL_ON_LOSS_WAIT);
        fill(net);
        while (!start_formed(net, started))
            if (net->queued > 0)
                ring_deliver_any(net);
            else
                ring_tick(net, 100);
        ring_settle(net);
        for (int32_t w = 0; w < 3; w++)
            assert_true(pl_ring_core_is_quiet(net->node[w].core));
        ring_close(net);
    }
    free(net);
}

/* A worker that computes for long is neither lost nor stuck. */
static void ring_waits_for_a_computing_worker(void **state)
{
    (void)state;
    ring_net *net = malloc(sizeof *net);
    ring_init(net, 3, 64, 1);
    ring_form(net);
    pl_ring_core_start(net->node[0].core, &(pl_sum_range) { .count = 64 });
    pl_ring_core_waiting(net->node[0].core, true);
    pl_ring_core_waiting(net->node[1].core, true);
    ring_pass(net, 20000);
    for (int32_t w = 0; w < 3; w++)
        assert_ok(pl_ring_core_outcome(net->node[w].core));
    ring_close(net);
    free(net);
}

/* A worker that lives and waits for no other, but makes no more progress. */
static void ring_declares_a_stuck_worker_lost(void **state)
{
    (void)state;
    ring_net *net = malloc(sizeof *net);
    ring_init(net, 3, 64, 1);
    ring_form(net);
    pl_ring_core_start(net->node[0].core, &(pl_sum_range) { .count = 64 });
    pl_ring_core_waiting(net->node[0].core, true);
    pl_ring_core_waiting(net->node[1].core, true);
    for (int i = 0; i < 4; i++) { /* it takes a second and a half */
        ring_pass(net, 1500);
        pl_ring_core_step(net->node[2].core);
    }
    ring_pass(net, 15000); /* ten times that may pass */
    assert_ok(pl_ring_core_outcome(net->node[0].core));
    pl_ring_core_progress(net->node[2].core); /* within a step */
    ring_pass(net, 14000);
    assert_ok(pl_ring_core_outcome(net->node[0].core));
    pl_ring_core_step(net->node[2].core);
    ring_pass(net, 100000);
    assert_ok(pl_ring_core_outcome(net->node[0].core)); /* it may be slower */
    ring_pass(net, 250000);
    for (int32_t w = 0; w < 3; w++)
        assert_fails(PL_ROLLED,
                     "worker 2 (c:1) is lost: it responds, but has made no "
                     "progress for",
                     pl_ring_core_outcome(net->node[w].core));
    assert_int_equal(2, net->node[0].lost);
    ring_close(net);
    free(net);
}

static void ring_compares_clocks_with_the_chief(void **state)
{
    (void)state;
    ring_net *net = malloc(sizeof *net);
    ring_init(net, 2, 64, 1);
    ring_form(net);
    ring_pass(net, 500);
    assert_true(pl_ring_core_skew(net->node[1].core).known);
    assert_int_equal(0, pl_ring_core_skew(net->node[1].core).ahead_ns);
    assert_false(pl_ring_core_skew(net->node[0].core).known);
    pl_ring_core_receive(
        net->node[1].core, PL_RING_HUB,
        &(pl_message) { .frame = { .kind = PL_FRAME_HEARTBEAT_ACK,
                                   .incarnation = 1,
                                   .sequence = 1000,
                                   .value = { 5 } } },
        net->now_ns); /* acknowledges no heartbeat of ours */
    assert_int_equal(0, pl_ring_core_skew(net->node[1].core).ahead_ns);
    ring_close(net);
    free(net);
}

static void ring_abort_of_one_ends_all(void **state)
{
    (void)state;
    for (int32_t who = 0; who < 3; who++) {
        ring_net *net = malloc(sizeof *net);
        char says[64];
        ring_init(net, 3, 64, 1);
        ring_form(net);
        pl_ring_core_abort(net->node[who].core, "the disk is full");
        ring_settle(net);
        snprintf(says, sizeof says, "worker %d (%s) failed: the disk is full",
                 who, ring_addresses[who]);
        for (int32_t w = 0; w < 3; w++)
            assert_fails(PL_CLOSED, says,
                         pl_ring_core_outcome(net->node[w].core));
        ring_close(net);
        free(net);
    }
}

static void ring_drops_pieces_that_are_not_due(void **state)
{
    (void)state;
    static float payload[64];
    ring_net *net = malloc(sizeof *net);
    ring_init(net, 2, 64, 1); /* 2 stripes of 32 */
    net->shared = true;
    ring_form(net);
    pl_ring_core *core = net->node[0].core;
    pl_ring_core_start(core, &(pl_sum_range) { .count = 64 });
    uint32_t generation = 1;
    const pl_frame good = { .kind = PL_FRAME_PIECE,
                            .generation = generation,
                            .first = 32,
                            .count = 32,
                            .payload_bytes = 128 };
    pl_frame bad[8];
    for (int i = 0; i < 8; i++)
        bad[i] = good;
    bad[0].sequence = 1;          /* not started */
    bad[1].sequence = UINT64_MAX; /* before */
    bad[2].first = 16;            /* no stripe */
    bad[3].first = 0;             /* its turn is another */
    bad[4].first = -32;
    bad[5].count = 16;
    bad[6].value[0] = 1; /* another hop */
    bad[7].first = 64;
    for (int i = 0; i < 8; i++) {
        pl_message message = { .frame = bad[i], .payload = payload };
        pl_ring_core_receive(core, RING_PREV_PEER + 1, &message, net->now_ns);
        assert_int_equal(i + 1, pl_ring_core_refused(core));
    }
    pl_message message = { .frame = good, .payload = payload };
    pl_ring_core_receive(core, RING_PREV_PEER + 2, &message,
                         net->now_ns); /* a stranger */
    assert_int_equal(9, pl_ring_core_refused(core));
    pl_ring_core_receive(core, RING_PREV_PEER + 1, &message, net->now_ns);
    assert_int_equal(9, pl_ring_core_refused(core));
    pl_ring_core_receive(core, RING_PREV_PEER + 1, &message,
                         net->now_ns); /* twice */
    assert_int_equal(10, pl_ring_core_refused(core));
    ring_close(net);
    free(net);
}

static void ring_drops_impossible_early_pieces(void **state)
{
    (void)state;
    static float payload[64];
    ring_net *net = malloc(sizeof *net);
    ring_init(net, 2, 64, 1); /* 2 stripes of 32 */
    ring_form(net);
    pl_ring_core *core = net->node[0].core;
    const pl_frame good = { .kind = PL_FRAME_PIECE,
                            .generation = 1,
                            .first = 32,
                            .count = 32,
                            .payload_bytes = 128 };
    pl_frame bad[6];
    for (int i = 0; i < 6; i++)
        bad[i] = good;
    bad[0].sequence = 2 * PL_COLLECTIVE_SUMS_MOST; /* far ahead */
    bad[1].first = 64;                             /* beyond the end */
    bad[2].count = 16;
    bad[3].value[0] = 2; /* no hop by which a piece first comes */
    bad[4].value[0] = -1;
    bad[5].payload_bytes = 132; /* longer than its floats */
    for (int i = 0; i < 6; i++) {
        pl_message message = { .frame = bad[i], .payload = payload };
        pl_ring_core_receive(core, RING_PREV_PEER + 1, &message, net->now_ns);
        assert_int_equal(i + 1, pl_ring_core_refused(core));
    }
    pl_message message = { .frame = good, .payload = payload };
    message.frame.sequence = 1; /* will turn out to be of another sum */
    pl_ring_core_receive(core, RING_PREV_PEER + 1, &message, net->now_ns);
    assert_int_equal(6, pl_ring_core_refused(core));
    pl_ring_core_receive(core, RING_PREV_PEER + 1, &message,
                         net->now_ns); /* twice */
    assert_int_equal(7, pl_ring_core_refused(core));
    pl_ring_core_start(core, &(pl_sum_range) { .count = 64 });
    assert_int_equal(8, pl_ring_core_refused(core));
    assert_false(pl_ring_core_summed(core, 0));
    ring_close(net);
    free(net);
}

static void ring_core_new_survives_each_failed_allocation(void **state)
{
    (void)state;
    ring_net *net = malloc(sizeof *net);
    ring_init(net, 2, 64, 1);
    pl_ring_core_opts opts = ring_opts(&net->node[0]);
    pl_ring_core *core = NULL;
    assert_survives_failed_allocations(pl_ring_core_new(&core, &opts),
                                       pl_ring_core_free(core));
    opts.floats = (int64_t)1 << 40;
    assert_fails(PL_UNSUPPORTED, "a ring sums at most",
                 pl_ring_core_new(&core, &opts));
    ring_close(net);
    free(net);
}

UNIT_TESTS(cmocka_unit_test(ring_sums_are_the_same_everywhere_for_any_cut),
           cmocka_unit_test(ring_adds_in_rank_order_and_broadcasts),
           cmocka_unit_test(ring_keeps_pieces_of_later_sums),
           cmocka_unit_test(ring_sums_have_the_same_bits_where_they_are_nan),
           cmocka_unit_test(ring_exchange_gives_all_the_combined_status),
           cmocka_unit_test(ring_exchange_gives_the_chief_all_statuses),
           cmocka_unit_test(ring_traffic_of_the_chief_is_linear_in_workers),
           cmocka_unit_test(ring_names_a_status_of_another_size),
           cmocka_unit_test(ring_notices_a_silent_worker_and_joins_again),
           cmocka_unit_test(ring_joins_again_when_a_new_process_comes),
           cmocka_unit_test(ring_continues_without_a_lost_worker_on_request),
           cmocka_unit_test(ring_continues_after_simultaneous_losses),
           cmocka_unit_test(ring_continues_after_a_loss_in_a_rendezvous),
           cmocka_unit_test(ring_continues_after_losing_the_chief_and_another),
           cmocka_unit_test(ring_continues_without_a_worker_that_never_joins),
           cmocka_unit_test(ring_declares_each_worker_lost_while_it_waits),
           cmocka_unit_test(ring_gives_up_on_a_missing_worker),
           cmocka_unit_test(ring_recovers_from_a_lost_message),
           cmocka_unit_test(ring_sums_when_one_ready_overtakes_another),
           cmocka_unit_test(ring_sums_with_workers_that_formed_first),
           cmocka_unit_test(ring_waits_for_a_computing_worker),
           cmocka_unit_test(ring_declares_a_stuck_worker_lost),
           cmocka_unit_test(ring_ends_when_a_worker_does_not_link),
           cmocka_unit_test(ring_compares_clocks_with_the_chief),
           cmocka_unit_test(ring_abort_of_one_ends_all),
           cmocka_unit_test(ring_drops_pieces_that_are_not_due),
           cmocka_unit_test(ring_drops_impossible_early_pieces),
           cmocka_unit_test(ring_core_new_survives_each_failed_allocation))

#include "job/member/member.h"

#include "support/members.h"

static uint32_t generation(const members_net *net, int32_t member)
{
    return pl_membership_generation(net->node[member].machine);
}

/* member M3, M6: any set of members is lost at once, and the others continue.
 */
static void member_simultaneous_losses_keep_the_others_together(void **state)
{
    (void)state;
    for (uint32_t set = 1; set < 16; set++) {
        members_net *net = members_new(5, PL_ON_LOSS_CONTINUE);
        for (int32_t i = 1; i < 5; i++)
            if ((set >> (i - 1) & 1) != 0)
                members_stop(net, i);
        members_pass(net, 3000);
        for (int32_t i = 0; i < 5; i++) {
            if (net->node[i].machine == NULL)
                continue;
            assert_true(pl_membership_formed(net->node[i].machine));
            assert_int_equal(generation(net, 0),
                             generation(net, i)); /* member M2 */
            assert_true(pl_membership_has(net->node[0].machine, i));
        }
        members_free(net);
    }
    assert_int_equal(0, pl_mem_live());
}

/* A member is silent between two generations for longer than the timeout, and
 * then sends the same attempt again: it is admitted. */
static void member_silent_before_a_rendezvous_is_admitted(void **state)
{
    (void)state;
    members_net *net = members_new(3, PL_ON_LOSS_WAIT);
    members_stop(net, 1);
    members_pass(net, 1500); /* noticed; 0 and 2 join again */
    assert_int_equal(1, net->node[0].lost);
    net->node[2].frozen = true;
    members_pass(net, 1500);
    assert_int_equal(2, net->node[0].lost);
    net->node[2].frozen = false;
    members_start(net, 1);
    members_pass(net, 500);
    for (int32_t i = 0; i < 3; i++)
        assert_true(pl_membership_formed(net->node[i].machine));
    assert_int_equal(1, pl_membership_restarts(net->node[0].machine));
    members_free(net);
}

/* The WELCOME of a generation is lost, and so is the ROLL that ends it: the
 * member, still on the same attempt, is admitted to the next generation. */
static void member_that_missed_its_welcome_is_admitted_later(void **state)
{
    (void)state;
    members_net *net = members_new(3, PL_ON_LOSS_WAIT);
    members_stop(net, 1);
    members_start(net, 1);
    members_settle(net); /* rolled */
    pl_membership_join(net->node[0].machine, true, net->now_ns);
    pl_membership_join(net->node[2].machine, true, net->now_ns);
    net->node[2].frozen = true;
    members_settle(net);
    assert_int_equal(2, generation(net, 1));
    members_stop(net, 1);
    members_start(net, 1);
    members_settle(net); /* rolled */
    net->node[2].frozen = false;
    members_pass(net, 1000);
    for (int32_t i = 0; i < 3; i++) {
        assert_true(pl_membership_formed(net->node[i].machine));
        assert_int_equal(3, generation(net, i));
    }
    members_free(net);
}

/* member M6: the ROLL that ends a generation is lost; the member learns of it
 * at its next heartbeat, long before any deadline. */
static void member_that_missed_its_roll_joins_again(void **state)
{
    (void)state;
    members_net *net = members_new(3, PL_ON_LOSS_WAIT);
    net->node[2].frozen = true;
    members_stop(net, 1);
    members_start(net, 1);
    members_settle(net); /* rolled, and member 2 does not know */
    net->node[2].frozen = false;
    assert_int_equal(0, net->node[2].events[PL_MEMBER_EVENT_ROLLED]);
    members_pass(net, 1000);
    assert_int_equal(1, net->node[2].events[PL_MEMBER_EVENT_ROLLED]);
    assert_string_equal("worker 1 joins again", net->node[2].why);
    for (int32_t i = 0; i < 3; i++) {
        assert_true(pl_membership_formed(net->node[i].machine));
        assert_int_equal(2, generation(net, i));
    }
    assert_int_equal(-1, net->node[0].lost);
    members_free(net);
}

/* member M2: a coordinator's new process continues counting where the old one
 * was. */
static void member_generations_rise_over_coordinators(void **state)
{
    (void)state;
    members_net *net = members_new(3, PL_ON_LOSS_WAIT);
    members_stop(net, 1);
    members_start(net, 1);
    members_pass(net, 500);
    uint32_t before = generation(net, 2);
    assert_true(before >= 2);
    members_stop(net, 0);
    members_start(net, 0);
    members_pass(net, 1000);
    assert_true(generation(net, 2) > before);
    assert_int_equal(generation(net, 0), generation(net, 2));
    assert_int_equal(1, pl_membership_restarts(net->node[0].machine));
    members_free(net);
}

/* member M5: a process that was frozen and replaced is refused. */
static void member_that_was_replaced_is_refused(void **state)
{
    (void)state;
    members_net *net = members_new(2, PL_ON_LOSS_WAIT);
    pl_membership *old = net->node[1].machine;
    members_start(net, 1);
    members_pass(net, 500);
    assert_true(pl_membership_formed(net->node[1].machine));
    pl_membership *young = net->node[1].machine;
    net->node[1].machine = old;
    members_pass(net, 500);
    assert_fails(PL_CLOSED, "a newer process has taken this task's place",
                 pl_membership_outcome(old));
    pl_membership_free(old);
    net->node[1].machine = young;
    members_pass(net, 300);
    assert_true(pl_membership_formed(young));
    members_free(net);
}

/* member M4: messages of another generation, attempt or process have no effect.
 */
static void member_stale_messages_change_nothing(void **state)
{
    (void)state;
    members_net *net = members_new(2, PL_ON_LOSS_WAIT);
    pl_membership *m = net->node[1].machine;
    uint32_t now = generation(net, 1);
    pl_note_message roll = { .kind = PL_FRAME_ROLL, .generation = now - 1 };
    pl_message message = { .frame = pl_note_encode(&roll) };
    assert_true(
        pl_membership_receive(m, PL_TO_COORDINATOR, &message, net->now_ns));
    pl_welcome_message welcome = { .generation = now + 1, .attempt = 77 };
    message.frame = pl_welcome_encode(&welcome);
    assert_true(
        pl_membership_receive(m, PL_TO_COORDINATOR, &message, net->now_ns));
    assert_true(pl_membership_formed(m));
    assert_int_equal(now, generation(net, 1));
    pl_note_message stop = { .kind = PL_FRAME_STOP, .member = 1 };
    message.frame = pl_note_encode(&stop); /* of no process */
    assert_false(
        pl_membership_receive(net->node[0].machine, 11, &message, net->now_ns));
    assert_ok(pl_membership_outcome(net->node[0].machine));
    members_free(net);
}

static void member_that_is_refused_receives_the_reason(void **state)
{
    (void)state;
    members_net *net = members_new(2, PL_ON_LOSS_WAIT);
    net->admit = PL_USAGE;
    members_stop(net, 1);
    members_start(net, 1);
    members_pass(net, 200);
    assert_fails(PL_USAGE, "not this one",
                 pl_membership_outcome(net->node[1].machine));
    members_free(net);
}

/* member M1, M8: the end waits for every report, is sent to all, and is final.
 */
static void member_reports_end_the_job(void **state)
{
    (void)state;
    members_net *net = members_new(3, PL_ON_LOSS_WAIT);
    for (int32_t i = 2; i >= 0; i--) {
        char report[32];
        assert_false(pl_membership_done(net->node[0].machine));
        snprintf(report, sizeof report, "report %d", i);
        assert_ok(pl_membership_finish(net->node[i].machine, report));
        members_settle(net);
    }
    for (int32_t i = 0; i < 3; i++) {
        char report[32];
        snprintf(report, sizeof report, "report %d", i);
        assert_true(pl_membership_done(net->node[i].machine));
        assert_string_equal(report,
                            pl_membership_report(net->node[0].machine, i));
    }
    assert_true(pl_membership_all_told(net->node[0].machine));
    pl_membership_abort(net->node[1].machine, "too late");
    members_pass(net, 3000);
    for (int32_t i = 0; i < 3; i++)
        assert_true(pl_membership_done(net->node[i].machine));
    members_free(net);
}

/* member M7: one that is announced may take its time; the others may not. */
static void member_that_is_not_ready_is_waited_for(void **state)
{
    (void)state;
    members_net *net = calloc(1, sizeof *net);
    net->members = 3;
    net->now_ns = 1;
    for (int32_t i = 0; i < 3; i++) {
        members_start(net, i);
        pl_membership_join(net->node[i].machine, i != 1, net->now_ns);
    }
    members_pass(net, 20000);
    assert_int_equal(-1, pl_membership_absent(net->node[0].machine));
    assert_false(pl_membership_formed(net->node[0].machine));
    pl_membership_ready(net->node[1].machine, net->now_ns);
    members_pass(net, 300);
    for (int32_t i = 0; i < 3; i++)
        assert_true(pl_membership_formed(net->node[i].machine));
    members_free(net);
}

static void member_loss_ends_the_job_with_abort(void **state)
{
    (void)state;
    members_net *net = members_new(3, PL_ON_LOSS_ABORT);
    members_stop(net, 2);
    members_pass(net, 1500);
    for (int32_t i = 0; i < 2; i++)
        assert_fails(PL_CLOSED,
                     "worker 2 is lost: it has been silent for 1.1 s; the "
                     "job ends (--on-worker-loss abort)",
                     pl_membership_outcome(net->node[i].machine));
    members_free(net);
}

static void member_new_survives_each_failed_allocation(void **state)
{
    (void)state;
    static const pl_membership_ops ops = { .event = members_event };
    pl_membership *machine = NULL;
    pl_membership_opts opts = { .members = 3, .incarnation = 1, .ops = &ops };
    assert_survives_failed_allocations(pl_membership_new(&machine, &opts),
                                       pl_membership_free(machine));
}

UNIT_TESTS(
    cmocka_unit_test(member_simultaneous_losses_keep_the_others_together),
    cmocka_unit_test(member_silent_before_a_rendezvous_is_admitted),
    cmocka_unit_test(member_that_missed_its_welcome_is_admitted_later),
    cmocka_unit_test(member_that_missed_its_roll_joins_again),
    cmocka_unit_test(member_generations_rise_over_coordinators),
    cmocka_unit_test(member_that_was_replaced_is_refused),
    cmocka_unit_test(member_stale_messages_change_nothing),
    cmocka_unit_test(member_that_is_refused_receives_the_reason),
    cmocka_unit_test(member_reports_end_the_job),
    cmocka_unit_test(member_that_is_not_ready_is_waited_for),
    cmocka_unit_test(member_loss_ends_the_job_with_abort),
    cmocka_unit_test(member_new_survives_each_failed_allocation))

#include "job/supervise/control.h"
#include "job/supervise/packet.h"

#include "support/unit.h"

#include <fcntl.h>
#include <math.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAR_MS 60000

static pl_deadline far(void)
{
    return pl_deadline_in_ms(pl_clock_real(), FAR_MS);
}

static void open_pair(int *host, pl_control **control)
{
    int task;
    assert_ok(pl_packet_pair(host, &task));
    assert_ok(pl_control_new(control, task));
}

/* The next message of a task; its texts live until the next. */
static pl_status next(int host, pl_control_message *got)
{
    pl_control_message_close(got);
    return pl_packet_receive(host, got);
}

static pl_status tell_cluster(int host, const pl_cluster *cluster)
{
    pl_json *json;
    pl_control_message message = { .kind = PL_CONTROL_CLUSTER };
    assert_ok(pl_cluster_json(cluster, &json));
    assert_ok(pl_json_get_object(json, "cluster", &message.body));
    pl_status status = pl_packet_send(host, &message);
    pl_json_free(json);
    return status;
}

static void tell_secret(int host, const pl_secret *secret)
{
    char text[PL_SECRET_TEXT];
    pl_secret_text(secret, text);
    assert_ok(
        pl_packet_send(host, &(pl_control_message) { .kind = PL_CONTROL_SECRET,
                                                     .secret = text }));
}

static void tell_end(int host)
{
    assert_ok(
        pl_packet_send(host, &(pl_control_message) { .kind = PL_CONTROL_END }));
}

static void control_new_survives_each_failed_allocation(void **state)
{
    (void)state;
    int host, task, copy;
    assert_ok(pl_packet_pair(&host, &task));
    pl_control *control;
    assert_survives_failed_allocations(
        pl_control_new(&control, copy = dup(task)), pl_control_free(control));
    close(task);
    close(host);
}

static void control_refuses_other_descriptors(void **state)
{
    (void)state;
    pl_control *control;
    int pipes[2], pair[2];
    assert_int_equal(0, pipe(pipes));
    assert_int_equal(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    assert_fails(PL_USAGE, "not a socket of a supervisor",
                 pl_control_new(&control, pipes[0]));
    assert_fails(PL_USAGE, "not a socket of a supervisor",
                 pl_control_new(&control, pair[0]));
    assert_fails(PL_USAGE, "--control 1000", pl_control_new(&control, 1000));
    for (int i = 0; i < 2; i++) {
        close(pipes[i]);
        close(pair[i]);
    }
}

static void control_delivers_the_messages_of_a_task(void **state)
{
    (void)state;
    int host;
    pl_control *control;
    pl_control_message got = { 0 };
    open_pair(&host, &control);
    assert_ok(next(host, &got));
    assert_int_equal(PL_CONTROL_HELLO, got.kind);
    assert_int_equal(PL_AGAIN, next(host, &got));

    assert_ok(pl_control_address(control, "127.0.0.1:4711"));
    pl_control_status(control, &(pl_task_status) {
                                   .step = 7,
                                   .own_steps = 5,
                                   .examples = 500,
                                   .dropped = 1,
                                   .loss = 0.25,
                                   .loss_examples = 64,
                                   .test_loss = NAN,
                                   .test_accuracy = -1e300,
                               });
    pl_control_epoch(control, &(pl_epoch) { .epoch = 2,
                                            .step = 7,
                                            .loss = 0.5,
                                            .examples_per_s = NAN,
                                            .test_loss = NAN,
                                            .test_accuracy = 0.75 });
    pl_control_lost(control, (pl_task) { PL_ROLE_WORKER, 12 });
    /* The answer, without which it would be waited for. */
    assert_ok(pl_packet_send(
        host, &(pl_control_message) { .kind = PL_CONTROL_FINAL }));
    pl_control_final(control);

    assert_ok(next(host, &got));
    assert_int_equal(PL_CONTROL_ADDRESS, got.kind);
    assert_string_equal("127.0.0.1:4711", got.text);
    assert_ok(next(host, &got));
    assert_int_equal(PL_CONTROL_STATUS, got.kind);
    assert_int_equal(7, got.status.step);
    assert_int_equal(5, got.status.own_steps);
    assert_int_equal(500, got.status.examples);
    assert_int_equal(1, got.status.dropped);
    assert_true(got.status.loss == 0.25);
    assert_int_equal(64, got.status.loss_examples);
    assert_true(isnan(got.status.test_loss));
    assert_true(got.status.test_accuracy == -1e300);
    assert_ok(next(host, &got));
    assert_int_equal(PL_CONTROL_EPOCH, got.kind);
    assert_int_equal(2, got.epoch.epoch);
    assert_true(got.epoch.loss == 0.5 && got.epoch.test_accuracy == 0.75);
    assert_true(isnan(got.epoch.test_loss));
    assert_ok(next(host, &got));
    assert_int_equal(PL_CONTROL_LOST, got.kind);
    assert_int_equal(PL_ROLE_WORKER, got.task.role);
    assert_int_equal(12, got.task.index);
    assert_ok(next(host, &got));
    assert_int_equal(PL_CONTROL_FINAL, got.kind);
    assert_int_equal(PL_AGAIN, next(host, &got));

    pl_control_free(control);
    assert_int_equal(PL_CLOSED, next(host, &got));
    close(host);
    assert_int_equal(0, pl_mem_live());
}

/* Far more than a socket buffers, and no reader. */
static void control_status_never_waits_and_the_last_one_arrives(void **state)
{
    (void)state;
    int host;
    pl_control *control;
    pl_control_message got = { 0 };
    open_pair(&host, &control);
    const int64_t many = 200000;
    for (int64_t step = 1; step <= many; step++)
        pl_control_status(control, &(pl_task_status) { .step = step });
    int64_t last = 0;
    while (next(host, &got) == PL_OK)
        last = got.status.step;
    pl_control_free(control);
    while (next(host, &got) == PL_OK)
        last = got.status.step;
    assert_int_equal(many, last);
    close(host);
}

static void control_delivers_the_cluster_and_the_end(void **state)
{
    (void)state;
    int host;
    pl_control *control;
    pl_cluster cluster, got;
    open_pair(&host, &control);
    assert_fails(PL_TIMEOUT, "addresses of all parameter servers",
                 pl_control_cluster(control, &got,
                                    pl_deadline_in_ms(pl_clock_real(), 0)));
    assert_ok(pl_cluster_local(&cluster, 1024, 1024, true));
    for (int i = 0; i < 1024; i++)
        assert_ok(
            pl_mem_format(&cluster.ps_address[i], "127.0.0.1:%d", 60000 + i));
    assert_ok(tell_cluster(host, &cluster));
    assert_false(pl_control_ended(control)); /* keeps the cluster */
    assert_ok(pl_control_cluster(control, &got, far()));
    assert_int_equal(1024, got.workers);
    assert_true(got.evaluator);
    assert_string_equal("127.0.0.1:61023", got.ps_address[1023]);
    pl_cluster_close(&got);
    /* Messages sent before the end are not lost. */
    assert_ok(tell_cluster(host, &cluster));
    tell_end(host);
    assert_ok(pl_control_cluster(control, &got, far()));
    pl_cluster_close(&got);
    assert_true(pl_control_ended(control));
    assert_fails(PL_CLOSED, "ends the job",
                 pl_control_cluster(control, &got, far()));
    pl_control_free(control);
    assert_fails(PL_CLOSED, "send a control message",
                 tell_cluster(host, &cluster));
    pl_cluster_close(&cluster);
    close(host);
}

static void control_delivers_the_secret_before_the_cluster(void **state)
{
    (void)state;
    int host;
    pl_control *control;
    pl_secret secret, got;
    pl_cluster cluster;
    open_pair(&host, &control);
    assert_fails(PL_TIMEOUT, "secret",
                 pl_control_secret(control, &got,
                                   pl_deadline_in_ms(pl_clock_real(), 0)));
    assert_ok(pl_secret_make(&secret));
    tell_secret(host, &secret);
    assert_ok(pl_cluster_local(&cluster, 1, 1, false));
    assert_ok(pl_mem_copy_text(&cluster.ps_address[0], "127.0.0.1:1"));
    assert_ok(tell_cluster(host, &cluster));
    pl_cluster_close(&cluster);
    assert_ok(pl_control_secret(control, &got, far()));
    assert_memory_equal(secret.bytes, got.bytes, sizeof got.bytes);
    assert_ok(pl_control_cluster(control, &cluster, far()));
    pl_cluster_close(&cluster);
    close(host);
    pl_control_free(control);
}

static void control_does_not_wait_for_a_lost_supervisor(void **state)
{
    (void)state;
    int host;
    pl_control *control;
    pl_secret got;
    open_pair(&host, &control);
    close(host);
    assert_fails(PL_CLOSED, "ends the job",
                 pl_control_secret(control, &got, far()));
    pl_control_free(control);
}

static void control_ends_when_the_supervisor_is_lost(void **state)
{
    (void)state;
    int host;
    pl_control *control;
    pl_cluster got;
    open_pair(&host, &control);
    assert_false(pl_control_ended(control));
    close(host);
    assert_true(pl_control_ended(control));
    assert_fails(PL_CLOSED, "ends the job",
                 pl_control_cluster(control, &got, far()));
    assert_fails(PL_CLOSED, "the address a:1",
                 pl_control_address(control, "a:1"));
    pl_control_lost(control, (pl_task) { PL_ROLE_WORKER, 0 });
    pl_control_free(control);
}

/* A chief that was asked to end prints its summary, too: by then the terminal
 * must be its own. */
static void control_awaits_the_terminal_after_an_end(void **state)
{
    (void)state;
    int host;
    pl_control *control;
    open_pair(&host, &control);
    tell_end(host);
    assert_true(pl_control_ended(control));
    assert_ok(pl_packet_send(
        host, &(pl_control_message) { .kind = PL_CONTROL_FINAL }));
    pl_control_final(control); /* takes the answer, though it came later */
    assert_ok(pl_packet_send(
        host, &(pl_control_message) { .kind = PL_CONTROL_COUNTS,
                                      .counts = { .restarts = 3 } }));
    assert_int_equal(3, pl_control_counts(control).restarts);
    pl_control_free(control);
    close(host);
}

/* The last message of a task counts even if it did not read those sent to it.
 */
static void control_keeps_messages_sent_before_the_end(void **state)
{
    (void)state;
    int host;
    pl_control *control;
    pl_control_message got = { 0 };
    open_pair(&host, &control);
    tell_end(host);
    pl_control_status(control, &(pl_task_status) { .step = 7 });
    pl_control_free(control);
    assert_ok(next(host, &got));
    assert_int_equal(PL_CONTROL_HELLO, got.kind);
    assert_ok(next(host, &got));
    assert_int_equal(PL_CONTROL_STATUS, got.kind);
    assert_int_equal(7, got.status.step);
    assert_int_equal(PL_CLOSED, next(host, &got));
    close(host);
}

static void control_refuses_malformed_messages(void **state)
{
    (void)state;
    static char large[PL_PACKET_MOST + 1];
    pl_control_message got = { 0 };
    int ours, theirs;
    assert_ok(pl_packet_pair(&ours, &theirs));
    assert_int_equal(5, send(theirs, "hello", 5, 0));
    assert_fails(PL_PEER, "expected a message, found \"hello\"",
                 pl_packet_receive(ours, &got));
    memset(large, 'a', sizeof large);
    assert_true(send(theirs, large, sizeof large, 0) > 0);
    assert_fails(PL_PEER, "a message of 65537 bytes",
                 pl_packet_receive(ours, &got));
    close(ours);
    close(theirs);
}

UNIT_TESTS(
    cmocka_unit_test(control_new_survives_each_failed_allocation),
    cmocka_unit_test(control_refuses_other_descriptors),
    cmocka_unit_test(control_delivers_the_messages_of_a_task),
    cmocka_unit_test(control_awaits_the_terminal_after_an_end),
    cmocka_unit_test(control_keeps_messages_sent_before_the_end),
    cmocka_unit_test(control_delivers_the_secret_before_the_cluster),
    cmocka_unit_test(control_does_not_wait_for_a_lost_supervisor),
    cmocka_unit_test(control_status_never_waits_and_the_last_one_arrives),
    cmocka_unit_test(control_delivers_the_cluster_and_the_end),
    cmocka_unit_test(control_ends_when_the_supervisor_is_lost),
    cmocka_unit_test(control_refuses_malformed_messages))

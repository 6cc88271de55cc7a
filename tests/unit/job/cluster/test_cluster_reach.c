/* Servers named by a host name that means loopback on their own host. */
#include "job/cluster/cluster_reach.h"
#include "support/unit.h"

#include <strings.h>

/* As on Debian: node0's own name is 127.0.1.1 there. */
static pl_status resolve_on_node0(pl_address *address)
{
    static const char *const known[][2] = {
        { "node0", "127.0.1.1" },         { "localhost", "127.0.0.1" },
        { "node0.example", "127.0.1.1" }, { "node1", "10.0.0.8" },
        { "10.0.0.7", "10.0.0.7" },       { "127.0.0.1", "127.0.0.1" },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcasecmp(address->host, known[i][0]) == 0) {
            strcpy(address->numeric, known[i][1]);
            return PL_OK;
        }
    return PL_FAIL(PL_IO, "host %s: not known", address->host);
}

static pl_status check(char **ps, int32_t ps_count, char **workers,
                       int32_t worker_count, pl_task task, bool *only_here)
{
    pl_cluster cluster = { .workers = worker_count,
                           .ps = ps_count,
                           .worker_address = workers,
                           .ps_address = ps };
    return pl_cluster_check_reach(&cluster, task, resolve_on_node0, only_here);
}

#define LIST(...)                                                              \
    (char *[])                                                                 \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

static void reach_of_loopback_is_refused_with_remote_tasks(void **state)
{
    (void)state;
    const pl_task ps0 = { PL_ROLE_PS, 0 }, worker0 = { PL_ROLE_WORKER, 0 };
    bool only;
    assert_fails(PL_USAGE,
                 "ps 0 at node0:4711: on this host node0 means 127.0.1.1, "
                 "where worker 1 at node1:1 cannot reach it",
                 check(LIST("node0:4711"), 1, LIST("node0:1", "node1:1"), 2,
                       ps0, &only));
    assert_non_null(strstr(pl_error_message(), "/etc/hosts"));
    /* Another server is on another host, or on one whose name is unknown here.
     */
    assert_fails(
        PL_USAGE, "ps 1 at node1:4711",
        check(LIST("NODE0:4711", "node1:4711"), 2, NULL, 2, ps0, &only));
    assert_fails(PL_USAGE, "ps 1 at node9:4711",
                 check(LIST("node0.example:4711", "node9:4711"), 2, NULL, 2,
                       ps0, &only));
    /* In a ring the workers listen. */
    assert_fails(
        PL_USAGE, "worker 0 at node0:1",
        check(NULL, 0, LIST("node0:1", "10.0.0.7:1"), 2, worker0, &only));
}

static void reach_of_loopback_is_accepted_on_one_host(void **state)
{
    (void)state;
    const pl_task ps0 = { PL_ROLE_PS, 0 }, worker0 = { PL_ROLE_WORKER, 0 };
    bool only;
    assert_ok(check(LIST("node0:4711"), 1, LIST("node0:1", "localhost:1"), 2,
                    ps0, &only));
    assert_true(only); /* and said */
    assert_ok(check(LIST("node0:4711"), 1, NULL, 2, ps0, &only));
    assert_true(only);
    /* A numeric address is taken literally. */
    assert_ok(check(LIST("127.0.0.1:4711"), 1, LIST("node1:1"), 1, ps0, &only));
    assert_false(only);
    assert_ok(check(LIST("localhost:4711"), 1, LIST("node1:1"), 1, ps0, &only));
    assert_false(only);
    assert_ok(check(LIST("10.0.0.7:4711"), 1, LIST("node1:1"), 1, ps0, &only));
    assert_false(only);
    /* A worker of a job with servers does not listen. */
    assert_ok(check(LIST("node1:4711"), 1, LIST("node0:1"), 1, worker0, &only));
    assert_false(only);
}

UNIT_TESTS(cmocka_unit_test(reach_of_loopback_is_refused_with_remote_tasks),
           cmocka_unit_test(reach_of_loopback_is_accepted_on_one_host))

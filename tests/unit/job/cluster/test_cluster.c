#include "job/cluster/cluster.h"

#include "support/folder.h"

static const char *const three =
    "{\"cluster\": {\"chief\": [\"a:1\"], \"worker\": [\"b:2\", \"c:3\"],"
    " \"ps\": [\"d:4\", \"[::1]:5\"]},"
    " \"task\": {\"type\": \"worker\", \"index\": 1},"
    " \"environment\": \"cloud\", \"rpc_layer\": \"grpc\"}";

static void cluster_of_tf_config_counts_the_chief_as_worker_0(void **state)
{
    (void)state;
    pl_cluster cluster;
    pl_task task;
    assert_ok(pl_cluster_tf_config(&cluster, &task, three));
    assert_true(cluster.named_chief);
    assert_true(cluster.evaluator);
    assert_int_equal(3, cluster.workers);
    assert_int_equal(2, cluster.ps);
    assert_string_equal("a:1", cluster.worker_address[0]);
    assert_string_equal("c:3", cluster.worker_address[2]);
    assert_string_equal("[::1]:5", cluster.ps_address[1]);
    assert_int_equal(PL_ROLE_WORKER, task.role);
    assert_int_equal(2, pl_cluster_worker(&cluster, task));
    assert_false(pl_cluster_is_chief(&cluster, task));
    for (int32_t w = 0; w < 3; w++) {
        pl_task one = pl_cluster_task(&cluster, w);
        assert_ok(pl_cluster_check(&cluster, one));
        assert_int_equal(w, pl_cluster_worker(&cluster, one));
        assert_int_equal(w == 0, pl_cluster_is_chief(&cluster, one));
    }
    assert_int_equal(-1,
                     pl_cluster_worker(&cluster, (pl_task) { PL_ROLE_PS, 1 }));
    pl_cluster_close(&cluster);
    assert_int_equal(0, pl_mem_live());
}

static void cluster_without_a_chief_has_worker_0_as_chief(void **state)
{
    (void)state;
    pl_cluster cluster;
    assert_ok(pl_cluster_local(&cluster, 2, 1, false));
    assert_true(pl_cluster_is_chief(&cluster, (pl_task) { PL_ROLE_WORKER, 0 }));
    assert_false(
        pl_cluster_is_chief(&cluster, (pl_task) { PL_ROLE_WORKER, 1 }));
    assert_fails(PL_USAGE, "worker 0 is its chief",
                 pl_cluster_check(&cluster, (pl_task) { PL_ROLE_CHIEF, 0 }));
    assert_fails(PL_USAGE, "no worker 2: the cluster has 2",
                 pl_cluster_check(&cluster, (pl_task) { PL_ROLE_WORKER, 2 }));
    assert_fails(
        PL_USAGE, "the cluster has no evaluator",
        pl_cluster_check(&cluster, (pl_task) { PL_ROLE_EVALUATOR, 0 }));
    pl_cluster_close(&cluster);
    assert_fails(PL_USAGE, "0 workers",
                 pl_cluster_local(&cluster, 0, 1, false));
    assert_fails(PL_USAGE, "2000 parameter servers",
                 pl_cluster_local(&cluster, 1, 2000, false));
}

/* A task that TensorFlow would know, too. */
static void cluster_takes_tensorflows_other_forms(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int32_t workers, ps;
        pl_task task;
    } cases[] = {
        { "{\"cluster\": {\"worker\": {\"1\": \"b:2\", \"0\": \"a:2\"},"
          " \"ps\": {\"0\": \"c:2\"}}, \"task\": {\"type\": \"ps\","
          " \"index\": 0}}",
          2,
          1,
          { PL_ROLE_PS, 0 } },
        { "{\"cluster\": {\"master\": [\"a:1\"], \"ps\": [\"b:1\"]},"
          " \"task\": {\"type\": \"master\", \"index\": 0}}",
          1,
          1,
          { PL_ROLE_CHIEF, 0 } },
        { "{\"cluster\": {\"chief\": [\"a:1\"], \"ps\": [\"b:1\"]},"
          " \"task\": {\"type\": \"evaluator\", \"index\": 0}}",
          1,
          1,
          { PL_ROLE_EVALUATOR, 0 } },
        { "{\"cluster\": {\"worker\": [\"a:1\", \"b:1\"]},"
          " \"task\": {\"type\": \"worker\", \"index\": \"1\"}}",
          2,
          0,
          { PL_ROLE_WORKER, 1 } },
        { "{\"cluster\": {\"chief\": [\"a:1\"]}, \"task\":"
          " {\"type\": \"chief\", \"trial\": \"3\"}}",
          1,
          0,
          { PL_ROLE_CHIEF, 0 } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_cluster cluster;
        pl_task task;
        assert_ok(pl_cluster_tf_config(&cluster, &task, cases[i].text));
        assert_int_equal(cases[i].workers, cluster.workers);
        assert_int_equal(cases[i].ps, cluster.ps);
        assert_int_equal(cases[i].task.role, task.role);
        assert_int_equal(cases[i].task.index, task.index);
        pl_cluster_close(&cluster);
    }
}

#define TASK ", \"task\": {\"type\": \"worker\", \"index\": 0}}"

static void cluster_knows_a_tf_config_of_a_local_run(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool cluster, task;
    } cases[] = {
        { "{}", false, false },
        { "{\"environment\": \"cloud\"}", false, false },
        { "{\"cluster\": {}" TASK, false, true },
        { "{\"cluster\": null, \"task\": null}", false, false },
        { "{\"cluster\": {\"worker\": [\"a:1\", \"b:1\"]}}", true, false },
        { "{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {}}", true, false },
        { "{\"cluster\": {\"worker\": [\"a:1\"]}" TASK, true, true },
        { "{\"cluster\": 7, \"task\": 7}", true, true }, /* is refused */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool cluster, task;
        assert_ok(pl_cluster_tf_config_has(cases[i].text, &cluster, &task));
        assert_int_equal(cases[i].cluster, cluster);
        assert_int_equal(cases[i].task, task);
    }
    bool cluster, task;
    assert_fails(PL_USAGE, "TF_CONFIG: expected an object, found an array",
                 pl_cluster_tf_config_has("[]", &cluster, &task));
    /* The task may be given elsewhere. */
    pl_cluster found;
    assert_ok(pl_cluster_tf_config(&found, NULL, cases[4].text));
    assert_int_equal(2, found.workers);
    pl_cluster_close(&found);
    assert_int_equal(0, pl_mem_live());
}

static void cluster_names_errors_in_tf_config(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        { "", "TF_CONFIG" },
        { "{", "TF_CONFIG" },
        { "[]", "TF_CONFIG: expected an object, found an array" },
        { "{}", "TF_CONFIG: cluster" },
        { "{\"cluster\": {\"worker\": [\"a:1\"]}}", "TF_CONFIG: task" },
        { "{\"cluster\": []" TASK, "cluster: expected an object" },
        { "{\"cluster\": {}" TASK, "cluster: expected a chief or workers" },
        { "{\"cluster\": {\"wroker\": [\"a:1\"]}" TASK,
          "cluster: expected the roles chief, worker, ps and evaluator, found "
          "\"wroker\"" },
        { "{\"cluster\": {\"worker\": []}" TASK,
          "cluster: worker: expected at least one address" },
        { "{\"cluster\": {\"worker\": \"a:1\"}" TASK,
          "cluster: worker: expected a list of addresses" },
        { "{\"cluster\": {\"worker\": [\"a:1\", 7]}" TASK,
          "cluster: worker: [1]: address: expected a string" },
        { "{\"cluster\": {\"worker\": [\"a\"]}" TASK,
          "worker: [0]: expected \"host:port\"" },
        { "{\"cluster\": {\"worker\": [\"\"]}" TASK, "found \"\"" },
        { "{\"cluster\": {\"worker\": [\":1\"]}" TASK, "found \":1\"" },
        { "{\"cluster\": {\"worker\": [\"a b:1\"]}" TASK, "found \"a b:1\"" },
        { "{\"cluster\": {\"worker\": [\"::1:1\"]}" TASK, "for IPv6" },
        { "{\"cluster\": {\"worker\": [\"grpc://a:1\"]}" TASK, "host:port" },
        { "{\"cluster\": {\"worker\": [\"a:0\"]}" TASK,
          "a port from 1 to 65535, found \"0\"" },
        { "{\"cluster\": {\"worker\": [\"a:65536\"]}" TASK, "65536" },
        { "{\"cluster\": {\"worker\": [\"a:12x\"]}" TASK, "12x" },
        { "{\"cluster\": {\"worker\": [\"a:1\"], \"ps\": [\"b:2\", "
          "\"A:1\"]}" TASK,
          "worker 0 and ps 1 have the same address, A:1" },
        { "{\"cluster\": {\"worker\": [\"127.0.0.1:7\"], \"ps\": "
          "[\"LocalHost:7\"]}" TASK,
          "worker 0 and ps 0 have the same address, LocalHost:7" },
        { "{\"cluster\": {\"chief\": [\"a:1\", \"a:2\"]}" TASK,
          "chief: found 2 addresses, expected at most 1" },
        { "{\"cluster\": {\"chief\": [\"a:1\"], \"master\": [\"a:2\"]}" TASK,
          "both chief and master" },
        { "{\"cluster\": {\"ps\": [\"a:1\"]}" TASK, "chief or workers" },
        { "{\"cluster\": {\"worker\": {\"1\": \"a:1\"}}" TASK,
          "found task \"1\" among 1; expected all tasks from 0 to 0" },
        { "{\"cluster\": {\"worker\": {\"00\": \"a:1\"}}" TASK,
          "found task \"00\"" },
        { "{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"type\":"
          " \"worker\"}}",
          "task: index" },
        { "{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"type\":"
          " \"worker\", \"index\": 1}}",
          "task: there is no worker 1: the cluster has 1" },
        { "{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"type\":"
          " \"worker\", \"index\": -1}}",
          "task: index" },
        { "{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"type\":"
          " \"worker\", \"index\": \"x\"}}",
          "index: expected a whole number" },
        { "{\"cluster\": {\"worker\": [\"a:1\"]}, \"task\": {\"type\":"
          " \"boss\", \"index\": 0}}",
          "task: type: expected chief, worker, ps or evaluator" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_cluster cluster;
        pl_task task;
        assert_fails(PL_USAGE, cases[i].part,
                     pl_cluster_tf_config(&cluster, &task, cases[i].text));
    }
    assert_int_equal(0, pl_mem_live());
}

static const char *write_file(void **state, const char *text)
{
    const char *path = test_path(*state, "cluster.json");
    assert_ok(pl_file_replace(path, text, strlen(text)));
    return path;
}

static void cluster_file_entry_is_picked_by_deploy(void **state)
{
    const char *path = write_file(
        state, "{\"single\": {\"worker\": [\"localhost:2222\"]},"
               " \"cluster\": {\"ps\": [\"a:1\"], \"worker\": [\"a:2\"]},"
               " \"cluster2\": {\"cluster\": {\"ps\": [\"a:1\"],"
               " \"worker\": [\"a:2\", \"b:2\"]}}}");
    pl_cluster cluster;
    assert_ok(pl_cluster_read(&cluster, path, "single"));
    assert_int_equal(1, cluster.workers);
    assert_int_equal(0, cluster.ps);
    assert_null(cluster.ps_address);
    pl_cluster_close(&cluster);
    assert_ok(pl_cluster_read(&cluster, path, "cluster2"));
    assert_int_equal(2, cluster.workers);
    assert_int_equal(1, cluster.ps);
    pl_cluster_close(&cluster);
    assert_fails(PL_USAGE, "the entries are: single, cluster, cluster2",
                 pl_cluster_read(&cluster, path, "cluster3"));
    assert_fails(PL_USAGE, "found 3 clusters; choose one with --deploy",
                 pl_cluster_read(&cluster, path, NULL));
}

static void cluster_file_holds_one_cluster(void **state)
{
    static const char *const same[] = {
        "{\"cluster\": {\"ps\": [\"a:1\"], \"worker\": [\"a:2\"]}}",
        "{\"mine\": {\"ps\": [\"a:1\"], \"worker\": [\"a:2\"]}}",
        "{\"ps\": [\"a:1\"], \"worker\": [\"a:2\"]}",
        ("{\"cluster\": {\"ps\": [\"a:1\"], \"worker\": [\"a:2\"]},"
         " \"task\": {\"type\": \"ps\", \"index\": 0}, \"rpc_layer\": \"x\"}"),
    };
    pl_cluster cluster;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        assert_ok(pl_cluster_read(&cluster, write_file(state, same[i]), NULL));
        assert_int_equal(1, cluster.workers);
        assert_string_equal("a:1", cluster.ps_address[0]);
        assert_true(cluster.evaluator);
        pl_cluster_close(&cluster);
    }
    assert_fails(PL_USAGE, "cluster.json: expected an object",
                 pl_cluster_read(&cluster, write_file(state, "[]"), NULL));
    assert_fails(PL_USAGE, "found no object",
                 pl_cluster_read(&cluster, write_file(state, "{}"), NULL));
    assert_fails(PL_USAGE, "cluster.json",
                 pl_cluster_read(&cluster, write_file(state, "{]"), NULL));
    assert_fails(PL_USAGE, "cluster.json: mine: worker",
                 pl_cluster_read(&cluster,
                                 write_file(state, "{\"mine\": {\"worker\":"
                                                   " 1}}"),
                                 NULL));
    assert_fails(PL_NOTFOUND, "nowhere",
                 pl_cluster_read(&cluster, test_path(*state, "nowhere"), NULL));
    assert_int_equal(0, pl_mem_live());
}

static void check_round_trip(const pl_cluster *cluster)
{
    pl_json *json, *again;
    pl_cluster read;
    assert_ok(pl_cluster_json(cluster, &json));
    assert_ok(pl_cluster_from_json(&read, json));
    assert_ok(pl_cluster_json(&read, &again));
    assert_true(pl_json_equal(json, again));
    assert_int_equal(cluster->workers, read.workers);
    assert_int_equal(cluster->ps, read.ps);
    assert_int_equal(cluster->named_chief, read.named_chief);
    assert_int_equal(cluster->evaluator, read.evaluator);
    assert_true((cluster->worker_address == NULL) ==
                (read.worker_address == NULL));
    pl_json_free(json);
    pl_json_free(again);
    pl_cluster_close(&read);
}

static void cluster_as_json_reads_back_the_same(void **state)
{
    (void)state;
    pl_cluster cluster;
    pl_task task;
    assert_ok(pl_cluster_local(&cluster, 3, 2, true));
    check_round_trip(&cluster);
    assert_ok(pl_mem_copy_text(&cluster.ps_address[1], "127.0.0.1:77"));
    check_round_trip(&cluster);
    pl_cluster_close(&cluster);
    assert_ok(pl_cluster_local(&cluster, 1, 0, false));
    check_round_trip(&cluster);
    pl_cluster_close(&cluster);
    assert_ok(pl_cluster_tf_config(&cluster, &task, three));
    check_round_trip(&cluster);
    pl_cluster_close(&cluster);
    assert_int_equal(0, pl_mem_live());
}

/* Drop what a step made, so that the whole is one expression. */
static pl_status whole_way(void)
{
    pl_cluster cluster, read = { 0 };
    pl_task task;
    pl_json *json = NULL;
    PL_TRY(pl_cluster_tf_config(&cluster, &task, three));
    pl_status status = pl_cluster_json(&cluster, &json);
    if (status == PL_OK)
        status = pl_cluster_from_json(&read, json);
    pl_json_free(json);
    pl_cluster_close(&read);
    pl_cluster_close(&cluster);
    if (status == PL_OK)
        status = pl_cluster_local(&read, 3, 2, true);
    if (status == PL_OK)
        pl_cluster_close(&read);
    return status;
}

static void cluster_survives_each_failed_allocation(void **state)
{
    (void)state;
    assert_survives_failed_allocations(whole_way(), (void)0);
}

UNIT_TESTS(cmocka_unit_test(cluster_of_tf_config_counts_the_chief_as_worker_0),
           cmocka_unit_test(cluster_without_a_chief_has_worker_0_as_chief),
           cmocka_unit_test(cluster_takes_tensorflows_other_forms),
           cmocka_unit_test(cluster_knows_a_tf_config_of_a_local_run),
           cmocka_unit_test(cluster_names_errors_in_tf_config),
           TEST_IN_FOLDER(cluster_file_entry_is_picked_by_deploy),
           TEST_IN_FOLDER(cluster_file_holds_one_cluster),
           cmocka_unit_test(cluster_as_json_reads_back_the_same),
           cmocka_unit_test(cluster_survives_each_failed_allocation))

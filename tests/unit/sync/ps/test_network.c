/* Real servers and workers in threads of one process, over real sockets and
 * through shared memory. */
#include "base/log.h"
#include "base/thread.h"
#include "net/transport.h"
#include "support/unit.h"
#include "sync/ps/sync.h"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORKERS 2
#define SERVERS 2
#define STEPS   3

/* System calls of this thread. */
typedef struct calls {
    int64_t looks; /* that found nothing */
    int64_t sleeps;
} calls;

static _Thread_local calls made;

/* In place of the C library's. */
int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms)
{
    int count = epoll_pwait(epoll, events, most, timeout_ms, NULL);
    made.looks += count == 0;
    return count;
}

int ppoll(struct pollfd *polls, nfds_t count, const struct timespec *left,
          const sigset_t *mask)
{
    struct timespec copy = *left; /* the system call writes to it */
    made.sleeps++;
    return (int)syscall(SYS_ppoll, polls, count, &copy, mask, sizeof(uint64_t));
}

typedef struct job {
    pl_ps_mode mode;
    const pl_transport *transport;
    int32_t servers;
    int64_t end_step;
    const pl_json *settings; /* or NULL */
    bool intruder;           /* a task with other settings comes first */
    pl_cluster cluster;
    pl_ps_server *server[SERVERS];
    pl_ps_server_view seen[SERVERS];
    calls made[SERVERS];
} job;

typedef struct task {
    job *job;
    int32_t index;
    pl_params *params;
    pl_ps_sync *sync;
    pl_ps_sync_view view;
    bool shared;
    bool reported;
} task;

/* Every parameter p has the gradient p / 2 + worker + 1, so that two workers
 * walk from 1 to these with a learning rate of 1. */
static const float path[STEPS + 1] = { 1.0f, -1.0f, -2.0f, -2.5f };

static pl_status check_params(const task *t, int64_t step)
{
    for (int i = 0; i < pl_params_count(t->params); i++) {
        const pl_params_item *item = pl_params_get(t->params, i);
        const float *p = pl_params_block(t->params) + item->offset;
        for (int64_t k = 0; k < item->count; k++)
            if (p[k] != path[step])
                return PL_FAIL(PL_FORMAT,
                               "worker %d, step %lld: %s[%lld] is %g, expected "
                               "%g",
                               t->index, (long long)step, item->name,
                               (long long)k, (double)p[k], (double)path[step]);
    }
    return PL_OK;
}

static pl_status one_step(task *t, bool sync, pl_commit *commit)
{
    pl_sync *base = pl_ps_sync_base(t->sync);
    float *block = base->ops->gradient(base);
    for (int i = 0; i < pl_params_count(t->params); i++)
        PL_TRY(base->ops->need(base, i, NULL));
    for (int i = pl_params_count(t->params) - 1; i >= 0; i--) {
        const pl_params_item *item = pl_params_get(t->params, i);
        const float *p = pl_params_block(t->params) + item->offset;
        float *grad = block + item->offset;
        for (int64_t k = 0; k < item->count; k++)
            grad[k] = sync ? 0.5f * p[k] + (float)(t->index + 1) : -1.0f;
        PL_TRY(base->ops->ready(base, i, grad, NULL));
    }
    return base->ops->commit(base, commit);
}

static pl_status train(task *t)
{
    pl_sync *base = pl_ps_sync_base(t->sync);
    bool sync = t->job->mode == PL_PS_SYNC;
    pl_standing at = { 0 };
    PL_TRY(base->ops->join(base, &at));
    t->shared = pl_ps_sync_look(t->sync).shared;
    pl_commit commit = { .step = at.step,
                         .stop = pl_ps_sync_look(t->sync).over };
    while (!commit.stop) {
        if (sync) {
            for (int i = 0; i < pl_params_count(t->params); i++)
                PL_TRY(base->ops->need(base, i, NULL));
            PL_TRY(check_params(t, commit.step));
        }
        PL_TRY(one_step(t, sync, &commit));
        if (commit.dropped && !commit.stop)
            return PL_FAIL(PL_FORMAT, "a gradient was dropped");
    }
    if (t->index == 0) {
        int64_t step = 0;
        PL_TRY(base->ops->pause(base, true, &step));
        if (step != t->job->end_step)
            return PL_FAIL(PL_FORMAT, "ended at %lld", (long long)step);
    }
    return base->ops->finish(base);
}

static pl_status worker_main(void *arg)
{
    task *t = arg;
    PL_TRY(pl_ps_sync_new(&t->sync, &(pl_ps_sync_opts) {
                                        .cluster = &t->job->cluster,
                                        .task = { PL_ROLE_WORKER, t->index },
                                        .mode = t->job->mode,
                                        .transport = t->job->transport,
                                        .heartbeat_ms = 60000,
                                        .join_ms = 60000,
                                        .end_step = t->job->end_step,
                                        .settings = t->job->settings,
                                        .params = t->params,
                                    }));
    pl_status status = train(t);
    t->view = pl_ps_sync_look(t->sync);
    t->reported = t->view.reports != NULL;
    pl_sync *base = pl_ps_sync_base(t->sync);
    base->ops->free(base);
    return status;
}

typedef struct served {
    job *job;
    int32_t index;
    calls made;
} served;

static pl_status server_main(void *arg)
{
    served *s = arg;
    pl_ps_server *server = s->job->server[s->index];
    pl_status status = pl_ps_server_run(server, s->job->cluster.ps_address[0]);
    s->job->seen[s->index] = pl_ps_server_look(server);
    s->made = made;
    return status;
}

static void open_servers(job *j)
{
    assert_ok(pl_cluster_local(&j->cluster, WORKERS, j->servers, false));
    for (int32_t i = 0; i < j->servers; i++) {
        assert_ok(pl_ps_server_new(&j->server[i],
                                   &(pl_ps_server_opts) {
                                       .core = { .index = i,
                                                 .ps = j->servers,
                                                 .workers = WORKERS,
                                                 .mode = j->mode,
                                                 .heartbeat_ms = 60000,
                                                 .join_ms = 60000,
                                                 .settings = j->settings,
                                                 .kernels = pl_kernels_best() },
                                       .optim = { .name = "sgd" },
                                       .schedule = { .lr = 1.0 },
                                       .address = "127.0.0.1:0",
                                       .transport = j->transport,
                                   }));
        assert_ok(pl_mem_copy_text(&j->cluster.ps_address[i],
                                   pl_ps_server_address(j->server[i])));
    }
}

static void open_params(task *t)
{
    assert_ok(pl_params_new(&t->params));
    assert_ok(pl_params_add(t->params, "weights", PL_SHAPE(7, 5)));
    assert_ok(pl_params_add(t->params, "bias", PL_SHAPE(5)));
    assert_ok(pl_params_seal(t->params));
    for (int64_t i = 0; t->index == 0 && i < pl_params_block_count(t->params);
         i++)
        pl_params_block(t->params)[i] = 1.0f;
}

/* Ask every server to join as worker 1 of another job: of another size,
 * another length and other settings.  All refuse. */
static void intrude(const job *j)
{
    static const char join[] =
        "{\"role\": \"worker\", \"index\": 1, \"job\": \"\", \"shm\": \"\", "
        "\"host\": \"h\", \"floats\": 999, \"table_first\": 0, "
        "\"table_count\": 500, \"end_step\": 1, \"run_steps\": 1, "
        "\"settings\": {\"lr\": \"0.5\"}}";
    for (int32_t i = 0; i < j->servers; i++) {
        pl_endpoint *end;
        pl_message got;
        pl_frame frame = { .kind = PL_FRAME_JOIN,
                           .payload_bytes = sizeof join - 1 };
        assert_ok(pl_endpoint_connect(
            &end, &(pl_endpoint_opts) { .address = j->cluster.ps_address[i],
                                        .name = "intruder" }));
        assert_ok(pl_endpoint_send(end, 0, &frame, join, false));
        assert_ok(pl_endpoint_receive(
            end, &got, pl_deadline_in_ms(pl_clock_real(), 60000)));
        assert_int_equal(PL_FRAME_REFUSE, got.frame.kind);
        char why[400];
        snprintf(why, sizeof why, "%.*s", (int)got.frame.payload_bytes,
                 (const char *)got.payload);
        assert_non_null(strstr(why, "--lr is 0.5 here and 1 at ps"));
        pl_endpoint_free(end, 0);
    }
}

/* Run a job to its end; `out` are its workers, with their parameters. */
static void run_job(job *j, task out[WORKERS])
{
    pl_thread *servers[SERVERS], *workers[WORKERS];
    served serves[SERVERS];
    pl_log_set(NULL, NULL, j->intruder ? PL_LOG_ERROR : PL_LOG_WARN);
    open_servers(j);
    for (int32_t i = 0; i < j->servers; i++) {
        serves[i] = (served) { .job = j, .index = i };
        assert_ok(
            pl_thread_start(&servers[i], "server", server_main, &serves[i]));
    }
    if (j->intruder)
        intrude(j);
    for (int32_t w = 0; w < WORKERS; w++) {
        out[w] = (task) { .job = j, .index = w };
        open_params(&out[w]);
    }
    for (int32_t w = 0; w < WORKERS; w++)
        assert_ok(pl_thread_start(&workers[w], "worker", worker_main, &out[w]));
    for (int32_t w = 0; w < WORKERS; w++)
        assert_ok(pl_thread_join(workers[w]));
    for (int32_t i = 0; i < j->servers; i++) {
        assert_ok(pl_thread_join(servers[i]));
        j->made[i] = serves[i].made;
        pl_ps_server_free(j->server[i]);
    }
    pl_cluster_close(&j->cluster);
}

static void close_tasks(task tasks[WORKERS])
{
    for (int32_t w = 0; w < WORKERS; w++)
        pl_params_free(tasks[w].params);
    assert_int_equal(0, pl_mem_live());
}

static void check_sync(const pl_transport *transport, int32_t servers)
{
    job j = { .mode = PL_PS_SYNC,
              .transport = transport,
              .servers = servers,
              .end_step = STEPS };
    task tasks[WORKERS];
    run_job(&j, tasks);
    assert_ok(check_params(&tasks[0], STEPS));
    for (int32_t i = 0; i < servers; i++) {
        assert_int_equal(STEPS, j.seen[i].step);
        assert_int_equal(0, j.seen[i].dropped);
    }
    for (int32_t w = 0; w < WORKERS; w++) {
        assert_true(tasks[w].shared == (transport == &pl_transport_shm));
        assert_int_equal(STEPS, tasks[w].view.made);
        assert_true(tasks[w].view.over);
        assert_true(tasks[w].view.sent_bytes > 0);
        assert_true(tasks[w].reported == (w == 0));
    }
    close_tasks(tasks);
}

/* Each gradient adds 1 to every parameter: none is lost or made twice. */
static void check_async(pl_ps_mode mode, const pl_transport *transport,
                        int32_t servers)
{
    job j = {
        .mode = mode, .transport = transport, .servers = servers, .end_step = 20
    };
    task tasks[WORKERS];
    run_job(&j, tasks);
    for (int i = 0; i < 2; i++) {
        const pl_params_item *item = pl_params_get(tasks[0].params, i);
        for (int64_t k = 0; k < item->count; k++)
            assert_true(pl_params_block(tasks[0].params)[item->offset + k] ==
                        21.0f);
    }
    for (int32_t i = 0; i < servers; i++)
        assert_int_equal(20, j.seen[i].step);
    assert_int_equal(20, tasks[0].view.made + tasks[1].view.made);
    assert_int_equal(0, tasks[0].view.dropped);
    close_tasks(tasks);
}

static void ps_network_sync_makes_the_steps_of_one_process(void **state)
{
    (void)state;
    for (int32_t servers = 1; servers <= SERVERS; servers++) {
        check_sync(&pl_transport_tcp, servers);
        check_sync(&pl_transport_shm, servers);
    }
}

static void ps_network_async_makes_each_update_once(void **state)
{
    (void)state;
    for (int32_t servers = 1; servers <= SERVERS; servers++) {
        check_async(PL_PS_ASYNC, &pl_transport_tcp, servers);
        check_async(PL_PS_ASYNC, &pl_transport_shm, servers);
    }
}

/* A poll that finds nothing is followed by a sleep, never by another poll. */
static void ps_network_a_server_polls_once_before_it_sleeps(void **state)
{
    (void)state;
    job j = { .mode = PL_PS_ASYNC,
              .transport = &pl_transport_tcp,
              .servers = 1,
              .end_step = 20 };
    task tasks[WORKERS];
    run_job(&j, tasks);
    assert_true(j.made[0].sleeps > 0);
    assert_in_range(j.made[0].looks, 1, j.made[0].sleeps + 1);
    close_tasks(tasks);
}

static void ps_network_ssp_ends_at_the_requested_steps(void **state)
{
    (void)state;
    check_async(PL_PS_SSP, &pl_transport_tcp, 1);
    check_async(PL_PS_SSP, &pl_transport_shm, 1);
}

static void ps_network_a_refused_task_changes_nothing(void **state)
{
    (void)state;
    pl_json *settings;
    assert_ok(pl_json_new_object(&settings));
    assert_ok(pl_json_set_text(settings, "lr", "1"));
    job j = { .mode = PL_PS_SYNC,
              .transport = &pl_transport_tcp,
              .servers = SERVERS,
              .end_step = STEPS,
              .settings = settings,
              .intruder = true };
    task tasks[WORKERS];
    run_job(&j, tasks);
    assert_ok(check_params(&tasks[0], STEPS));
    for (int32_t i = 0; i < SERVERS; i++)
        assert_int_equal(STEPS, j.seen[i].step);
    pl_json_free(settings);
    close_tasks(tasks);
}

static void interrupt_before_joins(void *context, int64_t step)
{
    if (step < 0)
        atomic_store((atomic_bool *)context, true);
}

/* A server that was restarted when the workers had ended gets the end from its
 * supervisor, which `step` asks. */
static void ps_network_a_server_without_workers_can_be_ended(void **state)
{
    atomic_bool interrupt = false;
    pl_ps_server *server;
    (void)state;
    assert_ok(
        pl_ps_server_new(&server, &(pl_ps_server_opts) {
                                      .core = { .ps = 1,
                                                .workers = WORKERS,
                                                .join_ms = 60000,
                                                .kernels = pl_kernels_best() },
                                      .optim = { .name = "sgd" },
                                      .schedule = { .lr = 1.0 },
                                      .address = "127.0.0.1:0",
                                      .interrupt = &interrupt,
                                      .step = interrupt_before_joins,
                                      .context = &interrupt,
                                  }));
    assert_fails(PL_INTERRUPTED, "before any worker joined",
                 pl_ps_server_run(server, pl_ps_server_address(server)));
    pl_ps_server_free(server);
    assert_int_equal(0, pl_mem_live());
}

UNIT_TESTS(cmocka_unit_test(ps_network_sync_makes_the_steps_of_one_process),
           cmocka_unit_test(ps_network_async_makes_each_update_once),
           cmocka_unit_test(ps_network_a_server_polls_once_before_it_sleeps),
           cmocka_unit_test(ps_network_ssp_ends_at_the_requested_steps),
           cmocka_unit_test(ps_network_a_refused_task_changes_nothing),
           cmocka_unit_test(ps_network_a_server_without_workers_can_be_ended))

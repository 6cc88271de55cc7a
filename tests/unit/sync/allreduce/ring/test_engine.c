#include "sync/allreduce/ring/engine.h"

#include "base/thread.h"
#include "net/transport.h"
#include "support/unit.h"

#define WORKERS 3
#define FLOATS  70000
#define ROUNDS  20

/* One worker of a ring over the real network, on a thread. */
typedef struct ring_worker {
    struct ring_job *job;
    int32_t index;
    pl_endpoint *listen;
    pl_collective *ring;
    pl_thread *thread;
    float sums[FLOATS];
} ring_worker;

typedef struct ring_job {
    pl_cluster cluster;
    char *address[WORKERS];
    const pl_transport *transport;
    const pl_job_keys *keys;
    bool encrypt;
    ring_worker worker[WORKERS];
} ring_job;

static pl_deadline patience(void)
{
    return pl_deadline_in_ms(pl_clock_real(), 60000);
}

static void job_listen(ring_job *job)
{
    job->cluster =
        (pl_cluster) { .workers = WORKERS, .worker_address = job->address };
    for (int32_t w = 0; w < WORKERS; w++) {
        ring_worker *worker = &job->worker[w];
        worker->job = job;
        worker->index = w;
        assert_ok(pl_endpoint_listen(&worker->listen,
                                     &(pl_endpoint_opts) {
                                         .address = "127.0.0.1:0",
                                         .name = "test",
                                         .keys = job->keys,
                                         .self = { PL_PRINCIPAL_WORKER, w },
                                         .encrypt = job->encrypt,
                                     }));
        assert_ok(pl_mem_copy_text(&job->address[w],
                                   pl_endpoint_address(worker->listen)));
    }
}

static void job_close(ring_job *job)
{
    for (int32_t w = 0; w < WORKERS; w++) {
        pl_endpoint_free(job->worker[w].listen, 0);
        pl_mem_free(job->address[w]);
    }
}

static pl_ring_engine_opts engine_opts(const ring_job *job, int32_t worker)
{
    return (pl_ring_engine_opts) {
        .cluster = &job->cluster,
        .worker = worker,
        .listen = job->worker[worker].listen,
        .keys = job->keys,
        .floats = FLOATS,
        .transport = job->transport,
        .encrypt = job->encrypt,
        .heartbeat_ms = 60000,
        .join_ms = 60000,
        .kernels = pl_kernels_best(),
    };
}

static void add_digits(void *total, const void *status)
{
    *(int64_t *)total = *(int64_t *)total * 10 + *(const int64_t *)status;
}

/* Sum in three ranges during a status exchange. */
static pl_status make_round(ring_worker *self, const pl_ranks *ranks,
                            int64_t round)
{
    const pl_collective_ops *ops = self->ring->ops;
    float *memory = ops->memory(self->ring);
    int64_t size =
        (FLOATS / 3 + ranks->grain - 1) / ranks->grain * ranks->grain;
    int64_t status = self->index + 1, total, expected = 0;
    int32_t ticket, last = -1;
    for (int64_t i = 0; i < FLOATS; i++)
        memory[i] = (float)(i % 100 + self->index + round);
    PL_TRY(ops->offer(self->ring, &status, sizeof status, add_digits));
    for (int64_t first = 0; first < FLOATS; first += size) {
        pl_sum_range range = {
            .first = first,
            .count = FLOATS - first < size ? FLOATS - first : size,
            .more = first + size < FLOATS,
        };
        PL_TRY(ops->start(self->ring, &range, &ticket));
        last++;
    }
    assert_int_equal(last, ticket);
    PL_TRY(ops->exchange(self->ring, &total, patience()));
    for (int64_t w = 1; w <= WORKERS; w++)
        expected = expected * 10 + w;
    assert_int_equal(expected, total);
    PL_TRY(ops->wait(self->ring, 0, patience()));
    ops->background(self->ring); /* as where the caller computes now */
    for (int32_t t = 1; t <= last; t++)
        PL_TRY(ops->wait(self->ring, t, patience()));
    memcpy(self->sums, memory, sizeof self->sums);
    return ops->quiet(self->ring, patience());
}

static pl_status worker_main(void *arg)
{
    ring_worker *self = arg;
    pl_ring_engine_opts opts = engine_opts(self->job, self->index);
    pl_ranks ranks;
    PL_TRY(pl_ring_engine_new(&self->ring, &opts));
    pl_status status = self->ring->ops->join(self->ring, &ranks);
    for (int64_t round = 0; round < ROUNDS && status == PL_OK; round++) {
        status = make_round(self, &ranks, round);
        for (int64_t i = 0; i < FLOATS && status == PL_OK; i++)
            assert_true(self->sums[i] ==
                        (float)(3 * (i % 100) + 3 + 3 * round));
    }
    pl_collective_view view = self->ring->ops->look(self->ring);
    assert_true(view.sent_bytes > 0 && view.received_bytes > 0);
    assert_int_equal(self->job->transport == &pl_transport_shm, view.shared);
    self->ring->ops->free(self->ring);
    return status;
}

static void run(ring_job *job)
{
    job_listen(job);
    for (int32_t w = WORKERS - 1; w >= 0; w--)
        assert_ok(pl_thread_start(&job->worker[w].thread, "worker", worker_main,
                                  &job->worker[w]));
    for (int32_t w = 0; w < WORKERS; w++)
        assert_ok(pl_thread_join(job->worker[w].thread));
    job_close(job);
}

static void ring_engine_sums_through_shared_memory(void **state)
{
    (void)state;
    static ring_job job;
    job = (ring_job) { .transport = &pl_transport_shm };
    run(&job);
}

static void ring_engine_sums_over_tcp(void **state)
{
    (void)state;
    static ring_job job;
    job = (ring_job) { .transport = &pl_transport_tcp };
    run(&job);
}

static void ring_engine_sums_among_workers_with_the_keys(void **state)
{
    (void)state;
    static const pl_job_keys keys = { .workers = WORKERS };
    static ring_job job;
    for (int encrypt = 0; encrypt < 2; encrypt++) {
        job = (ring_job) { .transport = &pl_transport_tcp,
                           .keys = &keys,
                           .encrypt = encrypt != 0 };
        run(&job);
    }
}

static void ring_engine_gives_up_on_a_missing_worker(void **state)
{
    (void)state;
    static ring_job job;
    job = (ring_job) { 0 };
    job_listen(&job);
    pl_ring_engine_opts opts = engine_opts(&job, 0);
    pl_collective *ring;
    pl_ranks ranks;
    opts.join_ms = 1;
    assert_ok(pl_ring_engine_new(&ring, &opts));
    assert_fails(PL_TIMEOUT,
                 "worker 1 (127.0.0.1:", ring->ops->join(ring, &ranks));
    ring->ops->free(ring);
    job_close(&job);
}

static void ring_engine_join_can_be_interrupted(void **state)
{
    (void)state;
    static ring_job job;
    static const atomic_bool now = true;
    job = (ring_job) { 0 };
    job_listen(&job);
    pl_ring_engine_opts opts = engine_opts(&job, 1);
    pl_collective *ring;
    pl_ranks ranks;
    opts.interrupt = &now;
    assert_ok(pl_ring_engine_new(&ring, &opts));
    assert_fails(PL_INTERRUPTED, "while joining",
                 ring->ops->join(ring, &ranks));
    ring->ops->free(ring);
    job_close(&job);
}

static void ring_engine_new_survives_each_failed_allocation(void **state)
{
    (void)state;
    static ring_job job;
    job = (ring_job) { 0 };
    job_listen(&job);
    for (int32_t w = 0; w < 2; w++) {
        pl_ring_engine_opts opts = engine_opts(&job, w);
        pl_collective *ring = NULL;
        assert_survives_failed_allocations(pl_ring_engine_new(&ring, &opts),
                                           ring->ops->free(ring));
    }
    job_close(&job);
}

UNIT_TESTS(cmocka_unit_test(ring_engine_sums_through_shared_memory),
           cmocka_unit_test(ring_engine_sums_over_tcp),
           cmocka_unit_test(ring_engine_sums_among_workers_with_the_keys),
           cmocka_unit_test(ring_engine_gives_up_on_a_missing_worker),
           cmocka_unit_test(ring_engine_join_can_be_interrupted),
           cmocka_unit_test(ring_engine_new_survives_each_failed_allocation))

#include "observe/steps/steps.h"

#include "support/unit.h"

#include <math.h>

#define RATE 125e6 /* bytes a second of 1 Gbit/s */
#define MB   1e6

static const pl_step_net one_gbit = { .bytes_per_s = RATE };

/* Layers that take no time. */
static const pl_step_layer bare[] = {
    { 0, 0, 2 * MB, 2 * MB },
    { 0, 0, 4 * MB, 4 * MB },
    { 0, 0, 6 * MB, 6 * MB },
};
static const pl_step_work no_compute = { .layers = bare, .layer_count = 3 };
#define BYTES (12 * MB)

/* Equal layers: 10 ms forward, 20 ms backward, as many bytes as one link
 * carries in 8 ms. */
static const pl_step_layer even[] = {
    { 0.01, 0.02, MB, MB },
    { 0.01, 0.02, MB, MB },
    { 0.01, 0.02, MB, MB },
    { 0.01, 0.02, MB, MB },
};
static const pl_step_work balanced = { .layers = even, .layer_count = 4 };
#define COMPUTE 0.12

#define assert_near(expected, found)                                           \
    do {                                                                       \
        double e_ = (expected), f_ = (found);                                  \
        if (!(fabs(e_ - f_) <= 1e-9 * fabs(e_) + 1e-15))                       \
            fail_msg("%s: expected %.12g, found %.12g", #found, e_, f_);       \
    } while (0)

static pl_step_time predict(const pl_step_work *work, const pl_step_net *net,
                            pl_step_job job)
{
    pl_step_time time;
    assert_ok(pl_step_predict(&time, work, net, &job));
    return time;
}

static double step_s(const pl_step_work *work, const pl_step_net *net,
                     pl_step_job job)
{
    return predict(work, net, job).step_s;
}

static void steps_of_one_process_add_up(void **state)
{
    (void)state;
    pl_step_work work = balanced;
    work.input_s = 0.005;
    work.update_s = 0.003;
    pl_step_time time = predict(&work, &one_gbit, (pl_step_job) { 0 });
    assert_near(COMPUTE + 0.008, time.step_s);
    assert_near(1 / time.step_s, time.gradients_per_s);
    assert_int_equal(PL_STEP_COMPUTE, time.limit);
    assert_near(0, time.link_bytes);
}

/* Patarasuk and Yuan (2009): no algorithm moves fewer bytes. */
static void steps_of_a_ring_take_its_bytes(void **state)
{
    (void)state;
    static const int32_t ranks[] = { 2, 3, 10, 100, 1000 };
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        double n = ranks[i], bytes = 2 * (n - 1) / n * BYTES;
        pl_step_time time =
            predict(&no_compute, &one_gbit,
                    (pl_step_job) { PL_STEP_ALLREDUCE, .workers = ranks[i] });
        assert_near(bytes / RATE, time.step_s);
        assert_near(bytes, time.link_bytes);
        assert_int_equal(PL_STEP_LINK, time.limit);
    }
}

/* A bucket waits for 2 (N - 1) hops. */
static void steps_of_a_ring_have_the_latency_of_its_hops(void **state)
{
    (void)state;
    const pl_step_layer small = { .push_bytes = 1000 };
    const pl_step_work work = { .layers = &small, .layer_count = 1 };
    const pl_step_net net = { .latency_s = 1e-4, .message_s = 1e-6 };
    pl_step_time time = predict(
        &work, &net, (pl_step_job) { PL_STEP_ALLREDUCE, .workers = 1000 });
    assert_near(2 * 999 * (1e-4 + 1e-6), time.step_s);
    assert_int_equal(PL_STEP_LATENCY, time.limit);
}

/* A round is steps by themselves, and then sums of all planes, which nothing
 * hides. */
static void steps_of_a_round_share_its_exchange(void **state)
{
    (void)state;
    pl_step_job job = { PL_STEP_ALLREDUCE, .workers = 4, .local_steps = 8,
                        .planes = 3 };
    double bytes = 2 * 3 / 4.0 * 4 * MB * 3 / 8;
    pl_step_work work = balanced;
    work.update_s = 0.003;
    pl_step_time time = predict(&work, &one_gbit, job);
    assert_near(COMPUTE + 0.003 + bytes / RATE, time.step_s);
    assert_near(bytes, time.link_bytes);
    assert_int_equal(PL_STEP_COMPUTE, time.limit);
    /* Messages of no size: a status, and the hops of each plane. */
    const pl_step_layer small = { .push_bytes = 1 };
    const pl_step_work none = { .layers = &small, .layer_count = 1 };
    const pl_step_net far = { .latency_s = 1e-4 };
    assert_near((2 + 3 * 6) * 1e-4 / 8, step_s(&none, &far, job));
    /* One process has no peer to exchange with. */
    job.workers = 1;
    assert_near(COMPUTE + 0.003, step_s(&work, &one_gbit, job));
}

/* Servers on hosts of their own: the busier of a server's link, W bytes / S,
 * and a worker's, once for the gradients and once for the answers. */
static void steps_of_servers_take_the_bytes_of_the_busier_link(void **state)
{
    (void)state;
    static const int32_t sizes[][2] = { { 1, 1 },     { 4, 1 }, { 4, 2 },
                                        { 10, 10 },   { 2, 8 }, { 1000, 1 },
                                        { 1000, 100 } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        double w = sizes[i][0], s = sizes[i][1];
        double busier = fmax(BYTES, w * BYTES / s);
        pl_step_job job = { PL_STEP_SYNC, .workers = sizes[i][0],
                            .servers = sizes[i][1], .apart = true };
        pl_step_time time = predict(&no_compute, &one_gbit, job);
        assert_near(2 * busier / RATE, time.step_s);
        assert_near(busier, time.link_bytes);
        /* Without lock step both directions are used at once, and a lone
         * worker's cycle is the longer one. */
        job.strategy = PL_STEP_ASYNC;
        time = predict(&no_compute, &one_gbit, job);
        double alone = 2 * BYTES / RATE;
        assert_near(fmax(alone, w * BYTES / s / RATE), time.step_s);
    }
}

/* With a server on each worker's host both move what a ring moves. */
static void steps_of_shared_hosts_take_the_bytes_of_a_ring(void **state)
{
    (void)state;
    static const int32_t hosts[] = { 2, 8, 100, 1000 };
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        double n = hosts[i];
        pl_step_time time =
            predict(&no_compute, &one_gbit,
                    (pl_step_job) { PL_STEP_SYNC, .workers = hosts[i],
                                    .servers = hosts[i], .hosts = hosts[i] });
        assert_near(2 * (n - 1) / n * BYTES / RATE, time.step_s);
        assert_near(2 * (n - 1) / n * BYTES, time.link_bytes);
    }
}

/* Two ranks: 8 ms of link a layer, under 20 ms of backward; only the last
 * bucket is not hidden. */
static void steps_of_a_ring_hide_sums_behind_the_backward_pass(void **state)
{
    (void)state;
    pl_step_job job = { PL_STEP_ALLREDUCE, .workers = 2 };
    pl_step_net net = one_gbit;
    assert_near(COMPUTE + 0.008, step_s(&balanced, &net, job));
    /* A link a tenth as fast is busy from the first gradient on. */
    net.bytes_per_s /= 10;
    assert_near(0.04 + 0.02 + 4 * 0.08, step_s(&balanced, &net, job));
    /* Gradients of all layers at once hide nothing. */
    pl_step_work whole = balanced;
    whole.whole = true;
    assert_near(COMPUTE + 4 * 0.08, step_s(&whole, &net, job));
}

/* One worker, one server, and layers of four pieces: the first layer's 8 ms in
 * each direction are not hidden; reading the batch is. */
static void steps_of_servers_overlap_both_passes(void **state)
{
    (void)state;
    const double layer = 4 << 20;
    pl_step_job job = { PL_STEP_SYNC, .workers = 1, .servers = 1,
                        .apart = true };
    pl_step_net net = { .bytes_per_s = layer / 0.008 };
    pl_step_layer layers[4];
    pl_step_work work = { .layers = layers, .layer_count = 4 };
    for (size_t i = 0; i < work.layer_count; i++)
        layers[i] = (pl_step_layer) { 0.01, 0.02, layer, layer };
    assert_near(0.008 + COMPUTE + 0.008, step_s(&work, &net, job));
    work.input_s = 0.008;
    assert_near(0.008 + COMPUTE + 0.008, step_s(&work, &net, job));
    work.whole = true;
    assert_near(0.032 + 0.008 + COMPUTE + 0.032, step_s(&work, &net, job));
}

/* Gradients of at most eight pieces leave when all are done. */
static void steps_of_small_ranges_push_at_the_end(void **state)
{
    (void)state;
    pl_step_job job = { PL_STEP_SYNC, .workers = 1, .servers = 4,
                        .apart = true };
    assert_near(0.008 + COMPUTE + 0.032, step_s(&balanced, &one_gbit, job));
    /* Single messages of a server to three workers come one after another:
     * the first of them pushes while the last one computes. */
    const pl_step_layer small = { 0.01, 0.02, MB, MB };
    const pl_step_work work = { .layers = &small, .layer_count = 1 };
    job = (pl_step_job) { PL_STEP_SYNC, .workers = 3, .servers = 1,
                          .apart = true };
    assert_near(2 * 0.008 + 0.03 + 3 * 0.008, step_s(&work, &one_gbit, job));
}

/* Seconds of a step on one, and on `workers` over the link, with layers of
 * equal computing that have these shares of the bytes. */
static double efficiency(double compute_s, double bytes, const double *shares,
                         size_t count, pl_step_job job, double bits_per_s)
{
    pl_step_layer layers[16];
    pl_step_work work = { .layers = layers, .layer_count = count };
    const pl_step_net net = { .bytes_per_s = bits_per_s / 8 };
    double n = (double)count;
    for (size_t i = 0; i < count; i++)
        layers[i] = (pl_step_layer) { compute_s / 3 / n, compute_s * 2 / 3 / n,
                                      shares[i] * bytes, shares[i] * bytes };
    return compute_s / step_s(&work, &net, job);
}

/* What Horovod and BytePS published is what docs/performance.md sets beside
 * these: the model has no switches, no jitter and no cost of processors, so
 * that it is above what was measured. */
static void steps_of_published_clusters_are_upper_bounds(void **state)
{
    (void)state;
    /* Parameters of VGG-16: 0.1 of them in 13 convolutions, then 3 layers. */
    static const double vgg[16] = {
        [12] = 14.7 / 138.4,
        [13] = 102.8 / 138.4,
        [14] = 16.8 / 138.4,
        [15] = 4.1 / 138.4,
    };
    static const double alike[8] = { 0.125, 0.125, 0.125, 0.125,
                                     0.125, 0.125, 0.125, 0.125 };
    pl_step_job ring = { PL_STEP_ALLREDUCE, .workers = 128 };
    /* 128 hosts, 64 images at 154 and 142 images/s, 25 Gbit/s. */
    double vgg16 = efficiency(64 / 154.0, 553.6 * MB, vgg, 16, ring, 25e9);
    double inception = efficiency(64 / 142.0, 95.4 * MB, alike, 8, ring, 25e9);
    assert_true(vgg16 > 0.68 && vgg16 < 1);
    assert_true(inception > 0.90 && inception < 1);
    /* More hosts than a few change little: a ring's bytes hardly grow. */
    ring.workers = 1000;
    double most = efficiency(64 / 154.0, 553.6 * MB, vgg, 16, ring, 25e9);
    assert_true(most < vgg16 && most > 0.99 * vgg16);
}

static void steps_in_lock_step_wait_for_the_slow_worker(void **state)
{
    (void)state;
    const pl_step_net fast = { 0 };
    pl_step_job job = { PL_STEP_SYNC, .workers = 4, .servers = 1,
                        .slowdown = 3 };
    pl_step_time time = predict(&balanced, &fast, job);
    assert_near(3 * COMPUTE, time.step_s);
    assert_near(3, time.gain[PL_STEP_STRAGGLER]);
    job.strategy = PL_STEP_SSP;
    assert_near(3 * COMPUTE, step_s(&balanced, &fast, job));
    job.strategy = PL_STEP_ALLREDUCE;
    assert_near(3 * COMPUTE, step_s(&balanced, &fast, job));
    /* Without lock step three workers go on and one is a third as fast. */
    job.strategy = PL_STEP_ASYNC;
    time = predict(&balanced, &fast, job);
    assert_near((3 + 1.0 / 3) / COMPUTE, time.gradients_per_s);
    /* A worker that stops now and then. */
    job = (pl_step_job) { PL_STEP_ALLREDUCE, .workers = 4, .stall_s = 0.5 };
    assert_near(COMPUTE + 0.5, step_s(&balanced, &fast, job));
}

static void steps_in_lock_step_wait_for_the_slow_link(void **state)
{
    (void)state;
    pl_step_job job = { PL_STEP_ALLREDUCE, .workers = 4,
                        .slow_bytes_per_s = RATE / 10 };
    pl_step_time time = predict(&no_compute, &one_gbit, job);
    assert_near(1.5 * BYTES / (RATE / 10), time.step_s);
    assert_near(10, time.gain[PL_STEP_STRAGGLER]);
    job = (pl_step_job) { PL_STEP_SYNC, .workers = 4, .servers = 4,
                          .apart = true, .slow_bytes_per_s = RATE / 10 };
    time = predict(&no_compute, &one_gbit, job);
    assert_near(2 * BYTES / (RATE / 10), time.step_s);
    assert_int_equal(PL_STEP_STRAGGLER, time.limit);
}

static void steps_are_limited_by_what_would_shorten_them_most(void **state)
{
    (void)state;
    const pl_step_net local = { .local_bytes_per_s = 4e9 };
    pl_step_work work = balanced;
    pl_step_job job = { PL_STEP_SYNC, .workers = 4, .servers = 1,
                        .apart = true };
    assert_int_equal(PL_STEP_SERVER_LINK,
                     predict(&no_compute, &one_gbit, job).limit);
    /* As many servers as workers: no link alone is the limit. */
    job.servers = 4;
    assert_int_equal(PL_STEP_LINK, predict(&no_compute, &one_gbit, job).limit);
    job.servers = 1;
    work.input_s = 1;
    assert_int_equal(PL_STEP_INPUT, predict(&work, &local, job).limit);
    work.input_s = 0;
    work.update_s = 1;
    assert_int_equal(PL_STEP_SERVER, predict(&work, &local, job).limit);
    job = (pl_step_job) { PL_STEP_ALLREDUCE, .workers = 4 };
    assert_int_equal(PL_STEP_UPDATE, predict(&work, &local, job).limit);
}

/* Workers and threads beyond the cores of a host share them. */
static void steps_share_the_cores_of_a_host(void **state)
{
    (void)state;
    const pl_step_net fast = { 0 };
    pl_step_job job = { PL_STEP_ALLREDUCE, .workers = 8, .hosts = 2,
                        .cores = 2 };
    assert_near(2 * COMPUTE, step_s(&balanced, &fast, job));
    job.hosts = 4;
    assert_near(COMPUTE, step_s(&balanced, &fast, job));
    /* A server takes from the async workers of its host what it uses. */
    pl_step_work work = balanced;
    work.update_s = COMPUTE / 4;
    job = (pl_step_job) { PL_STEP_ASYNC, .workers = 4, .servers = 1, .hosts = 4,
                          .cores = 1 };
    pl_step_time time = predict(&work, &fast, job);
    assert_near(2 * COMPUTE, time.step_s);
}

static void steps_survive_each_failed_allocation(void **state)
{
    (void)state;
    pl_step_time time;
    const pl_step_job job = { PL_STEP_SSP, .workers = 2, .servers = 2,
                              .slowdown = 2 };
    assert_survives_failed_allocations(
        pl_step_predict(&time, &balanced, &one_gbit, &job), (void)0);
}

UNIT_TESTS(cmocka_unit_test(steps_of_one_process_add_up),
           cmocka_unit_test(steps_of_a_ring_take_its_bytes),
           cmocka_unit_test(steps_of_a_ring_have_the_latency_of_its_hops),
           cmocka_unit_test(steps_of_a_round_share_its_exchange),
           cmocka_unit_test(steps_of_servers_take_the_bytes_of_the_busier_link),
           cmocka_unit_test(steps_of_shared_hosts_take_the_bytes_of_a_ring),
           cmocka_unit_test(steps_of_a_ring_hide_sums_behind_the_backward_pass),
           cmocka_unit_test(steps_of_servers_overlap_both_passes),
           cmocka_unit_test(steps_of_small_ranges_push_at_the_end),
           cmocka_unit_test(steps_of_published_clusters_are_upper_bounds),
           cmocka_unit_test(steps_in_lock_step_wait_for_the_slow_worker),
           cmocka_unit_test(steps_in_lock_step_wait_for_the_slow_link),
           cmocka_unit_test(steps_are_limited_by_what_would_shorten_them_most),
           cmocka_unit_test(steps_share_the_cores_of_a_host),
           cmocka_unit_test(steps_survive_each_failed_allocation))

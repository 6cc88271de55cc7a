/* All-reduce as the training loop sees it, with workers that are lost.
 *
 * Invariants and the tests that check them:
 *   rounds O1  local_steps_are_tested_between_rounds
 *   rounds O2  local_steps_continue_after_a_loss_with_the_same_bits */
#include "sync/allreduce/allreduce.h"

#include "support/folder.h"
#include "support/hall.h"
#include "support/train.h"
#include "sync/allreduce/factors.h"
#include "train/loop/loop.h"

#include <math.h>

#define BATCH 16
#define STEPS 12

/* One worker of a job, on a thread. */
typedef struct job_worker {
    struct job *job;
    int32_t index;
    rig rig;
    pl_allreduce_sync *sync;
    pl_loop_result result;
    pl_status status;
    char message[512];
    pl_thread *thread;
    atomic_bool interrupt;
    /* What goes wrong with it. */
    int64_t end_step;     /* 0: as all others */
    int64_t lose_at;      /* the hall is lost at this step of it; 0: never */
    int64_t spoil_at;     /* it changes a parameter */
    int64_t interrupt_at; /* it is interrupted */
    const char *settings;
    const char *arithmetic; /* of its products; NULL: as of all */
    pl_factors *factors;
    pl_sync_ops ops; /* the sync's own, but for commit */
} job_worker;

typedef struct job {
    int32_t workers;
    hall hall;
    job_worker worker[HALL_MOST];
    int64_t bucket_bytes;
    pl_optim_opts optim;
    const char *folder; /* the chief's checkpoints */
    double stop_loss;
    int64_t save_every;
    bool factors;          /* gradients of dense layers travel as such */
    const pl_model *model; /* default: two_layers */
    int64_t batch;         /* default BATCH */
    bool tests;            /* also without stop_loss */
    int64_t local_steps;
    double outer_lr, outer_momentum; /* 0: a rate of 1, no momentum */
} job;

static pl_status (*real_commit)(pl_sync *sync, pl_commit *out);

/* Find the worker of a sync. */
static job_worker *worker_of(const pl_sync *sync)
{
    return (job_worker *)((char *)(uintptr_t)sync->ops -
                          offsetof(job_worker, ops));
}

static pl_status bad_commit(pl_sync *sync, pl_commit *out)
{
    job_worker *w = worker_of(sync);
    int64_t step = pl_allreduce_sync_look(w->sync).step + 1;
    if (step == w->lose_at) {
        w->lose_at = 0;
        hall_lose(&w->job->hall);
    }
    if (step == w->spoil_at)
        pl_params_block(w->rig.network->params)[5] += 1;
    if (step == w->interrupt_at)
        atomic_store(&w->interrupt, true);
    uint64_t begin = pl_ticks_now();
    pl_status status = real_commit(sync, out);
    /* An update is computing, however long the others were waited for. */
    if (status == PL_OK)
        assert_true((out->own_ticks > 0) == !out->dropped &&
                    out->own_ticks <= pl_ticks_now() - begin);
    return status;
}

static int64_t batch_of(const job *j)
{
    return j->batch > 0 ? j->batch : BATCH;
}

static pl_status worker_main(void *arg)
{
    job_worker *w = arg;
    job *j = w->job;
    bool chief = w->index == 0, tests = j->tests || j->stop_loss > 0;
    pl_sync *sync = pl_allreduce_sync_base(w->sync);
    pl_loop_opts opts = {
        .network = w->rig.network,
        .train = w->rig.train,
        .test = chief ? w->rig.test : NULL,
        .sync = sync,
        .pool = w->rig.pool,
        .metrics = w->rig.metrics,
        .schedule = &w->rig.schedule,
        .interrupt = &w->interrupt,
        .order = { .batch = batch_of(j),
                   .worker = w->index,
                   .workers = j->workers,
                   .seed = 11 },
        .steps = STEPS,
        .targets.stop_loss = j->stop_loss,
        .eval_every = { tests ? PL_EVERY_STEPS : PL_EVERY_NEVER, 2 },
        .save_every = { j->save_every > 0 ? PL_EVERY_STEPS : PL_EVERY_NEVER,
                        j->save_every },
        .follower = !chief,
    };
    w->status = pl_loop_run(&opts, &w->result);
    snprintf(w->message, sizeof w->message, "%s",
             w->status == PL_OK ? "" : pl_error_message());
    return PL_OK;
}

static void worker_init(job *j, int32_t index)
{
    job_worker *w = &j->worker[index];
    w->job = j;
    w->index = index;
    rig_init(&w->rig, &(rig_opts) { .model = j->model,
                                    .optim = j->optim,
                                    .folder = index == 0 ? j->folder : NULL,
                                    .settings = w->settings });
    if (!j->factors)
        return;
    assert_ok(
        pl_factors_new(&w->factors, w->rig.network, batch_of(j), j->workers));
    if (w->factors != NULL && w->arithmetic != NULL)
        snprintf(w->factors->arithmetic, sizeof w->factors->arithmetic, "%s",
                 w->arithmetic);
}

static void sync_init(job *j, int32_t index)
{
    job_worker *w = &j->worker[index];
    assert_ok(pl_allreduce_sync_new(
        &w->sync,
        &(pl_allreduce_sync_opts) {
            .collective = &j->hall.rank[index].base,
            .worker = index,
            .workers = j->workers,
            .local_steps = j->local_steps,
            .outer_lr = j->outer_lr > 0 ? j->outer_lr : 1,
            .outer_momentum = j->outer_momentum,
            .bucket_bytes = j->bucket_bytes,
            .end_step = w->end_step > 0 ? w->end_step : STEPS,
            .settings = w->rig.settings,
            .params = w->rig.network->params,
            .optim = w->rig.optim,
            .factors = w->factors,
            .link = w->factors != NULL ? PL_LINK_BYTES : PL_LINK_UNKNOWN,
            .schedule = &w->rig.schedule,
            .pool = w->rig.pool,
            .snapshot = w->rig.snapshot,
        }));
    pl_sync *sync = pl_allreduce_sync_base(w->sync);
    real_commit = sync->ops->commit;
    w->ops = *sync->ops;
    w->ops.commit = bad_commit;
    sync->ops = &w->ops;
}

/* Train; the caller closes the job. */
static void job_run(job *j)
{
    for (int32_t i = 0; i < j->workers; i++)
        worker_init(j, i);
    const pl_params *params = j->worker[0].rig.network->params;
    hall_init(
        &j->hall, j->workers,
        pl_params_block_count(params) +
            pl_factor_step_extra(j->worker[0].factors, params, j->workers, 16),
        16);
    for (int32_t i = 0; i < j->workers; i++)
        sync_init(j, i);
    for (int32_t i = 0; i < j->workers; i++)
        assert_ok(pl_thread_start(&j->worker[i].thread, "worker", worker_main,
                                  &j->worker[i]));
    for (int32_t i = 0; i < j->workers; i++)
        assert_ok(pl_thread_join(j->worker[i].thread));
}

static void job_close(job *j)
{
    for (int32_t i = 0; i < j->workers; i++) {
        pl_sync *sync = pl_allreduce_sync_base(j->worker[i].sync);
        sync->ops->free(sync);
        pl_factors_free(j->worker[i].factors);
        rig_close(&j->worker[i].rig);
    }
    hall_close(&j->hall);
}

static void assert_all_ok(const job *j, int64_t step)
{
    for (int32_t i = 0; i < j->workers; i++) {
        if (j->worker[i].status != PL_OK)
            fail_msg("worker %d: %s", i, j->worker[i].message);
        assert_int_equal(step, j->worker[i].result.progress.step);
    }
}

static void assert_same_params(const pl_params *a, const pl_params *b)
{
    assert_memory_equal(pl_params_block(a), pl_params_block(b),
                        (size_t)pl_params_block_count(a) * sizeof(float));
}

static void assert_alike(const job *j)
{
    for (int32_t i = 1; i < j->workers; i++)
        assert_same_params(j->worker[0].rig.network->params,
                           j->worker[i].rig.network->params);
}

/* The same in one process. */
static void run_single_of(rig *r, const rig_opts *of, int64_t batch,
                          int32_t micro)
{
    pl_loop_result result;
    rig_init(r, of);
    pl_loop_opts opts = rig_loop(r);
    opts.test = NULL;
    opts.order =
        (pl_reader_opts) { .batch = batch, .micro_batches = micro, .seed = 11 };
    opts.steps = STEPS;
    assert_ok(pl_loop_run(&opts, &result));
}

static void run_single(rig *r, const pl_optim_opts *optim, int32_t micro)
{
    run_single_of(r, &(rig_opts) { .optim = *optim }, BATCH, micro);
}

static void allreduce_of_n_is_one_with_n_micro_batches(void **state)
{
    (void)state;
    const char *const optims[] = { "sgd",     "momentum", "adagrad",
                                   "rmsprop", "adam",     "ftrl" };
    for (size_t o = 0; o < sizeof optims / sizeof *optims; o++)
        for (int32_t n = 1; n <= 3; n++) {
            rig alone;
            job j = { .workers = n, .optim = { .name = optims[o] } };
            run_single(&alone, &j.optim, n);
            job_run(&j);
            assert_all_ok(&j, STEPS);
            assert_alike(&j);
            assert_same_params(alone.network->params,
                               j.worker[0].rig.network->params);
            job_close(&j);
            rig_close(&alone);
        }
}

/* The hidden layer pays as factors, the small one behind it does not; buckets
 * of the rest are small, so that several are under way. */
static void factors_have_the_bits_of_micro_batches(void **state)
{
    (void)state;
    for (int32_t n = 1; n <= HALL_MOST; n++) {
        rig alone;
        job j = { .workers = n,
                  .factors = true,
                  .batch = 4,
                  .bucket_bytes = 64,
                  .optim = { .name = "adam" } };
        run_single_of(&alone, &(rig_opts) { .optim = j.optim }, 4, n);
        job_run(&j);
        assert_all_ok(&j, STEPS);
        assert_alike(&j);
        assert_same_params(alone.network->params,
                           j.worker[0].rig.network->params);
        for (int32_t i = 0; i < n; i++)
            assert_int_equal(n > 1,
                             pl_allreduce_sync_look(j.worker[i].sync).factors);
        job_close(&j);
        rig_close(&alone);
    }
}

static pl_status narrow_first_build(pl_build *b)
{
    pl_node *x = pl_tanh(pl_dense(b, "narrow", b->input, 4));
    x = pl_tanh(pl_dense(b, "wide", x, 32));
    x = pl_tanh(pl_dense(b, "factors", x, 32));
    b->logits = pl_dense(b, "output", x, b->classes);
    return PL_OK;
}

/* The layers before the one that pays as factors have their gradients last, as
 * convolutions have. */
static void products_are_formed_while_the_rest_is_under_way(void **state)
{
    (void)state;
    static const pl_model narrow_first = {
        .name = "narrow_first",
        .help = "four dense layers",
        .build = narrow_first_build,
    };
    rig alone;
    job j = { .workers = 3,
              .factors = true,
              .batch = 4,
              .bucket_bytes = 64,
              .model = &narrow_first };
    run_single_of(&alone, &(rig_opts) { .model = j.model }, 4, 3);
    job_run(&j);
    assert_all_ok(&j, STEPS);
    assert_alike(&j);
    assert_same_params(alone.network->params, j.worker[0].rig.network->params);
    for (int32_t i = 0; i < 3; i++)
        assert_true(j.hall.rank[i].beside >= STEPS);
    job_close(&j);
    rig_close(&alone);
}

/* In each of these the last step of some is one of its status alone. */
static void factors_survive_losses_and_interrupts(void **state)
{
    (void)state;
    job calm = { .workers = 3, .factors = true, .batch = 4 };
    job_run(&calm);
    for (int32_t who = 0; who < 3; who++) {
        job lost = { .workers = 3, .factors = true, .batch = 4 };
        lost.worker[who].lose_at = 5;
        job_run(&lost);
        assert_all_ok(&lost, STEPS);
        assert_same_params(calm.worker[0].rig.network->params,
                           lost.worker[0].rig.network->params);
        job_close(&lost);
        job ended = { .workers = 3, .factors = true, .batch = 4 };
        ended.worker[who].interrupt_at = 5;
        job_run(&ended);
        assert_all_ok(&ended, 5);
        assert_alike(&ended);
        job_close(&ended);
    }
    job_close(&calm);
}

static void factors_are_not_used_where_products_may_differ(void **state)
{
    (void)state;
    job plain = { .workers = 2, .batch = 4 };
    job j = { .workers = 2, .factors = true, .batch = 4 };
    j.worker[1].arithmetic = "another library";
    job_run(&plain);
    job_run(&j);
    assert_all_ok(&j, STEPS);
    for (int32_t i = 0; i < 2; i++)
        assert_false(pl_allreduce_sync_look(j.worker[i].sync).factors);
    assert_same_params(plain.worker[0].rig.network->params,
                       j.worker[0].rig.network->params);
    job_close(&plain);
    job_close(&j);
}

static void allreduce_bits_do_not_depend_on_buckets(void **state)
{
    (void)state;
    job whole = { .workers = 2, .bucket_bytes = 1 << 20 };
    job cut = { .workers = 2, .bucket_bytes = 256 };
    job_run(&whole);
    job_run(&cut);
    assert_all_ok(&cut, STEPS);
    assert_true(cut.hall.total_sums > 4 * whole.hall.total_sums);
    assert_same_params(whole.worker[0].rig.network->params,
                       cut.worker[0].rig.network->params);
    job_close(&whole);
    job_close(&cut);
}

static void allreduce_stop_loss_ends_all_at_one_step(void **state)
{
    (void)state;
    job j = { .workers = 3, .stop_loss = 1e9 };
    job_run(&j);
    assert_all_ok(&j, 2); /* the first test */
    assert_alike(&j);
    assert_int_equal(PL_STOPPED_STOP_LOSS, j.worker[0].result.stopped_by);
    assert_int_equal(0, j.worker[0].result.dropped);
    assert_int_equal(1, j.worker[2].result.dropped);
    job_close(&j);
}

static void allreduce_interrupt_of_one_ends_all(void **state)
{
    (void)state;
    for (int32_t who = 0; who < 3; who++) {
        job j = { .workers = 3 };
        j.worker[who].interrupt_at = 5;
        job_run(&j);
        assert_all_ok(&j, 5);
        assert_alike(&j);
        for (int32_t i = 0; i < 3; i++)
            assert_true(pl_allreduce_sync_look(j.worker[i].sync).broken);
        job_close(&j);
    }
}

static void allreduce_interrupt_of_all_at_once_ends_all(void **state)
{
    (void)state;
    job j = { .workers = 2 };
    j.worker[0].interrupt_at = j.worker[1].interrupt_at = 4;
    job_run(&j);
    assert_all_ok(&j, 4);
    job_close(&j);
}

static void allreduce_ends_with_the_least_data(void **state)
{
    (void)state;
    job j = { .workers = 2 };
    j.worker[1].end_step = 7;
    job_run(&j);
    assert_all_ok(&j, 7);
    assert_alike(&j);
    job_close(&j);
}

static void allreduce_continues_after_a_loss_with_the_same_bits(void **state)
{
    (void)state;
    job calm = { .workers = 3, .optim = { .name = "adam" } };
    job_run(&calm);
    for (int32_t who = 0; who < 3; who++)
        for (int64_t step = 1; step <= STEPS; step += 5) {
            job j = { .workers = 3, .optim = { .name = "adam" } };
            j.worker[who].lose_at = step;
            job_run(&j);
            assert_all_ok(&j, STEPS);
            assert_alike(&j);
            assert_same_params(calm.worker[0].rig.network->params,
                               j.worker[0].rig.network->params);
            job_close(&j);
        }
    job_close(&calm);
}

static void allreduce_names_the_worker_whose_parameters_differ(void **state)
{
    const char *folder = *state;
    job j = { .workers = 3, .folder = folder, .save_every = 2 };
    j.worker[2].spoil_at = 3; /* after the checkpoint of step 2 */
    job_run(&j);
    for (int32_t i = 0; i < 3; i++) {
        assert_int_equal(i == 2 ? PL_PEER : PL_CLOSED, j.worker[i].status);
        assert_non_null(strstr(j.worker[i].message, "of worker 2 differ"));
    }
    job_close(&j);
}

static void allreduce_compares_at_each_test(void **state)
{
    (void)state;
    job j = { .workers = 3, .tests = true };
    j.worker[1].spoil_at = 3; /* after the test of step 2 */
    job_run(&j);
    for (int32_t i = 0; i < 3; i++) {
        assert_int_equal(i == 1 ? PL_PEER : PL_CLOSED, j.worker[i].status);
        assert_non_null(strstr(j.worker[i].message, "of worker 1 differ"));
    }
    job_close(&j);
}

static void allreduce_compares_at_the_end(void **state)
{
    (void)state;
    job j = { .workers = 2 };
    j.worker[1].spoil_at = STEPS;
    job_run(&j);
    for (int32_t i = 0; i < 2; i++) {
        assert_int_not_equal(PL_OK, j.worker[i].status);
        assert_non_null(strstr(j.worker[i].message, "of worker 1 differ"));
    }
    job_close(&j);
}

static void allreduce_names_the_setting_that_differs(void **state)
{
    (void)state;
    job j = { .workers = 2 };
    j.worker[0].settings = "{\"lr\": \"0.1\"}";
    j.worker[1].settings = "{\"lr\": \"0.2\"}";
    job_run(&j);
    assert_int_equal(PL_USAGE, j.worker[1].status);
    assert_non_null(strstr(j.worker[1].message,
                           "--lr is 0.2 at worker 1 and 0.1 at the chief"));
    assert_int_equal(PL_CLOSED, j.worker[0].status);
    job_close(&j);
}

/* A chief that is new finds parameters, step and bucket size in the
 * checkpoint. */
static void allreduce_resumes_from_a_checkpoint(void **state)
{
    const char *folder = *state;
    job calm = { .workers = 2, .optim = { .name = "momentum" } };
    job_run(&calm);
    job first = { .workers = 2,
                  .optim = { .name = "momentum" },
                  .folder = folder,
                  .bucket_bytes = 512 };
    first.worker[1].interrupt_at = 5;
    job_run(&first);
    assert_all_ok(&first, 5);
    job_close(&first);
    job second = { .workers = 2,
                   .optim = { .name = "momentum" },
                   .folder = folder };
    job_run(&second);
    assert_all_ok(&second, STEPS);
    assert_int_equal(
        512, pl_allreduce_sync_look(second.worker[1].sync).bucket_bytes);
    assert_same_params(calm.worker[0].rig.network->params,
                       second.worker[0].rig.network->params);
    job_close(&second);
    job_close(&calm);
}

/* One round of all steps: the mean of what each worker would have alone. */
static void local_steps_end_in_the_mean(void **state)
{
    (void)state;
    const char *const optims[] = { "sgd", "momentum", "adam" };
    for (size_t o = 0; o < sizeof optims / sizeof *optims; o++) {
        rig alone[2];
        job j = { .workers = 2,
                  .optim = { .name = optims[o] },
                  .local_steps = STEPS };
        for (int32_t i = 0; i < 2; i++) {
            pl_loop_result result;
            rig_init(&alone[i], &(rig_opts) { .optim = j.optim });
            pl_loop_opts opts = rig_loop(&alone[i]);
            opts.test = NULL;
            opts.order = (pl_reader_opts) {
                .batch = BATCH, .worker = i, .workers = 2, .seed = 11
            };
            opts.steps = STEPS;
            assert_ok(pl_loop_run(&opts, &result));
        }
        job_run(&j);
        assert_all_ok(&j, STEPS);
        assert_alike(&j);
        const float *made = pl_params_block(j.worker[0].rig.network->params);
        const float *a = pl_params_block(alone[0].network->params);
        const float *b = pl_params_block(alone[1].network->params);
        for (int64_t i = 0; i < pl_params_block_count(alone[0].network->params);
             i++) {
            float mean = (a[i] + b[i]) * 0.5f;
            assert_memory_equal(&mean, &made[i], sizeof mean);
        }
        job_close(&j);
        for (int32_t i = 0; i < 2; i++)
            rig_close(&alone[i]);
    }
}

static void local_steps_exchange_once_a_round(void **state)
{
    (void)state;
    job every = { .workers = 3, .bucket_bytes = 1 << 20 };
    job fifth = { .workers = 3, .bucket_bytes = 1 << 20, .local_steps = 5 };
    job_run(&every);
    job_run(&fifth);
    assert_all_ok(&fifth, STEPS);
    assert_alike(&fifth);
    /* Joining takes one sum; then every step, or steps 5, 10 and 12. */
    assert_int_equal(1 + STEPS, every.hall.total_sums);
    assert_int_equal(1 + 3, fifth.hall.total_sums);
    for (int32_t i = 0; i < 3; i++)
        assert_int_equal(STEPS * BATCH, fifth.worker[i].result.own_examples);
    job_close(&every);
    job_close(&fifth);
}

/* Momentum inside and outside, rounds that do not fit the steps. */
static job outer_job(const char *folder)
{
    return (job) {
        .workers = 2,
        .optim = { .name = "momentum", .outer = true },
        .local_steps = 5,
        .outer_lr = 0.7,
        .outer_momentum = 0.5,
        .folder = folder,
    };
}

static void local_steps_continue_after_a_loss_with_the_same_bits(void **state)
{
    (void)state;
    job calm = outer_job(NULL);
    job_run(&calm);
    assert_all_ok(&calm, STEPS);
    for (int32_t who = 0; who < 2; who++)
        for (int64_t step = 1; step <= STEPS; step++) {
            job j = outer_job(NULL);
            j.worker[who].lose_at = step;
            job_run(&j);
            assert_all_ok(&j, STEPS);
            assert_alike(&j);
            assert_same_params(calm.worker[0].rig.network->params,
                               j.worker[0].rig.network->params);
            job_close(&j);
        }
    job_close(&calm);
}

/* An interrupt counts at the end of the round, where a checkpoint is exact. */
static void local_steps_resume_from_a_checkpoint(void **state)
{
    const char *folder = *state;
    job calm = outer_job(NULL), first = outer_job(folder);
    job second = outer_job(folder);
    job_run(&calm);
    first.worker[1].interrupt_at = 3;
    job_run(&first);
    assert_all_ok(&first, 5);
    job_close(&first);
    job_run(&second);
    assert_all_ok(&second, STEPS);
    assert_same_params(calm.worker[0].rig.network->params,
                       second.worker[0].rig.network->params);
    job_close(&second);
    job_close(&calm);
}

static void local_steps_are_tested_between_rounds(void **state)
{
    (void)state;
    job j = { .workers = 3, .stop_loss = 1e9, .local_steps = 3 };
    job_run(&j); /* a test is due at step 2 */
    assert_all_ok(&j, 3);
    assert_alike(&j);
    assert_int_equal(PL_STOPPED_STOP_LOSS, j.worker[0].result.stopped_by);
    assert_int_equal(1, j.worker[2].result.dropped);
    assert_int_equal(3, j.worker[2].result.own_steps);
    job_close(&j);
}

static void allreduce_sync_new_survives_each_failed_allocation(void **state)
{
    (void)state;
    rig r;
    hall *h;
    rig_init(&r, &(rig_opts) { 0 });
    assert_ok(PL_NEW(h, 1));
    hall_init(h, 1, pl_params_block_count(r.network->params), 16);
    pl_allreduce_sync *sync = NULL;
    pl_allreduce_sync_opts opts = {
        .collective = &h->rank[0].base,
        .workers = 1,
        .local_steps = 2,
        .end_step = STEPS,
        .params = r.network->params,
        .optim = r.optim,
        .schedule = &r.schedule,
        .pool = r.pool,
    };
    assert_survives_failed_allocations(
        pl_allreduce_sync_new(&sync, &opts),
        pl_allreduce_sync_base(sync)->ops->free(pl_allreduce_sync_base(sync)));
    hall_close(h);
    pl_mem_free(h);
    rig_close(&r);
}

UNIT_TESTS(
    cmocka_unit_test(allreduce_of_n_is_one_with_n_micro_batches),
    cmocka_unit_test(allreduce_bits_do_not_depend_on_buckets),
    cmocka_unit_test(allreduce_stop_loss_ends_all_at_one_step),
    cmocka_unit_test(allreduce_interrupt_of_one_ends_all),
    cmocka_unit_test(allreduce_interrupt_of_all_at_once_ends_all),
    cmocka_unit_test(allreduce_ends_with_the_least_data),
    cmocka_unit_test(allreduce_continues_after_a_loss_with_the_same_bits),
    TEST_IN_FOLDER(allreduce_names_the_worker_whose_parameters_differ),
    cmocka_unit_test(allreduce_compares_at_the_end),
    cmocka_unit_test(local_steps_end_in_the_mean),
    cmocka_unit_test(local_steps_exchange_once_a_round),
    cmocka_unit_test(local_steps_continue_after_a_loss_with_the_same_bits),
    TEST_IN_FOLDER(local_steps_resume_from_a_checkpoint),
    cmocka_unit_test(local_steps_are_tested_between_rounds),
    cmocka_unit_test(factors_have_the_bits_of_micro_batches),
    cmocka_unit_test(products_are_formed_while_the_rest_is_under_way),
    cmocka_unit_test(factors_survive_losses_and_interrupts),
    cmocka_unit_test(factors_are_not_used_where_products_may_differ),
    cmocka_unit_test(allreduce_compares_at_each_test),
    cmocka_unit_test(allreduce_names_the_setting_that_differs),
    TEST_IN_FOLDER(allreduce_resumes_from_a_checkpoint),
    cmocka_unit_test(allreduce_sync_new_survives_each_failed_allocation))

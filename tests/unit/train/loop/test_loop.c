#include "train/loop/loop.h"

#include "support/checkpoint.h"
#include "support/train.h"

#include <math.h>

#define BATCH 32 /* 16 steps make an epoch */

/* A sync that passes everything on and remembers what the loop did. */
typedef struct witness {
    pl_sync base;
    pl_sync *inner;
    int64_t commits;
    int64_t saved[16]; /* steps; the last one's is negative */
    int saves;
    int64_t interrupt_at; /* set `interrupt` at this commit; 0: never */
    atomic_bool interrupt;
    bool no_memory;     /* from the second step on nothing may allocate */
    bool allocated;     /* ... but something did */
    int64_t others;     /* updates by other workers before the first commit */
    pl_status save_mid; /* what a save in mid-run answers */
    pl_params *params;  /* of the network, for loose_pause */
    int64_t tests[8];   /* steps at which one began, then ended */
    int told;
} witness;

static pl_status witness_join(pl_sync *sync, pl_standing *at)
{
    witness *w = (witness *)sync;
    return w->inner->ops->join(w->inner, at);
}

static pl_status witness_need(pl_sync *sync, int param, const pl_keys *keys)
{
    witness *w = (witness *)sync;
    return w->inner->ops->need(w->inner, param, keys);
}

static pl_status witness_ready(pl_sync *sync, int param, const float *grad,
                               const pl_keys *keys)
{
    witness *w = (witness *)sync;
    return w->inner->ops->ready(w->inner, param, grad, keys);
}

static pl_status witness_commit(pl_sync *sync, pl_commit *out)
{
    witness *w = (witness *)sync;
    if (++w->commits == w->interrupt_at)
        atomic_store(&w->interrupt, true);
    pl_status status = w->inner->ops->commit(w->inner, out);
    out->step += w->others;
    if (w->no_memory && w->commits == 1)
        pl_mem_fail_at(0);
    return status;
}

static pl_status witness_save(pl_sync *sync, const pl_progress *progress,
                              bool last)
{
    witness *w = (witness *)sync;
    if (w->no_memory)
        w->allocated = pl_mem_fail_off();
    assert_true(w->saves < 16);
    w->saved[w->saves++] = last ? -progress->step : progress->step;
    if (!last && w->save_mid != PL_OK)
        return PL_FAIL(w->save_mid, "the disk is full");
    return w->inner->ops->save(w->inner, progress, last);
}

static pl_status witness_finish(pl_sync *sync)
{
    witness *w = (witness *)sync;
    return w->inner->ops->finish(w->inner);
}

static void witness_begin(pl_sync *sync)
{
    witness *w = (witness *)sync;
    w->inner->ops->local->begin(w->inner);
}

static void witness_apply(pl_sync *sync, int64_t first, int64_t count,
                          const float *grad)
{
    witness *w = (witness *)sync;
    w->inner->ops->local->apply(w->inner, first, count, grad);
}

static const pl_sync_local witness_local = {
    .begin = witness_begin,
    .apply = witness_apply,
};

static const pl_sync_ops witness_ops = {
    .name = "witness",
    .join = witness_join,
    .need = witness_need,
    .ready = witness_ready,
    .commit = witness_commit,
    .save = witness_save,
    .finish = witness_finish,
    .local = &witness_local,
};

/* A job whose other workers continue while this one tests: their updates make
 * all parameters zero, although the step was counted before. */
static pl_status loose_pause(pl_sync *sync, bool over, int64_t *step)
{
    pl_params *params = ((witness *)sync)->params;
    (void)step;
    if (over)
        memset(pl_params_block(params), 0,
               (size_t)pl_params_block_count(params) * sizeof(float));
    return PL_OK;
}

static void note_testing(pl_sync *sync, int64_t step, bool begins)
{
    witness *w = (witness *)sync;
    assert_true(w->told < 8 && begins == (w->told % 2 == 0));
    w->tests[w->told++] = step;
}

/* What a loop over the rig needs; tests change what they are about. */
static pl_loop_opts loop_opts(const rig *r)
{
    pl_loop_opts opts = rig_loop(r);
    opts.order = (pl_reader_opts) { .batch = BATCH, .seed = 11 };
    opts.steps = 20;
    opts.eval_every = opts.save_every = (pl_every) { PL_EVERY_NEVER, 0 };
    return opts;
}

static witness watch(const rig *r, pl_loop_opts *opts)
{
    witness w = { .base = { &witness_ops }, .inner = r->sync };
    *opts = loop_opts(r);
    return w;
}

/* How often a scalar was recorded, and its last step. */
static int recorded(const rig *r, const char *name, int64_t *last_step)
{
    int count = 0;
    pl_scalar scalar;
    while (pl_metrics_take(r->metrics, &scalar))
        if (strcmp(pl_metrics_tag_name(r->metrics, scalar.tag), name) == 0) {
            count++;
            *last_step = scalar.step;
        }
    return count;
}

static void loop_lowers_the_loss(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, &(rig_opts) { .threads = 2 });
    pl_loop_opts opts = loop_opts(&r);
    pl_loop_result result;
    opts.steps = 0;
    opts.epochs = 6;
    assert_ok(pl_loop_run(&opts, &result));
    assert_int_equal(6 * 16, result.progress.step);
    assert_int_equal(6 * 512, result.progress.examples);
    assert_true(result.epochs == 6);
    assert_string_equal("epochs", pl_stopped_text(result.stopped_by));
    assert_true(result.tested);
    assert_true(result.train_loss.loss < 0.5 * log(4));
    assert_true(result.test.loss < 0.5 * log(4));
    assert_true(result.test.accuracy > 0.9);
    rig_close(&r);
    assert_int_equal(0, pl_mem_live());
}

/* The same run in one go, and cut in two by a checkpoint, by other numbers of
 * threads, is the same bits. */
static void check_resume(const char *folder, rig_opts options,
                         int32_t micro_batches)
{
    rig whole, first, second;
    pl_loop_result result;
    rig_init(&whole, &options);
    pl_loop_opts opts = loop_opts(&whole);
    opts.order.micro_batches = micro_batches;
    assert_ok(pl_loop_run(&opts, &result));
    assert_int_equal(20, result.progress.step);

    options.folder = folder;
    options.threads = 3;
    rig_init(&first, &options);
    opts = loop_opts(&first);
    opts.order.micro_batches = micro_batches;
    opts.steps = 9;
    assert_ok(pl_loop_run(&opts, &result));
    rig_close(&first);

    options.threads = 2;
    rig_init(&second, &options);
    opts = loop_opts(&second);
    opts.order.micro_batches = micro_batches;
    assert_ok(pl_snapshot_load(second.snapshot, &opts.start));
    assert_int_equal(9, opts.start.step);
    assert_int_equal(9 * BATCH * micro_batches, opts.start.examples);
    assert_ok(pl_loop_run(&opts, &result));
    assert_int_equal(20, result.progress.step);
    assert_int_equal(20 * BATCH * micro_batches, result.progress.examples);
    assert_true(result.progress.seconds >= opts.start.seconds);
    assert_same_state(&whole, &second);
    rig_close(&second);
    rig_close(&whole);
}

static void loop_resumes_to_the_same_bits(void **state)
{
    const char *folder = *state;
    const pl_optim_opts momentum = { .name = "momentum" };
    const pl_optim_opts adam = { .name = "adam" };
    const pl_optim_opts adagrad = { .name = "adagrad" };
    const pl_optim_opts rmsprop = { .name = "rmsprop" };
    check_resume(test_path(folder, "a"), (rig_opts) { .optim = momentum }, 1);
    check_resume(test_path(folder, "b"), (rig_opts) { .optim = adam }, 2);
    check_resume(test_path(folder, "c"), (rig_opts) { .optim = adagrad }, 1);
    check_resume(test_path(folder, "d"), (rig_opts) { .optim = rmsprop }, 2);
    assert_int_equal(0, pl_mem_live());
}

/* A step of M micro-batches of B sees the examples of a batch of M B. */
static void loop_over_micro_batches_is_that_over_large_ones(void **state)
{
    (void)state;
    rig large, micro;
    pl_loop_result result;
    rig_init(&large, &(rig_opts) { .threads = 1 });
    rig_init(&micro, &(rig_opts) { .threads = 1 });
    pl_loop_opts opts = loop_opts(&large);
    assert_ok(pl_loop_run(&opts, &result));
    double loss = result.test.loss;
    opts = loop_opts(&micro);
    opts.order.batch = BATCH / 4;
    opts.order.micro_batches = 4;
    assert_ok(pl_loop_run(&opts, &result));
    assert_int_equal(20 * BATCH, result.progress.examples);
    assert_true(fabs(loss - result.test.loss) < 1e-4);
    rig_close(&large);
    rig_close(&micro);
}

static void loop_finishes_the_step_when_interrupted(void **state)
{
    (void)state;
    rig r;
    pl_loop_opts opts;
    pl_loop_result result;
    rig_init(&r, &(rig_opts) { .threads = 1 });
    witness w = watch(&r, &opts);
    w.interrupt_at = 3;
    opts.sync = &w.base;
    opts.interrupt = &w.interrupt;
    assert_ok(pl_loop_run(&opts, &result));
    assert_int_equal(3, result.progress.step);
    assert_string_equal("interrupt", pl_stopped_text(result.stopped_by));
    assert_false(result.tested);
    assert_int_equal(1, w.saves); /* so that it can go on */
    assert_int_equal(-3, w.saved[0]);
    rig_close(&r);
}

static void loop_interrupted_at_once_makes_no_step(void **state)
{
    (void)state;
    rig r;
    pl_loop_opts opts;
    pl_loop_result result;
    rig_init(&r, &(rig_opts) { .threads = 1 });
    witness w = watch(&r, &opts);
    atomic_store(&w.interrupt, true);
    opts.sync = &w.base;
    opts.interrupt = &w.interrupt;
    assert_ok(pl_loop_run(&opts, &result));
    assert_int_equal(0, w.commits);
    assert_int_equal(PL_STOPPED_INTERRUPT, result.stopped_by);
    rig_close(&r);
}

/* Warnings of a run that starts with a large loss; `others`: updates by other
 * workers before its first one. */
static int count_warnings(int64_t others, bool own_pace, bool far_start)
{
    rig r;
    pl_loop_opts opts;
    pl_loop_result result;
    warnings seen = { 0 };
    rig_init(&r, &(rig_opts) { .threads = 1 });
    witness w = watch(&r, &opts);
    w.others = others;
    w.interrupt_at = 20;
    float *values = pl_params_block(r.network->params);
    for (int64_t i = 0; i < pl_params_block_count(r.network->params); i++)
        values[i] = (float)(i * 7919 % 1009);
    opts.sync = &w.base;
    opts.interrupt = &w.interrupt;
    opts.steps = 1000;
    opts.own_pace = own_pace;
    opts.far_start = far_start;
    pl_log_set(warnings_sink, &seen, PL_LOG_INFO);
    assert_ok(pl_loop_run(&opts, &result));
    pl_log_set(NULL, NULL, PL_LOG_INFO);
    rig_close(&r);
    return seen.count;
}

static void loop_warns_when_updates_of_others_make_the_loss_explode(
    void **state)
{
    (void)state;
    assert_int_equal(1, count_warnings(5, true, false));
    assert_int_equal(0, count_warnings(0, true, false));
    assert_int_equal(0, count_warnings(0, false, false));
    assert_int_equal(0, count_warnings(5, true, true));
}

static void loop_stops_when_the_loss_is_nan(void **state)
{
    (void)state;
    rig r;
    pl_loop_opts opts;
    pl_loop_result result;
    rig_init(&r, &(rig_opts) { .lr = 3e38 });
    witness w = watch(&r, &opts);
    opts.sync = &w.base;
    pl_status status = pl_loop_run(&opts, &result);
    assert_int_equal(PL_NUMERIC, status);
    char place[64];
    snprintf(place, sizeof place, "at step %lld",
             (long long)result.progress.step + 1);
    assert_non_null(strstr(pl_error_message(), place));
    assert_int_equal(PL_STOPPED_NAN, result.stopped_by);
    assert_int_equal(result.progress.step, w.commits);
    assert_int_equal(0, w.saves);
    rig_close(&r);
    assert_int_equal(0, pl_mem_live());
}

/* No loss shows the last update; the checkpoint does. */
static void loop_whose_last_update_is_not_finite_fails(void **state)
{
    rig r;
    pl_loop_result result;
    pl_progress found;
    rig_init(&r, &(rig_opts) { .lr = INFINITY, .folder = *state });
    pl_loop_opts opts = loop_opts(&r);
    opts.steps = 1;
    assert_fails(PL_NUMERIC, "is not finite", pl_loop_run(&opts, &result));
    assert_int_equal(PL_STOPPED_NAN, result.stopped_by);
    assert_int_equal(PL_NOTFOUND, pl_snapshot_load(r.snapshot, &found));
    rig_close(&r);
}

static void loop_stops_at_the_target_loss(void **state)
{
    (void)state;
    rig r;
    pl_loop_opts opts;
    pl_loop_result result;
    rig_init(&r, &(rig_opts) { .threads = 1 });
    witness w = watch(&r, &opts);
    opts.sync = &w.base;
    opts.steps = 200;
    opts.targets.stop_loss = 0.8 * log(4);
    opts.eval_every = (pl_every) { PL_EVERY_STEPS, 2 };
    assert_ok(pl_loop_run(&opts, &result));
    assert_int_equal(PL_STOPPED_STOP_LOSS, result.stopped_by);
    assert_true(result.progress.step < 200);
    assert_int_equal(0, result.progress.step % 2);
    assert_true(result.tested && result.test.loss <= opts.targets.stop_loss);
    assert_int_equal(1, w.saves);
    assert_int_equal(-result.progress.step, w.saved[0]);
    rig_close(&r);
}

/* A worker other than the chief reports that it tests: it is not stuck. */
static void loop_of_a_follower_reports_that_it_tests(void **state)
{
    (void)state;
    static const int64_t steps[] = { 8, 8, 16, 16, 20, 20 };
    for (int follower = 0; follower <= 1; follower++) {
        rig r;
        pl_loop_opts opts;
        pl_loop_result result;
        rig_init(&r, &(rig_opts) { .threads = 1 });
        witness w = watch(&r, &opts);
        pl_sync_ops ops = witness_ops;
        ops.testing = note_testing;
        w.base.ops = &ops;
        opts.sync = &w.base;
        opts.follower = follower;
        opts.eval_every = (pl_every) { PL_EVERY_STEPS, 8 };
        assert_ok(pl_loop_run(&opts, &result));
        assert_int_equal(follower ? 6 : 0, w.told);
        if (follower)
            assert_memory_equal(steps, w.tests, sizeof steps);
        rig_close(&r);
    }
}

static void loop_tests_the_last_parameters_of_a_loose_job(void **state)
{
    (void)state;
    rig r;
    pl_loop_opts opts;
    pl_loop_result result;
    rig_init(&r, &(rig_opts) { .threads = 1 });
    witness w = watch(&r, &opts);
    pl_sync_ops loose = witness_ops;
    loose.pause = loose_pause;
    w.base.ops = &loose;
    w.params = r.network->params;
    opts.sync = &w.base;
    opts.own_pace = true;
    opts.targets.stop_loss = 0.8 * log(4);
    opts.steps = 200;
    opts.eval_every = (pl_every) { PL_EVERY_STEPS, 2 };
    assert_ok(pl_loop_run(&opts, &result));
    assert_int_equal(PL_STOPPED_STOP_LOSS, result.stopped_by);
    assert_float_equal(log(4), result.test.loss, 1e-5);
    rig_close(&r);
}

static void loop_evaluates_and_saves_when_due(void **state)
{
    (void)state;
    rig r;
    pl_loop_opts opts;
    pl_loop_result result;
    int64_t last = 0;
    rig_init(&r, &(rig_opts) { .threads = 1 });
    witness w = watch(&r, &opts);
    opts.sync = &w.base;
    opts.steps = 18;
    opts.eval_every = (pl_every) { PL_EVERY_STEPS, 5 };
    opts.save_every = (pl_every) { PL_EVERY_EPOCHS, 1 };
    assert_ok(pl_loop_run(&opts, &result));
    assert_int_equal(4, recorded(&r, "test_loss", &last)); /* 5 10 15 18 */
    assert_int_equal(18, last);
    assert_int_equal(2, w.saves);
    assert_int_equal(16, w.saved[0]);
    assert_int_equal(-18, w.saved[1]);
    rig_close(&r);
}

static void loop_that_never_evaluates_tests_the_end_only(void **state)
{
    (void)state;
    rig r;
    pl_loop_result result;
    int64_t last = 0;
    rig_init(&r, &(rig_opts) { .threads = 1 });
    pl_loop_opts opts = loop_opts(&r);
    assert_ok(pl_loop_run(&opts, &result));
    assert_int_equal(1, recorded(&r, "test_loss", &last));
    assert_int_equal(20, last);
    rig_close(&r);

    rig_init(&r, &(rig_opts) { .threads = 1 });
    opts = loop_opts(&r);
    opts.test = NULL;
    assert_ok(pl_loop_run(&opts, &result));
    assert_false(result.tested);
    assert_int_equal(0, recorded(&r, "test_loss", &last));
    rig_close(&r);
}

static void loop_continues_when_a_checkpoint_fails(void **state)
{
    (void)state;
    rig r;
    pl_loop_opts opts;
    pl_loop_result result;
    warnings seen = { 0 };
    pl_log_set(warnings_sink, &seen, PL_LOG_INFO);
    rig_init(&r, &(rig_opts) { .threads = 1 });
    witness w = watch(&r, &opts);
    opts.sync = &w.base;
    opts.save_every = (pl_every) { PL_EVERY_STEPS, 6 };
    w.save_mid = PL_IO;
    assert_ok(pl_loop_run(&opts, &result));
    assert_int_equal(20, result.progress.step);
    assert_int_equal(3, seen.count);
    assert_non_null(strstr(seen.last, "checkpoint of step 18"));
    w.save_mid = PL_AGAIN; /* busy: no need to report it */
    assert_ok(pl_loop_run(&opts, &result));
    assert_int_equal(3, seen.count);
    assert_int_equal(1, result.saves); /* the last one */
    opts.late_save_s = 1e-9;           /* ... unless it takes long; then once */
    assert_ok(pl_loop_run(&opts, &result));
    assert_int_equal(4, seen.count);
    assert_non_null(strstr(seen.last, "checkpoint of step 6 skipped"));
    pl_log_set(NULL, NULL, PL_LOG_INFO);
    rig_close(&r);
}

/* With and without micro-batches and clipping. */
static void loop_allocates_nothing_in_a_step(void **state)
{
    (void)state;
    for (int32_t micro = 1; micro <= 2; micro++) {
        rig r;
        pl_loop_opts opts;
        pl_loop_result result;
        rig_init(&r, &(rig_opts) { .threads = 2 });
        witness w = watch(&r, &opts);
        w.no_memory = true;
        opts.sync = &w.base;
        opts.test = NULL; /* evaluating may allocate */
        opts.order.micro_batches = micro;
        opts.clip = micro > 1 ? 1 : 0;
        assert_ok(pl_loop_run(&opts, &result));
        assert_int_equal(20, w.commits);
        assert_int_equal(1, w.saves);
        assert_false(w.allocated);
        rig_close(&r);
    }
}

#define UNWRITTEN 1234567.0f

/* A sync whose parameters are elsewhere: not a number until they are needed,
 * and again from each commit on. */
typedef struct remote {
    pl_sync base;
    pl_sync *inner;
    pl_params *params;       /* what the network reads */
    pl_params *real;         /* their values */
    pl_params *grads;        /* where gradients go: UNWRITTEN until they are */
    int needs, next;         /* of this step; the parameter to be ready next */
    int64_t commits, firsts; /* times the first parameter was ready */
    bool early;        /* one was ready when the first one's was not written */
    int64_t fail_at;   /* refuse `need` of the last parameter from here on */
    bool updates_here; /* a commit computes, for update_ticks in all */
    uint64_t update_ticks;
} remote;

static void fill(pl_params *params, float value)
{
    for (int p = 0; p < pl_params_count(params); p++)
        for (int64_t i = 0; i < pl_params_get(params, p)->count; i++)
            pl_params_data(params, p)[i] = value;
}

static pl_status remote_join(pl_sync *sync, pl_standing *at)
{
    remote *r = (remote *)sync;
    return r->inner->ops->join(r->inner, at);
}

static pl_status remote_need(pl_sync *sync, int param, const pl_keys *keys)
{
    remote *r = (remote *)sync;
    (void)keys;
    int count = pl_params_count(r->params);
    if (r->fail_at > 0 && r->commits >= r->fail_at && param == count - 1)
        return PL_FAIL(PL_CLOSED, "the cable is cut");
    memcpy(pl_params_data(r->params, param), pl_params_data(r->real, param),
           (size_t)pl_params_get(r->params, param)->count * sizeof(float));
    r->needs++;
    return PL_OK;
}

static pl_status remote_ready(pl_sync *sync, int param, const float *grad,
                              const pl_keys *keys)
{
    remote *r = (remote *)sync;
    (void)keys;
    assert_int_equal(pl_params_count(r->params), r->needs);
    assert_int_equal(r->next, param);
    assert_ptr_equal(pl_params_data(r->grads, param), grad);
    assert_true(grad[0] != UNWRITTEN);
    if (pl_params_data(r->grads, 0)[0] == UNWRITTEN)
        r->early = true;
    r->next--;
    r->firsts += param == 0;
    return r->inner->ops->ready(r->inner, param, grad, NULL);
}

/* An update that takes so long. */
#define UPDATE_TICKS 10000000

static uint64_t update_here(void)
{
    uint64_t begin = pl_ticks_now(), ticks;
    do
        ticks = pl_ticks_now() - begin;
    while (ticks < UPDATE_TICKS);
    return ticks;
}

static pl_status remote_commit(pl_sync *sync, pl_commit *out)
{
    remote *r = (remote *)sync;
    int last = pl_params_count(r->params) - 1;
    size_t bytes = (size_t)pl_params_block_count(r->params) * sizeof(float);
    assert_int_equal(-1, r->next);
    assert_true(r->early);
    assert_ok(r->inner->ops->commit(r->inner, out));
    memcpy(pl_params_block(r->real), pl_params_block(r->params), bytes);
    fill(r->params, NAN);
    fill(r->grads, UNWRITTEN);
    r->needs = 0;
    r->next = last;
    r->early = false;
    r->commits++;
    if (r->updates_here)
        r->update_ticks += out->own_ticks = update_here();
    return PL_OK;
}

static pl_status remote_save(pl_sync *sync, const pl_progress *progress,
                             bool last)
{
    (void)sync, (void)progress, (void)last;
    return PL_OK;
}

static pl_status remote_finish(pl_sync *sync)
{
    (void)sync;
    return PL_OK;
}

static float *remote_gradient(pl_sync *sync)
{
    return pl_params_block(((remote *)sync)->grads);
}

static const pl_sync_ops remote_ops = {
    .name = "remote",
    .join = remote_join,
    .need = remote_need,
    .ready = remote_ready,
    .commit = remote_commit,
    .save = remote_save,
    .finish = remote_finish,
    .gradient = remote_gradient,
};

static void remote_init(remote *s, const rig *r)
{
    *s = (remote) { .base = { &remote_ops },
                    .inner = r->sync,
                    .params = r->network->params };
    s->next = pl_params_count(s->params) - 1;
    assert_ok(pl_params_like(&s->real, s->params));
    assert_ok(pl_params_like(&s->grads, s->params));
    memcpy(pl_params_block(s->real), pl_params_block(s->params),
           (size_t)pl_params_block_count(s->params) * sizeof(float));
    fill(s->params, NAN);
    fill(s->grads, UNWRITTEN);
}

static void remote_close(remote *s)
{
    pl_params_free(s->real);
    pl_params_free(s->grads);
}

/* A ring's workers make the update, after all sums have come. */
static void loop_counts_updates_of_a_commit_as_computing(void **state)
{
    (void)state;
    rig r;
    pl_loop_result result;
    remote s;
    rig_init(&r, &(rig_opts) { .threads = 2 });
    remote_init(&s, &r);
    s.updates_here = true;
    pl_loop_opts opts = loop_opts(&r);
    opts.sync = &s.base;
    assert_ok(pl_loop_run(&opts, &result));
    double seconds = (double)s.update_ticks * pl_ticks_ns() * 1e-9;
    assert_true(result.phases.compute_s >= seconds * (1 - 1e-6));
    remote_close(&s);
    rig_close(&r);
    assert_int_equal(0, pl_mem_live());
}

/* Each parameter is waited for before it is read, each gradient leaves while
 * others are still to be computed, once, and the result is the same bits. */
static void loop_streams_parameters_and_gradients(void **state)
{
    (void)state;
    rig here, there;
    pl_loop_result result;
    remote s;
    rig_init(&here, &(rig_opts) { .threads = 2 });
    rig_init(&there, &(rig_opts) { .threads = 2 });
    pl_loop_opts opts = loop_opts(&here);
    assert_ok(pl_loop_run(&opts, &result));
    double loss = result.test.loss;
    remote_init(&s, &there);
    opts = loop_opts(&there);
    opts.sync = &s.base;
    assert_ok(pl_loop_run(&opts, &result));
    assert_int_equal(20, s.commits);
    assert_int_equal(20, s.firsts);
    assert_true(loss == result.test.loss);
    assert_memory_equal(pl_params_block(here.network->params),
                        pl_params_block(there.network->params),
                        (size_t)pl_params_block_count(s.params) *
                            sizeof(float));
    remote_close(&s);
    rig_close(&here);
    rig_close(&there);
    assert_int_equal(0, pl_mem_live());
}

/* What left before the loss was known is not a whole gradient. */
static void loop_streams_no_whole_gradient_of_an_infinite_loss(void **state)
{
    (void)state;
    rig r;
    pl_loop_result result;
    remote s;
    rig_init(&r, &(rig_opts) { .lr = 3e38 });
    remote_init(&s, &r);
    for (int p = 0; p < pl_params_count(s.params); p++)
        for (int64_t i = 0; i < pl_params_get(s.params, p)->count; i++)
            pl_params_data(s.real, p)[i] *= 1e30f;
    pl_loop_opts opts = loop_opts(&r);
    opts.sync = &s.base;
    assert_int_equal(PL_NUMERIC, pl_loop_run(&opts, &result));
    assert_int_equal(PL_STOPPED_NAN, result.stopped_by);
    assert_int_equal(s.commits, s.firsts);
    remote_close(&s);
    rig_close(&r);
}

static void loop_ends_where_a_parameter_does_not_come(void **state)
{
    (void)state;
    rig r;
    pl_loop_result result;
    remote s;
    rig_init(&r, &(rig_opts) { .threads = 1 });
    remote_init(&s, &r);
    s.fail_at = 3;
    pl_loop_opts opts = loop_opts(&r);
    opts.sync = &s.base;
    assert_fails(PL_CLOSED, "the cable is cut", pl_loop_run(&opts, &result));
    assert_int_equal(3, s.commits);
    assert_int_equal(3, s.firsts);
    assert_int_equal(pl_params_count(s.params) - 1, s.next);
    remote_close(&s);
    rig_close(&r);
    assert_int_equal(0, pl_mem_live());
}

static pl_status run_once(const rig *r)
{
    pl_loop_opts opts = loop_opts(r);
    pl_loop_result result;
    opts.steps = 2;
    opts.order.micro_batches = 2;
    return pl_loop_run(&opts, &result);
}

static void loop_survives_failed_allocations(void **state)
{
    (void)state;
    rig r;
    rig_init(&r, &(rig_opts) { .threads = 1 });
    assert_ok(run_once(&r)); /* the metrics keep the names of their tags */
    assert_survives_failed_allocations(run_once(&r), (void)0);
    rig_close(&r);
}

UNIT_TESTS(
    cmocka_unit_test(loop_lowers_the_loss),
    TEST_IN_FOLDER(loop_resumes_to_the_same_bits),
    cmocka_unit_test(loop_over_micro_batches_is_that_over_large_ones),
    cmocka_unit_test(loop_finishes_the_step_when_interrupted),
    cmocka_unit_test(loop_interrupted_at_once_makes_no_step),
    cmocka_unit_test(loop_warns_when_updates_of_others_make_the_loss_explode),
    cmocka_unit_test(loop_stops_when_the_loss_is_nan),
    TEST_IN_FOLDER(loop_whose_last_update_is_not_finite_fails),
    cmocka_unit_test(loop_stops_at_the_target_loss),
    cmocka_unit_test(loop_of_a_follower_reports_that_it_tests),
    cmocka_unit_test(loop_tests_the_last_parameters_of_a_loose_job),
    cmocka_unit_test(loop_evaluates_and_saves_when_due),
    cmocka_unit_test(loop_that_never_evaluates_tests_the_end_only),
    cmocka_unit_test(loop_continues_when_a_checkpoint_fails),
    cmocka_unit_test(loop_allocates_nothing_in_a_step),
    cmocka_unit_test(loop_streams_parameters_and_gradients),
    cmocka_unit_test(loop_counts_updates_of_a_commit_as_computing),
    cmocka_unit_test(loop_streams_no_whole_gradient_of_an_infinite_loss),
    cmocka_unit_test(loop_ends_where_a_parameter_does_not_come),
    cmocka_unit_test(loop_survives_failed_allocations))

/* test_jobs.c - jobs whose tasks are threads: they end with the parameters that
 * processes would have, fail as a whole, and report what they used once. */
#include "library/data.h"

#include <stdatomic.h>

/* Both strategies sum N gradients of one batch in the order of the workers, and
 * so do N micro-batches of one worker. */
static void workers_add_up_like_micro_batches(void **state)
{
    (void)state;
    static const char *const jobs[] = {
        "--strategy single --micro-batches 2",
        "--workers 2",
        "--workers 2 --ps 1",
        "--workers 2 --ps 2 --transport tcp",
    };
    dense_data *d = calloc(1, sizeof *d);
    char flags[256], first[65], other[65];
    fill_dense(d, 3);
    pl_data *data = dense_bytes(d);
    for (int i = 0; i < 4; i++) {
        snprintf(flags, sizeof flags,
                 "--epochs 2 --batch 25 --threads 1 --lr 0.2 %s", jobs[i]);
        hash_of(&(pl_train_opts) { .model = "softmax",
                                   .train = data,
                                   .test = data,
                                   .flags = flags },
                i == 0 ? first : other);
        if (i > 0)
            assert_string_equal(first, other);
    }
    pl_data_free(data);
    free(d);
}

/* A table of weights that servers hold by keys, without lock step. */
static void sparse_tables_are_served(void **state)
{
    (void)state;
    sparse_data *s = calloc(1, sizeof *s);
    pl_training *training;
    pl_train_result result;
    pl_train_progress progress;
    fill_sparse(s, 5);
    pl_data *data = sparse_rows(s, 32);
    assert_ok(pl_train_start(
        &training,
        &(pl_train_opts) { .model = "sparse",
                           .train = data,
                           .test = data,
                           .flags = "--workers 2 --ps 1 --mode async --epochs "
                                    "20 --batch 20 --threads 1 --lr 0.5" }));
    assert_ok(pl_train_wait(training, &result));
    pl_train_poll(training, 0, &progress);
    assert_int_equal(PL_TRAIN_ENDED, progress.state);
    assert_int_equal(2 * 20 * (ROWS / 2 / 20), result.steps);
    assert_true(result.test_auc > 0.9);
    assert_false(result.deterministic);
    /* What the process used is reported once: in the chief's row. */
    const char *server = strstr(result.summary, "\"per_server\":");
    const char *chief = strstr(result.summary, "\"per_worker\":");
    assert_non_null(server);
    const char *used = strstr(server, "\"user_seconds\":");
    assert_true(used > chief);
    assert_null(strstr(used + 1, "\"user_seconds\":"));
    pl_train_free(training);
    pl_data_free(data);
    free(s);
}

/* Fails at the `left`-th batch. */
static int make_until(void *context, const uint32_t *index, int64_t rows,
                      float *features, int32_t *labels)
{
    atomic_int *left = context;
    for (int64_t r = 0; r < rows; r++) {
        labels[r] = (int32_t)index[r] % CLASSES;
        for (int p = 0; p < PIXELS; p++)
            features[r * PIXELS + p] = (float)(index[r] % 7) / 7;
    }
    return atomic_fetch_sub(left, 1) <= 0 ? 42 : 0;
}

static void a_task_that_fails_ends_the_job(void **state)
{
    (void)state;
    static const char *const jobs[] = { "", "--workers 2",
                                        "--workers 2 --ps 1" };
    for (int i = 0; i < 3; i++) {
        atomic_int left = 9;
        char flags[128];
        pl_data *data;
        pl_training *training;
        pl_train_result result;
        snprintf(flags, sizeof flags, "--batch 10 --threads 1 %s", jobs[i]);
        assert_ok(pl_data_from_callback(&data, &(pl_data_callback) {
                                                   .make = make_until,
                                                   .context = &left,
                                                   .rows = ROWS,
                                                   .example = PL_SHAPE(PIXELS),
                                                   .classes = CLASSES,
                                               }));
        assert_ok(
            pl_train_start(&training, &(pl_train_opts) { .model = "softmax",
                                                         .train = data,
                                                         .flags = flags }));
        assert_refused(PL_IO, "returned 42", pl_train_wait(training, &result));
        if (i > 0)
            assert_non_null(strstr(pl_error_sentence(), "worker "));
        pl_train_free(training);
        pl_data_free(data);
    }
}

static void jobs_stop_when_asked(void **state)
{
    (void)state;
    dense_data *d = calloc(1, sizeof *d);
    fill_dense(d, 3);
    pl_data *data = dense_bytes(d);
    int files = count_own("fd"), threads = count_own("task");
    for (int i = 0; i < 2; i++) {
        pl_training *training;
        pl_train_progress progress = { 0 };
        pl_train_result result;
        assert_ok(pl_train_start(
            &training,
            &(pl_train_opts) {
                .model = "softmax",
                .train = data,
                .flags = i == 0 ? "--workers 2 --steps 1000000 "
                                  "--batch 10 --threads 1"
                                : "--workers 2 --ps 1 --steps 1000000 "
                                  "--batch 10 --threads 1" }));
        while (progress.step == 0 && progress.state != PL_TRAIN_ENDED)
            pl_train_poll(training, 5, &progress);
        pl_train_interrupt(training);
        assert_ok(pl_train_wait(training, &result));
        assert_string_equal("interrupt", result.stopped_by);
        assert_true(result.steps > 0);
        pl_train_free(training);
    }
    assert_int_equal(files, count_own("fd"));
    assert_threads(threads);
    pl_data_free(data);
    free(d);
}

/* Two jobs of threads, side by side. */
static void two_jobs_at_once(void **state)
{
    (void)state;
    static const char flags[] =
        "--workers 2 --ps 1 --epochs 2 --batch 30 --threads 1";
    dense_data *d = calloc(1, sizeof *d);
    char alone[65];
    fill_dense(d, 3);
    pl_data *data = dense_bytes(d);
    pl_train_opts opts = { .model = "softmax", .train = data, .flags = flags };
    pl_training *training[2];
    hash_of(&opts, alone);
    for (int i = 0; i < 2; i++)
        assert_ok(pl_train_start(&training[i], &opts));
    for (int i = 0; i < 2; i++) {
        pl_train_result result;
        assert_ok(pl_train_wait(training[i], &result));
        assert_string_equal(alone, result.parameters_sha256);
        pl_train_free(training[i]);
    }
    pl_data_free(data);
    free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_add_up_like_micro_batches),
        cmocka_unit_test(sparse_tables_are_served),
        cmocka_unit_test(a_task_that_fails_ends_the_job),
        cmocka_unit_test(jobs_stop_when_asked),
        cmocka_unit_test(two_jobs_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

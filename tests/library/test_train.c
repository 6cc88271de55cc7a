/* test_train.c - trainings inside a program: data of every kind, the flags as
 * text and as names, what comes of them, and what they leave alone. */
#include "library/data.h"

#include <signal.h>

/* --- one training ----------------------------------------------------- */

typedef struct calls {
    int count, last_state;
    int64_t last_step;
} calls;

static void count_call(void *context, const pl_train_progress *progress)
{
    calls *c = context;
    c->count++;
    c->last_state = progress->state;
    c->last_step = progress->step;
}

static void check_result(const pl_train_result *result)
{
    assert_int_equal(5 * (ROWS / 20), result->steps);
    assert_int_equal(5 * ROWS, result->examples);
    assert_true(result->train_loss < 1.0);
    assert_true(result->test_accuracy > 0.9);
    assert_true(result->deterministic);
    assert_string_equal("epochs", result->stopped_by);
    assert_non_null(strstr(result->summary, "\"model\":\"softmax\""));
    assert_non_null(strstr(result->summary, "\"steps\":150"));
}

static void trains_on_arrays(void **state)
{
    (void)state;
    dense_data *d = calloc(1, sizeof *d);
    calls seen = { 0 };
    char run[1024];
    pl_training *training;
    pl_train_result result;
    fill_dense(d, 1);
    pl_data *data = dense_bytes(d);
    assert_ok(pl_train_start(
        &training,
        &(pl_train_opts) {
            .model = "softmax",
            .train = data,
            .test = data,
            .flags = "--batch 20 --lr '0.5' --threads 2",
            .settings = (const char *const[]) { "epochs", "5", "nesterov",
                                                "false", NULL },
            .progress = count_call,
            .context = &seen,
        }));
    assert_ok(pl_train_wait(training, &result));
    check_result(&result);
    assert_true(seen.count >= 1);
    assert_int_equal(PL_TRAIN_ENDED, seen.last_state);
    assert_int_equal(result.steps, seen.last_step);
    snprintf(run, sizeof run, "%s", result.run);
    assert_int_equal(0, access(run, F_OK));
    pl_train_free(training);
    assert_int_equal(-1, access(run, F_OK)); /* it was temporary */
    pl_data_free(data);
    free(d);
}

static void leaves_the_process_alone(void **state)
{
    (void)state;
    const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGBUS, SIGCHLD };
    dense_data *d = calloc(1, sizeof *d);
    char hash[65], here[1024], after[1024];
    fill_dense(d, 1);
    pl_data *data = dense_bytes(d);
    assert_non_null(getcwd(here, sizeof here));
    struct sigaction before[sizeof signals / sizeof *signals], action;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], NULL, &before[i]);
    hash_of(&(pl_train_opts) { .model = "softmax",
                               .train = data,
                               .flags = "--workers 2 --epochs 1" },
            hash);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        sigaction(signals[i], NULL, &action);
        assert_true(action.sa_handler == before[i].sa_handler);
    }
    assert_non_null(getcwd(after, sizeof after));
    assert_string_equal(here, after);
    assert_int_equal(-1, access("runs", F_OK));
    pl_data_free(data);
    free(d);
}

/* --- data ------------------------------------------------------------- */

static int make_rows(void *context, const uint32_t *index, int64_t rows,
                     float *features, int32_t *labels)
{
    const dense_data *d = context;
    for (int64_t r = 0; r < rows; r++) {
        memcpy(features + r * PIXELS, d->floats + index[r] * PIXELS,
               PIXELS * sizeof *features);
        labels[r] = d->labels[index[r]];
    }
    return 0;
}

/* Floats, the same with gaps between rows and copied, and a function: the same
 * examples make the same parameters. */
static void kinds_of_dense_data_agree(void **state)
{
    (void)state;
    dense_data *d = calloc(1, sizeof *d);
    pl_data *all[3];
    char first[65], other[65];
    fill_dense(d, 7);
    float *wide = calloc(ROWS, 2 * PIXELS * sizeof *wide);
    for (int r = 0; r < ROWS; r++)
        memcpy(wide + (size_t)r * 2 * PIXELS, d->floats + r * PIXELS,
               PIXELS * sizeof *wide);
    assert_ok(pl_data_from_dense(&all[0], &(pl_data_dense) {
                                              .features = d->floats,
                                              .rows = ROWS,
                                              .example = PL_SHAPE(SIDE, SIDE),
                                              .labels = d->labels,
                                          }));
    assert_ok(pl_data_from_dense(&all[1], &(pl_data_dense) {
                                              .features = wide,
                                              .rows = ROWS,
                                              .example = PL_SHAPE(SIDE, SIDE),
                                              .stride = 2 * PIXELS,
                                              .labels = d->labels,
                                              .copy = true,
                                          }));
    free(wide);
    assert_ok(
        pl_data_from_callback(&all[2], &(pl_data_callback) {
                                           .make = make_rows,
                                           .context = d,
                                           .rows = ROWS,
                                           .example = PL_SHAPE(SIDE, SIDE),
                                           .classes = CLASSES,
                                       }));
    for (int i = 0; i < 3; i++) {
        hash_of(
            &(pl_train_opts) { .model = "softmax",
                               .train = all[i],
                               .test = all[0],
                               .flags =
                                   "--epochs 2 --batch 50 --seed 3 --kernels "
                                   "portable" },
            i == 0 ? first : other);
        if (i > 0)
            assert_string_equal(first, other);
        pl_data_free(all[i] == all[0] ? NULL : all[i]);
    }
    pl_data_free(all[0]);
    free(d);
}

static void indices_of_both_widths_agree(void **state)
{
    (void)state;
    sparse_data *s = calloc(1, sizeof *s);
    char wide[65], narrow[65];
    fill_sparse(s, 5);
    for (int bits = 32; bits <= 64; bits += 32) {
        pl_data *data = sparse_rows(s, bits);
        hash_of(&(pl_train_opts) { .model = "sparse",
                                   .train = data,
                                   .flags = "--epochs 3 --batch 50 --threads "
                                            "1 --holdout 0.2" },
                bits == 32 ? narrow : wide);
        pl_data_free(data);
    }
    assert_string_equal(wide, narrow);
    free(s);
}

static void refuses_arrays_that_do_not_fit(void **state)
{
    (void)state;
    static const float features[6] = { 0 };
    static const int32_t labels[2] = { 0, 5 };
    static const int64_t indptr[3] = { 0, 2, 1 }, good[3] = { 0, 1, 2 };
    static const int64_t indices[2] = { 3, 0 };
    pl_data *data;
    pl_data_dense dense = { .features = features,
                            .rows = 2,
                            .example = PL_SHAPE(3),
                            .labels = labels,
                            .classes = 3 };
    assert_refused(PL_USAGE, "row 1 has the label 5",
                   pl_data_from_dense(&data, &dense));
    dense.classes = 0;
    dense.stride = 2;
    assert_refused(PL_USAGE, "an example has 3",
                   pl_data_from_dense(&data, &dense));
    dense.stride = 0;
    dense.dtype = PL_INT64;
    assert_refused(PL_USAGE, "float32 or uint8",
                   pl_data_from_dense(&data, &dense));
    dense.rows = 0;
    assert_refused(PL_USAGE, "0 rows", pl_data_from_dense(&data, &dense));
    pl_data_csr csr = { .rows = 2,
                        .columns = 3,
                        .index_bits = 64,
                        .indptr = indptr,
                        .indices = indices };
    assert_refused(PL_USAGE, "index 3, expected 0 to 2",
                   pl_data_from_csr(&data, &csr));
    csr.columns = 4;
    assert_refused(PL_USAGE, "row 1 ends at 1", pl_data_from_csr(&data, &csr));
    csr.indptr = good;
    csr.index_bits = 16;
    assert_refused(PL_USAGE, "16 bits", pl_data_from_csr(&data, &csr));
}

/* --- flags ------------------------------------------------------------ */

static void refuses_invalid_flags(void **state)
{
    (void)state;
    static const struct {
        const char *flags, *words;
    } cases[] = {
        { "--lr", "--lr needs a value" },
        { "--lrr 1", "did you mean --lr?" },
        { "--lr '1", "without its end" },
        { "--json", "--json is for the command line" },
        { "--workers 2 --restarts 3", "--restarts is for the command line" },
        { "--workers 2 --chaos 1", "--chaos is for the command line" },
        { "--workers 2 --engine mpi", "mpi" },
        { "--data digits", "--data and data in memory" },
        { "stray", "unexpected argument" },
        { "--role worker", "--role needs --cluster" },
    };
    dense_data *d = calloc(1, sizeof *d);
    pl_training *training;
    fill_dense(d, 1);
    pl_data *data = dense_bytes(d);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_train_opts opts = { .model = "softmax",
                               .train = data,
                               .flags = cases[i].flags };
        assert_refused(PL_USAGE, cases[i].words,
                       pl_train_start(&training, &opts));
    }
    pl_train_opts none = { .train = data };
    assert_refused(PL_USAGE, "one model", pl_train_start(&training, &none));
    pl_train_opts unknown = { .model = "sofmax", .train = data };
    assert_refused(PL_USAGE, "did you mean softmax",
                   pl_train_start(&training, &unknown));
    pl_data_free(data);
    free(d);
}

/* What only the data shows is the training's failure. */
static void reports_data_that_does_not_fit_the_model(void **state)
{
    (void)state;
    sparse_data *s = calloc(1, sizeof *s);
    pl_training *training;
    pl_train_result result;
    fill_sparse(s, 5);
    pl_data *data = sparse_rows(s, 64);
    assert_ok(pl_train_start(
        &training, &(pl_train_opts) { .model = "softmax", .train = data }));
    assert_refused(PL_USAGE, "needs dense data",
                   pl_train_wait(training, &result));
    assert_refused(PL_USAGE, "needs dense data",
                   pl_train_wait(training, &result)); /* again */
    pl_train_free(training);
    pl_data_free(data);
    free(s);
}

/* --- many ------------------------------------------------------------- */

#define LONG_RUN "--steps 1000000 --batch 20 --threads 1 --monitor-every 0"

/* Labels that are numbers choose the loss, and are checked. */
static void predicts_numbers(void **state)
{
    (void)state;
    static dense_data d;
    static float targets[ROWS][2], found[ROWS][2];
    fill_dense(&d, 1);
    for (int r = 0; r < ROWS; r++) {
        targets[r][0] = (float)d.labels[r];
        targets[r][1] = 1 - targets[r][0];
    }
    pl_data_dense arrays = {
        .features = d.bytes,
        .dtype = PL_UINT8,
        .rows = ROWS,
        .example = PL_SHAPE(SIDE, SIDE),
        .targets = &targets[0][0],
        .target_count = 2,
        .copy = true,
    };
    pl_data *data;
    pl_training *training;
    pl_train_result result;
    pl_predict *predict;
    pl_evaluation test;
    pl_predict_info info;
    assert_ok(pl_data_from_dense(&data, &arrays));
    assert_ok(pl_train_start(
        &training,
        &(pl_train_opts) { .model = "mlp",
                           .train = data,
                           .flags = "--epochs 20 --batch 20 --lr 0.02" }));
    assert_ok(pl_train_wait(training, &result));
    assert_ok(
        pl_predict_open(&predict, &(pl_predict_opts) { .run = result.run }));
    pl_predict_describe(predict, &info);
    assert_true(info.numeric && info.outputs == 2);
    assert_ok(pl_predict_evaluate(predict, data, NULL, &test));
    assert_true(test.r2 > 0.8 && isnan(test.accuracy));
    assert_ok(pl_predict_run(predict, data, PL_PREDICT_LOGITS, &found[0][0],
                             (int64_t)2 * ROWS));
    double squares = 0;
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < 2; i++)
            squares += pow((double)(found[r][i] - targets[r][i]), 2);
    assert_true(fabs(squares / (2 * ROWS) - test.loss) < 1e-4 * test.loss);
    assert_refused(PL_UNSUPPORTED, "numbers, not probabilities",
                   pl_predict_run(predict, data, PL_PREDICT_PROBABILITIES,
                                  &found[0][0], (int64_t)2 * ROWS));
    pl_predict_free(predict);
    pl_train_free(training);
    assert_ok(pl_train_start(
        &training, &(pl_train_opts) { .model = "mlp",
                                      .train = data,
                                      .flags = "--loss cross-entropy" }));
    assert_refused(PL_USAGE, "has numbers as labels",
                   pl_train_wait(training, &result));
    pl_train_free(training);
    pl_data_free(data);
    targets[7][1] = (float)INFINITY;
    assert_refused(PL_USAGE, "row 7 has a target that is not finite",
                   pl_data_from_dense(&data, &arrays));
}

/* Rows whose label is wrong and whose weight is 0 teach nothing. */
static void rows_of_no_weight_are_left_out(void **state)
{
    (void)state;
    static dense_data d;
    static int32_t wrong[ROWS];
    static float weights[ROWS];
    fill_dense(&d, 1);
    for (int r = 0; r < ROWS; r++) {
        weights[r] = (float)(r / CLASSES % 2);
        wrong[r] = (d.labels[r] + (weights[r] == 0)) % CLASSES;
    }
    pl_data_dense arrays = {
        .features = d.bytes,
        .dtype = PL_UINT8,
        .rows = ROWS,
        .example = PL_SHAPE(SIDE, SIDE),
        .labels = wrong,
        .weights = weights,
        .copy = true,
    };
    pl_data *data, *right = dense_bytes(&d);
    pl_training *training;
    pl_train_result result;
    assert_ok(pl_data_from_dense(&data, &arrays));
    assert_ok(pl_train_start(
        &training, &(pl_train_opts) {
                       .model = "softmax",
                       .train = data,
                       .test = right,
                       .flags = "--epochs 20 --batch 20 --workers 2 --ps 1" }));
    assert_ok(pl_train_wait(training, &result));
    assert_true(result.test_accuracy > 0.95);
    pl_train_free(training);
    assert_ok(pl_train_start(
        &training,
        &(pl_train_opts) { .model = "resnet18",
                           .train = data,
                           .flags = "--width 4 --label-smoothing 0.1" }));
    assert_refused(PL_USAGE, "a loss of its own",
                   pl_train_wait(training, &result));
    pl_train_free(training);
    pl_data_free(data);
    pl_data_free(right);
    weights[9] = -1;
    assert_refused(PL_USAGE, "row 9 has the weight -1",
                   pl_data_from_dense(&data, &arrays));
}

/* PACELINE_STARTS: how often; no start leaves files or threads behind. */
static void stops_when_asked(void **state)
{
    (void)state;
    const char *starts = getenv("PACELINE_STARTS");
    int count = starts != NULL ? atoi(starts) : 12;
    dense_data *d = calloc(1, sizeof *d);
    fill_dense(d, 1);
    pl_data *data = dense_bytes(d);
    int files = count_own("fd"), threads = count_own("task");
    for (int i = 0; i < count; i++) {
        pl_training *training;
        pl_train_progress progress = { 0 };
        pl_train_result result;
        assert_ok(
            pl_train_start(&training, &(pl_train_opts) { .model = "softmax",
                                                         .train = data,
                                                         .flags = LONG_RUN }));
        while (i % 3 == 0 && progress.step == 0)
            pl_train_poll(training, 1, &progress);
        if (i % 3 < 2) {
            pl_train_interrupt(training);
            assert_ok(pl_train_wait(training, &result));
            assert_string_equal("interrupt", result.stopped_by);
        }
        pl_train_free(training); /* also of one that still runs */
    }
    assert_int_equal(files, count_own("fd"));
    assert_threads(threads);
    pl_data_free(data);
    free(d);
}

static void two_at_once_match_each_alone(void **state)
{
    (void)state;
    static const char *const flags[] = {
        "--epochs 3 --batch 20 --seed 1 --threads 2",
        "--epochs 3 --batch 30 --seed 2 --threads 2 --optimizer adam",
    };
    dense_data *d = calloc(1, sizeof *d);
    pl_training *training[2];
    char alone[2][65];
    fill_dense(d, 1);
    pl_data *data = dense_bytes(d);
    static const char *const small[] = { "kernel", "3,3", "pad", "1", NULL };
    pl_train_opts opts[2];
    for (int i = 0; i < 2; i++) {
        opts[i] = (pl_train_opts) { .model = i == 0 ? "softmax" : "lenet",
                                    .train = data,
                                    .flags = flags[i] };
        opts[i].settings = i == 1 ? small : NULL;
        hash_of(&opts[i], alone[i]);
    }
    for (int i = 0; i < 2; i++)
        assert_ok(pl_train_start(&training[i], &opts[i]));
    for (int i = 0; i < 2; i++) {
        pl_train_result result;
        assert_ok(pl_train_wait(training[i], &result));
        assert_string_equal(alone[i], result.parameters_sha256);
        pl_train_free(training[i]);
    }
    pl_data_free(data);
    free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trains_on_arrays),
        cmocka_unit_test(leaves_the_process_alone),
        cmocka_unit_test(kinds_of_dense_data_agree),
        cmocka_unit_test(indices_of_both_widths_agree),
        cmocka_unit_test(refuses_arrays_that_do_not_fit),
        cmocka_unit_test(refuses_invalid_flags),
        cmocka_unit_test(reports_data_that_does_not_fit_the_model),
        cmocka_unit_test(predicts_numbers),
        cmocka_unit_test(rows_of_no_weight_are_left_out),
        cmocka_unit_test(stops_when_asked),
        cmocka_unit_test(two_at_once_match_each_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_runs.c - models put together at run time, what a trained one answers,
 * and what its run folder records. */
#include "library/data.h"

/* A folder that goes at the end of the test. */
static void make_folder(char *path, size_t room)
{
    const char *base = getenv("TMPDIR");
    snprintf(path, room, "%s/library-XXXXXX", base != NULL ? base : "/tmp");
    assert_non_null(mkdtemp(path));
}

static void remove_folder(const char *path)
{
    char command[1200];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    assert_int_equal(0, system(command));
}

/* A convolution, a branch that is added again, and a loss of two heads: that
 * of the logits, and a third of another one's. */
static pl_net *branched(void)
{
    pl_net *net;
    assert_ok(pl_net_new(&net, "branched"));
    pl_net_add(
        net, &(pl_layer) {
                 .kind = PL_LAYER_CONV2D, .units = 4, .kernel = 3, .pad = 1 });
    pl_net_add(net, &(pl_layer) { .kind = PL_LAYER_RELU });
    int32_t pooled =
        pl_net_add(net, &(pl_layer) { .kind = PL_LAYER_MAX_POOL, .kernel = 2 });
    int32_t left =
        pl_net_add(net, &(pl_layer) { .kind = PL_LAYER_DENSE, .units = 16 });
    int32_t right = pl_net_add(net, &(pl_layer) { .kind = PL_LAYER_DENSE,
                                                  .name = "right",
                                                  .src = pooled,
                                                  .units = 16 });
    pl_net_add(
        net, &(pl_layer) { .kind = PL_LAYER_ADD, .src = left, .other = right });
    pl_net_add(net, &(pl_layer) { .kind = PL_LAYER_TANH });
    int32_t logits = pl_net_add(
        net, &(pl_layer) { .kind = PL_LAYER_DENSE, .name = "logits" });
    pl_net_add(net, &(pl_layer) { .kind = PL_LAYER_CROSS_ENTROPY });
    int32_t first = pl_net_add(net, &(pl_layer) { .kind = PL_LAYER_MEAN });
    pl_net_add(
        net,
        &(pl_layer) { .kind = PL_LAYER_DENSE, .name = "second", .src = right });
    pl_net_add(net, &(pl_layer) { .kind = PL_LAYER_CROSS_ENTROPY });
    pl_net_add(net, &(pl_layer) { .kind = PL_LAYER_MEAN });
    int32_t second =
        pl_net_add(net, &(pl_layer) { .kind = PL_LAYER_SCALE, .rate = 0.33 });
    int32_t loss = pl_net_add(
        net,
        &(pl_layer) { .kind = PL_LAYER_ADD, .src = first, .other = second });
    assert_ok(pl_net_status(net));
    assert_ok(pl_net_set_logits(net, logits));
    assert_ok(pl_net_set_loss(net, loss));
    return net;
}

/* A NumPy file with two images. */
static void write_pictures(const char *path)
{
    char head[118] = "{'descr': '|u1', 'fortran_order': False, "
                     "'shape': (2, 8, 8)}";
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    memset(head + strlen(head), ' ', sizeof head - strlen(head));
    head[sizeof head - 1] = '\n';
    assert_int_equal(10, fwrite("\x93NUMPY\x01\0\x76\0", 1, 10, file));
    assert_int_equal(sizeof head, fwrite(head, 1, sizeof head, file));
    for (int i = 0; i < 2 * PIXELS; i++)
        fputc(i, file);
    assert_int_equal(0, fclose(file));
}

static void check_answers(pl_predict *predict, const dense_data *d,
                          const pl_data *data, const char *folder)
{
    float *probabilities = calloc(ROWS * CLASSES, sizeof *probabilities);
    int right = 0;
    assert_ok(pl_predict_run(predict, data, PL_PREDICT_PROBABILITIES,
                             probabilities, ROWS * CLASSES));
    for (int r = 0; r < ROWS; r++) {
        const float *row = probabilities + r * CLASSES;
        float sum = 0;
        int best = 0;
        for (int c = 0; c < CLASSES; c++) {
            sum += row[c];
            best = row[c] > row[best] ? c : best;
        }
        assert_true(fabsf(sum - 1) < 1e-5f);
        right += best == d->labels[r];
    }
    pl_evaluation found;
    assert_ok(pl_predict_evaluate(predict, data, NULL, &found));
    assert_int_equal(ROWS, found.examples);
    assert_true(found.accuracy > 0.9);
    assert_true(fabs(found.accuracy - (double)right / ROWS) < 1e-9);
    assert_true(isnan(found.auc));
    assert_refused(
        PL_USAGE, "room for 5 numbers",
        pl_predict_run(predict, data, PL_PREDICT_LOGITS, probabilities, 5));
    char pictures[1100];
    snprintf(pictures, sizeof pictures, "npy:%s/pictures.npy", folder);
    write_pictures(pictures + strlen("npy:"));
    assert_refused(PL_USAGE, "no labels to test with",
                   pl_predict_evaluate(predict, NULL, pictures, &found));
    assert_refused(PL_USAGE, "was in the memory of the program",
                   pl_predict_evaluate(predict, NULL, NULL, &found));
    free(probabilities);
}

static void check_parameters(pl_predict *predict, const char *folder)
{
    pl_predict_info info;
    pl_predict_tensor tensor;
    char path[1200];
    int64_t elements = 0;
    pl_predict_describe(predict, &info);
    assert_string_equal("branched", info.model);
    assert_int_equal(2, info.example.rank);
    assert_int_equal(CLASSES, info.outputs);
    assert_int_equal(10, info.tensors);
    for (int32_t i = 0; i < info.tensors; i++) {
        assert_ok(pl_predict_get(predict, i, &tensor));
        elements += tensor.count;
        if (strcmp(tensor.name, "right/weights") == 0)
            assert_int_equal(16 * 4 * 16, tensor.count);
    }
    assert_int_equal(info.elements, elements);
    assert_refused(PL_USAGE, "expected 0 to 9",
                   pl_predict_get(predict, 10, &tensor));
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    assert_ok(pl_predict_export(predict, path));
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    uint8_t head[8];
    assert_int_equal(8, fread(head, 1, 8, file));
    fseek(file, 0, SEEK_END);
    assert_int_equal(8 + head[0] + 256 * head[1] + 4 * elements, ftell(file));
    fclose(file);
}

static bool has_series(const pl_run *run, const char *task, const char *name)
{
    for (int32_t i = 0; i < pl_run_series_count(run); i++) {
        pl_run_series series;
        assert_ok(pl_run_series_get(run, i, &series));
        if (strcmp(series.task, task) != 0 || strcmp(series.name, name) != 0)
            continue;
        for (int64_t p = 1; p < series.count; p++)
            assert_true(series.step[p] >= series.step[p - 1]);
        return series.count > 0 && series.time[0] > 1e9 &&
               isfinite(series.value[0]);
    }
    return false;
}

static void check_run(const char *folder)
{
    pl_run *run;
    pl_run_incident incident;
    int tests = 0;
    assert_ok(pl_run_open(&run, folder));
    assert_non_null(strstr(pl_run_settings(run), "\"branched\""));
    assert_non_null(strstr(pl_run_summary(run), "\"stopped_by\":\"epochs\""));
    assert_true(has_series(run, "worker-0", "loss"));
    assert_true(has_series(run, "worker-1", "loss"));
    for (int32_t i = 0; i < pl_run_incident_count(run); i++) {
        assert_ok(pl_run_incident_get(run, i, &incident));
        tests +=
            strcmp(incident.kind, "test") == 0 && isfinite(incident.test_loss);
    }
    assert_true(tests >= 6);
    assert_refused(PL_USAGE, "the run has",
                   pl_run_incident_get(run, -1, &incident));
    pl_run_free(run);
    assert_refused(PL_NOTFOUND, "nothing-here",
                   pl_run_open(&run, "/nothing-here"));
}

/* From layers to answers, with two servers in between. */
static void trains_and_answers(void **state)
{
    (void)state;
    dense_data *d = calloc(1, sizeof *d);
    char folder[1024], run[1100];
    pl_net *net = branched();
    pl_training *training;
    pl_train_result result;
    pl_predict *predict;
    make_folder(folder, sizeof folder);
    snprintf(run, sizeof run, "%s/run", folder);
    fill_dense(d, 11);
    pl_data *data = dense_bytes(d);
    assert_ok(pl_train_start(
        &training,
        &(pl_train_opts) {
            .net = net,
            .train = data,
            .test = data,
            .flags = "--workers 2 --ps 2 --epochs 6 --batch 10 --lr 0.1 "
                     "--threads 1",
            .settings = (const char *const[]) { "run", run, NULL } }));
    assert_ok(pl_train_wait(training, &result));
    assert_string_equal(run, result.run);
    pl_train_free(training);
    assert_refused(
        PL_USAGE, "unknown model \"branched\"",
        pl_predict_open(&predict, &(pl_predict_opts) { .run = run }));
    assert_ok(pl_predict_open(
        &predict, &(pl_predict_opts) { .run = run, .net = net, .threads = 2 }));
    check_answers(predict, d, data, folder);
    check_parameters(predict, folder);
    check_run(run);
    pl_predict_free(predict);
    pl_data_free(data);
    pl_net_free(net);
    remove_folder(folder);
    free(d);
}

/* Probabilities of all rows, from the newest checkpoint of a run; the model is
 * written to `onnx` unless it is NULL. */
static void ask_run(const char *run, const pl_data *data, float *values,
                    const char *onnx)
{
    pl_predict *predict;
    assert_ok(pl_predict_open(&predict,
                              &(pl_predict_opts) { .run = run, .threads = 1 }));
    assert_ok(pl_predict_run(predict, data, PL_PREDICT_PROBABILITIES, values,
                             ROWS * CLASSES));
    if (onnx != NULL)
        assert_ok(pl_predict_export(predict, onnx));
    pl_predict_free(predict);
}

/* What one training writes as ONNX another continues from: alone, and as a job
 * of threads, each of which builds the model from the file. */
static void models_go_through_onnx_files(void **state)
{
    (void)state;
    static dense_data d;
    static float first[ROWS * CLASSES], second[ROWS * CLASSES];
    static const char *const flags[] = {
        "--steps 1 --lr 1e-12 --threads 1",
        "--steps 1 --lr 1e-12 --threads 1 --workers 2 --ps 1",
        "--steps 1 --lr 1e-12 --threads 1 --workers 2",
    };
    char folder[1024], onnx[1100];
    pl_training *training;
    pl_train_result result;
    pl_predict *predict;
    make_folder(folder, sizeof folder);
    snprintf(onnx, sizeof onnx, "%s/net.onnx", folder);
    fill_dense(&d, 3);
    pl_data *data = dense_bytes(&d);
    assert_refused(PL_NOTFOUND, "net.onnx",
                   pl_train_start(&training, &(pl_train_opts) {
                                                 .model = onnx,
                                                 .train = data,
                                             }));
    assert_ok(pl_train_start(
        &training, &(pl_train_opts) { .model = "mlp",
                                      .train = data,
                                      .flags = "--epochs 3 --batch 20 "
                                               "--hidden 12 --threads 1" }));
    assert_ok(pl_train_wait(training, &result));
    ask_run(result.run, data, first, onnx);
    pl_train_free(training);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        assert_ok(pl_train_start(
            &training, &(pl_train_opts) {
                           .model = onnx, .train = data, .flags = flags[i] }));
        assert_ok(pl_train_wait(training, &result));
        memset(second, 0, sizeof second);
        ask_run(result.run, data, second, NULL);
        for (int v = 0; v < ROWS * CLASSES; v++)
            assert_true(fabsf(first[v] - second[v]) < 1e-5f);
        assert_ok(pl_predict_open(&predict,
                                  &(pl_predict_opts) { .run = result.run }));
        assert_refused(PL_IO, "nothing-here",
                       pl_predict_export(predict, "/nothing-here/net.onnx"));
        pl_predict_free(predict);
        pl_train_free(training);
    }
    pl_data_free(data);
    remove_folder(folder);
}

static int makes_zeros(void *context, const uint32_t *index, int64_t rows,
                       float *features, int32_t *labels)
{
    (void)context;
    memset(features, 0, (size_t)rows * PIXELS * sizeof *features);
    for (int64_t r = 0; r < rows; r++)
        labels[r] = (int32_t)index[r] % CLASSES;
    return 0;
}

/* Settings of a run's data, found or given, hold for its answers, too: the test
 * at its end and a later one agree. */
static void answers_read_data_as_the_training_did(void **state)
{
    (void)state;
    static dense_data d;
    static const char *const changes[] = { "--standardize", "--scale 7",
                                           "--example-shape 4,16", "" };
    pl_training *training;
    pl_train_result result;
    pl_predict *predict;
    pl_evaluation found;
    pl_data *made;
    char flags[128];
    fill_dense(&d, 4);
    pl_data *data = dense_bytes(&d);
    assert_ok(pl_data_from_callback(&made, &(pl_data_callback) {
                                               .make = makes_zeros,
                                               .rows = ROWS,
                                               .example = PL_SHAPE(SIDE, SIDE),
                                               .classes = CLASSES,
                                           }));
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        snprintf(flags, sizeof flags, "--epochs 3 --batch 20 --threads 1 %s",
                 changes[i]);
        pl_train_opts opts = {
            .model = "softmax", .train = data, .test = data, .flags = flags
        };
        assert_ok(pl_train_start(&training, &opts));
        assert_ok(pl_train_wait(training, &result));
        assert_ok(pl_predict_open(
            &predict, &(pl_predict_opts) { .run = result.run, .threads = 1 }));
        assert_ok(pl_predict_evaluate(predict, data, NULL, &found));
        assert_true(fabs(found.loss - result.test_loss) < 1e-9);
        assert_true(found.accuracy > 0.9);
        pl_predict_free(predict);
        pl_train_free(training);
        if (i > 1)
            continue;
        opts.train = made;
        opts.test = NULL;
        assert_ok(pl_train_start(&training, &opts));
        assert_refused(PL_USAGE, "made when they are needed",
                       pl_train_wait(training, &result));
        pl_train_free(training);
    }
    pl_data_free(made);
    pl_data_free(data);
}

/* A value that is missing is to blame, not the learning rate. */
static void missing_values_are_named(void **state)
{
    (void)state;
    static dense_data d;
    static sparse_data s;
    fill_dense(&d, 4);
    fill_sparse(&s, 4);
    for (int r = 0; r < ROWS; r++) {
        d.floats[r * PIXELS + 3] = NAN;
        s.values[r * FILLED] = INFINITY;
    }
    pl_data *all[2];
    assert_ok(pl_data_from_dense(&all[0], &(pl_data_dense) {
                                              .features = d.floats,
                                              .rows = ROWS,
                                              .example = PL_SHAPE(SIDE, SIDE),
                                              .labels = d.labels,
                                          }));
    all[1] = sparse_rows(&s, 32);
    for (int i = 0; i < 2; i++) {
        pl_training *training;
        pl_train_result result;
        assert_ok(pl_train_start(
            &training,
            &(pl_train_opts) { .model = i == 0 ? "softmax" : "sparse",
                               .train = all[i],
                               .flags = "--threads 1" }));
        assert_refused(PL_NUMERIC,
                       i == 0 ? "memory has the value nan"
                              : "memory has the value inf",
                       pl_train_wait(training, &result));
        pl_train_free(training);
        pl_data_free(all[i]);
    }
}

static void sparse_models_answer(void **state)
{
    (void)state;
    sparse_data *s = calloc(1, sizeof *s);
    float probabilities[ROWS];
    pl_training *training;
    pl_train_result result;
    pl_predict *predict;
    pl_evaluation found;
    int right = 0;
    fill_sparse(s, 5);
    pl_data *data = sparse_rows(s, 32);
    assert_ok(pl_train_start(&training,
                             &(pl_train_opts) { .model = "sparse",
                                                .train = data,
                                                .flags = "--epochs 10 --batch "
                                                         "20 --threads 1" }));
    assert_ok(pl_train_wait(training, &result));
    assert_ok(
        pl_predict_open(&predict, &(pl_predict_opts) { .run = result.run }));
    assert_ok(pl_predict_run(predict, data, PL_PREDICT_PROBABILITIES,
                             probabilities, ROWS));
    for (int r = 0; r < ROWS; r++)
        right += (probabilities[r] >= 0.5f) == s->labels[r];
    assert_ok(pl_predict_evaluate(predict, data, NULL, &found));
    assert_true(fabs(found.accuracy - (double)right / ROWS) < 1e-9);
    assert_true(found.auc > 0.9);
    assert_refused(
        PL_UNSUPPORTED, "not logits",
        pl_predict_run(predict, data, PL_PREDICT_LOGITS, probabilities, ROWS));
    pl_predict_free(predict);
    pl_train_free(training);
    pl_data_free(data);
    free(s);
}

static void resumes(void **state)
{
    (void)state;
    dense_data *d = calloc(1, sizeof *d);
    char folder[1024], run[1100], whole[65], flags[1300];
    static const int epochs[] = { 2, 4, 4 };
    make_folder(folder, sizeof folder);
    snprintf(run, sizeof run, "%s/run", folder);
    fill_dense(d, 1);
    pl_data *data = dense_bytes(d);
    pl_train_opts opts = { .model = "softmax",
                           .train = data,
                           .flags = "--epochs 4 --batch 20" };
    hash_of(&opts, whole);
    for (int i = 0; i < 3; i++) { /* the third finds that it is over */
        char hash[65];
        snprintf(flags, sizeof flags,
                 "--epochs %d --batch 20 --resume-or-start --run %s", epochs[i],
                 run);
        opts.flags = flags;
        hash_of(&opts, hash);
        if (i > 0)
            assert_string_equal(whole, hash);
    }
    pl_data_free(data);
    remove_folder(folder);
    free(d);
}

/* A step of a training that starts with these values, and moves nothing. */
static pl_status start_from(const pl_data *data, const char *flags,
                            const pl_predict_tensor *initial,
                            pl_train_result *result)
{
    pl_training *training;
    PL_TRY(pl_train_start(&training, &(pl_train_opts) {
                                         .model = "softmax",
                                         .train = data,
                                         .flags = flags,
                                         .initial = initial,
                                         .initial_count = 1,
                                     }));
    pl_status status = pl_train_wait(training, result);
    if (status == PL_OK) {
        pl_predict *predict;
        pl_predict_tensor found;
        assert_ok(pl_predict_open(&predict,
                                  &(pl_predict_opts) { .run = result->run }));
        assert_ok(pl_predict_get(predict, 0, &found));
        assert_string_equal(initial->name, found.name);
        for (int64_t i = 0; i < found.count; i++)
            assert_true(fabsf(found.values[i] - initial->values[i]) < 1e-6f);
        pl_predict_free(predict);
    }
    pl_train_free(training);
    return status;
}

static void parameters_start_with_given_values(void **state)
{
    (void)state;
    static dense_data d;
    static float values[CLASSES * PIXELS];
    pl_train_result result;
    for (int i = 0; i < CLASSES * PIXELS; i++)
        values[i] = (float)i / 100;
    fill_dense(&d, 5);
    pl_data *data = dense_bytes(&d);
    pl_predict_tensor initial = { .name = "softmax/weights",
                                  .shape = PL_SHAPE(CLASSES, PIXELS),
                                  .values = values,
                                  .count = CLASSES * PIXELS };
    const char *step = "--steps 1 --lr 1e-12";
    assert_ok(start_from(data, step, &initial, &result));
    assert_refused(
        PL_UNSUPPORTED, "one worker",
        start_from(data, "--steps 1 --workers 2 --ps 1", &initial, &result));
    initial.shape = PL_SHAPE(PIXELS, CLASSES);
    assert_refused(PL_USAGE, "expected [4, 64]",
                   start_from(data, step, &initial, &result));
    initial.name = "softmax/moon";
    assert_refused(PL_USAGE, "softmax/moon",
                   start_from(data, step, &initial, &result));
    pl_data_free(data);
}

static void nets_remember_their_first_error(void **state)
{
    (void)state;
    pl_net *net;
    pl_training *training;
    pl_train_result result;
    dense_data *d = calloc(1, sizeof *d);
    assert_refused(PL_USAGE, "built-in", pl_net_new(&net, "lenet"));
    assert_refused(PL_USAGE, "without /", pl_net_new(&net, "a/b"));
    assert_ok(pl_net_new(&net, "mine"));
    assert_int_equal(1, pl_net_add(net, &(pl_layer) { .kind = PL_LAYER_RELU }));
    assert_refused(PL_USAGE, "pl_net_set_logits first",
                   pl_net_set_loss(net, 1));
    assert_int_equal(0,
                     pl_net_add(net, &(pl_layer) { .kind = PL_LAYER_CONV2D }));
    assert_int_equal(0, pl_net_add(net, &(pl_layer) { .kind = 1000 }));
    assert_refused(PL_USAGE, "net mine: layer 2: units is 0",
                   pl_net_status(net));
    pl_net_free(net);

    /* Known from the data only. */
    fill_dense(d, 1);
    pl_data *data = dense_bytes(d);
    assert_ok(pl_net_new(&net, "mine"));
    pl_net_add(net, &(pl_layer) { .kind = PL_LAYER_DENSE, .units = 99 });
    assert_ok(pl_train_start(&training,
                             &(pl_train_opts) { .net = net, .train = data }));
    assert_refused(PL_SHAPE, "expected [batch, 4]",
                   pl_train_wait(training, &result));
    pl_train_free(training);
    pl_net_free(net);
    pl_data_free(data);
    free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trains_and_answers),
        cmocka_unit_test(models_go_through_onnx_files),
        cmocka_unit_test(answers_read_data_as_the_training_did),
        cmocka_unit_test(missing_values_are_named),
        cmocka_unit_test(sparse_models_answer),
        cmocka_unit_test(resumes),
        cmocka_unit_test(parameters_start_with_given_values),
        cmocka_unit_test(nets_remember_their_first_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "app/task/part.h"

#include "base/thread.h"
#include "nn/model.h"
#include "support/folder.h"

#define MOST 16

/* The part for flags that blanks separate; "FILE" becomes `file`. */
static pl_status find(pl_part *part, pl_options *options, const char *flags,
                      const char *file, const char *tf_config)
{
    static char text[256]; /* the options point into it */
    char *argv[MOST];
    int argc = 0;
    snprintf(text, sizeof text, "%s", flags);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = strcmp(word, "FILE") == 0 ? (char *)file : word;
    PL_TRY(pl_options_parse(options, argc, argv));
    return pl_part_init(part, options, tf_config);
}

static const char *const tf_config =
    "{\"cluster\": {\"chief\": [\"a:1\"], \"worker\": [\"a:2\", \"b:2\"],"
    " \"ps\": [\"c:1\"]}, \"task\": {\"type\": \"worker\", \"index\": 1}}";

static const char *write_cluster(void **state)
{
    static const char text[] =
        "{\"single\": {\"worker\": [\"localhost:2222\"]},"
        " \"two\": {\"ps\": [\"a:1\"], \"worker\": [\"a:2\", \"a:3\"]}}";
    const char *path = test_path(*state, "cluster.json");
    assert_ok(pl_file_replace(path, text, sizeof text - 1));
    return path;
}

static void part_follows_from_flags_and_environment(void **state)
{
    static const struct {
        const char *flags;
        bool tf_config;
        pl_part_kind kind;
        int32_t workers, ps;
        pl_task task;
        pl_train_strategy strategy;
    } cases[] = {
        { "", false, PL_PART_ALONE, 1, 0, { 0 }, PL_TRAIN_STRATEGY_SINGLE },
        { "--workers 1", true, PL_PART_ALONE, 1, 0, { 0 }, 0 },
        { "--strategy single", true, PL_PART_ALONE, 1, 0, { 0 }, 0 },
        { "--ps 1", false, PL_PART_SUPERVISOR, 1, 1, { 0 }, 1 },
        { "--workers 2",
          true,
          PL_PART_SUPERVISOR,
          2,
          0,
          { 0 },
          PL_TRAIN_STRATEGY_ALLREDUCE },
        { "--ps 2 --workers 3", true, PL_PART_SUPERVISOR, 3, 2, { 0 }, 1 },
        { "", true, PL_PART_TASK, 3, 1, { PL_ROLE_WORKER, 1 }, 1 },
        { "--role ps", true, PL_PART_TASK, 3, 1, { PL_ROLE_PS, 0 }, 1 },
        { "--role evaluator",
          true,
          PL_PART_TASK,
          3,
          1,
          { PL_ROLE_EVALUATOR, 0 },
          1 },
        { "--cluster FILE --deploy single",
          true,
          PL_PART_ALONE,
          1,
          0,
          { 0 },
          0 },
        { "--cluster FILE --deploy single --role worker",
          false,
          PL_PART_ALONE,
          1,
          0,
          { PL_ROLE_WORKER, 0 },
          0 },
        { "--workers 5 --cluster FILE --deploy two --role worker --index 1",
          true,
          PL_PART_TASK,
          2,
          1,
          { PL_ROLE_WORKER, 1 },
          1 },
        { "--strategy allreduce", false, PL_PART_ALONE, 1, 0, { 0 }, 2 },
        { "--workers 1 --engine ring", false, PL_PART_ALONE, 1, 0, { 0 }, 2 },
        { "--workers 3 --ps 2 --role ps --index 1 --control 3",
          true,
          PL_PART_TASK,
          3,
          2,
          { PL_ROLE_PS, 1 },
          1 },
    };
    const char *file = write_cluster(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_options options;
        pl_part part;
        assert_ok(pl_options_init(&options, pl_model_list()[0]));
        assert_ok(find(&part, &options, cases[i].flags, file,
                       cases[i].tf_config ? tf_config : NULL));
        assert_int_equal(cases[i].kind, part.kind);
        assert_int_equal(cases[i].workers, part.cluster.workers);
        assert_int_equal(cases[i].ps, part.cluster.ps);
        assert_int_equal(cases[i].task.role, part.task.role);
        assert_int_equal(cases[i].task.index, part.task.index);
        assert_int_equal(cases[i].strategy, options.train.strategy);
        assert_int_equal(cases[i].workers, options.train.workers);
        assert_int_equal(cases[i].ps, options.train.ps);
        assert_int_equal(cases[i].workers, options.train.replicas_to_aggregate);
        pl_part_close(&part);
        pl_options_close(&options);
    }
    assert_int_equal(0, pl_mem_live());
}

static void part_refuses_flags_that_do_not_fit_together(void **state)
{
    static const struct {
        const char *flags, *part;
    } cases[] = {
        { "--strategy allreduce --ps 1", "leave out --ps" },
        { "--workers 2 --mode async", "--mode needs a parameter server" },
        { "--restarts 3", "needs a job of several processes: add --workers" },
        { "--workers 2 --evaluator", "--evaluator needs a parameter server" },
        { "--workers 2 --replicas-to-aggregate 1",
          "--replicas-to-aggregate needs a parameter server" },
        { "--workers 2 --engine ring --min-workers 1",
          "--min-workers needs --engine mpi" },
        { "--workers 2 --engine mpi --transport tcp", "see --engine ring" },
        { "--workers 2 --ps 1 --bucket-bytes 4096",
          "--bucket-bytes needs --strategy allreduce" },
        { "--strategy single --ps 1", "--strategy single is one process" },
        { "--strategy ps", "--strategy ps needs a parameter server" },
        { "--staleness 2 --ps 1", "--staleness needs --mode ssp" },
        { "--mode async --ps 1 --replicas-to-aggregate 1",
          "needs --mode sync" },
        { "--workers 2 --ps 1 --replicas-to-aggregate 3",
          "there are only 2 workers" },
        { "--role worker", "--role needs --cluster FILE or TF_CONFIG" },
        { "--role worker --ps 1", "--role needs --cluster FILE or TF_CONFIG" },
        { "--deploy two", "--deploy needs --cluster FILE" },
        { "--index 1", "--index needs --role" },
        { "--control 3", "--control needs --role" },
        { "--mode async", "--mode needs a parameter server: add --ps N" },
        { "--evaluator", "--evaluator needs a parameter server" },
        { "--cluster FILE", "found 2 clusters; choose one with --deploy" },
        { "--cluster FILE --deploy two", "--cluster needs --role (" },
        { "--cluster FILE --deploy two --role worker",
          "--role worker needs --index N, from 0 to 1" },
        { "--cluster FILE --deploy two --role worker --index 2",
          "--role: there is no worker 2" },
        { "--cluster FILE --deploy two --role chief", "worker 0 is its chief" },
        { "--cluster FILE --deploy two --role ps --evaluator",
          "start an evaluator with --role evaluator" },
        { "--cluster FILE --deploy single --role evaluator",
          "an evaluator needs a parameter server" },
        { "--batch 5 --global-batch 10", "give one of them, not both" },
        { "--workers 3 --ps 1 --global-batch 10",
          "--global-batch 10 cannot be divided by 3 workers" },
    };
    const char *file = write_cluster(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_options options;
        pl_part part;
        assert_ok(pl_options_init(&options, pl_model_list()[0]));
        assert_fails(PL_USAGE, cases[i].part,
                     find(&part, &options, cases[i].flags, file, NULL));
        pl_options_close(&options);
    }
    assert_int_equal(0, pl_mem_live());
}

static void part_fills_in_what_depends_on_the_job(void **state)
{
    static const struct {
        const char *flags;
        bool tf_config;
        int64_t batch, join_s;
        int loss, here; /* workers on this machine */
    } cases[] = {
        { "", false, 0, 60, PL_TRAIN_LOSS_WAIT, 1 },
        { "--workers 2 --ps 1 --global-batch 64", false, 32, 60,
          PL_TRAIN_LOSS_WAIT, 2 },
        { "--workers 999 --ps 1 --mode async", false, 0, 60,
          PL_TRAIN_LOSS_CONTINUE, 999 },
        { "--mode ssp --staleness 3", true, 0, 600, PL_TRAIN_LOSS_CONTINUE, 1 },
        { "--role chief", true, 0, 600, PL_TRAIN_LOSS_WAIT, 2 },
        { "--role ps --on-worker-loss abort --join-timeout 7", true, 0, 7,
          PL_TRAIN_LOSS_ABORT, 1 },
    };
    (void)state;
    int cores = pl_thread_cores();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_options options;
        pl_part part;
        assert_ok(pl_options_init(&options, pl_model_list()[0]));
        assert_ok(find(&part, &options, cases[i].flags, NULL,
                       cases[i].tf_config ? tf_config : NULL));
        assert_int_equal(cases[i].batch, options.train.batch);
        assert_int_equal(cases[i].join_s, options.train.join_timeout);
        assert_int_equal(cases[i].loss, options.train.on_worker_loss);
        int threads = cores / cases[i].here;
        assert_int_equal(threads > 1 ? threads : 1, options.train.threads);
        pl_part_close(&part);
        pl_options_close(&options);
    }
}

/* Resume: the recorded flags, then the new ones. */
static pl_status resume(pl_part *part, pl_options *options, const char *before,
                        const char *now, const char *environment)
{
    pl_options first;
    pl_json *record;
    PL_TRY(pl_options_init(&first, pl_model_list()[0]));
    PL_TRY(find(part, &first, before, NULL, NULL));
    PL_TRY(pl_options_record(&first, PL_OPTIONS_RECORDED, &record));
    pl_part_close(part);
    pl_options_close(&first);

    char text[256], *argv[MOST];
    int argc = 0;
    snprintf(text, sizeof text, "%s", now);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    PL_TRY(pl_options_init(options, pl_model_list()[0]));
    pl_status status = pl_options_parse(options, argc, argv);
    if (status == PL_OK)
        status = pl_options_recall(options, record);
    if (status == PL_OK)
        status = pl_part_init(part, options, environment);
    options->train.data = options->train.test_data = NULL; /* in the record */
    pl_json_free(record);
    return status;
}

static void part_of_a_resumed_run_may_change(void **state)
{
    (void)state;
    static const struct {
        const char *before, *now;
        bool tf_config;
        pl_part_kind kind;
        int64_t workers, ps, replicas;
        int mode, loss;
    } cases[] = {
        { "--workers 3 --ps 2 --replicas-to-aggregate 2", "", false,
          PL_PART_SUPERVISOR, 3, 2, 2, PL_TRAIN_MODE_SYNC, PL_TRAIN_LOSS_WAIT },
        { "--workers 3 --ps 2", "--mode async", false, PL_PART_SUPERVISOR, 3, 2,
          3, PL_TRAIN_MODE_ASYNC, PL_TRAIN_LOSS_CONTINUE },
        { "--workers 3 --ps 2 --mode async", "--strategy single", false,
          PL_PART_ALONE, 1, 0, 1, PL_TRAIN_MODE_ASYNC, PL_TRAIN_LOSS_CONTINUE },
        { "", "--workers 3 --ps 2", false, PL_PART_SUPERVISOR, 3, 2, 3,
          PL_TRAIN_MODE_SYNC, PL_TRAIN_LOSS_WAIT },
        { "", "", true, PL_PART_TASK, 3, 1, 3, PL_TRAIN_MODE_SYNC,
          PL_TRAIN_LOSS_WAIT },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_options options;
        pl_part part;
        assert_ok(resume(&part, &options, cases[i].before, cases[i].now,
                         cases[i].tf_config ? tf_config : NULL));
        assert_int_equal(cases[i].kind, part.kind);
        assert_int_equal(cases[i].workers, options.train.workers);
        assert_int_equal(cases[i].ps, options.train.ps);
        assert_int_equal(cases[i].replicas,
                         options.train.replicas_to_aggregate);
        assert_int_equal(cases[i].mode, options.train.mode);
        assert_int_equal(cases[i].loss, options.train.on_worker_loss);
        pl_part_close(&part);
        pl_options_close(&options);
    }
    pl_options options;
    pl_part part;
    assert_fails(PL_USAGE, "--global-batch 30: the run was started with 20",
                 resume(&part, &options, "--batch 20",
                        "--workers 3 --ps 1 --global-batch 30", NULL));
    pl_options_close(&options);
}

UNIT_TESTS(TEST_IN_FOLDER(part_follows_from_flags_and_environment),
           TEST_IN_FOLDER(part_refuses_flags_that_do_not_fit_together),
           cmocka_unit_test(part_fills_in_what_depends_on_the_job),
           cmocka_unit_test(part_of_a_resumed_run_may_change))

/* training.c - a training inside a program: decides which flags make sense
 * there and which task this process is, and runs the code of the command line,
 * with a host instead of the terminal. */
#include "app/library/training.h"

#include "app/options/resume.h"
#include "app/task/task_keys.h"
#include "app/task/train_task.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REPORT_MS 200

/* --- model and flags -------------------------------------------------- */

pl_status pl_library_model(const pl_app *app, const char *name,
                           const pl_model *own, const pl_net *net,
                           const pl_model **out)
{
    if ((name != NULL) + (own != NULL) + (net != NULL) != 1)
        return PL_FAIL(PL_USAGE, "give one model: by its name, one of your "
                                 "own, or a net");
    if (name != NULL)
        return pl_app_model(app, name, out);
    *out = own != NULL ? own : pl_net_model(net);
    return net != NULL ? pl_net_status(net) : PL_OK;
}

static pl_status check_engine(const pl_training *t)
{
    const pl_train_options *train = &t->options.train;
    if (train->strategy == PL_TRAIN_STRATEGY_ALLREDUCE &&
        train->engine == PL_TRAIN_ENGINE_MPI)
        return PL_FAIL(PL_USAGE,
                       "--engine mpi: its workers are processes that mpirun "
                       "starts, which the command line does; here leave it "
                       "out for a ring");
    return PL_OK;
}

static pl_status check_data(const pl_training *t)
{
    const pl_train_opts *opts = &t->opts;
    const pl_train_options *train = &t->options.train;
    if (opts->train != NULL && strcmp(train->data, PL_OPTIONS_MEMORY) != 0)
        return PL_FAIL(PL_USAGE, "--data and data in memory: give one of them");
    if (opts->test != NULL && train->test_data != NULL &&
        strcmp(train->test_data, PL_OPTIONS_MEMORY) != 0)
        return PL_FAIL(PL_USAGE,
                       "--test-data and data in memory: give one of them");
    if (opts->test != NULL && train->holdout > 0)
        return PL_FAIL(PL_USAGE, "--holdout and test data: give one of them");
    const pl_data *all[] = { opts->train, opts->test };
    for (int i = 0; i < 2; i++) {
        pl_data_info info;
        if (all[i] == NULL)
            continue;
        pl_data_describe(all[i], &info);
        if (!info.labelled)
            return PL_FAIL(PL_USAGE, "the %s data has no labels",
                           i == 0 ? "training" : "test");
    }
    return PL_OK;
}

/* Data in memory without a test set is not tested.  Set by a flag, because
 * tasks of a job read flags. */
static pl_status choose_tests(pl_training *t)
{
    const pl_train_options *train = &t->options.train;
    pl_arguments *arguments = &t->arguments;
    bool none = t->opts.train != NULL && t->opts.test == NULL &&
                train->test_data == NULL && train->holdout <= 0;
    if (!none || PL_GIVEN(&t->options, eval_every))
        return PL_OK;
    PL_TRY(pl_arguments_add(arguments, "eval-every", "never"));
    return pl_options_parse(&t->options, 1,
                            arguments->argv + arguments->argc - 1);
}

/* Data with numeric labels selects a loss for numbers by default. */
static pl_status choose_loss(pl_training *t)
{
    pl_data_info info = { .rows = 0 };
    pl_arguments *arguments = &t->arguments;
    if (t->opts.train != NULL)
        pl_data_describe(t->opts.train, &info);
    if (!info.numeric || PL_GIVEN(&t->options, loss))
        return PL_OK;
    PL_TRY(pl_arguments_add(arguments, "loss", "squared-error"));
    return pl_options_parse(&t->options, 1,
                            arguments->argv + arguments->argc - 1);
}

static pl_status make_temporary(pl_training *t)
{
    const char *folder = getenv("TMPDIR");
    if (t->part.kind == PL_PART_TASK)
        return PL_FAIL(PL_USAGE, "a task of a cluster needs --run DIR, a "
                                 "folder that its servers see, too");
    if (folder == NULL || folder[0] != '/')
        folder = "/tmp";
    PL_TRY(pl_file_join(&t->temporary, folder, "paceline-XXXXXX"));
    if (mkdtemp(t->temporary) != NULL) {
        t->options.train.run = t->temporary;
        return PL_OK;
    }
    pl_status status =
        PL_FAIL(PL_IO, "make folder %s: %s", t->temporary, strerror(errno));
    pl_mem_free(t->temporary);
    t->temporary = NULL;
    return status;
}

/* Read and check the flags, as `train` does. */
static pl_status resolve(pl_training *t)
{
    pl_options *options = &t->options;
    pl_train_options *train = &options->train;
    PL_TRY(pl_arguments_init(&t->arguments, &t->opts, options));
    PL_TRY(pl_options_parse(options, t->arguments.argc, t->arguments.argv));
    options->train_data = t->opts.train;
    options->test_data = t->opts.test;
    PL_TRY(pl_options_check_program(options));
    PL_TRY(choose_tests(t));
    PL_TRY(choose_loss(t));
    if (train->resume && train->run != NULL)
        PL_TRY(pl_resume_recall(options, &t->record));
    if (!PL_GIVEN(options, engine))
        train->engine = PL_TRAIN_ENGINE_RING;
    PL_TRY(pl_part_init(&t->part, options, NULL));
    PL_TRY(pl_options_resolve(options));
    PL_TRY(check_engine(t));
    PL_TRY(check_data(t));
    PL_TRY(pl_training_check_initial(t));
    PL_TRY(pl_resume_check(options));
    return train->run == NULL ? make_temporary(t) : PL_OK;
}

/* --- progress --------------------------------------------------------- */

static pl_status find_tags(pl_metrics *metrics, pl_training_tags *tags)
{
    PL_TRY(pl_metrics_tag(metrics, "step", &tags->step));
    PL_TRY(pl_metrics_tag(metrics, "examples", &tags->examples));
    PL_TRY(pl_metrics_tag(metrics, PL_METRICS_TRAIN_LOSS, &tags->loss));
    PL_TRY(pl_metrics_tag(metrics, "tests", &tags->tests));
    PL_TRY(pl_metrics_tag(metrics, "test_loss", &tags->test_loss));
    return pl_metrics_tag(metrics, "test_accuracy", &tags->test_accuracy);
}

/* Called with the lock held. */
static void look(pl_training *t)
{
    pl_train_progress *p = &t->progress;
    p->seconds =
        (double)(pl_clock_now_ns(pl_clock_real()) - t->begin_ns) * 1e-9;
    if (t->metrics == NULL)
        return;
    p->step = (int64_t)pl_metrics_get(t->metrics, t->tags.step);
    p->examples = (int64_t)pl_metrics_get(t->metrics, t->tags.examples);
    if (p->step > 0)
        p->loss = pl_metrics_get(t->metrics, t->tags.loss);
    if (pl_metrics_get(t->metrics, t->tags.tests) > 0) {
        p->test_loss = pl_metrics_get(t->metrics, t->tags.test_loss);
        p->test_accuracy = pl_metrics_get(t->metrics, t->tags.test_accuracy);
    }
}

static void begun(void *context, pl_metrics *metrics, int64_t end_step,
                  int64_t epoch_steps)
{
    pl_training *t = context;
    pl_mutex_lock(&t->lock);
    if (find_tags(metrics, &t->tags) == PL_OK)
        t->metrics = metrics; /* otherwise only the state is known */
    t->progress.state = PL_TRAIN_RUNNING;
    t->progress.end_step = end_step;
    t->progress.epoch_steps = epoch_steps;
    pl_mutex_unlock(&t->lock);
}

static void done(void *context)
{
    pl_training *t = context;
    pl_mutex_lock(&t->lock);
    look(t);
    t->metrics = NULL;
    pl_mutex_unlock(&t->lock);
}

void pl_training_report(pl_training *t, const pl_train_progress *progress)
{
    pl_mutex_lock(&t->lock);
    t->progress = *progress;
    pl_mutex_unlock(&t->lock);
}

static pl_status report_main(void *arg)
{
    pl_training *t = arg;
    for (bool ended = false; !ended;) {
        pl_train_progress progress;
        pl_train_poll(t, REPORT_MS, &progress);
        ended = progress.state == PL_TRAIN_ENDED;
        t->opts.progress(t->opts.context, &progress);
    }
    return PL_OK;
}

/* --- the result ------------------------------------------------------- */

static pl_status copy_texts(pl_training *t, const pl_summary *s)
{
    PL_TRY(pl_mem_copy_text(&t->texts[0], s->stopped_by));
    PL_TRY(pl_mem_copy_text(&t->texts[1], s->parameters_sha256));
    PL_TRY(pl_mem_copy_text(&t->texts[2], s->run));
    return pl_fields_text(&pl_summary_fields, s, 0, &t->texts[3]);
}

pl_status pl_training_keep(void *context, const pl_summary *s)
{
    pl_training *t = context;
    pl_mutex_lock(&t->lock);
    pl_status status = copy_texts(t, s);
    if (status == PL_OK)
        t->result = (pl_train_result) {
            .steps = s->steps,
            .examples = s->examples,
            .epochs = s->epochs,
            .seconds = s->seconds,
            .examples_per_s = s->examples_per_s,
            .train_loss = s->train_loss,
            .test_loss = s->test.loss,
            .test_accuracy = s->test.accuracy,
            .test_auc = s->test.auc,
            .deterministic = s->deterministic,
            .stopped_by = t->texts[0],
            .parameters_sha256 = t->texts[1],
            .run = t->texts[2],
            .summary = t->texts[3],
        };
    pl_mutex_unlock(&t->lock);
    return status;
}

/* Keep the summary of a resumed run that has already ended. */
static pl_status look_finished(pl_training *t, bool *finished)
{
    pl_summary summary;
    *finished = false;
    if (t->record.model == NULL)
        return PL_OK;
    PL_TRY(pl_resume_finished(&t->options, &summary, finished));
    if (!*finished)
        return PL_OK;
    pl_status status = pl_training_keep(t, &summary);
    pl_summary_close(&summary);
    return status;
}

/* --- the driver ------------------------------------------------------- */

/* One task of a job whose other tasks are elsewhere. */
static pl_status be_task(pl_training *t, pl_trainer_opts opts)
{
    pl_job_keys keys;
    bool has_keys = false;
    PL_TRY(pl_task_keys(&keys, &has_keys,
                        &(pl_task_keys_opts) {
                            .options = &t->options,
                            .cluster = &t->part.cluster,
                            .environment = getenv("PACELINE_KEYS"),
                            .program = t->app.program,
                        }));
    opts.cluster = &t->part.cluster;
    opts.task = t->part.task;
    opts.keys = has_keys ? &keys : NULL;
    pl_status status = pl_train_task(&opts);
    pl_keys_wipe(&keys, sizeof keys);
    return status;
}

static pl_status train(pl_training *t)
{
    bool finished;
    PL_TRY(look_finished(t, &finished));
    if (finished)
        return PL_OK;
    pl_trainer_opts opts = {
        .app = &t->app,
        .options = &t->options,
        .begin_ns = t->begin_ns,
        .host = &t->host,
    };
    switch (t->part.kind) {
    case PL_PART_ALONE:
        return pl_trainer_run(&opts);
    case PL_PART_SUPERVISOR:
        return pl_training_threads(t);
    case PL_PART_TASK:
        break;
    }
    return be_task(t, opts);
}

static pl_status drive(void *arg)
{
    pl_training *t = arg;
    pl_status status = train(t);
    pl_mutex_lock(&t->lock);
    pl_error_save(&t->failed, status);
    t->metrics = NULL;
    look(t);
    t->progress.state = PL_TRAIN_ENDED;
    t->ended = true;
    pl_cond_broadcast(&t->changed);
    pl_mutex_unlock(&t->lock);
    return PL_OK;
}

/* --- the public half -------------------------------------------------- */

static pl_status begin(pl_training *t)
{
    t->app = (pl_app) { .program = "paceline", .files = &t->files };
    PL_TRY(pl_library_model(&t->app, t->opts.model, t->opts.own, t->opts.net,
                            &t->model));
    if (t->opts.model == NULL)
        t->app.mine = t->model;
    pl_status status = pl_options_init(&t->options, t->model);
    if (status != PL_OK) {
        t->options = (pl_options) { 0 }; /* nothing to close */
        return status;
    }
    PL_TRY(resolve(t));
    PL_TRY(pl_thread_start(&t->driver, "training", drive, t));
    if (t->opts.progress != NULL)
        PL_TRY(pl_thread_start(&t->reporter, "reporter", report_main, t));
    return PL_OK;
}

pl_status pl_train_start(pl_training **out, const pl_train_opts *opts)
{
    pl_training *t;
    PL_TRY(PL_NEW(t, 1));
    t->opts = *opts;
    t->begin_ns = pl_clock_now_ns(pl_clock_real());
    t->progress = (pl_train_progress) {
        .end_step = -1,
        .epoch_steps = -1,
        .loss = (double)NAN,
        .test_loss = (double)NAN,
        .test_accuracy = (double)NAN,
    };
    t->host = (pl_trainer_host) {
        .interrupt = &t->interrupt,
        .begun = begun,
        .done = done,
        .initial = pl_training_set_initial,
        .result = pl_training_keep,
        .context = t,
    };
    pl_mutex_init(&t->lock);
    pl_cond_init(&t->changed);
    pl_error failed;
    pl_error_save(&failed, begin(t));
    if (failed.status == PL_OK)
        *out = t;
    else
        pl_train_free(t);
    return pl_error_raise(&failed);
}

void pl_train_poll(pl_training *t, int32_t wait_ms, pl_train_progress *out)
{
    pl_deadline until = pl_deadline_in_ms(pl_clock_real(), wait_ms);
    pl_mutex_lock(&t->lock);
    pl_cond_pause_until(&t->changed, &t->lock, &t->ended, until);
    look(t);
    *out = t->progress;
    pl_mutex_unlock(&t->lock);
}

void pl_train_interrupt(pl_training *t)
{
    atomic_store(&t->interrupt, true);
}

/* Both threads end with the training, and keep its failure. */
static void join(pl_training *t)
{
    PL_ASSERT(pl_thread_join(t->driver) == PL_OK);
    PL_ASSERT(pl_thread_join(t->reporter) == PL_OK);
    t->driver = t->reporter = NULL;
}

pl_status pl_train_wait(pl_training *t, pl_train_result *out)
{
    join(t);
    *out = t->result;
    return pl_error_raise(&t->failed);
}

void pl_train_free(pl_training *t)
{
    if (t == NULL)
        return;
    pl_train_interrupt(t);
    join(t);
    if (t->temporary != NULL && pl_file_remove_all(t->temporary) != PL_OK)
        pl_log(PL_LOG_WARN, "%s; it stays", pl_error_message());
    for (size_t i = 0; i < sizeof t->texts / sizeof *t->texts; i++)
        pl_mem_free(t->texts[i]);
    pl_mem_free(t->temporary);
    pl_part_close(&t->part);
    pl_run_record_close(&t->record);
    pl_options_close(&t->options);
    pl_app_files_close(&t->files);
    pl_arguments_close(&t->arguments);
    pl_cond_close(&t->changed);
    pl_mutex_close(&t->lock);
    pl_mem_free(t);
}

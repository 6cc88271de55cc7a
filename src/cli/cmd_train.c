#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/job.h"
#include "cli/part.h"
#include "cli/progress.h"
#include "cli/resume.h"
#include "cli/run_folder.h"
#include "cli/summary.h"
#include "cli/train_local.h"
#include "cli/train_task.h"
#include "observe/chrome_trace.h"
#include "train/single.h"
#include "train/snapshot.h"

#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PROFILE_STEPS 1000

/* One `train` from parsed options to summary. */
typedef struct session {
    const pl_app *app;
    pl_options options;
    pl_json *record; /* of the run that is resumed */
    pl_part part;
    pl_job job;
    pl_run_folder folder;
    pl_json *settings; /* what must not change on resume */
    pl_snapshot *snapshot;
    pl_sync *sync;
    pl_metrics *metrics;
    pl_trace *trace;
    pl_progress start;
    int64_t per_epoch; /* steps */
    pl_loop_result result;
    const atomic_bool *interrupt;
    double startup_s;
} session;

static void close_session(session *s)
{
    if (s->sync != NULL)
        s->sync->ops->free(s->sync);
    pl_snapshot_free(s->snapshot);
    pl_json_free(s->settings);
    pl_metrics_free(s->metrics);
    pl_trace_free(s->trace);
    pl_run_folder_close(&s->folder);
    pl_job_close(&s->job);
    pl_part_close(&s->part);
    pl_json_free(s->record);
    pl_options_close(&s->options);
}

static pl_status print_summary(const session *s, const pl_json *summary)
{
    if (!s->options.train.json)
        return pl_summary_print(summary, stdout);
    char *text;
    PL_TRY(pl_json_text(summary, 0, &text));
    printf("%s\n", text);
    pl_mem_free(text);
    return PL_OK;
}

static pl_reader_opts data_order(const pl_train_options *train)
{
    return (pl_reader_opts) {
        .batch = train->batch,
        .micro_batches = (int32_t)train->micro_batches,
        .seed = (uint64_t)train->seed,
    };
}

/* How many steps an epoch has; also checks that there is at least one. */
static pl_status count_steps(session *s)
{
    pl_reader_opts order = data_order(&s->options.train);
    pl_reader *reader;
    PL_TRY(pl_reader_new(&reader, s->job.train, &order));
    s->per_epoch = reader->steps_per_epoch;
    pl_reader_free(reader);
    return PL_OK;
}

static int64_t end_step(const session *s)
{
    const pl_train_options *train = &s->options.train;
    return train->steps > 0 ? train->steps : train->epochs * s->per_epoch;
}

static pl_status restore(session *s)
{
    if (!s->options.train.resume)
        return PL_OK;
    pl_status status = pl_snapshot_load(s->snapshot, &s->start);
    if (status == PL_NOTFOUND) {
        pl_log(PL_LOG_INFO, "no complete checkpoint in %s: start at step 0",
               s->folder.checkpoints);
        return PL_OK;
    }
    PL_TRY(status);
    if (s->start.step > end_step(s))
        return PL_FAIL(PL_USAGE,
                       "--%s: that ends at step %lld, but %s is already at "
                       "step %lld",
                       s->options.train.steps > 0 ? "steps" : "epochs",
                       (long long)end_step(s), s->folder.path,
                       (long long)s->start.step);
    pl_log(PL_LOG_INFO, "resumed at step %lld", (long long)s->start.step);
    return PL_OK;
}

static pl_status open_run(session *s)
{
    pl_job *job = &s->job;
    PL_TRY(pl_run_folder_init(&s->folder, &s->options));
    PL_TRY(pl_options_record(&s->options, true, &s->settings));
    PL_TRY(pl_snapshot_new(&s->snapshot,
                           &(pl_snapshot_opts) {
                               .folder = s->folder.checkpoints,
                               .keep = (int32_t)s->options.train.keep,
                               .model = s->options.model->name,
                               .settings = s->settings,
                               .params = job->network->params,
                               .optim = job->optim,
                           }));
    PL_TRY(restore(s));
    PL_TRY(pl_run_folder_record(&s->folder, job));
    PL_TRY(pl_single_new(&s->sync, &(pl_single_opts) {
                                       .params = job->network->params,
                                       .optim = job->optim,
                                       .schedule = &job->schedule,
                                       .pool = job->pool,
                                       .snapshot = s->snapshot,
                                   }));
    PL_TRY(pl_metrics_new(&s->metrics, &(pl_metrics_opts) { 0 }));
    if (s->options.train.profile)
        PL_TRY(pl_trace_new(
            &s->trace,
            &(pl_trace_opts) { .lanes = pl_pool_threads(job->pool) }));
    return PL_OK;
}

static pl_status write_trace(const session *s)
{
    if (s->trace == NULL)
        return PL_OK;
    char *folder = NULL, *path = NULL;
    pl_status status;
    PL_TRY_OUT(status, pl_file_join(&folder, s->folder.path, "trace"));
    PL_TRY_OUT(status, pl_file_make_folder(folder));
    PL_TRY_OUT(status, pl_file_join(&path, folder, "worker-0.json"));
    PL_TRY_OUT(status, pl_chrome_trace_write(
                           s->trace, path,
                           &(pl_chrome_trace_opts) { .process = "worker 0" }));
    pl_log(PL_LOG_INFO, "trace written to %s (open it in a trace viewer)",
           path);
out:
    pl_mem_free(folder);
    pl_mem_free(path);
    return status;
}

static pl_loop_opts loop_opts(const session *s)
{
    const pl_train_options *train = &s->options.train;
    return (pl_loop_opts) {
        .network = s->job.network,
        .train = s->job.train,
        .test = s->job.test,
        .sync = s->sync,
        .pool = s->job.pool,
        .metrics = s->metrics,
        .schedule = &s->job.schedule,
        .trace = s->trace,
        .kernels = s->job.kernels,
        .interrupt = s->interrupt,
        .order = data_order(train),
        .steps = train->steps,
        .epochs = train->epochs,
        .aggregate = (pl_aggregate)train->aggregate,
        .clip = train->clip,
        .stop_loss = train->stop_loss,
        .has_stop_loss = train->stop_loss > 0,
        .eval_every = train->eval_every,
        .save_every = train->checkpoint_every,
        .eval_batch = train->eval_batch,
        .trace_first = s->start.step + 1,
        .trace_last = s->start.step + PROFILE_STEPS,
        .start = s->start,
    };
}

static pl_status run_loop(session *s)
{
    const pl_train_options *train = &s->options.train;
    pl_progress_line *line = NULL;
    if (!train->quiet)
        PL_TRY(
            pl_progress_start(&line, &(pl_progress_opts) {
                                         .metrics = s->metrics,
                                         .file = stderr,
                                         .terminal = isatty(STDERR_FILENO) != 0,
                                         .start_step = s->start.step,
                                         .start_examples = s->start.examples,
                                         .end_step = end_step(s),
                                         .per_epoch = s->per_epoch,
                                     }));
    pl_loop_opts opts = loop_opts(s);
    pl_status status = pl_loop_run(&opts, &s->result);
    pl_progress_stop(line);
    return status;
}

static void describe_job(const session *s)
{
    const pl_train_options *train = &s->options.train;
    const pl_dataset *data = s->job.train;
    int64_t step_examples = train->batch * train->micro_batches;
    pl_log(PL_LOG_INFO,
           "%s on %s: %lld examples, %lld steps of %lld an epoch, %lld "
           "parameters, %d threads, %s",
           s->options.model->name, data->name, (long long)data->count,
           (long long)s->per_epoch, (long long)step_examples,
           (long long)pl_params_elements(s->job.network->params),
           pl_pool_threads(s->job.pool), s->job.kernels->name);
}

static pl_status say_interrupted(const session *s)
{
    char *folder;
    PL_TRY(pl_run_folder_word(&s->folder, &folder));
    pl_status status = PL_FAIL(
        PL_INTERRUPTED,
        "interrupted at step %lld; to go on: %s train %s --run %s --resume",
        (long long)s->result.progress.step, s->app->program,
        s->options.model->name, folder);
    pl_mem_free(folder);
    return status;
}

/* Train, then tell what came of it: also when the loss blew up, or when the
 * end could not be saved.  What was not saved has no summary.json, so that a
 * resume does it again. */
static pl_status train_and_report(session *s)
{
    pl_error failed;
    pl_error_save(&failed, run_loop(s));
    bool saved = failed.status == PL_OK || failed.status == PL_NUMERIC;
    if (!saved && !s->result.ended)
        return pl_error_raise(&failed);
    pl_json *summary;
    PL_TRY(pl_summary_make(&summary, &(pl_summary_opts) {
                                         .job = &s->job,
                                         .result = &s->result,
                                         .run = s->folder.path,
                                         .resumed_step = s->start.step,
                                         .startup_s = s->startup_s,
                                     }));
    pl_status status = print_summary(s, summary);
    if (status == PL_OK && saved)
        status = pl_run_folder_write(&s->folder, "summary.json", summary);
    pl_json_free(summary);
    PL_TRY(pl_error_raise(&failed));
    PL_TRY(status);
    PL_TRY(write_trace(s));
    if (s->result.stopped_by == PL_STOPPED_INTERRUPT)
        return say_interrupted(s);
    return PL_OK;
}

/* True when the run to resume has come to its end; then its summary was
 * printed, by one task of the job. */
static pl_status look_finished(session *s, bool *finished)
{
    const pl_part *part = &s->part;
    pl_json *summary = NULL;
    *finished = false;
    if (s->record == NULL || s->options.train.control > 0)
        return PL_OK; /* a supervisor has looked */
    PL_TRY(pl_resume_finished(&s->options, &summary));
    if (summary == NULL)
        return PL_OK;
    *finished = true;
    pl_log(PL_LOG_INFO, "%s is finished; its summary:", s->options.train.run);
    pl_status status = PL_OK;
    if (part->kind != PL_PART_TASK ||
        pl_cluster_is_chief(&part->cluster, part->task))
        status = print_summary(s, summary);
    pl_json_free(summary);
    return status;
}

static pl_status train_alone(session *s, int64_t begin_ns)
{
    PL_TRY(pl_job_init(&s->job, &(pl_job_opts) { .options = &s->options }));
    PL_TRY(count_steps(s));
    s->job.schedule.run_steps = end_step(s);
    PL_TRY(open_run(s));
    describe_job(s);
    s->interrupt = pl_interrupt_catch();
    s->startup_s = (double)(pl_clock_now_ns(pl_clock_real()) - begin_ns) * 1e-9;
    return train_and_report(s);
}

static pl_status be_task(session *s)
{
    const pl_part *part = &s->part;
    pl_control *control = NULL;
    if (s->options.train.control > 0) {
        PL_TRY(pl_control_new(&control, (int)s->options.train.control));
        /* Started through /proc/self/exe, it would be called "exe". */
        prctl(PR_SET_NAME, s->app->program);
    }
    pl_status status =
        pl_train_task(s->app, &s->options, &part->cluster, part->task, control);
    pl_control_free(control);
    return status;
}

static pl_status train(session *s, int argc, char **argv)
{
    int64_t begin_ns = pl_clock_now_ns(pl_clock_real());
    bool finished;
    PL_TRY(pl_options_parse(&s->options, argc, argv));
    if (s->options.train.resume && s->options.train.run != NULL)
        PL_TRY(pl_resume_recall(&s->options, &s->record));
    PL_TRY(pl_part_init(&s->part, &s->options, getenv("TF_CONFIG")));
    PL_TRY(pl_options_resolve(&s->options));
    if (s->options.train.quiet)
        pl_log_set(NULL, NULL, PL_LOG_WARN);
    PL_TRY(look_finished(s, &finished));
    if (finished)
        return PL_OK;
    switch (s->part.kind) {
    case PL_PART_SUPERVISOR:
        return pl_train_local(s->app, &s->options, &s->part.cluster);
    case PL_PART_TASK:
        return be_task(s);
    case PL_PART_ALONE:
        break;
    }
    return train_alone(s, begin_ns);
}

static pl_status print_help(const pl_app *app, const char *model,
                            const pl_options *options)
{
    printf("usage: %s train %s [flags]\n\n%s\n\n", app->program, model,
           options->model->help);
    pl_param_print_help(options->groups, options->group_count, stdout);
    return PL_OK;
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    const pl_model *model = NULL;
    bool help = pl_app_wants_help(argc, argv);
    bool named = argc > 0 && argv[0][0] != '-';
    if (!named && !help)
        return PL_FAIL(PL_USAGE, "train needs a model: train MODEL [flags]; "
                                 "`models` lists them");
    PL_TRY(pl_app_model(app, named ? argv[0] : "softmax", &model));

    session *s;
    PL_TRY(PL_NEW(s, 1));
    s->app = app;
    pl_status status = pl_options_init(&s->options, model);
    if (status == PL_OK) {
        status = help ? print_help(app, named ? argv[0] : "MODEL", &s->options)
                      : train(s, argc - 1, argv + 1);
        close_session(s);
    }
    pl_mem_free(s);
    return status;
}

const pl_command pl_cmd_train = {
    .name = "train",
    .usage = "train MODEL [flags]",
    .help = "train a model; `train MODEL --help` lists the flags",
    .run = run,
};

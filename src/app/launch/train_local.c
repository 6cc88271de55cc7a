/* train_local.c - starts all tasks of a job on this machine under the
 * supervisor, and shows their progress as one line. */
#include "app/launch/train_local.h"

#include "app/launch/try_job.h"
#include "app/options/command_line.h"
#include "app/options/resume.h"
#include "app/run/run_folder.h"
#include "app/task/descriptors.h"
#include "app/train/interrupt.h"
#include "app/train/job.h"
#include "app/view/job_progress.h"
#include "base/error.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "job/supervise/supervisor.h"

#include <unistd.h>

/* The supervisor's state while its tasks work. */
typedef struct supervisor {
    const pl_app *app;
    const pl_options *options;
    const pl_cluster *cluster;
    int64_t per_epoch; /* updates */
    pl_run_folder folder;
    char *logs;
    pl_timeline *timeline; /* NULL: it cannot be written */
    pl_command_line command;
    pl_job_progress *progress;
    pl_secret secret; /* of this job only */
} supervisor;

static pl_status open_run(supervisor *s)
{
    PL_TRY(pl_run_folder_init(&s->folder, s->options, NULL));
    PL_TRY(pl_file_join(&s->logs, s->folder.path, "log"));
    PL_TRY(pl_file_make_folder(s->logs));
    if (pl_timeline_new(&s->timeline,
                        &(pl_timeline_opts) { .folder = s->folder.path,
                                              .task = "supervisor" }) != PL_OK)
        pl_log(PL_LOG_WARN, "%s; losses of tasks are not recorded",
               pl_error_message());
    return pl_command_line_init(&s->command, s->options, s->app->program,
                                s->folder.path);
}

static pl_status start_progress(supervisor *s)
{
    const pl_train_options *train = &s->options->train;
    int64_t end = train->steps;
    /* A number of steps that is too large is refused by the tasks. */
    if (end == 0 && __builtin_mul_overflow(train->epochs, s->per_epoch, &end))
        end = 0;
    return pl_job_progress_start(&s->progress,
                                 &(pl_job_progress_opts) {
                                     .workers = s->cluster->workers,
                                     .kind = pl_progress_chosen(train),
                                     .end_step = end,
                                     .resumed = train->resume,
                                     .per_epoch = s->per_epoch,
                                 });
}

static void describe_job(const supervisor *s)
{
    static const char *const modes[] = { "sync", "async", "ssp" };
    const pl_train_options *train = &s->options->train;
    if (s->cluster->ps == 0) {
        pl_log(PL_LOG_INFO,
               "%s: %d workers on this machine, all-reduce, %lld thread%s "
               "each; logs in %s",
               s->options->model->name, s->cluster->workers,
               (long long)train->threads, train->threads == 1 ? "" : "s",
               s->logs);
        return;
    }
    pl_log(PL_LOG_INFO,
           "%s: %d worker%s and %d parameter server%s on this machine, %s, "
           "%lld thread%s each; logs in %s",
           s->options->model->name, s->cluster->workers,
           s->cluster->workers == 1 ? "" : "s", s->cluster->ps,
           s->cluster->ps == 1 ? "" : "s", modes[train->mode],
           (long long)train->threads, train->threads == 1 ? "" : "s", s->logs);
}

static pl_status say_interrupted(const supervisor *s)
{
    char *folder;
    if (!pl_resume_begun(s->folder.path))
        return PL_FAIL(PL_INTERRUPTED, "interrupted before the training began: "
                                       "there is nothing to resume");
    PL_TRY(pl_run_folder_word(s->folder.path, &folder));
    pl_status status = PL_FAIL(
        PL_INTERRUPTED,
        "interrupted at step %lld; to continue: %s train %s --run %s --resume",
        (long long)pl_job_progress_step(s->progress), s->app->program,
        pl_model_word(s->options->model), folder);
    pl_mem_free(folder);
    return status;
}

static pl_status supervise(supervisor *s)
{
    const pl_train_options *train = &s->options->train;
    PL_TRY(
        pl_descriptors_ensure(s->cluster, pl_descriptors_of_job(s->cluster)));
    PL_TRY(pl_try_job(s->options, s->cluster, &s->per_epoch));
    PL_TRY(open_run(s));
    describe_job(s);
    const atomic_bool *interrupt = pl_interrupt_catch();
    PL_TRY(start_progress(s));
    PL_TRY(pl_secret_make(&s->secret));
    pl_status status = pl_supervisor_run(&(pl_supervisor_opts) {
        .cluster = s->cluster,
        .workers_listen = s->cluster->ps == 0,
        .argv = s->command.argv,
        .secret = &s->secret,
        .logs = s->logs,
        .timeline = s->timeline,
        .restarts = train->on_worker_loss == PL_TRAIN_LOSS_ABORT
                        ? 0
                        : (int32_t)train->restarts,
        .chaos = train->chaos,
        .chaos_seed = (uint64_t)train->seed,
        .silence_ms = (int64_t)(2000 * train->heartbeat_timeout),
        .freeze_ms = (int64_t)(2000 * train->heartbeat_timeout),
        .go_on = train->on_worker_loss == PL_TRAIN_LOSS_CONTINUE,
        .join_ms = train->join_timeout * 1000,
        .interrupt = interrupt,
        .show = pl_job_progress_show,
        .epoch = pl_job_progress_epoch,
        .context = s->progress,
    });
    return status == PL_INTERRUPTED ? say_interrupted(s) : status;
}

pl_status pl_train_local(const pl_app *app, pl_options *options,
                         const pl_cluster *cluster)
{
    supervisor s = { .app = app,
                     .options = options,
                     .cluster = cluster,
                     .folder = { .lock = -1 } };
    pl_error failed;
    pl_error_save(&failed, supervise(&s));
    pl_job_progress_stop(s.progress);
    pl_command_line_close(&s.command);
    pl_keys_wipe(&s.secret, sizeof s.secret);
    pl_timeline_free(s.timeline);
    pl_mem_free(s.logs);
    pl_run_folder_close(&s.folder);
    return pl_error_raise(&failed);
}

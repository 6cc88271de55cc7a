/* threads.c - a job whose tasks are threads of this process: the supervisor of
 * local jobs with threads instead of processes.  A task reads the same command
 * line as a process would, so that both behave alike. */
#include "app/launch/try_job.h"
#include "app/library/training.h"
#include "app/options/command_line.h"
#include "app/run/run_folder.h"
#include "app/task/descriptors.h"
#include "app/task/task_keys.h"
#include "app/task/train_task.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "job/supervise/local/host_threads.h"
#include "job/supervise/supervisor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define END_MS 60000

typedef struct thread_job {
    pl_training *training;
    pl_run_folder folder;
    pl_command_line command; /* of every task */
    pl_timeline *timeline;
    pl_secret secret;
    int64_t end_step, per_epoch; /* 0: not known */
} thread_job;

/* --- one task --------------------------------------------------------- */

/* The state of one thread. */
typedef struct task_state {
    const thread_job *job;
    pl_task task;
    pl_options options;
    pl_part part;
    pl_control *control;
    atomic_bool interrupt;
    char index[16], socket[16];
    char **argv; /* the words of the command and the ones above, borrowed */
} task_state;

static pl_status read_options(task_state *s)
{
    const pl_training *t = s->job->training;
    const pl_command_line *command = &s->job->command;
    const char *extra[] = { "--role",    pl_role_text(s->task.role),
                            "--index",   s->index,
                            "--control", s->socket };
    size_t count = sizeof extra / sizeof *extra;
    PL_TRY(PL_NEW(s->argv, command->count + count));
    memcpy(s->argv, command->argv, command->count * sizeof *s->argv);
    memcpy(s->argv + command->count, extra, sizeof extra);
    /* After the program, `train` and the model. */
    PL_TRY(pl_options_parse(&s->options, (int)(command->count + count) - 3,
                            s->argv + 3));
    s->options.train_data = t->opts.train;
    s->options.test_data = t->opts.test;
    PL_TRY(pl_part_init(&s->part, &s->options, NULL));
    PL_TRY(pl_options_resolve(&s->options));
    if (!pl_cluster_is_chief(&s->part.cluster, s->task))
        s->options.train.monitor_every = 0; /* the process is monitored once, by
                                               the chief */
    return PL_OK;
}

static pl_status train_task(task_state *s)
{
    const pl_training *t = s->job->training;
    pl_job_keys keys;
    bool has_keys;
    PL_TRY(read_options(s));
    PL_TRY(pl_task_keys(&keys, &has_keys,
                        &(pl_task_keys_opts) {
                            .options = &s->options,
                            .cluster = &s->part.cluster,
                            .control = s->control,
                            .program = t->app.program,
                        }));
    pl_trainer_host host = {
        .interrupt = &s->interrupt,
        .threads = true,
        .result = pl_training_keep,
        .context = s->job->training,
    };
    pl_status status = pl_train_task(&(pl_trainer_opts) {
        .app = &t->app,
        .options = &s->options,
        .cluster = &s->part.cluster,
        .task = s->part.task,
        .control = s->control,
        .keys = has_keys ? &keys : NULL,
        .begin_ns = t->begin_ns,
        .host = &host,
    });
    pl_keys_wipe(&keys, sizeof keys);
    return status;
}

static pl_status run_task(void *context, pl_task task, int control)
{
    task_state *s;
    PL_TRY(PL_NEW(s, 1));
    s->job = context;
    s->task = task;
    snprintf(s->index, sizeof s->index, "%d", task.index);
    snprintf(s->socket, sizeof s->socket, "%d", control);
    pl_status status = pl_control_new(&s->control, control);
    if (status == PL_OK)
        status = pl_options_init(&s->options, s->job->training->model);
    if (status == PL_OK) {
        status = train_task(s);
        pl_options_close(&s->options);
    }
    pl_part_close(&s->part);
    pl_control_free(s->control);
    pl_mem_free(s->argv);
    pl_mem_free(s);
    return status;
}

/* --- the job ---------------------------------------------------------- */

/* All tasks share one limit, which only the program may raise. */
static pl_status check_descriptors(const pl_cluster *cluster)
{
    struct rlimit limit;
    int64_t need = cluster->ps *
                   pl_descriptors_of_task(cluster, (pl_task) { PL_ROLE_PS, 0 });
    for (int32_t w = 0; w < cluster->workers; w++)
        need += pl_descriptors_of_task(cluster, pl_cluster_task(cluster, w));
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
        limit.rlim_cur == RLIM_INFINITY || (int64_t)limit.rlim_cur >= need)
        return PL_OK;
    return PL_FAIL(PL_USAGE,
                   "%d workers and %d servers as threads need up to %lld open "
                   "files, but this process may have %llu: raise its limit "
                   "(RLIMIT_NOFILE), or take fewer tasks",
                   cluster->workers, cluster->ps, (long long)need,
                   (unsigned long long)limit.rlim_cur);
}

static pl_status open_job(thread_job *job)
{
    pl_training *t = job->training;
    const pl_train_options *train = &t->options.train;
    const pl_cluster *cluster = &t->part.cluster;
    PL_TRY(check_descriptors(cluster));
    PL_TRY(pl_try_job(&t->options, cluster, &job->per_epoch));
    PL_TRY(pl_run_folder_init(&job->folder, &t->options, &t->interrupt));
    if (pl_timeline_new(&job->timeline,
                        &(pl_timeline_opts) { .folder = job->folder.path,
                                              .task = "supervisor" }) != PL_OK)
        pl_log(PL_LOG_WARN, "%s; losses of tasks are not recorded",
               pl_error_message());
    job->end_step = train->steps;
    if (train->steps == 0 &&
        __builtin_mul_overflow(train->epochs, job->per_epoch, &job->end_step))
        job->end_step = 0;
    PL_TRY(pl_command_line_init(&job->command, &t->options, t->app.program,
                                job->folder.path));
    return pl_secret_make(&job->secret);
}

/* Called on the supervisor's thread, a few times a second. */
static void show(void *context, const pl_job_task *tasks, int count)
{
    const thread_job *job = context;
    double loss = 0, weight = 0;
    pl_train_progress p = {
        .end_step = job->end_step > 0 ? job->end_step : -1,
        .epoch_steps = job->per_epoch > 0 ? job->per_epoch : -1,
        .test_loss = (double)NAN,
        .test_accuracy = (double)NAN,
    };
    for (int i = 0; i < count; i++) {
        const pl_task_status *status = &tasks[i].status;
        p.step = status->step > p.step ? status->step : p.step;
        if (tasks[i].worker == 0 && tasks[i].reported) {
            p.state = PL_TRAIN_RUNNING;
            p.test_loss = status->test_loss;
            p.test_accuracy = status->test_accuracy;
        }
        if (tasks[i].worker < 0)
            continue;
        p.examples += status->examples;
        if (status->loss_examples > 0 && !isnan(status->loss)) {
            loss += status->loss * (double)status->loss_examples;
            weight += (double)status->loss_examples;
        }
    }
    p.loss = weight > 0 ? loss / weight : (double)NAN;
    pl_training_report(job->training, &p);
}

static pl_status supervise(thread_job *job)
{
    pl_training *t = job->training;
    const pl_cluster *cluster = &t->part.cluster;
    pl_host *threads;
    PL_TRY(open_job(job));
    PL_TRY(pl_host_threads_new(
        &threads,
        &(pl_host_threads_opts) {
            .tasks = cluster->ps + cluster->workers + cluster->evaluator,
            .secret = &job->secret,
            .run = run_task,
            .context = job,
        }));
    pl_status status = pl_supervisor_run(&(pl_supervisor_opts) {
        .cluster = cluster,
        .here = threads,
        .workers_listen = cluster->ps == 0,
        .argv = job->command.argv,
        .logs = job->folder.path,
        .timeline = job->timeline,
        .join_ms = t->options.train.join_timeout * 1000,
        .end_ms = END_MS,
        .interrupt = &t->interrupt,
        .show = show,
        .context = job,
    });
    pl_error failed;
    pl_error_save(&failed, status);
    pl_host_threads_free(threads, &failed);
    return pl_error_raise(&failed);
}

pl_status pl_training_threads(pl_training *t)
{
    thread_job job = { .training = t, .folder = { .lock = -1 } };
    pl_error failed;
    pl_error_save(&failed, supervise(&job));
    pl_command_line_close(&job.command);
    pl_keys_wipe(&job.secret, sizeof job.secret);
    pl_timeline_free(job.timeline);
    pl_run_folder_close(&job.folder);
    return pl_error_raise(&failed);
}

/* job.c - `launch`: finds the hosts, connects to their agents, assigns the
 * tasks and runs the job to its end. */
#include "app/launch/launch.h"
#include "app/launch/train_mpirun.h"
#include "app/options/command_line.h"
#include "app/options/options.h"
#include "app/options/resume.h"
#include "app/run/run_folder.h"
#include "app/task/part.h"
#include "app/train/interrupt.h"
#include "app/view/metrics_server.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/console.h"
#include "base/text/quote.h"
#include "job/hosts/cluster_launch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The most words that the command of a task has beyond the user's. */
#define EXTRA 8

/* A job on many hosts. */
typedef struct job {
    const pl_app *app;
    const pl_launch_flags *flags;
    pl_options options;
    pl_part part;
    pl_launch_hosts hosts;
    const atomic_bool *interrupt;
    char **argv; /* of a task; it owns all words */
    size_t words;
    char *run, *logs;
    char folder[PATH_MAX];
} job;

/* --- the hosts --------------------------------------------------------- */

static pl_status own_program(char **out)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0)
        return PL_FAIL(PL_IO, "read /proc/self/exe: %s", strerror(errno));
    path[length] = '\0';
    return pl_mem_copy_text(out, path);
}

static pl_status find_hosts(pl_launch_hosts *hosts,
                            const pl_launch_flags *flags)
{
    const char *nodes = getenv("SLURM_JOB_NODELIST");
    pl_status status;
    if (flags->cluster != NULL) {
        PL_TRY(pl_cluster_read(&hosts->cluster, flags->cluster, flags->deploy));
        return pl_host_list_of_cluster(&hosts->list, &hosts->cluster);
    }
    if (flags->hosts != NULL) {
        status = pl_host_list_parse(&hosts->list, flags->hosts);
        return status == PL_OK ? PL_OK : pl_context(status, "--hosts");
    }
    if (nodes == NULL || nodes[0] == '\0')
        return PL_FAIL(PL_USAGE, "no hosts: give --hosts a,b,c or --cluster "
                                 "FILE, or run launch inside a Slurm "
                                 "allocation (sbatch, salloc)");
    hosts->reach.srun = true;
    return pl_host_list_slurm(&hosts->list, nodes);
}

static pl_status find_program(pl_launch_hosts *hosts,
                              const pl_launch_flags *flags)
{
    hosts->reach.ssh = flags->ssh;
    if (flags->program == NULL)
        PL_TRY(own_program(&hosts->program));
    hosts->reach.program =
        flags->program != NULL ? flags->program : hosts->program;
    if (strchr(hosts->reach.program, '\'') != NULL)
        return PL_FAIL(PL_USAGE,
                       "--program %s: the path must not contain a "
                       "quote",
                       hosts->reach.program);
    return PL_OK;
}

static pl_status open_hosts(pl_launch_hosts *hosts,
                            const pl_launch_flags *flags,
                            const atomic_bool *interrupt)
{
    PL_TRY(find_hosts(hosts, flags));
    PL_TRY(find_program(hosts, flags));
    if (flags->copy) {
        PL_TRY(PL_NEW(hosts->copies, (size_t)hosts->list.count));
        PL_TRY(pl_launch_copy(&hosts->list, &hosts->reach, hosts->copies,
                              interrupt));
    }
    return pl_hosts_init(&hosts->hosts,
                         &(pl_hosts_opts) {
                             .list = &hosts->list,
                             .reach = &hosts->reach,
                             .programs = (const char *const *)hosts->copies,
                             .interrupt = interrupt,
                         });
}

pl_status pl_launch_hosts_init(pl_launch_hosts *hosts,
                               const pl_launch_flags *flags,
                               const atomic_bool *interrupt)
{
    *hosts = (pl_launch_hosts) { 0 };
    pl_status status = open_hosts(hosts, flags, interrupt);
    if (status != PL_OK)
        pl_launch_hosts_close(hosts);
    return status;
}

void pl_launch_hosts_close(pl_launch_hosts *hosts)
{
    pl_hosts_close(&hosts->hosts);
    for (int32_t h = 0; hosts->copies != NULL && h < hosts->list.count; h++)
        pl_mem_free(hosts->copies[h]);
    pl_mem_free(hosts->copies);
    pl_mem_free(hosts->program);
    pl_host_list_close(&hosts->list);
    pl_cluster_close(&hosts->cluster);
    *hosts = (pl_launch_hosts) { 0 };
}

/* --- the command of a task -------------------------------------------- */

static pl_status add(job *j, const char *word)
{
    PL_TRY(pl_mem_copy_text(&j->argv[j->words], word));
    j->words++;
    return PL_OK;
}

static pl_status make_command(job *j, int argc, char **argv)
{
    PL_TRY(PL_NEW(j->argv, (size_t)argc + EXTRA));
    PL_TRY(add(j, j->app->program));
    for (int i = 0; i < argc;) {
        int skip = pl_command_line_kept(&j->options, argc - i, argv + i);
        if (skip == 0)
            PL_TRY(add(j, argv[i++]));
        i += skip;
    }
    return PL_OK;
}

/* --- the user's command ----------------------------------------------- */

/* Read the command as `train` itself does on one machine: errors in it are
 * reported before anything starts. */
static pl_status read_options(job *j, int argc, char **argv)
{
    const pl_train_options *train = &j->options.train;
    PL_TRY(pl_options_parse(&j->options, argc - 2, argv + 2));
    if (train->cluster != NULL || train->role >= 0 || train->keys != NULL ||
        train->insecure)
        return PL_FAIL(PL_USAGE, "--cluster, --role, --keys and --insecure "
                                 "are not for tasks that launch starts; give "
                                 "--cluster before the --");
    return PL_OK;
}

/* The tasks: those of --cluster, or as many as the command has, by default a
 * worker for each host. */
static pl_status count_tasks(job *j)
{
    pl_train_options *train = &j->options.train;
    const pl_cluster *cluster = &j->hosts.cluster;
    if (cluster->workers > 0) {
        if (PL_GIVEN(&j->options, workers) || PL_GIVEN(&j->options, ps))
            return PL_FAIL(PL_USAGE,
                           "--workers and --ps: the cluster file has "
                           "%d workers and %d servers; leave them "
                           "out",
                           cluster->workers, cluster->ps);
        train->workers = cluster->workers;
        train->ps = cluster->ps;
    } else if (train->workers == 0) {
        train->workers = j->hosts.list.count;
    }
    if (train->engine < 0) /* as for tasks started by hand */
        train->engine = PL_TRAIN_ENGINE_RING;
    PL_TRY(pl_part_init(&j->part, &j->options, NULL));
    return pl_options_resolve(&j->options);
}

static pl_status open_run(job *j)
{
    pl_run_folder folder;
    PL_TRY(pl_run_folder_init(&folder, &j->options, NULL));
    pl_status status = pl_mem_copy_text(&j->run, folder.path);
    pl_run_folder_close(&folder); /* the chief locks it from here on */
    PL_TRY(status);
    PL_TRY(pl_file_join(&j->logs, j->run, "log"));
    return pl_file_make_folder(j->logs);
}

/* "a,b,c" */
static pl_status join_hosts(const pl_host_list *hosts, char **out)
{
    PL_TRY(pl_mem_copy_text(out, hosts->name[0]));
    for (int32_t h = 1; h < hosts->count; h++) {
        char *longer;
        PL_TRY(pl_mem_format(&longer, "%s,%s", *out, hosts->name[h]));
        pl_mem_free(*out);
        *out = longer;
    }
    return PL_OK;
}

/* --- running ---------------------------------------------------------- */

void pl_launch_print(const pl_job_task *task, bool error, const char *line,
                     bool quiet)
{
    pl_buffer quoted = { 0 };
    bool ours = !error && task->worker == 0;
    /* The chief's output goes to a file or pipe unchanged. */
    if (ours && !isatty(STDOUT_FILENO))
        pl_buffer_text(&quoted, line);
    else
        pl_quote_terminal(&quoted, line);
    const char *text = quoted.data != NULL ? quoted.data : "";
    if (ours) {
        printf("%s\n", text);
        fflush(stdout);
    } else if (!quiet) {
        pl_console_print("%s %d on %s: %s\n", pl_role_text(task->task.role),
                         task->task.index, task->host->name, text);
    }
    pl_buffer_close(&quoted);
}

static void print(void *context, const pl_job_task *task, bool error,
                  const char *line)
{
    pl_launch_print(task, error, line,
                    ((const job *)context)->options.train.quiet);
}

static pl_cluster_launch_opts launch_opts(job *j)
{
    const pl_train_options *train = &j->options.train;
    const pl_cluster *given = &j->hosts.cluster;
    return (pl_cluster_launch_opts) {
        .hosts = &j->hosts.hosts,
        .cluster = given->workers > 0 ? given : &j->part.cluster,
        .argv = j->argv,
        .folder = j->folder,
        .logs = j->logs,
        .restarts = train->on_worker_loss == PL_TRAIN_LOSS_ABORT
                        ? 0
                        : (int32_t)train->restarts,
        .go_on = train->on_worker_loss == PL_TRAIN_LOSS_CONTINUE,
        .interrupt = j->interrupt,
        .print = print,
        .context = j,
    };
}

pl_status pl_launch_secret_file(const pl_launch_hosts *hosts,
                                const pl_secret *secret, const char *folder,
                                char **out)
{
    char *path;
    *out = NULL;
    if (!hosts->reach.srun)
        return PL_OK;
    PL_TRY(pl_mem_format(&path, "%s/.key-%ld", folder, (long)getpid()));
    pl_status status = pl_secret_write(secret, path);
    if (status == PL_OK)
        *out = path;
    else
        pl_mem_free(path);
    return status;
}

/* In the folder of the run's records. */
static pl_status write_secret(const job *j, const pl_secret *secret, char **out)
{
    char *folder;
    *out = NULL;
    if (j->run[0] == '/')
        return pl_launch_secret_file(&j->hosts, secret, j->run, out);
    PL_TRY(pl_file_join(&folder, j->folder, j->run));
    pl_status status = pl_launch_secret_file(&j->hosts, secret, folder, out);
    pl_mem_free(folder);
    return status;
}

/* With agents, which start each task. */
static pl_status run_by_agents(job *j)
{
    pl_secret secret;
    PL_TRY(open_run(j));
    pl_log(PL_LOG_INFO,
           "%s: %d workers and %d parameter servers on %d hosts; logs in %s",
           j->options.model->name, j->part.cluster.workers, j->part.cluster.ps,
           j->hosts.list.count, j->logs);
    PL_TRY(pl_secret_make(&secret));
    pl_cluster_launch_opts opts = launch_opts(j);
    char *file;
    pl_status status = write_secret(j, &secret, &file);
    opts.secret = &secret;
    opts.secret_file = file;
    opts.run = j->run;
    pl_stop *stop = pl_interrupt_listen(j->run, NULL, false);
    pl_metrics_server *metrics = NULL;
    if (status == PL_OK)
        status = pl_metrics_server_start(&metrics, &j->options.train, j->run);
    if (status == PL_OK)
        status = pl_cluster_launch_run(&opts);
    pl_metrics_server_stop(metrics);
    pl_stop_free(stop);
    if (file != NULL)
        unlink(file);
    pl_mem_free(file);
    pl_keys_wipe(&secret, sizeof secret);
    return status;
}

/* With mpirun, which reaches the hosts itself. */
static pl_status run_by_mpirun(job *j)
{
    pl_cluster_launch_opts opts = launch_opts(j);
    char *hosts = NULL;
    bool srun = j->hosts.reach.srun;
    PL_TRY(pl_cluster_launch_check(&opts));
    pl_hosts_close(&j->hosts.hosts);
    if (!srun) /* in an allocation mpirun knows the nodes */
        PL_TRY(join_hosts(&j->hosts.list, &hosts));
    pl_status status = pl_train_mpirun(&(pl_train_mpirun_opts) {
        .app = j->app,
        .options = &j->options,
        .hosts = hosts,
        .ssh = srun ? NULL : j->flags->ssh,
        .program = j->hosts.copies != NULL ? j->hosts.copies[0]
                                           : j->hosts.reach.program,
    });
    pl_mem_free(hosts);
    return status;
}

static pl_status copy_data(const job *j)
{
    const char *const sources[] = { j->options.train.data,
                                    j->options.train.test_data };
    return pl_launch_data(&j->hosts, sources, 2, j->interrupt);
}

static pl_status start(job *j, int argc, char **argv)
{
    const pl_train_options *train = &j->options.train;
    PL_TRY(read_options(j, argc, argv));
    PL_TRY(pl_resume_check(&j->options));
    if (getcwd(j->folder, sizeof j->folder) == NULL)
        return PL_FAIL(PL_IO, "the working folder: %s", strerror(errno));
    j->interrupt = pl_interrupt_catch();
    PL_TRY(pl_launch_hosts_init(&j->hosts, j->flags, j->interrupt));
    PL_TRY(count_tasks(j));
    PL_TRY(make_command(j, argc, argv));
    if (j->flags->copy)
        PL_TRY(copy_data(j));
    return train->strategy == PL_TRAIN_STRATEGY_ALLREDUCE &&
                   train->engine == PL_TRAIN_ENGINE_MPI
               ? run_by_mpirun(j)
               : run_by_agents(j);
}

static void close_job(job *j)
{
    pl_launch_hosts_close(&j->hosts);
    pl_part_close(&j->part);
    pl_options_close(&j->options);
    for (size_t i = 0; i < j->words; i++)
        pl_mem_free(j->argv[i]);
    pl_mem_free(j->argv);
    pl_mem_free(j->run);
    pl_mem_free(j->logs);
    pl_mem_free(j);
}

pl_status pl_launch_job(const pl_app *app, const pl_launch_flags *flags,
                        int argc, char **argv)
{
    const pl_model *model;
    job *j;
    PL_TRY(pl_app_model(app, argv[1], &model));
    PL_TRY(PL_NEW(j, 1));
    j->app = app;
    j->flags = flags;
    pl_status status = pl_options_init(&j->options, model);
    if (status != PL_OK) {
        pl_mem_free(j);
        return status;
    }
    status = start(j, argc, argv);
    if (status == PL_INTERRUPTED && j->run != NULL && pl_resume_begun(j->run))
        status = PL_FAIL(PL_INTERRUPTED,
                         "interrupted; to continue, run the same command with "
                         "--run %s --resume",
                         j->run);
    close_job(j);
    return status;
}

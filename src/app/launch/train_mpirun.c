/* train_mpirun.c - runs an MPI job with mpirun, and restarts it from its last
 * checkpoint as long as that can help. */
#include "app/launch/train_mpirun.h"

#include "app/options/command_line.h"
#include "app/run/run_folder.h"
#include "app/train/interrupt.h"
#include "app/view/metrics_server.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "job/supervise/mpirun.h"

#define EXIT_USAGE       2
#define EXIT_INTERRUPTED 130

/* Choose the folder only: the ranks lock it themselves. */
static pl_status choose_folder(const pl_options *options, char **out)
{
    pl_run_folder folder;
    PL_TRY(pl_run_folder_init(&folder, options, NULL));
    pl_status status = pl_mem_copy_text(out, folder.path);
    pl_run_folder_close(&folder);
    return status;
}

static pl_status holds(const char *run, const char *name, bool *is_there)
{
    char *path;
    PL_TRY(pl_file_join(&path, run, name));
    *is_there = pl_file_exists(path);
    pl_mem_free(path);
    return PL_OK;
}

static pl_status run_once(const pl_train_mpirun_opts *opts, const char *run,
                          int64_t restarted, int *ended)
{
    const atomic_bool *interrupt = pl_interrupt_catch();
    const pl_options *options = opts->options;
    pl_command_line line;
    bool begun = false;
    PL_TRY(pl_command_line_init(&line, options, opts->app->program, run));
    pl_status status = holds(run, "run.json", &begun);
    if (status == PL_OK && begun && !PL_GIVEN(options, resume))
        status = pl_command_line_add(&line, "--resume");
    if (status == PL_OK)
        status = pl_command_line_number(&line, "restarted", restarted);
    if (status == PL_OK)
        status = pl_mpirun_run(
            &(pl_mpirun_opts) {
                .ranks = (int32_t)options->train.workers,
                .hosts = opts->hosts,
                .ssh = opts->ssh,
                .program = opts->program,
                .argv = line.argv,
                .interrupt = interrupt,
                .hurry = pl_interrupt_hurry(),
            },
            ended);
    /* After an interrupt the job is not restarted, whatever its exit status. */
    if (status == PL_OK && *ended != 0 && atomic_load(interrupt))
        *ended = EXIT_INTERRUPTED;
    pl_command_line_close(&line);
    return status;
}

/* The ranks have logged the reason; mpirun has logged the rank. */
static pl_status outcome(int ended)
{
    if (ended == 0)
        return PL_OK;
    if (ended == EXIT_INTERRUPTED)
        return PL_FAIL(PL_INTERRUPTED, "interrupted");
    if (ended == EXIT_USAGE)
        return PL_FAIL(PL_USAGE, "the workers were not started");
    return PL_FAIL(PL_CLOSED, "the MPI job ended with exit status %d", ended);
}

/* No restart when the job never began (the error would recur), or when it ended
 * regularly (the loss was not a number). */
static pl_status worth_another(const char *run, bool *is_worth)
{
    bool begun, ended;
    PL_TRY(holds(run, "run.json", &begun));
    PL_TRY(holds(run, "summary.json", &ended));
    *is_worth = begun && !ended;
    return PL_OK;
}

static pl_status supervise(const pl_train_mpirun_opts *opts, const char *run)
{
    pl_train_options *train = &opts->options->train;
    int64_t again =
        train->on_worker_loss == PL_TRAIN_LOSS_ABORT ? 0 : train->restarts;
    for (int64_t tried = 0;; tried++) {
        int ended;
        bool is_worth, has_summary;
        PL_TRY(run_once(opts, run, tried, &ended));
        PL_TRY(holds(run, "summary.json", &has_summary));
        if (ended == 0 && !has_summary)
            return PL_FAIL(PL_PEER,
                           "the ranks ended with exit status 0 but did not "
                           "train: the program must pass its arguments to "
                           "pl_app_main in every process");
        PL_TRY(worth_another(run, &is_worth));
        pl_status status = outcome(ended);
        if (status != PL_CLOSED || tried == again || !is_worth)
            return status;
        if (train->min_workers > 0 && train->workers > train->min_workers)
            train->workers--;
        pl_log(PL_LOG_WARN,
               "the MPI job ended with exit status %d; restarting it from its "
               "last checkpoint with %lld workers (%lld of %lld)",
               ended, (long long)train->workers, (long long)tried + 1,
               (long long)again);
    }
}

pl_status pl_train_mpirun(const pl_train_mpirun_opts *opts)
{
    char *run;
    PL_TRY(choose_folder(opts->options, &run));
    pl_log(PL_LOG_INFO,
           "%s: %lld workers on %s by mpirun; MPI traffic is neither "
           "authenticated nor encrypted",
           opts->options->model->name, (long long)opts->options->train.workers,
           opts->hosts != NULL ? opts->hosts : "this machine");
    pl_stop *stop = pl_interrupt_listen(run, NULL, false);
    pl_metrics_server *metrics;
    pl_status status =
        pl_metrics_server_start(&metrics, &opts->options->train, run);
    if (status == PL_OK)
        status = supervise(opts, run);
    pl_metrics_server_stop(metrics);
    pl_stop_free(stop);
    pl_mem_free(run);
    return status;
}

/* A cluster launch: decides in which order the hosts get questions, and makes
 * each a host of the supervisor. */
#include "job/hosts/cluster_launch_priv.h"

#include "base/error.h"
#include "base/mem.h"
#include "job/hosts/host_agent.h"

#include <string.h>

#define END_MS 20000

/* Append "--run DIR" to the command, and the launcher's folder if that
 * differs. */
static pl_status make_command(const pl_cluster_launch *l, pl_run_of_host *run)
{
    size_t count = 0;
    while (l->opts->argv[count] != NULL)
        count++;
    PL_TRY(PL_NEW(run->argv, count + 3));
    memcpy(run->argv, l->opts->argv, count * sizeof *run->argv);
    run->first = count;
    PL_TRY(pl_mem_format(&run->argv[count++], "--run=%s", run->run));
    return run->shared ? PL_OK
                       : pl_mem_format(&run->argv[count], "--launched-run=%s",
                                       l->opts->run);
}

static pl_status make_commands(pl_cluster_launch *l)
{
    for (int32_t h = 0; l->runs != NULL && h < l->hosts->list->count; h++)
        PL_TRY(make_command(l, &l->runs[h]));
    return PL_OK;
}

static void close_run(pl_run_of_host *run)
{
    for (size_t i = run->first; run->argv != NULL && run->argv[i] != NULL; i++)
        pl_mem_free(run->argv[i]);
    pl_mem_free(run->argv);
    pl_mem_free(run->run);
    pl_record_sink_free(run->sink);
}

static pl_status open_places(pl_cluster_launch *l)
{
    const pl_cluster_launch_opts *opts = l->opts;
    int32_t count = l->hosts->list->count;
    PL_TRY(PL_NEW(l->places, (size_t)count));
    for (int32_t h = 0; h < count; h++)
        PL_TRY(pl_host_agent_new(
            &l->places[h],
            &(pl_host_agent_opts) {
                .remote = &l->hosts->remotes[h],
                .cluster = &l->cluster,
                .argv = l->runs != NULL ? l->runs[h].argv : opts->argv,
                .run = l->runs != NULL ? &l->runs[h] : NULL,
                .secret = opts->secret,
                .secret_file = opts->secret_file,
                .logs = opts->logs,
                .silent_ms = opts->silent_ms,
                .tasks = l->count,
            }));
    return PL_OK;
}

pl_status pl_cluster_launch_supervise(pl_cluster_launch *l)
{
    const pl_cluster_launch_opts *opts = l->opts;
    PL_TRY(open_places(l));
    pl_status status = pl_supervisor_run(&(pl_supervisor_opts) {
        .cluster = opts->cluster,
        .hosts =
            &(pl_job_hosts) {
                .hosts = l->places,
                .count = l->hosts->list->count,
                .host_of = l->host_of,
            },
        .argv = opts->argv,
        .logs = opts->logs,
        .restarts = opts->restarts,
        .go_on = opts->go_on,
        .end_ms = opts->end_ms > 0 ? opts->end_ms : END_MS,
        .interrupt = opts->interrupt,
        .print = opts->print,
        .context = opts->context,
    });
    pl_error ended; /* missing records must not hide it */
    pl_error_save(&ended, status);
    pl_cluster_launch_collect(l);
    return pl_error_raise(&ended);
}

void pl_cluster_launch_close(pl_cluster_launch *l)
{
    for (int32_t h = 0; l->places != NULL && h < l->hosts->list->count; h++)
        pl_host_agent_free(l->places[h]);
    for (int32_t h = 0; l->runs != NULL && h < l->hosts->list->count; h++)
        close_run(&l->runs[h]);
    pl_mem_free(l->runs);
    pl_mem_free(l->places);
    pl_mem_free(l->host_of);
    pl_cluster_close(&l->cluster);
}

pl_status pl_cluster_launch_check(const pl_cluster_launch_opts *opts)
{
    pl_cluster_launch l = { .opts = opts, .hosts = opts->hosts };
    pl_status status = pl_cluster_launch_place(&l);
    if (status == PL_OK)
        status = pl_cluster_launch_locate(&l);
    if (status == PL_OK)
        status = pl_cluster_launch_try(&l);
    pl_cluster_launch_close(&l);
    return status;
}

static pl_status run(pl_cluster_launch *l)
{
    PL_TRY(pl_cluster_launch_place(l));
    PL_TRY(pl_cluster_launch_locate(l));
    PL_TRY(make_commands(l));
    PL_TRY(pl_cluster_launch_try(l));
    PL_TRY(pl_cluster_launch_restore(l));
    PL_TRY(pl_cluster_launch_find_ports(l));
    return pl_cluster_launch_supervise(l);
}

pl_status pl_cluster_launch_run(const pl_cluster_launch_opts *opts)
{
    pl_cluster_launch l = { .opts = opts, .hosts = opts->hosts };
    pl_status status = run(&l);
    pl_cluster_launch_close(&l);
    return status;
}

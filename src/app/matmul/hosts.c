/* hosts.c - the workers of a matrix product on the hosts of `launch`: decides
 * which command each worker gets, and leaves the rest to the launcher.  Workers
 * get their addresses from TF_CONFIG, as the tasks of a training do. */
#include "app/matmul/matmul.h"
#include "app/train/interrupt.h"
#include "base/mem.h"
#include "job/hosts/cluster_launch.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

static void print(void *context, const pl_job_task *task, bool error,
                  const char *line)
{
    (void)context;
    pl_launch_print(task, error, line, false);
}

/* The words are borrowed. */
static pl_status make_command(const pl_matmul_command *command, int argc,
                              char **argv, char ***out)
{
    char **words;
    PL_TRY(PL_NEW(words, (size_t)argc + 3));
    words[0] = (char *)command->app->program;
    words[1] = (char *)"matmul";
    memcpy(words + 2, argv, (size_t)argc * sizeof *words);
    *out = words;
    return PL_OK;
}

static pl_status launch(const pl_cluster *cluster, pl_launch_hosts *hosts,
                        char *const *argv, const char *logs)
{
    char folder[PATH_MAX], *file;
    pl_secret secret;
    if (getcwd(folder, sizeof folder) == NULL)
        return PL_FAIL(PL_IO, "the working folder: %s", strerror(errno));
    PL_TRY(pl_secret_make(&secret));
    pl_status status = pl_launch_secret_file(hosts, &secret, folder, &file);
    if (status == PL_OK)
        status = pl_cluster_launch_run(&(pl_cluster_launch_opts) {
            .hosts = &hosts->hosts,
            .cluster = cluster,
            .argv = argv,
            .folder = folder,
            .secret = &secret,
            .secret_file = file,
            .logs = logs,
            .interrupt = pl_interrupt_catch(),
            .print = print,
        });
    if (status != PL_NOMEM && file != NULL)
        unlink(file);
    pl_mem_free(file);
    pl_keys_wipe(&secret, sizeof secret);
    return status;
}

pl_status pl_matmul_hosts(const pl_matmul_command *command,
                          pl_launch_hosts *hosts, int argc, char **argv)
{
    const pl_cluster *given = &hosts->cluster;
    pl_cluster dealt = { 0 };
    char **words = NULL, *logs = NULL;
    pl_status status;
    if (given->ps > 0)
        return PL_FAIL(PL_USAGE,
                       "matmul has no parameter servers, but the "
                       "cluster file has %d; leave them out",
                       given->ps);
    PL_TRY_OUT(status,
               pl_cluster_local(&dealt, command->job.workers, 0, false));
    PL_TRY_OUT(status, make_command(command, argc, argv, &words));
    PL_TRY_OUT(status, pl_matmul_logs(&logs));
    status = launch(given->workers > 0 ? given : &dealt, hosts, words, logs);
    status = pl_matmul_drop_logs(logs, status);
out:
    pl_cluster_close(&dealt);
    pl_mem_free(words);
    return status;
}

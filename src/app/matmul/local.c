/* local.c - starts the workers of a matrix product on this machine under the
 * supervisor. */
#include "app/matmul/matmul.h"
#include "app/train/interrupt.h"
#include "base/error.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "job/supervise/supervisor.h"
#include "matmul/plan/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGS_MOST 24

/* The command line of the workers. */
typedef struct arguments {
    char *argv[ARGS_MOST]; /* NULL-terminated; it owns all words */
    size_t count;
} arguments;

static pl_status add_text(arguments *a, const char *word, const char *value)
{
    PL_TRY(pl_mem_copy_text(&a->argv[a->count++], word));
    return value == NULL ? PL_OK
                         : pl_mem_copy_text(&a->argv[a->count++], value);
}

static pl_status add_number(arguments *a, const char *flag, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return value == 0 ? PL_OK : add_text(a, flag, text); /* 0: the default */
}

static pl_status fill_arguments(arguments *a, const pl_matmul_command *command)
{
    const pl_matmul_flags *flags = &command->flags;
    char seed[24];
    snprintf(seed, sizeof seed, "%lld", (long long)flags->seed);
    PL_TRY(add_text(a, command->app->program, "matmul"));
    PL_TRY(add_number(a, "--n", flags->n));
    PL_TRY(add_number(a, "--blocks", flags->blocks));
    PL_TRY(add_number(a, "--workers", flags->workers));
    PL_TRY(add_number(a, "--threads", flags->threads));
    PL_TRY(add_number(a, "--join-timeout", flags->join_timeout));
    PL_TRY(add_text(a, "--seed", seed));
    PL_TRY(add_text(a, "--op",
                    flags->op == PL_MATMUL_TRACE ? "trace" : "product"));
    PL_TRY(add_text(a, "--placement", flags->placement));
    PL_TRY(add_text(a, "--transport", flags->transport == 1 ? "tcp" : "auto"));
    if (flags->compare)
        PL_TRY(add_text(a, "--compare", NULL));
    return flags->json ? add_text(a, "--json", NULL) : PL_OK;
}

static void drop_arguments(arguments *a)
{
    for (size_t i = 0; i < ARGS_MOST; i++)
        pl_mem_free(a->argv[i]);
}

/* All workers take their memory from this machine. */
static pl_status check_memory(const pl_matmul_command *command)
{
    int64_t bytes = 0, n = command->job.n;
    char whose[48];
    for (int32_t w = 0; w < command->job.workers; w++) {
        pl_matmul_plan plan;
        PL_TRY(pl_matmul_plan_init(&plan, &command->placement, w));
        bytes += pl_matmul_plan_bytes(&plan, &command->placement, w);
        pl_matmul_plan_close(&plan);
    }
    snprintf(whose, sizeof whose, "%d worker%s", command->job.workers,
             command->job.workers == 1 ? "" : "s");
    PL_TRY(pl_matmul_memory(command, bytes, whose));
    if (!command->flags.compare)
        return PL_OK;
    return pl_matmul_memory(command, 3 * n * n * (int64_t)sizeof(float),
                            "the product in one process, for --compare,");
}

pl_status pl_matmul_logs(char **out)
{
    const char *base = getenv("TMPDIR");
    PL_TRY(pl_mem_format(out, "%s/paceline-matmul-XXXXXX",
                         base != NULL && base[0] != '\0' ? base : "/tmp"));
    if (mkdtemp(*out) != NULL)
        return PL_OK;
    pl_status status = PL_FAIL(PL_IO, "make a folder like %s for the logs: %s",
                               *out, strerror(errno));
    pl_mem_free(*out);
    *out = NULL;
    return status;
}

static pl_status supervise(const pl_matmul_command *command, const char *logs)
{
    arguments line = { 0 };
    pl_cluster cluster = { 0 };
    pl_secret secret;
    pl_status status;
    PL_TRY_OUT(status, fill_arguments(&line, command));
    PL_TRY_OUT(status, pl_secret_make(&secret));
    PL_TRY_OUT(status,
               pl_cluster_local(&cluster, command->job.workers, 0, false));
    status = pl_supervisor_run(&(pl_supervisor_opts) {
        .cluster = &cluster,
        .argv = line.argv,
        .secret = &secret,
        .logs = logs,
        .workers_listen = true,
        .join_ms = command->flags.join_timeout * 1000,
        .interrupt = pl_interrupt_catch(),
    });
out:
    pl_keys_wipe(&secret, sizeof secret);
    pl_cluster_close(&cluster);
    drop_arguments(&line);
    return status;
}

pl_status pl_matmul_drop_logs(char *logs, pl_status status)
{
    pl_error error;
    pl_error_save(&error, status);
    if ((status == PL_OK || status == PL_INTERRUPTED) &&
        pl_file_remove_all(logs) != PL_OK)
        pl_log(PL_LOG_WARN, "%s", pl_error_message());
    pl_mem_free(logs);
    return pl_error_raise(&error);
}

pl_status pl_matmul_local(const pl_matmul_command *command)
{
    char *logs;
    if (command->flags.keys != NULL || command->flags.insecure)
        return PL_FAIL(PL_USAGE, "--keys and --insecure are for workers "
                                 "started by hand, with --cluster; workers "
                                 "started here get their own keys");
    PL_TRY(check_memory(command));
    PL_TRY(pl_matmul_logs(&logs));
    return pl_matmul_drop_logs(logs, supervise(command, logs));
}
